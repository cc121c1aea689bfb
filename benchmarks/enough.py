"""`streamjoin bench enough`: the same streams with fixed graces, the largest delay and recall targets, for the guide.

What each keeps and what it misses, in one plot: docs/guides/recall.svg. Rows join on arrival under all of them, so what
differs is only how long rows are kept. Arrays only, as `bench recall`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.disorder import DATA, SECOND
from benchmarks.environments import ROOT
from benchmarks.recall_replay import Progress, Replay
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim
from streamjoin.reporting.charts import Line, Plot

SEED: Final = 815
QUESTIONS: Final = ("mobile", "regime", "exp")
GRACES: Final = (0, 1, 5, 20, 60, 120, 300)  # seconds
TARGETS: Final = (0.80, 0.85, 0.90, 0.95, 0.99)
WINDOW, SIZE = 2 * SECOND, 5 * SECOND
PLOT: Final = ROOT / "docs" / "guides" / "recall.svg"
PLOTTED: Final = "regime"
LEAST: Final = 1e-5  # of a logarithmic axis, for nothing missed


@dataclass(frozen=True)
class Way:
    """One way to say how long rows are kept, and what came of it."""

    said: str
    kept: float  # rows, after a micro-batch, on average
    most: float  # rows, at most
    missed: float  # of the true results
    worst: float  # of those of one period, after warm-up


@dataclass(frozen=True)
class Enough:
    """One data set under all of them."""

    name: str
    graces: list[Way]
    largest: Way
    targets: list[Way]

    @property
    def ways(self) -> list[Way]:
        return [*self.graces, self.largest, *self.targets]

    def to_json(self) -> dict[str, Any]:
        """All that was measured."""
        return {"ways": [asdict(way) for way in self.ways]}


def measure(name: str, quick: bool, say: Callable[[str], None]) -> Enough:
    """A data set, under all of them."""
    data = DATA[name]
    say(f"{name}: fixed graces, the largest delay, recall targets ...")
    replay = Replay(data.draw(SEED, data.seconds * (0.1 if quick else 1)), SIZE, WINDOW, data.period * SECOND)

    def way(said: str, progress: Progress) -> Way:
        lost, there = replay.lost(progress), replay.pairs > 0
        warm = there & (np.arange(len(there)) >= (0 if quick else data.warm_up))
        rows = kept_rows(replay, progress)
        worst = float((lost[warm] / replay.pairs[warm]).max())
        return Way(said, float(rows.mean()), float(rows.max()), int(lost.sum()) / int(replay.pairs.sum()), worst)

    aims = [Aim(target, replay.period, SECOND, replay.step) for target in TARGETS]
    return Enough(
        name,
        [way(f"Grace({grace} s)", replay.fixed((grace * SECOND, grace * SECOND))) for grace in GRACES],
        way("MaxDelay()", replay.k_slack()[0]),
        [way(f"Recall({ours.aim.target:g})", ours.progress) for ours in replay.run(aims)],
    )


def kept_rows(replay: Replay, progress: Progress) -> Any:
    """Rows that are kept after each micro-batch."""
    steps = np.zeros(replay.steps + 1)
    for number, stream in enumerate(replay.streams):
        came = replay.batch[number]
        gone = np.maximum(came, np.searchsorted(progress[1 - number][1:], stream.ts + replay.window))
        np.add.at(steps, came, 1)
        np.add.at(steps, gone, -1)
    return np.cumsum(steps)[: replay.steps]


def table_of(enough: Enough) -> Table:
    """What each way keeps and misses."""
    table = new_table(
        f"{enough.name}: windows of {WINDOW // SECOND} s, micro-batches of {SIZE // SECOND} s, seed {SEED}",
        "lateness", "rows kept", "at most", "missed", "missed in the worst period",
    )  # fmt: skip
    for way in enough.ways:
        table.add_row(way.said, f"{way.kept:,.0f}", f"{way.most:,.0f}", f"{way.missed:.2%}", f"{way.worst:.2%}")
    return table


def plot_of(enough: Enough) -> str:
    """Kept against missed, as SVG."""

    def points(ways: Sequence[Way]) -> list[tuple[float, float]]:
        return [(way.kept, max(LEAST, way.missed)) for way in ways]

    lines = [
        Line(f"Grace: {', '.join(str(each) for each in GRACES)} s", points(enough.graces), "#888"),
        Line(f"Recall: {', '.join(f'{each:g}' for each in TARGETS)}", points(enough.targets), "#0a6"),
        Line("MaxDelay", points([enough.largest]), "#c33"),
    ]
    words = [f"{enough.name}, as benchmarks/disorder.py says it; below {LEAST:g} is drawn there. Less is better."]
    return Plot("How much is enough", "rows kept, on average", "share of the results missed", lines, words).svg()


def write_plot(enough: Enough, path: Path = PLOT) -> None:
    """The plot of the guide."""
    path.write_text(plot_of(enough))
