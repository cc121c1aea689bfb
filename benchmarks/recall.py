"""`streamjoin bench recall`: joins to a recall target against the best fixed slacks in hindsight, and MP-K-slack.

For each data set, window, micro-batch and target: recall with slack 0 (only where it is below the target does the
target say anything), true and predicted recall, the share of the periods that reach the target after warm-up, rows kept
on average, and those against both rivals. Arrays only: what decides is what decides in a stage, without its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.disorder import DATA, MS, SECOND, DataSet
from benchmarks.race import Verdict
from benchmarks.recall_replay import Replay, may_lose
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim

SEED: Final = 4711
TARGETS: Final = (0.80, 0.85, 0.90, 0.95, 0.99)
WINDOWS: Final = (50 * MS, 200 * MS, 2 * SECOND)
SIZES: Final = (SECOND, 5 * SECOND)
QUESTIONS: Final = tuple(DATA)
QUICK: Final = ((0.9,), (2 * SECOND,), (5 * SECOND,), 0.25)

NEAR: Final = 0.01  # prediction and truth
PERIODS: Final = 0.9  # that reach the target after warm-up
SHORT: Final = {"regime": 0.15}
SHORTFALL: Final = 0.05
MEAN_KEPT, MOST_KEPT = 1.25, 1.5  # times the best fixed pair


@dataclass(frozen=True)
class Case:
    """One data set at one window, micro-batch and target."""

    window: float
    size: float
    target: float
    at_slack_0: float
    recall: float
    predicted: float
    periods: float
    missed: int
    shortfall: float
    kept: float
    best: float
    k_slack: float
    k_slack_recall: float
    k_slack_waits: float
    bare: float
    warm: float  # rows kept after warm-up, over those of the bare window

    @property
    def counts(self) -> bool:
        """Whether the target asks for anything."""
        return self.at_slack_0 < self.target


@dataclass(frozen=True)
class Outcome:
    """All cases of a data set."""

    name: str
    cases: list[Case]

    @property
    def asked(self) -> list[Case]:
        return [case for case in self.cases if case.counts]

    @property
    def verdicts(self) -> list[Verdict]:
        """What must hold, over the cases in which the target asks for anything."""
        made = [self._verdict("prediction off", self.cases, lambda c: abs(c.predicted - c.recall), NEAR, max)]
        if self.name in ("D1", "D2"):
            made.append(self._verdict("kept/bare after warm-up", self.cases, lambda c: c.warm, 1.05, max))
        if not self.asked:
            return made
        real = DATA[self.name].real
        least = -0.005 if real else 0.0
        made.append(
            self._verdict("recall - target", self.asked, lambda c: c.recall - c.target, least, min, at_most=False)
        )
        if real:
            return made
        short = SHORT.get(self.name, SHORTFALL)
        if self.name == "regime":  # one onset
            made.append(self._verdict("periods missed", self.asked, lambda c: c.missed, 3, max))
        else:
            reached = self._verdict("periods reached", self.asked, lambda c: c.periods, PERIODS, _mean, at_most=False)
            made.append(reached)
        made += [
            self._verdict("shortfall of a period", self.asked, lambda c: c.shortfall, short, max),
            self._verdict("kept/best fixed, mean", self.asked, lambda c: c.kept / c.best, MEAN_KEPT, _geometric),
            self._verdict("kept/best fixed, most", self.asked, lambda c: c.kept / c.best, MOST_KEPT, max),
        ]
        low = [case for case in self.asked if case.target <= 0.9]
        if low and self.name != "bimodal":
            made.append(self._verdict("kept/K-slack, most", low, lambda c: c.kept / c.k_slack, 0.5, max))
        return made

    def _verdict(
        self,
        what: str,
        cases: Iterable[Case],
        of: Callable[[Case], float],
        target: float,
        over: Callable[[list[float]], float],
        *,
        at_most: bool = True,
    ) -> Verdict:
        measured = over([of(case) for case in cases])
        return Verdict(f"{self.name}: {what}", measured, target, f"{measured:.4f}", at_most=at_most)

    def to_json(self) -> dict[str, Any]:
        """All that was measured."""
        return {"cases": [asdict(case) for case in self.cases]}


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def measure(name: str, quick: bool, say: Callable[[str], None]) -> Outcome:
    """All cases of a data set."""
    data = DATA[name]
    targets, windows, sizes, part = QUICK if quick else (TARGETS, WINDOWS, SIZES, 1.0)
    streams = data.draw(SEED, max(data.seconds * part, 4.0 * data.period))
    cases: list[Case] = []
    for size in sizes:
        for window in windows:
            say(f"{name}: windows of {window / SECOND:g} s, micro-batches of {size / SECOND:g} s ...")
            cases += _cases(Replay(streams, size, window, data.period * SECOND), targets, data)
    return Outcome(name, cases)


def _cases(replay: Replay, targets: Iterable[float], data: DataSet) -> Iterable[Case]:
    total = int(replay.pairs.sum())
    bare = replay.fixed((0, 0))
    at_slack_0 = 1 - int(replay.lost(bare).sum()) / total
    waiting, k_rows, k_waits = replay.k_slack()
    k_recall = 1 - int(replay.lost(waiting).sum()) / total
    aims = [Aim(target, replay.period, SECOND, replay.step) for target in targets]
    known = replay.hindsight(aims[0].edges)
    for ours in replay.run(aims):
        target, lost = ours.aim.target, replay.lost(ours.progress)
        warm = slice(data.warm_up, None)
        there = replay.pairs[warm] > 0
        pairs, gone = replay.pairs[warm][there], lost[warm][there]
        reached = gone <= may_lose(pairs, target)
        yield Case(
            replay.window / SECOND, replay.size / SECOND, target, at_slack_0, 1 - int(lost.sum()) / total,
            ours.predicted, float(reached.mean()), int((~reached).sum()),
            max(0.0, float((target - 1 + gone / pairs).max())), replay.kept(ours.progress),
            replay.best_fixed(known, target),
            k_rows, k_recall, k_waits, replay.kept(bare),
            replay.kept(ours.progress, data.warm_up) / replay.kept(bare, data.warm_up),
        )  # fmt: skip


def table_of(outcome: Outcome) -> Table:
    """Every case; those in which slack 0 suffices are dim."""
    data = DATA[outcome.name]
    table = new_table(
        f"{outcome.name}: {data.seconds:g} s, periods of {data.period} s, seed {SEED}", "window s", "micro-batch s",
        "target", "slack 0", "true", "predicted", "periods", "shortfall", "kept", "/best fixed", "/K-slack", "/bare",
        "K-slack waits s",
    )  # fmt: skip
    for case in outcome.cases:
        table.add_row(
            f"{case.window:g}", f"{case.size:g}", f"{case.target:g}", f"{case.at_slack_0:.4f}", f"{case.recall:.4f}",
            f"{case.predicted:.4f}", f"{case.periods:.2f}", f"{case.shortfall:.3f}", f"{case.kept:,.0f}",
            f"{case.kept / case.best:.2f}", f"{case.kept / case.k_slack:.2f}", f"{case.kept / case.bare:.2f}",
            f"{case.k_slack_waits:.1f}", style=None if case.counts else "dim",
        )  # fmt: skip
    table.caption = (
        "true and predicted: over the run; periods: share that reaches the target after warm-up; best fixed: of all "
        "pairs of slacks the one that keeps fewest and reaches the target in 95% of periods; our rows join at once"
    )
    return table
