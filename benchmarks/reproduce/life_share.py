"""LIFE: the share of the time that lifetime management takes, by both methods.

The document read the share of its Java collector from a log, and took that for the cost of making and collecting
holders. So the share of Python's collector is judged. Here holders are numbers in arrays, and little is collected: the
work is in the row windows, which give out holders, find out ends and tell them (direct), or keep every element to say
it again (negative). Their share of the whole time of the query is shown beside.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final

from benchmarks.lifetimes_plan import Operators, plan_of
from benchmarks.lifetimes_queries import QueryName, micro_batches, tree_of, window_of_each
from benchmarks.plots import COLOURS
from benchmarks.reproduce.documents import LIFE
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from streamjoin.algebra import Method
from streamjoin.operators.negative_window import RunningNegativeWindow
from streamjoin.operators.row_window import RunningRowWindow
from streamjoin.reporting.charts import Line, Plot

GROWS: Final = 5.0  # times: the document's grow 11 and 13 times
NOTICEABLE: Final = 0.05  # of the time
ASKED: Final[tuple[QueryName, ...]] = ("selection", "union")
SIZES: Final = (10_000, 1_000_000)
QUICK_SIZES: Final = (100, 1_000)
BATCH, QUICK_BATCH = 20_000, 500
METHODS: Final[tuple[Method, ...]] = ("direct", "negative")
# Percent of the time that the collector took; of negative tuples only the larger window is told.
DOCUMENT: Final = {
    ("selection", "direct"): (1.1, 14.4), ("union", "direct"): (1.9, 21.5),
    ("selection", "negative"): (None, 4.0), ("union", "negative"): (None, 8.8),
}  # fmt: skip


@dataclass
class Clock:
    """Seconds of the process inside what is watched. What runs inside each other counts once."""

    seconds: float = 0.0
    inside: int = 0

    def enter(self) -> float:
        self.inside += 1
        return time.process_time()

    def leave(self, since: float) -> None:
        self.inside -= 1
        if not self.inside:
            self.seconds += time.process_time() - since


@dataclass
class Shares:
    """Of one run: seconds in all, in the windows, and of the collector."""

    whole: float
    windows: float
    collector: float
    tuples: int
    figures: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.figures = {
            "seconds": self.whole,
            "windows": self.windows / self.whole,
            "collector": self.collector / self.whole,
            "tuples": self.tuples,
        }


def watched(call: Callable[..., Iterator[Any]], clock: Clock) -> Callable[..., Iterator[Any]]:
    """The same method, by the clock. What it yields is somebody else's time."""

    @wraps(call)
    def timed(*arguments: Any) -> Iterator[Any]:
        outputs = iter(call(*arguments))
        while True:
            since = clock.enter()
            try:
                output = next(outputs)
            except StopIteration:
                return
            finally:
                clock.leave(since)
            yield output

    return timed


def watch(operators: Operators, clock: Clock) -> None:
    """Put the windows of a plan under the clock."""
    for operator in operators.running:
        if isinstance(operator, RunningRowWindow | RunningNegativeWindow):
            for name in ("on_batch", "on_progress"):
                setattr(operator, name, watched(getattr(operator, name), clock))


