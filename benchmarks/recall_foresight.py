"""What is known before a run, and what only afterwards: how far hindsight is from the best that anybody can know.

The best fixed pair of slacks in hindsight is chosen by a run's own periods. Here another fixed pair is chosen by the
periods of other runs, with other seeds: it knows exactly how delays are distributed, and nothing of this run. What it
keeps over the best in hindsight is what hindsight is worth. A controller that reaches the same share of the periods has
to learn the distribution besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from benchmarks import recall
from benchmarks.disorder import DATA, SECOND, DataSet
from benchmarks.recall_checks import Checked
from benchmarks.recall_replay import Replay, least_pair
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim

NAME: Final = "foresight"
DATA_SET: Final = "phone"  # whose single cases keep most over the best in hindsight
OTHERS: Final = (201, 202, 777, 9001, 31337)  # seeds of other runs
SHARE: Final = recall.PERIODS  # of the other runs' periods that shall reach the target: what is asked of ours, too
TARGETS: Final = (0.95, 0.99)  # below, no slack at all is enough in most cases

Say = Callable[[str], None]


@dataclass(frozen=True)
class Foreseen:
    """One case: rows that the best pair in hindsight keeps, and over these what is kept by the pair that knows the
    distribution, and by ours; with the share of the periods that either reaches.
    """

    window: float
    size: float
    target: float
    best: float
    known: float
    known_periods: float
    ours: float
    ours_periods: float


def foresight(seed: int, quick: bool, say: Say) -> Checked:
    """All cases in which a target asks for anything; nothing is judged."""
    data = DATA[DATA_SET]
    sizes, windows, others = (recall.SIZES, recall.WINDOWS, OTHERS)
    if quick:
        sizes, windows, others = sizes[1:], windows[1:2], others[:1]
    seconds = 15.0 * data.period if quick else data.seconds
    cases: list[Foreseen] = []
    for size in sizes:
        for window in windows:
            say(f"{DATA_SET}: windows of {window / SECOND:g} s, micro-batches of {size / SECOND:g} s, other seeds ...")
            replays = [Replay(data.draw(each, seconds), size, window, data.period * SECOND) for each in (seed, *others)]
            cases += _cases(replays, data)
    table = new_table(
        f"{DATA_SET}: a fixed pair that knows the distribution of delays, by {len(others)} other seeds", "window s",
        "micro-batch s", "target", "best fixed", "known/best", "periods", "ours/best", "periods",
    )  # fmt: skip
    for case in cases:
        table.add_row(
            f"{case.window:g}", f"{case.size:g}", f"{case.target:g}", f"{case.best:,.0f}", f"{case.known:.2f}",
            f"{case.known_periods:.2f}", f"{case.ours:.2f}", f"{case.ours_periods:.2f}",
        )  # fmt: skip
    table.caption = (
        f"known: keeps the fewest rows and reaches the target in {SHARE:.0%} of the other seeds' periods; best fixed: "
        "in 95% of this seed's own, which nobody knows before"
    )
    return Checked(NAME, table, [], {"cases": [asdict(case) for case in cases], "others": list(others)})


def _cases(replays: list[Replay], data: DataSet) -> Iterator[Foreseen]:
    mine, *others = replays
    aims = [Aim(target, mine.period, SECOND, mine.step) for target in TARGETS]
    edges = aims[0].edges
    own, *known = [each.hindsight(edges) for each in replays]
    total = int(mine.pairs.sum())
    at_slack_0 = 1 - int(mine.lost(mine.fixed((0, 0))).sum()) / total
    rows = [np.mean([kept[number] for _, kept in known], axis=0) for number in (0, 1)]
    pairs = np.concatenate([each.pairs for each in others])
    lost = [np.concatenate([gone[number] for gone, _ in known])[pairs > 0] for number in (0, 1)]
    for ours in mine.run(aims):
        target = ours.aim.target
        if at_slack_0 >= target:
            continue
        one, two = least_pair(lost, rows, (1 - target) * pairs[pairs > 0], SHARE)
        best = mine.best_fixed(own, target)
        yield Foreseen(
            mine.window / SECOND, mine.size / SECOND, target, best, float(own[1][0][one] + own[1][1][two]) / best,
            _reached(mine, own[0][0][:, one] + own[0][1][:, two], target, data),
            mine.kept(ours.progress) / best, _reached(mine, mine.lost(ours.progress), target, data),
        )  # fmt: skip


def _reached(replay: Replay, lost: Any, target: float, data: DataSet) -> float:
    """The share of the periods after warm-up that reach the target."""
    warm = slice(data.warm_up, None)
    there = replay.pairs[warm] > 0
    return float((lost[warm][there] <= (1 - target) * replay.pairs[warm][there]).mean())
