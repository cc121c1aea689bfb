"""Tracked areas: every row is handed out exactly once, with whether it met anyone, and in which parts of its life."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.state import Matching, SweepArea
from tests.state.areas import Piece, fates, ids_at, met, put
from tests.state.making import batch, drawn, ids


def test_rows_are_handed_out_at_their_end_with_their_fate() -> None:
    area = SweepArea(Matching(), tracked=True)
    put(area, batch([(0, 5), (0, 7), (0, 9)]))
    met(area, 0, [1])
    assert fates(list(area.purge(4))) == {}
    assert fates(list(area.purge(5))) == {0: (False, [])}
    assert fates(list(area.purge(5))) == {}
    assert fates(list(area.purge(8))) == {1: (True, [])}
    assert fates(list(area.purge(FOREVER))) == {2: (False, [])}
    assert area.rows == 0


def test_a_row_that_is_behind_progress_when_it_comes_is_handed_out_at_the_next_purge() -> None:
    area = SweepArea(Matching(), tracked=True)
    list(area.purge(10))
    put(area, batch([(0, 5)]))
    assert fates(list(area.purge(10))) == {0: (False, [])}


def test_an_untracked_area_hands_out_nothing() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5)]))
    assert list(area.purge(FOREVER)) == []


def test_pieces_go_with_their_rows() -> None:
    area = SweepArea(Matching(), tracked=True, covered=True)
    put(area, batch([(0, 5), (0, 9), (0, 9)]))
    met(area, 0, [0, 1, 1], [(1, 2), (3, 4), (5, 6)])
    assert fates(list(area.purge(5))) == {0: (True, [(1, 2)])}
    assert len(area.kept[0].meetings.all_pieces()[0]) == 2, "pieces of rows that have left are not kept"
    met(area, 0, [1], [(7, 9)])
    assert fates(list(area.purge(9))) == {1: (True, [(3, 4), (5, 6), (7, 9)]), 2: (False, [])}


def test_pieces_find_their_rows_again_after_a_merge() -> None:
    area = SweepArea(Matching(), tracked=True, covered=True)
    put(area, batch([(4, 50), (1, 5), (2, 60)]))
    met(area, 0, ids_at(area, 0, [0, 1, 2]), [(4, 5), (1, 2), (2, 3)])
    put(area, batch([(3, 70), (0, 80)], ids=[3, 4]))
    met(area, 1, ids_at(area, 1, [3]), [(6, 7)])
    assert fates(list(area.purge(5))) == {1: (True, [(1, 2)])}
    assert len(area.kept) == 1, "the example itself is wrong: nothing was merged"
    assert fates(list(area.purge(FOREVER))) == {
        0: (True, [(4, 5)]),
        2: (True, [(2, 3)]),
        3: (True, [(6, 7)]),
        4: (False, []),
    }


@pytest.mark.parametrize("covered", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_contract_every_row_leaves_exactly_once_with_all_that_happened_to_it(covered: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    area = SweepArea(Matching(), tracked=True, covered=covered)
    ends: dict[int, int] = {}
    pieces: dict[int, list[Piece]] = {}
    left: Counter[int] = Counter()
    progress, next_id = -10, 0
    for action in [*rng.choice(["insert", "meet", "purge"], 60), "end"]:
        if action == "insert":
            rows = drawn(rng, int(rng.integers(1, 6)), first_id=next_id)
            next_id += len(rows)
            put(area, rows)
            ends |= dict(zip(ids(rows), rows.te.tolist(), strict=True))
        elif action == "meet" and area.kept:
            place = int(rng.integers(len(area.kept)))
            row = int(rng.integers(len(area.kept[place].run)))
            number = ids(area.kept[place].run.rows)[row]
            if number not in left:
                piece = (int(rng.integers(0, 5)), int(rng.integers(5, 9)))
                met(area, place, [row], [piece] if covered else None)
                pieces.setdefault(number, []).append(piece)
        elif action in ("purge", "end"):
            progress = FOREVER if action == "end" else progress + int(rng.integers(0, 4))
            found = fates(list(area.purge(progress)))
            assert set(found) == {number for number, te in ends.items() if te <= progress} - set(left), f"seed {seed}"
            left.update(list(found))
            for number, (matched, parts) in found.items():
                assert matched == (number in pieces), f"seed {seed}"
                # A piece lasts no longer than its row: of a row whose end was unknown it may have been said to.
                within = [(start, min(end, ends[number])) for start, end in pieces.get(number, [])]
                expected = sorted((start, end) for start, end in within if start < end)
                assert parts == (expected if covered else []), f"seed {seed}"
    assert left == Counter(range(next_id)), f"seed {seed}"
    assert area.rows == 0, f"seed {seed}"


def test_the_first_undecided_row_is_the_earliest_whose_fate_is_open() -> None:
    area = SweepArea(Matching(), tracked=True)
    assert area.first_undecided(unmatched_only=True) is None
    put(area, batch([(3, 5), (1, 9), (2, 9)]))
    met(area, 0, ids_at(area, 0, [1]))
    assert area.first_undecided(unmatched_only=True) == 2
    assert area.first_undecided(unmatched_only=False) == 1
    list(area.purge(8))
    assert area.first_undecided(unmatched_only=True) == 2
    met(area, 0, ids_at(area, 0, [2]))
    assert area.first_undecided(unmatched_only=True) is None
    assert area.first_undecided(unmatched_only=False) == 1
