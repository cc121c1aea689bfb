"""When runs in memory merge: the law of large ones, of which no test has as many rows as it takes, with fewer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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


SIMULATORS: dict[str, Callable[[int], Any]] = {
    **{family: partial(simulator.simulate, family=family) for family in simulator.FAMILIES},
    "many": many_simulator.simulate,
    "urgent": priority_simulator.simulate,
    "query": relational_simulator.simulate,
}


@pytest.mark.parametrize("family", SIMULATORS)
def test_oracle_simulators_with_runs_that_are_soon_large(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "LARGE", 2)
    blocks: list[tuple[int, int]] = []
    find = merging.to_merge

    def noted(sizes: Any, large: int | None) -> tuple[int, int] | None:
        block = find(sizes, large)
        blocks.extend([block] if block is not None and large is not None and max(sizes[block[0] :]) >= large else [])
        return block

    monkeypatch.setattr(merging, "to_merge", noted)
    seeds.check_all(SIMULATORS[family], range(9_000, 9_020))
    assert blocks or family == "asof", "large runs have never been merged"
