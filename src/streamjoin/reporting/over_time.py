"""Figures over time, as plots: those that a query has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from streamjoin.reporting.charts import Line, Plot
from streamjoin.reporting.measured import MicroBatch, few

LATENCY: Final = (
    "An estimate, from a row's arrival to the end of the micro-batch that read it, when its results are in the sink. "
    "Spark does not tell when a row arrived: it is taken to have come after Spark's last look at the sources before, "
    "any moment being as likely. Micro-batches whose rows may have waited longer are left out, and counted at the top: "
    "the first of a run; one after another that left rows at a source, as the source says; one right after another "
    "that took rows of a source with a limit which does not say what it left, as folders of files do not; and all of a "
    "query that reads what is there, once. Through Spark Connect it is not known which sources have a limit, so any "
    "may; and an idle query looks more often than is known, and was quicker. Of very many micro-batches neighbours are "
    "one, with the mean of their rows. Results that wait for order, or for an end, wait as long as the plan says."
)
POINTS: Final = 300  # of a line: more cannot be seen, and a live page is sent again and again
SHARES: Final = (0.5, 0.9, 0.99)
STEPS: Final = ("pack", "read", "join", "write")
# What sources say still lies there, with its unit.
BACKLOGS: Final = {"files": "files not read yet", "offsets": "offsets not read yet, of the partition with most"}
# With a unit of their own: the name of a time axis, by how many seconds it shows at most.
CLOCKS: Final = ((600, 1, "seconds"), (36_000, 60, "minutes"), (864_000, 3600, "hours"), (float("inf"), 86_400, "days"))

Value = Callable[[MicroBatch], float | None]
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Names:
    """What stages and their inputs are called, by the names of figures."""

    stages: Mapping[str, str]
    inputs: Mapping[tuple[str, int], str]

    def label(self, key: tuple[str, ...], word: str) -> str:
        """What the line of a figure is called: by its stage and its input, where there are several, and the word.

        >>> Names({"j": ""}, {("j", 0): "left"}).label(("j", "lag", "0"), "")
        'left'
        """
        own = self.inputs.get((key[0], int(key[-1])), f"input {key[-1]}") if key[-1].isdigit() else ""
        stage = self.stages.get(key[0], key[0])
        return ": ".join(part for part in (stage, own, word) if part)


@dataclass(frozen=True)
class History:
    """Micro-batches on an axis that begins with the first of them."""

    batches: Sequence[MicroBatch]
    names: Names

    @property
    def clock(self) -> tuple[float, str]:
        """How many seconds a unit of the axis has, and what it is called."""
        whole = self.batches[-1].ended - self.batches[0].began
        return next((size, name) for limit, size, name in CLOCKS if whole <= limit)

    @property
    def axis(self) -> str:
        """What the axis shows."""
        return f"{self.clock[1]} since the first micro-batch began"

    def points(self, value: Value) -> Points:
        """A value for each micro-batch that has one, when it ends."""
        size, start = self.clock[0], self.batches[0].began
        found = ((batch.ended, value(batch)) for batch in self.batches)
        return [((ended - start) / size, each) for ended, each in found if each is not None]

    def line(self, label: str, value: Value) -> Line:
        """One line."""
        return Line(label, self.points(value))

    def own(self, *figure: str, word: str = "", counted: bool = False) -> list[Line]:
        """A line for every stage, and every input, that has such a figure; of what is counted, per micro-batch."""
        keys = sorted({key for batch in self.batches for key in batch.figures if key[1 : 1 + len(figure)] == figure})
        value = _per_batch if counted else _figure
        return [self.line(self.names.label(key, word), partial(value, key)) for key in keys]

    def rates(self, name: str) -> Points:
        """Rows of a micro-batch by the time since the one before had ended."""
        before = {id(batch): (last.ended if last else batch.began) for last, batch in _with_last(self.batches)}
        return self.points(lambda batch: batch.total(name) / max(1e-3, batch.ended - before[id(batch)]))


def _figure(key: tuple[str, ...], batch: MicroBatch) -> float | None:
    return batch.figures.get(key)


def _per_batch(key: tuple[str, ...], batch: MicroBatch) -> float | None:
    return batch.figures[key] / batch.number if key in batch.figures else None


def _step(step: str, batch: MicroBatch) -> float:
    return sum(value for key, value in batch.figures.items() if key[1:] == ("seconds", step)) / batch.number


def _with_last(batches: Sequence[MicroBatch]) -> Iterator[tuple[MicroBatch | None, MicroBatch]]:
    return zip([None, *batches], batches, strict=False)


def plots_of(batches: Sequence[MicroBatch], names: Names, unit: str) -> list[Plot]:
    """The plots that have something to show; `unit` is that of lengths of event time."""
    history = History(few(batches, POINTS), names)
    plots = [*_flow(history), *_state(history), *_lateness(history, unit), *_recall(history, unit), *_rest(history)]
    return [plot for plot in plots if any(line.points for line in plot.lines)]


def _plot(history: History, title: str, y: str, lines: Sequence[Line], *words: str, numbers: str = ",") -> Plot:
    return Plot(title, history.axis, y, lines, words, linear=True, numbers=numbers)


def _flow(history: History) -> Iterator[Plot]:
    rows = [Line("rows in", history.rates("rows_in")), Line("rows out", history.rates("rows_out"))]
    yield _plot(history, "Throughput", "rows per second", rows, numbers="~s")
    lines = [history.line(f"p{100 * share:.0f}", partial(_latency, share)) for share in SHARES]
    yield _plot(history, "Latency from arrival to sink", "seconds", lines, LATENCY)
    took = [history.line("", lambda batch: batch.busy / batch.number)]
    yield _plot(history, "How long micro-batches take", "seconds", took)


def _latency(share: float, batch: MicroBatch) -> float | None:
    return batch.latency(share)


def _state(history: History) -> Iterator[Plot]:
    yield _plot(history, "State: rows", "rows kept", history.own("state_rows"), numbers="~s")
    spilled = _with_values(history.own("spilled_bytes", word="of them in files"))
    size = history.own("state_bytes", word="all" if spilled else "")
    yield _plot(history, "State: bytes", "bytes", [*size, *spilled], numbers="~s")
    yield _plot(history, "State: sorted runs", "runs", history.own("state_runs"), "What is merged falls to one run.")
    spills = _with_values(history.own("spills", word="spills", counted=True))
    merges = _with_values(history.own("merges", word="merges", counted=True))
    words = "Times that rows left memory for files, and sorted runs that were made of others; over all buckets."
    yield _plot(history, "State: spills and merges", "per micro-batch", [*spills, *merges], words)


def _lateness(history: History, unit: str) -> Iterator[Plot]:
    invalid = _with_values(history.own("invalid", word="invalid", counted=True))
    words = "Rows behind the progress of their input; the call says what becomes of them."
    yield _plot(
        history, "Late rows", "rows per micro-batch", [*history.own("late", word="late", counted=True), *invalid], words
    )
    words = "How far the progress of each input is behind the newest row of any."
    yield _plot(history, "Lag", unit, history.own("lag"), words)


def _recall(history: History, unit: str) -> Iterator[Plot]:
    lines = history.own("recall", "expected", word="expected")
    targets = history.own("recall", "target", word="target")
    lines += [replace(line, dashed=True) for line in targets]
    words = "What is expected to be found of all results, beside the target; sj.true_recall says what was found."
    yield replace(_plot(history, "Recall", "share of all results", lines, words), from_zero=False)
    yield _plot(history, "Slack that the target asks for", unit, history.own("recall", "slack"))
    yield _plot(history, "Rows kept for the target", "rows", history.own("recall", "kept_rows"), numbers="~s")


def _rest(history: History) -> Iterator[Plot]:
    words = "Urgent rows go first; where most rows are, the others stand still."
    yield _plot(history, "Urgent rows", "share of the rows", history.own("urgent", "share", word="urgent"), words)
    words = "Since the progress of an input has moved last: with nothing but urgent rows it stands."
    yield _plot(history, "Progress that stands", "seconds", history.own("urgent", "standing"), words)
    for kind in sorted({kind for batch in history.batches for kind in batch.waiting}):
        lines = [history.line("", partial(_waiting, kind))]
        yield _plot(history, f"Backlog of the sources: {kind}", BACKLOGS.get(kind, kind), lines)
    steps = [history.line(step, partial(_step, step)) for step in STEPS]
    words = "Seconds of tasks, which run side by side; packing includes waiting for Spark's rows."
    yield _plot(history, "Where the time goes", "seconds per micro-batch", steps, words)


def _waiting(kind: str, batch: MicroBatch) -> float | None:
    return batch.waiting.get(kind)


def _with_values(lines: Sequence[Line]) -> list[Line]:
    """The lines that are not zero all the time."""
    return [line for line in lines if any(y for _, y in line.points)]
