"""Rings of the newest rows, against lists; and how holders are found."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.state import Ends, HolderIndex, RowRings


@pytest.mark.parametrize("seed", range(40))
def test_oracle_rings_end_what_lists_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, groups = int(rng.integers(1, 12)), int(rng.choice([1, 1, 3]))
    rings, lists, holders, time = RowRings(size), {}, 0, 0
    for _ in range(30):
        rows = int(rng.integers(1, 20))
        group = rng.integers(0, groups, rows)
        ts = np.sort(rng.integers(time, time + 5, rows))
        time, holder = int(ts[-1]), np.arange(holders, holders + rows)
        holders += rows
        expected = []
        for g, t, h in zip(group.tolist(), ts.tolist(), holder.tolist(), strict=True):
            newest = lists.setdefault(g, [])
            newest.append(h)
            if len(newest) > size:
                expected.append((newest.pop(0), t))
        arrival = rng.permutation(rows)
        ungrouped = groups == 1 and rng.random() < 0.5
        ends = rings.follow(None if ungrouped else group[arrival], ts[arrival], holder[arrival])
        assert sorted(zip(ends.holder.tolist(), ends.te.tolist(), strict=True)) == sorted(expected), f"seed {seed}"
        assert rings.rows == sum(len(newest) for newest in lists.values())
        if rng.random() < 0.3:
            restored = RowRings(size)
            restored.restore(rings.snapshot("rings"))
            rings = restored
    assert sorted(rings.drain().tolist()) == sorted(h for newest in lists.values() for h in newest)


def test_a_single_ring_has_no_places_in_vain() -> None:
    rings = RowRings(1000)
    for first in range(0, 3000, 70):
        rings.push(None, np.arange(first, first + 70), np.arange(first, first + 70))
    assert rings.nbytes <= 1000 * 24 + 64
    assert rings.holder_nbytes == 1000 * 8


@pytest.mark.parametrize(
    "holder",
    [[5, 6, 7, 8], [-1, 5, 6, -1], [8, 7, 5, 6], [5, 9, 7], [-1, -1], [7, 5, 7, -1, 5], [3, -1, 4, 5]],
    ids=["straight", "behind others", "dense, out of order", "with gaps", "none", "shared", "with one between"],
)
def test_oracle_elements_are_found_by_their_holders(holder: list[int]) -> None:
    index = HolderIndex(np.array(holder))
    for said in ([5], [4, 8, 6], [9, 1], [], [7, 5, 6, 3]):
        ends = Ends(np.array(said, np.int64), np.array([10 * h for h in said], np.int64))
        positions, te = index.find(ends)
        expected = sorted((place, 10 * h) for place, h in enumerate(holder) if h in said)
        assert sorted(zip(positions.tolist(), te.tolist(), strict=True)) == expected
    assert index.nbytes == 0 or holder not in ([5, 6, 7, 8], [-1, 5, 6, -1])
