"""What hindsight is worth: the best fixed slacks of a run beside fixed slacks that were chosen without it.

The best fixed pair of slacks in hindsight is chosen by a run's own periods. Here other pairs are chosen in the same way
by the periods of other runs, with other seeds: they know a good deal about how delays are distributed, and nothing of
this run. What they keep over the best in hindsight, and how many of its periods they reach, is not a limit to what a
controller can do, which sees the run as it goes; it says how much of the best is luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from benchmarks import recall
from benchmarks.disorder import DATA, SECOND, Times
from benchmarks.recall_checks import Checked, Say
from benchmarks.recall_replay import Progress, Replay, least_pair, may_lose
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim

NAME: Final = "foresight"
DATA_SET: Final = "phone"  # whose single cases keep most over the best in hindsight
OTHERS: Final = (201, 202, 777, 9001, 31337)  # seeds of other runs
SHARES: Final = (0.95, recall.PERIODS)  # of the other runs' periods that reach the target: as in hindsight, as of ours
TARGETS: Final = (0.95, 0.99)  # below, no slack at all is enough in most cases


@dataclass(frozen=True)
class Kept:
    """Rows over those of the best fixed pair in hindsight, and the share of all periods that reach the target."""

    rows: float
    periods: float

    @property
    def shown(self) -> tuple[str, str]:
        return f"{self.rows:.2f}", f"{self.periods:.2f}"


@dataclass(frozen=True)
class Foreseen:
    """One case: rows of the best pair in hindsight, and beside it pairs chosen by other runs, one for each of `SHARES`,
    and ours.
    """

    window: float
    size: float
    target: float
    best: float
    chosen: list[Kept]
    ours: Kept


def foresight(seed: int, quick: bool, say: Say) -> Checked:
    """All cases in which a target asks for anything; nothing is judged."""
    data = DATA[DATA_SET]
    sizes, windows, others = (recall.SIZES, recall.WINDOWS, OTHERS)
    if quick:
        sizes, windows, others = sizes[1:], windows[1:2], others[:1]
    seconds = 6.0 * data.period if quick else data.seconds
    cases: list[Foreseen] = []
    for size in sizes:
        for window in windows:
            say(f"{DATA_SET}: windows of {window / SECOND:g} s, micro-batches of {size / SECOND:g} s, other seeds ...")
            replays = [Replay(data.draw(each, seconds), size, window, data.period * SECOND) for each in (seed, *others)]
            cases += _cases(replays)
    table = new_table(
        f"{DATA_SET}: fixed pairs of slacks chosen by {len(others)} other seeds, beside the best in hindsight",
        "window s", "micro-batch s", "target", "best fixed",
        *(name for share in SHARES for name in (f"/best, by {share:.0%} of theirs", "periods")), "ours/best", "periods",
    )  # fmt: skip
    for case in cases:
        table.add_row(
            f"{case.window:g}", f"{case.size:g}", f"{case.target:g}", f"{case.best:,.0f}",
            *(text for each in (*case.chosen, case.ours) for text in each.shown),
        )  # fmt: skip
    table.caption = (
        "best fixed: keeps the fewest rows and reaches the target in 95% of this seed's periods; chosen: the same by "
        "the other seeds' periods; periods: the share of all of this seed's that is reached"
    )
    return Checked(NAME, table, [], {"cases": [asdict(case) for case in cases], "others": list(others)})


def _cases(replays: list[Replay]) -> Iterator[Foreseen]:
    mine, *others = replays
    aims = [Aim(target, mine.period, SECOND, mine.step) for target in TARGETS]
    own, *known = [each.hindsight(aims[0].edges) for each in replays]
    at_slack_0 = 1 - int(mine.lost(mine.fixed((0, 0))).sum()) / int(mine.pairs.sum())
    for ours in mine.run(aims):
        target = ours.aim.target
        if at_slack_0 >= target:
            continue
        best = mine.best_fixed(own, target)
        chosen = [
            Kept(mine.kept(progress) / best, periods_reached(mine, progress, target))
            for share in SHARES
            for progress in [mine.fixed(chosen_by(others, known, aims[0].edges, target, share))]
        ]
        kept = Kept(mine.kept(ours.progress) / best, periods_reached(mine, ours.progress, target))
        yield Foreseen(mine.window / SECOND, mine.size / SECOND, target, best, chosen, kept)


def chosen_by(
    others: Sequence[Replay], known: Sequence[tuple[list[Any], list[Times]]], edges: Times, target: float, share: float
) -> tuple[int, int]:
    """The fixed slacks that keep the fewest rows on average and reach the target in this share of all their periods."""
    pairs = np.concatenate([each.pairs for each in others])
    rows = [np.mean([kept[number] for _, kept in known], axis=0) for number in (0, 1)]
    lost = [np.concatenate([gone[number] for gone, _ in known])[pairs > 0] for number in (0, 1)]
    one, two = least_pair(lost, rows, may_lose(pairs[pairs > 0], target), share)
    return int(edges[one]), int(edges[two])


def periods_reached(replay: Replay, progress: Progress, target: float) -> float:
    """The share of the periods with results that reach the target."""
    there = replay.pairs > 0
    return float((replay.lost(progress)[there] <= may_lose(replay.pairs[there], target)).mean())
