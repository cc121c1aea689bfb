"""The catalogue: a number for each different row, as GROUP BY sees it, as long as somebody needs it."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.errors import StreamjoinError
from streamjoin.state import Catalogue, catalogue
from streamjoin.state.catalogue import FEW, MOST_PARTS, same_values
from tests.state.storing import Store, moved

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
NAN = float("nan")


def table(rows: list[tuple], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.table([pa.array([row[n] for row in rows], kind) for n, kind in enumerate(schema.types)], schema=schema)


def codes(some: Catalogue, rows: list[tuple]) -> list[int]:
    return some.codes(table(rows, some.schema), len(rows)).tolist()


def rows_of(some: Catalogue, numbers: list[int]) -> list[tuple]:
    taken = some.take(np.array(numbers, np.int64))
    return list(zip(*(column.to_pylist() for column in taken.columns), strict=True))


def normal(row: tuple) -> tuple:
    """A row as GROUP BY sees it, for a dict."""
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in row)


@pytest.mark.parametrize("seed", range(20))
def test_oracle_rows_keep_their_numbers_until_they_are_released(seed: int) -> None:
    """Against a dict: known rows have their number, new ones get one that nobody has; restored now and then."""
    rng = random.Random(seed)
    mine, known, store = Catalogue(SCHEMA), {}, Store()
    width = rng.choice([2, 30])
    for step in range(60):
        drawn = [
            (rng.choice([None, *range(width)]), rng.choice([None, NAN, 0.0, -0.0, 1.5]), rng.choice([None, "", "a"]))
            for _ in range(rng.randint(0, 12))
        ]
        living = set(known.values())
        for row, code in zip(drawn, codes(mine, drawn), strict=True):
            assert known.get(normal(row), code) == code, f"seed {seed}, step {step}"
            assert normal(row) in known or code not in living, f"seed {seed}, step {step}: given out twice"
            known[normal(row)] = code
        assert len(set(known.values())) == len(known) == len(mine)
        gone = rng.sample(sorted(known, key=repr), rng.randint(0, len(known)) if rng.random() < 0.4 else 0)
        mine.release(np.array([known.pop(row) for row in gone], np.int64))
        assert len(mine) == len(known)
        order = sorted(known, key=repr)
        assert [normal(row) for row in rows_of(mine, [known[row] for row in order])] == order
        if rng.random() < 0.3:
            mine = moved(mine, Catalogue(SCHEMA), store)
            assert len(mine) == len(known)
        assert sum(len(part.codes) for part in mine.parts) <= 2 * len(mine) + FEW + 12
    assert max(known.values(), default=0) < 12 * (width + 1)


def test_numbers_are_dense_in_the_order_of_coming() -> None:
    assert codes(Catalogue(SCHEMA), [(3, 1.0, "c"), (1, 1.0, "a"), (3, 1.0, "c"), (2, 1.0, "b")]) == [0, 1, 0, 2]


def test_nulls_and_nans_equal_themselves_and_zeros_have_no_sign() -> None:
    mine = Catalogue(SCHEMA)
    rows = [(None, None, None), (None, NAN, None), (None, 0.0, None), (None, -0.0, None), (None, None, "")]
    assert codes(mine, rows) == [0, 1, 2, 2, 3]
    assert codes(moved(mine, Catalogue(SCHEMA)), rows) == [0, 1, 2, 2, 3]


def test_a_released_number_is_given_to_another_row() -> None:
    mine = Catalogue(SCHEMA)
    codes(mine, [(1, 0.0, "a"), (2, 0.0, "b"), (3, 0.0, "c")])
    mine.release(np.array([1]))
    assert codes(mine, [(4, 0.0, "d"), (5, 0.0, "e"), (3, 0.0, "c")]) == [1, 3, 2]
    assert rows_of(mine, [1, 2, 3]) == [(4, 0.0, "d"), (3, 0.0, "c"), (5, 0.0, "e")]
    again = moved(mine, Catalogue(SCHEMA))
    assert rows_of(again, [1, 2, 3]) == [(4, 0.0, "d"), (3, 0.0, "c"), (5, 0.0, "e")]
    assert codes(again, [(2, 0.0, "b")]) == [4]  # it had gone


def test_released_numbers_stay_free_through_a_restart() -> None:
    mine = Catalogue(SCHEMA)
    codes(mine, [(n, 0.0, "a") for n in range(4)])
    mine.release(np.array([0, 1, 2, 3]))
    again = moved(mine, Catalogue(SCHEMA))
    assert len(again) == 0
    assert sorted(codes(again, [(n, 1.0, "b") for n in range(4)])) == [0, 1, 2, 3]


def test_rows_without_columns_are_all_number_0() -> None:
    mine = Catalogue(pa.schema([]))
    assert mine.codes(pa.table({}), 3).tolist() == [0, 0, 0]
    mine.release(np.array([0]))
    assert mine.codes(pa.table({}), 1).tolist() == [0]
    assert mine.take(np.array([0])).num_columns == 0
    assert moved(mine, Catalogue(pa.schema([]))).codes(pa.table({}), 2).tolist() == [0, 0]


def test_no_rows_have_no_numbers() -> None:
    mine = Catalogue(SCHEMA)
    assert codes(mine, []) == []
    assert mine.take(np.empty(0, np.int64)).num_rows == 0
    mine.release(np.empty(0, np.int64))
    assert (len(mine), mine.nbytes) == (0, 0)


def test_many_parts_become_one() -> None:
    mine, most = Catalogue(SCHEMA), 0
    for number in range(5 * MOST_PARTS):
        codes(mine, [(number, 0.0, "a")])
        most = max(most, len(mine.parts))
    assert most == MOST_PARTS
    assert mine.nbytes > 0
    assert rows_of(mine, list(range(5 * MOST_PARTS))) == [(n, 0.0, "a") for n in range(5 * MOST_PARTS)]


def test_what_is_kept_in_vain_is_bounded() -> None:
    mine = Catalogue(SCHEMA)
    given = codes(mine, [(number, 0.0, "a") for number in range(1000)])
    mine.release(np.array(given[1:], np.int64))
    assert sum(len(part.codes) for part in mine.parts) == 1
    assert rows_of(mine, [0]) == [(0, 0.0, "a")]
    mine.release(np.array([0]))
    assert codes(mine, [(7, 0.0, "z")])[0] in range(1000)


def test_a_stored_part_is_written_once() -> None:
    mine, store = Catalogue(SCHEMA), Store()
    for number in range(5):
        codes(mine, [(number, 0.0, "a"), (number, 1.0, "b")])
        mine.release(np.array([2 * number]) if number % 2 else np.empty(0, np.int64))
        store.save(mine.snapshot("catalogue"))
    assert store.written == 5
    again = Catalogue(SCHEMA)
    again.restore(store.load())
    assert len(again) == len(mine)


def test_different_rows_of_one_hash_are_never_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "row_hashes", lambda rows: np.zeros(rows.num_rows, np.int64))
    mine = Catalogue(SCHEMA)
    assert codes(mine, [(1, 0.0, "a"), (1, -0.0, "a")]) == [0, 0]
    with pytest.raises(StreamjoinError, match="same hash"):
        codes(mine, [(2, 0.0, "a")])


NESTED = {
    "lists": (pa.list_(pa.float64()), [[1.0, None], [], None, [NAN], [1.0, None], [NAN]], [0, 1, 2, 3, 0, 3]),
    "structs": (
        pa.struct([("a", pa.int64()), ("b", pa.float64())]),
        [{"a": 1, "b": NAN}, {"a": None, "b": 0.0}, {"a": 1, "b": NAN}, None],
        [0, 1, 0, 2],
    ),
    "signs": (pa.list_(pa.float64()), [[0.0], [-0.0]], [0, 0]),
    "maps": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("b", 1)], [("a", 1)]], [0, 1, 0]),
    "nothing": (pa.null(), [None, None], [0, 0]),
    "decimals": (pa.decimal128(30, 2), ["1.50", "2.50", "1.50"], [0, 1, 0]),
    "binary": (pa.binary(), [b"a", b"", None, b"a"], [0, 1, 2, 0]),
    "booleans": (pa.bool_(), [True, None, False, True], [0, 1, 2, 0]),
}


@pytest.mark.parametrize("kind", NESTED)
def test_columns_of_other_types(kind: str) -> None:
    column, values, expected = NESTED[kind]
    array = pa.array(values).cast(column) if kind == "decimals" else pa.array(values, column)
    mine = Catalogue(pa.schema([("c", column)]))
    assert mine.codes(pa.table({"c": array}), len(values)).tolist() == expected
    assert moved(mine, Catalogue(mine.schema)).codes(pa.table({"c": array}), len(values)).tolist() == expected


def test_same_values_says_where() -> None:
    one, two = pa.array(["a", None, "b"]), pa.array(["a", None, "c"])
    assert same_values(one, two).tolist() == [True, True, False]
    assert same_values(pa.chunked_array([one]), pa.chunked_array([two])).tolist() == [True, True, False]


def test_which_zero_came_first_is_not_seen() -> None:
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        catalogue = Catalogue(pa.schema({"v": pa.float64()}))
        assert catalogue.codes(pa.table({"v": [first]}), 1).tolist() == [0]
        assert catalogue.codes(pa.table({"v": [second]}), 1).tolist() == [0]
        assert str(catalogue.take(np.array([0]))["v"][0].as_py()) == "0.0"
