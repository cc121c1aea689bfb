"""When runs in memory merge: the law of large ones, of which no test has as many rows as it takes, with fewer."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from streamjoin.algebra.interval import FOREVER
from streamjoin.state import Matching, SweepArea, merging
from tests import many_simulator, priority_simulator, relational_simulator, seeds, simulator
from tests.state.areas import kept_ids, purge, put
from tests.state.making import batch

SIZE, WINDOW, BATCHES = 8, 64, 256


def copies(large: int, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> tuple[float, int, float]:
    """How often a row is copied, how many runs there are at most, and which share of the rows has expired at most."""
    monkeypatch.setattr(merging, "LARGE", large)
    area, copied, total = SweepArea(Matching()), 0, 0
    known: set[str] = set()
    runs, expired = 0, 0.0
    for number in range(BATCHES):
        for size in sizes:
            put(area, batch([(number, number + WINDOW)] * size, ids=range(total, total + size)))
            total += size
        known |= {kept.run.id for kept in area.kept}
        purge(area, number)
        copied += sum(len(kept.run) for kept in area.kept if kept.run.id not in known)
        alive = sum(sizes) * min(number + 1, WINDOW)
        assert kept_ids(area) == list(range(total - alive, total))
        runs, expired = max(runs, area.runs), max(expired, 1 - alive / area.rows)
    purge(area, FOREVER)
    assert not area.rows
    return copied / total, runs, expired


@pytest.mark.parametrize("sizes", [(SIZE,), (3 * SIZE, 1), (1, SIZE, 1), (SIZE, 5 * SIZE)])
def test_contract_large_runs_are_copied_seldom_and_expire_as_a_whole(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    often, few, _ = copies(10**9, sizes, monkeypatch)
    seldom, more, expired = copies(SIZE, sizes, monkeypatch)
    assert seldom < 0.7 * often
    assert few <= more <= 24
    assert expired < 0.5


@pytest.mark.parametrize(("size", "end"), [(1, WINDOW), (SIZE - 1, WINDOW), (2 * SIZE, FOREVER)])
def test_runs_merge_geometrically_where_few_rows_come_at_once_or_none_will_expire(
    size: int, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the runs become that they are merged to."""
    monkeypatch.setattr(merging, "LARGE", SIZE)
    area = SweepArea(Matching())
    for number in range(WINDOW):
        put(area, batch([(number, min(FOREVER, number + end))] * size, ids=range(number * size, (number + 1) * size)))
        purge(area, number)
        lengths = [len(kept.run) for kept in area.kept]
        assert all(one > 2 * sum(lengths[place + 1 :]) for place, one in enumerate(lengths[:-1])), lengths
    assert area.rows == WINDOW * size
    assert lengths[0] >= SIZE


def test_restored_runs_follow_the_second_law_when_the_next_large_one_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "LARGE", SIZE)
    area = SweepArea(Matching())
    for number in range(3):
        put(area, batch([(0, WINDOW)] * SIZE, ids=range(number * SIZE, (number + 1) * SIZE)))
    purge(area, 0)
    again = SweepArea(Matching())
    again.restore(area.snapshot("area"))
    for each in (area, again):
        put(each, batch([(0, WINDOW)], ids=[3 * SIZE]))
    put(again, batch([(0, WINDOW)] * SIZE, ids=range(4 * SIZE, 5 * SIZE)))
    purge(area, 0)
    purge(again, 0)
    assert [len(kept.run) for kept in area.kept] == [SIZE, SIZE, SIZE, 1]
    assert [len(kept.run) for kept in again.kept] == [3 * SIZE + 1, SIZE]


@pytest.mark.parametrize("seed", range(40))
def test_contract_runs_are_few_and_five_eighths_are_expired_at_most(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes, at any size and with any ends, and when progress moves with nothing new."""
    large = 8
    monkeypatch.setattr(merging, "LARGE", large)
    rng, area, total, progress = np.random.default_rng(seed), SweepArea(Matching()), 0, 0
    for step in range(150):
        for _ in range(0 if step % 50 > 40 else rng.integers(0, 5)):  # now and then the stream is idle
            size = int(rng.choice([1, 2, 5, large, 4 * large, 16 * large], p=[0.3, 0.2, 0.1, 0.2, 0.15, 0.05]))
            ends = progress + 1 + (rng.exponential(10, size) if seed % 2 else rng.integers(20, 24, size))
            put(area, batch([(progress, int(end)) for end in ends], ids=range(total, total + size)))
            total += size
        purge(area, progress := progress + int(rng.integers(0, 4)))
        lengths = [len(kept.run) for kept in area.kept]
        expired = sum(int((kept.run.rows.te <= progress).sum()) for kept in area.kept)
        assert 8 * expired <= 5 * area.rows, f"seed {seed}: {expired} of {area.rows}"
        levels = math.log(max(1, *lengths, large) / large, 4) + 1
        assert len(lengths) <= 12 + 3 * levels + math.log2(large) + 1, f"seed {seed}: {lengths}"
        small = [at for at, size in enumerate(lengths[:-1]) if max(size, lengths[at + 1]) < large]
        assert all(lengths[at] > 2 * sum(lengths[at + 1 :]) for at in small), f"seed {seed}: {lengths}"
    purge(area, FOREVER)
    assert not area.rows


def test_five_eighths_hold_when_small_runs_leave_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large runs wait for a quarter of what is there afterwards, not of what was."""
    monkeypatch.setattr(merging, "LARGE", 64)
    area = SweepArea(Matching())
    for number, size in enumerate((64, 63, 63, 63, 63)):
        put(area, batch([(0, 1)] * (size - 1) + [(0, 9)], ids=range(100 * number, 100 * number + size)))
    purge(area, 1)
    assert (area.rows, kept_ids(area)) == (5, [63, 162, 262, 362, 462])


SIMULATORS: dict[str, Callable[[int], Any]] = {
    **{family: partial(simulator.simulate, family=family) for family in simulator.FAMILIES},
    "many": many_simulator.simulate,
    "urgent": priority_simulator.simulate,
    "query": relational_simulator.simulate,
}


@pytest.mark.parametrize("family", SIMULATORS)
def test_oracle_simulators_with_runs_that_are_soon_large(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[tuple[int, int]] = []
    find = merging.to_merge

    def noted(sizes: Any, large: int | None) -> tuple[int, int] | None:
        block = find(sizes, large)
        blocks.extend([block] if block is not None and large is not None and max(sizes[block[0] :]) >= large else [])
        return block

    monkeypatch.setattr(merging, "to_merge", noted)
    always = lambda _, matching: None if matching.regards_neighbours else merging.LARGE  # noqa: E731
    monkeypatch.setattr(merging, "_large", always)  # cases are often restored, and then it is not known how rows came
    monkeypatch.setattr(merging, "FAN_IN", 2)  # they have few runs
    for large in (1, 4):
        monkeypatch.setattr(merging, "LARGE", large)
        seeds.check_all(SIMULATORS[family], range(9_000 + large, 9_008 + large))
    assert bool(blocks) != (family == "asof"), "large runs have never been merged, or those of a history have"