def run(query: QueryName, method: Method, tuples: int, batch: int) -> Shares:
    """Fill the windows, warm up, then one window's length, or ten micro-batches at least, by the clock."""
    size = window_of_each(query, tuples)
    operators, clock, collector = Operators(plan_of(tree_of(query, "rows", size), method)), Clock(), Clock()
    began: list[float] = []

    def collecting(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            began.append(collector.enter())
        elif began:
            collector.leave(began.pop())

    filled = (size // batch + 2) * batch
    for rows, progress in micro_batches(query, 0, filled, batch):
        for _ in operators.changes(rows, progress):
            pass
    watch(operators, clock)
    length = max(10, -(-size // batch)) * batch
    pieces = list(micro_batches(query, filled, length, batch))
    gc.callbacks.append(collecting)
    try:
        start, count = time.process_time(), 0
        for rows, progress in pieces:
            for results in operators.changes(rows, progress):
                count += len(results)
        whole = time.process_time() - start
    finally:
        gc.callbacks.remove(collecting)
    return Shares(whole, clock.seconds, collector.seconds, count)


def measure(effort: Effort) -> Findings:
    """Both queries, both methods, both sizes."""
    sizes = QUICK_SIZES if effort.quick else SIZES
    batch = QUICK_BATCH if effort.quick else BATCH
    found: dict[tuple[QueryName, Method], list[Shares]] = {}
    for query in ASKED:
        for method in METHODS:
            effort.say(f"share of lifetime management: {query}, {method} ...")
            found[query, method] = [run(query, method, tuples, batch) for tuples in sizes]
    return Findings(
        lines=_lines(found, sizes),
        plots=[_plot(found, sizes)],
        checks=[
            Check(
                "shares lie between 0 and 1, and something came out",
                all(0 < each.windows <= each.whole and each.tuples for runs in found.values() for each in runs),
            )
        ],
        shortened=f"Windows of {sizes[0]:,} and {sizes[1]:,} instead of 10,000 and 1,000,000 rows."
        if effort.quick
        else "",
        different="The document's collector is that of a Java VM with 756 MB, here it is Python's, which counts "
        "references and looks for cycles only.",
        figures={f"{query}, {method}": [each.figures for each in runs] for (query, method), runs in found.items()},
    )


def _lines(found: dict[tuple[QueryName, Method], list[Shares]], sizes: tuple[int, ...]) -> list[Finding]:
    lines = []
    for (query, method), runs in found.items():
        claimed = DOCUMENT[query, method]
        said = ", ".join(
            f"{percent:g}% at {size:,} rows"
            for percent, size in zip(claimed, SIZES, strict=True)
            if percent is not None
        )
        collector = [each.collector / each.whole for each in runs]
        measured = "Python's collector takes " + _at(collector, sizes)
        if method == "direct":
            lines.append(
                compared(
                    f"{query}, direct: the collector takes {said}: it grows with the window",
                    measured,
                    collector[1] >= max(NOTICEABLE, GROWS * collector[0]),
                    "Holders are numbers in arrays, which a collector does not follow: they give it little to do."
                    if collector[1] < NOTICEABLE
                    else "It has something to do here, but hardly more with the larger window: why is not known.",
                )
            )
        else:
            direct = found[query, "direct"][1]
            other = direct.collector / direct.whole
            lines.append(
                compared(
                    f"{query}, negative tuples: the collector takes {said}, less than with the direct method",
                    f"{measured}; with the direct method {other:.2%} at {sizes[1]:,}",
                    collector[1] < other,
                    "Neither holders nor negative tuples are objects here that a collector follows."
                    if max(collector[1], other) < NOTICEABLE
                    else "With negative tuples it has no less to do: why is not known.",
                )
            )
        lines.append(
            beside(
                f"{query}, {method}: work inside the row windows (ours)",
                _at([each.windows / each.whole for each in runs], sizes) + " of the time",
            )
        )
    return lines


def _at(shares: list[float], sizes: tuple[int, ...]) -> str:
    return ", ".join(f"{share:.2%} at {size:,} rows" for share, size in zip(shares, sizes, strict=True))


def _plot(found: dict[tuple[QueryName, Method], list[Shares]], sizes: tuple[int, ...]) -> Plot:
    lines = []
    for ((query, method), runs), colour in zip(found.items(), COLOURS, strict=False):
        points = [(size, 100 * each.windows / each.whole) for size, each in zip(sizes, runs, strict=True)]
        lines.append(Line(f"{query}, {method}: row windows", points, colour))
        claimed = [
            (size, percent) for size, percent in zip(SIZES, DOCUMENT[query, method], strict=True) if percent is not None
        ]
        if len(claimed) > 1:
            lines.append(Line(f"document: {query}, {method}", claimed, colour, dashed=True))
    words = ["Share of the process time inside row windows; the document's dashed lines are its collector's share."]
    return Plot("Time for lifetimes", "rows of the window", "% of the time", lines, words)


EXPERIMENT: Final = Experiment(
    "life-share", LIFE, "section 5.2", "Share of the time that lifetime management takes", measure, minutes=0.5
)
