"""Binding: columns become the arrays of a batch. Times and ends, values, who can match, and rows that are invalid."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Band, Fixed, Now, Overlaps, Range, Unbounded, Validity, Window, Within
from streamjoin.errors import InvalidRowError
from streamjoin.plan.binding import InputBinding
from streamjoin.state import Batch
from tests.state.making import same

EVENTS = pa.table({"id": [1, 2, 3], "ts": [0, 7, -3], "hidden": [1.0, 2.0, 3.0]})


def bound(table: pa.Table, **options: object) -> Batch:
    options = {"payload": ("id",), **options}
    found = InputBinding(0, **options).bind(table)
    assert found.invalid.num_rows == 0
    return found.batch


@pytest.mark.parametrize(
    ("window", "te"),
    [
        (Range(5), [5, 12, 2]),
        (Range(5, slide=4), [5, 9, 1]),
        (Fixed(5), [5, 10, 0]),
        (Now(), [1, 8, -2]),
        (Unbounded(), [FOREVER] * 3),
    ],
)
def test_a_window_gives_the_ends(window: Window, te: list[int]) -> None:
    rows = bound(EVENTS, time="ts", window=window)
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 7, -3], te)


def test_an_event_can_be_forgotten_after_its_reach() -> None:
    assert bound(EVENTS, time="ts", forget_after=4).te.tolist() == [4, 11, 1]
    assert bound(EVENTS, time="ts", forget_after=-2).te.tolist() == [-2, 5, -5]


def test_without_time_rows_are_there_for_ever() -> None:
    rows = bound(EVENTS)
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 0, 0], [FOREVER] * 3)


def test_validity_comes_with_the_rows_and_an_open_end_is_for_ever() -> None:
    table = pa.table({"id": [1, 2, 3], "a": [0, 5, 6], "b": [3, None, 6]})
    rows = bound(table, window=Validity("a", "b"))
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 5, 6], [3, FOREVER, 6])


def test_the_payload_is_what_was_asked_for_in_one_piece() -> None:
    chunked = pa.concat_tables([EVENTS.slice(0, 1), EVENTS.slice(1)])
    rows = bound(chunked, payload=("ts", "id"), time="ts", window=Now())
    assert rows.payload.to_pydict() == {"ts": [0, 7, -3], "id": [1, 2, 3]}
    assert rows.payload["id"].num_chunks == 1
    assert same(rows, bound(EVENTS, payload=("ts", "id"), time="ts", window=Now()))


def test_time_columns_of_every_axis() -> None:
    second = datetime.datetime(1970, 1, 1, 0, 0, 1)
    moments = pa.table({"id": [1], "t": pa.array([second], pa.timestamp("us", "UTC"))})
    assert bound(moments, time="t", window=Range(5)).te.tolist() == [1_000_005]
    days = pa.table({"id": [1], "t": pa.array([datetime.date(1970, 1, 3)])})
    assert bound(days, time="t", window=Fixed(7)).te.tolist() == [7]
    small = pa.table({"id": [1], "t": pa.array([3], pa.int16())})
    assert bound(small, time="t", window=Now()).ts.dtype == np.int64


def test_values_lie_one_predicate_after_the_other() -> None:
    table = pa.table({"id": [1], "v": [1.5], "n": [7], "lo": [0.0], "hi": [1.0]})
    predicates = (Band("v", "v", 1, 1), Overlaps(("lo", "hi"), ("lo", "hi")), Band("n", "n", 1, 1))
    rows = bound(table, predicates=predicates)
    assert [column.tolist() for column in rows.values] == [[1.5], [0.0], [1.0], [7]]
    assert [column.dtype.kind for column in rows.values] == ["f", "f", "f", "i"]
    assert rows.matchable is None, "no mark where every row can match"


def test_each_input_reads_its_own_columns_of_a_predicate() -> None:
    table = pa.table({"id": [1], "a": [1.0], "b": [2.0]})
    band = Band("a", "b", 1, 1)
    left, right = (InputBinding(number, ("id",), (), (band,)).bind(table).batch for number in (0, 1))
    assert (left.values[0].tolist(), right.values[0].tolist()) == ([1.0], [2.0])


def test_null_and_nan_values_match_nothing() -> None:
    table = pa.table({"id": [1, 2, 3, 4], "v": [0.0, None, math.nan, math.inf]})
    rows = bound(table, predicates=(Band("v", "v", 1, 1),))
    assert rows.matchable.tolist() == [True, False, False, True]
    assert len(rows) == 4, "they stay, to be padded"


def test_an_empty_value_interval_matches_nothing() -> None:
    table = pa.table({"id": [1, 2, 3, 4], "lo": [0.0, 1.0, 2.0, None], "hi": [1.0, 1.0, 1.0, 9.0]})
    rows = bound(table, predicates=(Overlaps(("lo", "hi"), ("lo", "hi")),))
    assert rows.matchable.tolist() == [True, False, False, False]


@pytest.mark.parametrize("metric", ["euclidean", "haversine"])
def test_an_infinite_coordinate_matches_nothing_and_hides_nothing(metric: str) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "x": [0.0, math.inf, 0.0, math.nan], "y": [0.0, 0.0, -math.inf, 0.0]})
    rows = bound(table, predicates=(Within(("x", "y"), ("x", "y"), 1.0, metric),))
    assert rows.matchable.tolist() == [True, False, False, False]
    assert np.isfinite(rows.values).all()


def test_null_keys_match_nothing() -> None:
    table = pa.table({"id": [1, 2, 3], "k": [1, None, 1], "s": ["a", "a", None]})
    assert bound(table, keys=("k",)).matchable.tolist() == [True, False, True]
    assert bound(table, keys=("k", "s")).matchable.tolist() == [True, False, False]


def test_keys_that_are_hashed_bring_their_proof() -> None:
    table = pa.table({"id": [1, 2], "k": [1, 2], "s": ["a", "b"]})
    assert bound(table, keys=("k",)).proof is None
    assert bound(table).proof is None
    assert bound(table, keys=("s",)).proof.to_pydict() == {"s": ["a", "b"]}
    assert bound(table, keys=("k", "s")).proof.column_names == ["k", "s"]


def test_no_rows_are_rows_too() -> None:
    rows = bound(EVENTS.slice(0, 0), time="ts", window=Range(5), keys=("id",), predicates=(Band("hidden", "x", 1, 1),))
    assert len(rows) == 0
    assert rows.matchable is None


INVALID_TIME = pa.table({"id": [1, 2, 3], "ts": [0, None, 5], "k": ["a", "b", "c"]})
INVALID_VALIDITY = pa.table({"id": [1, 2, 3, 4], "a": [0, None, 5, 7], "b": [3, 3, 4, None]})


@pytest.mark.parametrize("policy", ["drop", "output"])
def test_invalid_rows_are_set_apart(policy: str) -> None:
    one = InputBinding(0, ("id",), ("k",), time="ts", window=Range(5), invalid=policy).bind(INVALID_TIME)
    assert one.batch.payload["id"].to_pylist() == [1, 3]
    assert one.batch.proof.to_pydict() == {"k": ["a", "c"]}
    assert one.invalid.to_pydict() == {"id": [2]}
    two = InputBinding(0, ("id",), window=Validity("a", "b"), invalid=policy).bind(INVALID_VALIDITY)
    assert two.batch.payload["id"].to_pylist() == [1, 4]
    assert two.batch.te.tolist() == [3, FOREVER]
    assert two.invalid.to_pydict() == {"id": [2, 3]}


def test_an_event_without_time_is_invalid_too() -> None:
    found = InputBinding(0, ("id",), time="ts", forget_after=3, invalid="drop").bind(INVALID_TIME)
    assert found.invalid.to_pydict() == {"id": [2]}


def test_fail_says_which_row_and_why() -> None:
    wanted = (
        r"input 1 has 1 invalid row\(s\), the first is \{'id': 2\}: its time column 'ts' is NULL. "
        r'Hint: repair or filter such rows, or choose invalid="drop" or invalid="output".'
    )
    with pytest.raises(InvalidRowError, match=wanted):
        InputBinding(1, ("id",), time="ts", window=Range(5)).bind(INVALID_TIME)
    wanted = r"input 0 has 2 invalid row\(s\), .*: a validity needs a start, and b must not be before a"
    with pytest.raises(InvalidRowError, match=wanted):
        InputBinding(0, ("id",), window=Validity("a", "b")).bind(INVALID_VALIDITY)


def test_a_validity_that_ends_where_it_begins_is_a_ghost_not_an_error() -> None:
    rows = bound(pa.table({"id": [1], "a": [5], "b": [5]}), window=Validity("a", "b"))
    assert (rows.ts.tolist(), rows.te.tolist()) == ([5], [5])
