"""Joins in sorted runs against brute force, over many seeds, with budgets of a few rows; and the document's experiment.

STREAMJOIN_SIMULATOR_RUNS says how many; `python -m tests.tpmj_simulator --runs 2000` goes on without pytest.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band
from streamjoin.algebra.merging import Adaptive, Greedy, MaxFanIn
from streamjoin.operators.contract import Results
from streamjoin.operators.tpmj import Shares, Tpmj, ValueOrder
from streamjoin.state import Batch
from streamjoin.state.links import Link
from tests import seeds
from tests.tpmj_simulator import draw_case, simulate

RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "1000")) // 8
PARTS = 10
RESUMED = (38, 78, 85)  # seeds of cases that are restored in the middle of a merge


@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_simulator_of_sorted_runs(part: int) -> None:
    """Seeds are dealt out like cards."""
    seeds.check_all(simulate, range(part, RUNS, PARTS))


def test_oracle_buckets_go_on_in_the_middle_of_a_merge() -> None:
    """Few seeds do; these must, or what the simulator says of restarts would say nothing of merges that wait."""
    assert all(simulate(seed).resumed > 0 for seed in RESUMED)


def test_the_drawn_cases_cover_everything() -> None:
    """Over the first 1000 seeds everything that a case can be occurs."""
    counts: Counter = Counter()
    for case in map(draw_case, range(1000)):
        counts.update([
            ("inputs", case.inputs), ("kind", case.kind), ("strategy", type(case.merge).__name__),
            ("regime", case.regime), ("restarts", case.trouble > 0), ("files", case.scratch is not None),
        ])  # fmt: skip
    wanted = [("inputs", number) for number in (2, 3, 4, 5)]
    wanted += [("strategy", name) for name in ("MaxFanIn", "Greedy", "Adaptive")]
    wanted += [("restarts", True), ("files", True), ("regime", "late"), ("kind", "chain"), ("kind", "overlap")]
    for each in wanted:
        assert counts[each] >= 50, each


BIT = 2.0**-52


@pytest.mark.parametrize(
    ("widths", "values"), [((1, 8), (3.55 * BIT, 1 + 4 * BIT, 9 + 8 * BIT)), ((10**20, 10**20), (0.0, 1e20, 2e20))]
)
def test_differences_along_a_way_of_bands_may_be_rounded(widths: tuple[int, int], values: tuple[float, ...]) -> None:
    """Each link holds, and the ends may lie further apart than all bounds together, by the last bit of a double."""
    assert all(after - value <= width for value, after, width in zip(values, values[1:], widths, strict=False))
    bands = tuple(Link(at, at + 1, Band("v", "v", width, width), (0, 0)) for at, width in enumerate(widths))
    running = Tpmj((pa.schema([("id", pa.int64())]),) * 3, ValueOrder((0, 0, 0), bands=bands)).build()
    for number, value in enumerate(values):
        one = np.ones(1, np.int64)
        rows = Batch(pa.table({"id": [number]}), 0 * one, 9 * one, 0 * one, (np.array([value]),))
        assert list(running.on_batch(number, rows)) == []
    assert sum(len(results) for results in running.on_end() if isinstance(results, Results)) == 1


@pytest.mark.parametrize("in_files", [False, True])
def test_what_is_kept_is_told_wherever_it_lies(in_files: bool, tmp_path: Path) -> None:
    """Of groups in memory too; and what is in files is part of what is kept."""
    rows, folder = 1000, str(tmp_path) if in_files else None
    budget = Shares(8_000, 1 << 20, 1 << 20)
    join = Tpmj((pa.schema([("id", pa.int64())]),) * 2, ValueOrder((0, 0), interval=True), memory=budget, folder=folder)
    running, low = join.build(), np.arange(rows, dtype=np.float64)
    for number in (0, 1):
        ts = np.zeros(rows, np.int64)
        batch = Batch(pa.table({"id": np.arange(rows)}), ts, ts + 9, ts, (low, low + 0.5))
        assert list(running.on_batch(number, batch)) == []
    kept = running.footprint
    assert running.figures["groups"] > 1
    assert kept.rows == 2 * rows
    assert kept.nbytes > 2 * rows * 8
    assert (0 < kept.spilled < kept.nbytes) if in_files else kept.spilled == 0


@pytest.mark.compiled
def test_the_faster_input_has_the_longer_runs() -> None:
    """All inputs share the lists, so a run is as long as what came meanwhile; also after the rates have changed."""
    shares = Shares(lists=600, pages=1000, results=10_000)
    config = Tpmj(
        (pa.schema([("id", pa.int64())]),) * 2, ValueOrder((0, 0), interval=True), merge=Adaptive(), memory=shares,
        page_bytes=10, row_bytes=(1, 1), credit=0.0,
    )  # fmt: skip
    running, low = config.build(), np.arange(50.0)
    for number in range(40):
        for side, count in enumerate((10, 50) if number < 20 else (50, 10)):
            ts = np.full(count, number)
            rows = Batch(pa.table({"id": np.arange(count)}), ts, ts + 9, 0 * ts, (low[:count], low[:count]))
            assert list(running.on_batch(side, rows)) == []
            assert list(running.on_progress(side, number)) == []
    lengths = [[run.rows for run in group.runs] for group in running.tree.groups]
    assert lengths == [[100, 500]] * 2 + [[500, 100]] * 2


def test_page_accesses_of_the_experiment() -> None:
    """Short streams, sparser than the document's because nobody leaves: every page of MaxFanIn is written once and read
    once; all have one result.
    """
    from benchmarks.sweep_experiment import nway, permutations, steady

    size = 2_000
    lows = [4 * each for each in permutations(3, size)]
    full = nway(MaxFanIn()).run(lows, steady(size))
    greedy = nway(Greedy(8)).run(lows, steady(size))
    spared = nway(Greedy(8), spare=True).run(lows, steady(size))
    assert full.figure("pages_read") == full.figure("pages_written") >= 4 * size / 19
    assert full.figure("merges") == 1
    assert spared.pages < greedy.pages
    assert full.curve.count == greedy.curve.count == spared.curve.count > 0
