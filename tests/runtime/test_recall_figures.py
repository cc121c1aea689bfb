"""What a join to a recall target tells of each micro-batch: against the rows themselves."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import NEVER
from streamjoin.operators.recall.counts import counted
from streamjoin.runtime.recall_figures import QUANTILES, delays, late_rows
from tests.in_process import Troubled
from tests.plan.test_recall import TARGET, WINDOW, planned
from tests.plan.test_recall import late_rows as rows_by_batch


@pytest.mark.parametrize("buckets", [1, 3])
def test_against_the_rows_themselves(buckets: int) -> None:
    """Cells of one tick, so that nothing is rounded."""
    running = Troubled(planned(target=replace(TARGET, granularity=1), buckets=buckets))
    batches = rows_by_batch(11, 500)
    largest, told, late_seen, most = [NEVER, NEVER], [NEVER, NEVER], 0, [0, 0]
    for both in batches:
        running.rows({"0": both[0], "1": both[1]})
        stages = [stage for (number, _), stage in running.running.items() if number == 0]
        for stage in stages:
            figures = stage.figures()
            for number in (0, 1):
                times = both[number]["ts"].to_pylist()
                if not times:
                    continue
                if largest[number] > NEVER:
                    behind = sorted(max(0, largest[number] - ts) for ts in times)
                    for name, share in QUANTILES.items():
                        expected = behind[math.ceil(share * len(behind)) - 1]
                        assert figures[f"delay_{name}_{number}"] == expected
                rows = zip(times, both[number]["k"].to_pylist(), strict=True)
                late = Counter(key for ts, key in rows if ts < told[number])
                assert figures[f"late_{number}"] == late.total()
                assert figures[f"late_classes_{number}"] == len(late)
                assert figures[f"late_most_{number}"] == max(late.values(), default=0)
                late_seen += late.total()
                slack = figures[f"slack_{1 - number}"]
                assert figures[f"kept_for_{number}"] == WINDOW + slack
        told = stages[0].intake.progress()
        largest = [max(before, *each["ts"].to_pylist(), NEVER) for before, each in zip(largest, both, strict=True)]
        kept = [sum(stage.figures()[f"kept_rows_{number}"] for stage in stages) for number in (0, 1)]
        assert sum(kept) == running.state_rows
        most = [max(pair) for pair in zip(most, kept, strict=True)]
    assert min(most) > 10
    assert late_seen > 20


def test_wide_cells_tell_a_little_less() -> None:
    """Rows of a cell as late as its last instant: never more than is true, and less by no more than a cell."""
    rng = np.random.default_rng(5)
    ts, keys = rng.integers(0, 1000, 400), rng.integers(0, 9, 400)
    exact, wide = (counted(keys, ts, width=width, bits=16) for width in (1, 20))
    for name, value in delays(exact, 900).items():
        assert value - 20 < delays(wide, 900)[name] <= value
    assert late_rows(wide, 505)["late"] <= late_rows(exact, 505)["late"] <= late_rows(wide, 524)["late"]
    assert late_rows(wide, 500) == late_rows(exact, 500)


def test_nothing_to_tell() -> None:
    empty = counted(np.zeros(0, np.int64), np.zeros(0, np.int64), width=1, bits=4)
    assert delays(empty, 7) == {}
    assert delays(counted(np.zeros(1, np.int64), np.ones(1, np.int64), width=1, bits=4), NEVER) == {}
    assert late_rows(empty, 7) == {"late": 0, "late_classes": 0, "late_most": 0}
