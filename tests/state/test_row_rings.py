"""The newest n rows of each group: against plain lists, through growth, new pools and restarts."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from streamjoin.state import RowRings, row_rings
from streamjoin.state.row_rings import SMALLEST_RING
from tests.state.storing import Store, moved


class Lists:
    """The same by lists."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.groups: dict[int, list[int]] = defaultdict(list)

    def push(self, group: list[int], ts: list[int], holder: list[int]) -> list[tuple[int, int]]:
        out = []
        for g, t, h in zip(group, ts, holder, strict=True):
            rows = self.groups[g]
            rows.append(h)
            if len(rows) > self.size:
                out.append((rows.pop(0), t))
        return out


def push(rings: RowRings, group: list[int], ts: list[int], holder: list[int]) -> list[tuple[int, int]]:
    ends = rings.push(*(np.array(column, np.int64) for column in (group, ts, holder)))
    return list(zip(ends.holder.tolist(), ends.te.tolist(), strict=True))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 100])
@pytest.mark.parametrize("seed", range(6))
def test_oracle_the_newest_of_each_group_are_kept(size: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved after each step into a store that writes a part once, and sometimes restored from it."""
    rng = random.Random(1000 * size + seed)
    monkeypatch.setattr(row_rings, "LITTLE", rng.choice([0, 5, 1 << 12]))
    rings, lists, store, time, holder = RowRings(size), Lists(size), Store(), 0, 0
    groups = rng.choice([1, 3, 40])
    for step in range(40):
        rows = rng.choice([0, 1, 3, 30])
        group = [min(rng.randrange(groups), rng.randrange(groups)) for _ in range(rows)]
        ts = sorted(time + rng.randint(0, 3) for _ in range(rows))
        time, holders = (ts[-1] if rows else time), list(range(holder, holder + rows))
        holder += rows
        where = f"size {size}, seed {seed}, step {step}"
        assert push(rings, group, ts, holders) == lists.push(group, ts, holders), where
        assert rings.rows == sum(map(len, lists.groups.values())), where
        assert sum(part.kept for part in rings.parts.values()) == rings.rows, where
        store.save(rings.snapshot("rings"))
        if rng.random() < 0.3:
            rings = moved(rings, RowRings(size), store)
            assert rings.rows == sum(map(len, lists.groups.values())), where
    kept = [holder for group in sorted(lists.groups) for holder in lists.groups[group]]
    assert rings.drain().tolist() == kept
    assert (rings.rows, rings.parts, rings.nbytes) == (0, {}, 0)


def test_a_ring_begins_small_and_grows_to_the_size_of_the_window() -> None:
    rings, capacities = RowRings(100), []
    for step in range(120):
        assert push(rings, [0], [step], [step]) == ([(step - 100, step)] if step >= 100 else [])
        capacities.append(int(rings.capacity[0]))
    assert capacities[0] == SMALLEST_RING
    assert sorted(set(capacities)) == [4, 8, 16, 32, 64, 100]
    assert capacities[-1] == 100
    assert rings.drain().tolist() == list(range(20, 120))


def test_a_ring_is_never_larger_than_the_window() -> None:
    rings = RowRings(2)
    push(rings, [0] * 50, list(range(50)), list(range(50)))
    assert rings.capacity.tolist() == [2]
    assert rings.rows == 2


def test_a_ring_that_has_turned_is_moved_in_order() -> None:
    """Its first row is not at its first place when another group's growth moves it to a new pool."""
    rings = RowRings(5)
    push(rings, [0] * 8, list(range(8)), list(range(8)))
    assert rings.head[0] == 0 or rings.count[0] == 5
    push(rings, [1] * 5, list(range(8, 13)), list(range(8, 13)))
    assert push(rings, [0] * 3, [20, 21, 22], [13, 14, 15]) == [(3, 20), (4, 21), (5, 22)]


def test_places_that_grown_rings_left_behind_are_not_taken_along() -> None:
    rings = RowRings(64)
    for step in range(64):
        push(rings, list(range(20)), [step] * 20, list(range(20 * step, 20 * step + 20)))
    needed = 20 * 64
    assert rings.rows == needed
    assert rings.pool.shape[1] <= 2 * needed


def test_many_groups_cost_what_they_hold() -> None:
    rings = RowRings(1_000_000)
    push(rings, list(range(1000)), [0] * 1000, list(range(1000)))
    assert rings.pool.shape[1] <= 2 * SMALLEST_RING * 1000


def test_a_part_is_forgotten_with_its_last_row() -> None:
    rings, store = RowRings(2), Store()
    push(rings, [0, 1], [1, 1], [0, 1])
    store.save(rings.snapshot("rings"))
    push(rings, [0, 0], [2, 3], [2, 3])
    store.save(rings.snapshot("rings"))
    assert len(store.blobs) == 2  # the row of group 1 is still there
    push(rings, [1, 1], [4, 5], [4, 5])
    store.save(rings.snapshot("rings"))
    assert len(store.blobs) == 2  # and now the first part has gone
    assert store.written == 3


def test_what_is_stored_in_vain_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of each large part stays, so that no part can go."""
    monkeypatch.setattr(row_rings, "LITTLE", 4)
    rings, most = RowRings(1), 0
    for step in range(30):
        push(rings, [step, *([1000] * 9)], [step] * 10, list(range(10 * step, 10 * step + 10)))
        most = max(most, sum(part.rows for part in rings.parts.values()) - 2 * rings.rows)
    assert most <= 4
    assert sum(part.kept for part in rings.parts.values()) == rings.rows == 31
    again = moved(rings, RowRings(1))
    assert again.drain().tolist() == rings.drain().tolist()


def test_parts_that_hold_more_than_is_kept_restore_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where reading them is itself the moment to write them anew."""
    rings, store = RowRings(3), Store()
    for step in range(5):
        push(rings, [0, 0, 0, step + 1], [step] * 4, list(range(4 * step, 4 * step + 4)))
        store.save(rings.snapshot("rings"))
    stored = sum(rows for _, rows in store.load().manifest["parts"])
    assert stored == 20 > rings.rows == 8
    for little in (1 << 12, 0):
        monkeypatch.setattr(row_rings, "LITTLE", little)
        again = RowRings(3)
        again.restore(store.load())
        assert again.rows == rings.rows
        assert sum(part.kept for part in again.parts.values()) == again.rows
        later = RowRings(3)
        store_of_later = Store()
        store_of_later.blobs, store_of_later.manifest = dict(store.blobs), store.manifest
        moved(again, later, store_of_later, "rings")
        assert push(later, [0], [9], [99]) == [(16, 9)]
        assert later.drain().tolist() == [17, 18, 99, 3, 7, 11, 15, 19]


def test_nothing_pushed_ends_nobody() -> None:
    rings = RowRings(1)
    assert push(rings, [], [], []) == []
    assert rings.parts == {}
    assert rings.drain().tolist() == []
