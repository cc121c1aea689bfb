"""Open pieces of set operators: opened and closed where the multiplicity of the result rises and falls."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from streamjoin.kernels import OPERATORS
from streamjoin.state import OpenPieces
from tests.state.storing import Store, moved

MULTIPLICITY = {
    "distinct": lambda m, n: min(1, m),
    "except": lambda m, n: int(m > 0 and n == 0),
    "intersect": lambda m, n: int(m > 0 and n > 0),
    "except all": lambda m, n: max(0, m - n),
    "intersect all": lambda m, n: min(m, n),
}


def sweep(pieces: OpenPieces, events: list[tuple[int, int, int, int]]) -> tuple[list[tuple], list[tuple]]:
    """Events (code, time, input, sign); what is opened (code, start, id) and closed (code, start, id, end)."""
    columns = tuple(np.array(column, np.int64) for column in zip(*sorted(events), strict=True))
    opened, closed = pieces.sweep(columns)
    one = list(zip(opened.code.tolist(), opened.start.tolist(), opened.id.tolist(), strict=True))
    two = (closed.code, closed.start, closed.id, closed.end)
    return one, list(zip(*(column.tolist() for column in two), strict=True))


def test_the_operators_are_those_of_the_kernel() -> None:
    assert set(OPERATORS) == set(MULTIPLICITY)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("seed", range(8))
def test_oracle_as_many_pieces_are_open_as_the_multiplicity_says(operator: str, seed: int) -> None:
    """By brute force at every instant; ids are never used twice; saved and restored now and then."""
    rng = random.Random(seed)
    pieces, store = OpenPieces(OPERATORS.index(operator), 1000), Store()
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    there: dict[int, tuple[int, int]] = {}  # by id: code and start
    used: set[int] = set()
    inputs, time = (1 if operator == "distinct" else 2), 0
    for step in range(40):
        events: list[tuple[int, int, int, int]] = []
        states: dict[tuple[int, int], int] = {}  # what the multiplicity is from an instant on
        for now in range(time, time + 4):
            for code in rng.sample(range(rng.choice([3, 30])), 3):
                for number in range(inputs):
                    change = rng.randint(-counts[code][number], 2)
                    events += [(code, now, number, 1 if change > 0 else -1)] * abs(change)
                    counts[code][number] += change
                states[code, now] = MULTIPLICITY[operator](*counts[code])
        time += 4
        if not events:
            continue
        opened, closed = sweep(pieces, events)
        for code, start, piece in opened:
            assert piece not in used
            used.add(piece)
            there[piece] = (code, start)
        ends = {piece: end for _, _, piece, end in closed}
        assert len(ends) == len(closed)
        for code, start, piece, _ in closed:
            assert there[piece] == (code, start)
        for (code, now), expected in states.items():
            alive = [p for p, (c, start) in there.items() if c == code and start <= now < ends.get(p, now + 1)]
            assert len(alive) == expected, f"{operator}, seed {seed}, step {step}, code {code} at {now}"
        there = {piece: where for piece, where in there.items() if piece not in ends}
        assert pieces.open_count == len(there)
        code, start, piece = pieces.open()
        assert dict(zip(piece.tolist(), zip(code.tolist(), start.tolist(), strict=True), strict=True)) == there
        assert Counter(code.tolist()) == Counter(c for c, _ in there.values())
        store.save(pieces.snapshot("pieces"))
        if rng.random() < 0.3:
            pieces = moved(pieces, OpenPieces(pieces.operator, 0), store)


def test_the_youngest_piece_is_closed_first() -> None:
    pieces = OpenPieces(OPERATORS.index("except all"), 0)
    sweep(pieces, [(0, 1, 0, 1), (0, 2, 0, 1), (0, 3, 0, 1)])
    for restored in (False, True):
        mine = moved(pieces, OpenPieces(pieces.operator, 0)) if restored else pieces
        assert mine.open()[1].tolist() == [1, 2, 3]
    again = moved(pieces, OpenPieces(pieces.operator, 0))
    assert sweep(again, [(0, 9, 1, 1)]) == ([], [(0, 3, 2, 9)])
    assert sweep(again, [(0, 10, 1, 1)]) == ([], [(0, 2, 1, 10)])
    assert sweep(again, [(0, 11, 1, -1)]) == ([(0, 11, 3)], [])


def test_what_ends_and_begins_at_one_instant_stays_open() -> None:
    pieces = OpenPieces(OPERATORS.index("distinct"), 0)
    assert sweep(pieces, [(0, 1, 0, 1), (0, 5, 0, -1), (0, 5, 0, 1)]) == ([(0, 1, 0)], [])


def test_places_are_used_again() -> None:
    pieces = OpenPieces(OPERATORS.index("distinct"), 0)
    for time in range(0, 200, 2):
        sweep(pieces, [(0, time, 0, 1), (0, time + 1, 0, -1)])
    assert pieces.pool.shape[1] <= 4
    assert pieces.next_id == 100
    assert pieces.open_count == 0


def test_what_has_not_changed_is_not_written_again() -> None:
    pieces, store = OpenPieces(0, 0), Store()
    sweep(pieces, [(0, 1, 0, 1)])
    store.save(pieces.snapshot("pieces"))
    store.save(pieces.snapshot("pieces"))
    assert store.written == 2
    sweep(pieces, [(0, 2, 0, -1)])
    store.save(pieces.snapshot("pieces"))
    assert store.written == 4
