"""Reading: rows of a source get their times. What is invalid, what is a ghost, and what errors say."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Fixed, Now, Range, Rows, Unbounded, Validity, Window
from streamjoin.errors import InvalidRowError
from streamjoin.operators import Results
from streamjoin.runtime.reading import Reading

EVENTS = pa.table({"id": [1, 2, 3], "ts": [0, 7, -3], "hidden": [1.0, 2.0, 3.0]})


def reading(label: str = "input 0", called: tuple[str, ...] = ("ts",), **options: object) -> Reading:
    return Reading(label, (("id", "id"),), called, **options)


def read(table: pa.Table, **options: object) -> Results:
    found = reading(**options).read(table)
    assert found.invalid.num_rows == 0
    return found.elements


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
    rows = read(EVENTS, time="ts", window=window)
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 7, -3], te)


@pytest.mark.parametrize("window", [None, Rows(2)])
def test_the_ends_of_events_and_of_rows_in_a_row_window_are_others_business(window: Window | None) -> None:
    rows = read(EVENTS, time="ts", window=window)
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 7, -3], [FOREVER] * 3)


def test_without_time_rows_are_there_for_ever() -> None:
    rows = read(EVENTS)
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 0, 0], [FOREVER] * 3)


def test_validity_comes_with_the_rows_and_an_open_end_is_for_ever() -> None:
    table = pa.table({"id": [1, 2, 3], "a": [0, 5, 6], "b": [3, None, 6]})
    rows = read(table, window=Validity("a", "b"))
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 5, 6], [3, FOREVER, 6])


def test_all_columns_are_there_in_one_piece() -> None:
    chunked = pa.concat_tables([EVENTS.slice(0, 1), EVENTS.slice(1)])
    rows = read(chunked, time="ts", window=Now())
    assert rows.payload.equals(EVENTS)
    assert rows.payload["id"].num_chunks == 1


def test_time_columns_of_every_axis() -> None:
    second = datetime.datetime(1970, 1, 1, 0, 0, 1)
    moments = pa.table({"id": [1], "t": pa.array([second], pa.timestamp("us", "UTC"))})
    assert read(moments, time="t", window=Range(5)).te.tolist() == [1_000_005]
    days = pa.table({"id": [1], "t": pa.array([datetime.date(1970, 1, 3)])})
    assert read(days, time="t", window=Fixed(7)).te.tolist() == [7]
    small = pa.table({"id": [1], "t": pa.array([3], pa.int16())})
    assert read(small, time="t", window=Now()).ts.dtype == np.int64


def test_no_rows_are_rows_too() -> None:
    assert len(read(EVENTS.slice(0, 0), time="ts", window=Range(5))) == 0


INVALID_TIME = pa.table({"id": [1, 2, 3], "ts": [0, None, 5], "k": ["a", "b", "c"]})
INVALID_VALIDITY = pa.table({"id": [1, 2, 3, 4], "a": [0, None, 5, 7], "b": [3, 3, 4, None]})


@pytest.mark.parametrize("policy", ["drop", "output"])
def test_invalid_rows_are_set_apart(policy: str) -> None:
    one = reading(time="ts", window=Range(5), invalid=policy).read(INVALID_TIME)
    assert one.elements.payload.to_pydict() == {"id": [1, 3], "ts": [0, 5], "k": ["a", "c"]}
    assert one.invalid["id"].to_pylist() == [2]
    two = reading(window=Validity("a", "b"), invalid=policy).read(INVALID_VALIDITY)
    assert two.elements.payload["id"].to_pylist() == [1, 4]
    assert two.elements.te.tolist() == [3, FOREVER]
    assert two.invalid["id"].to_pylist() == [2, 3]


def test_an_event_without_time_is_invalid_too() -> None:
    found = reading(time="ts", invalid="drop").read(INVALID_TIME)
    assert found.invalid["id"].to_pylist() == [2]


def test_the_largest_number_is_no_time_of_an_event() -> None:
    """It would have to wait for ever. In a window it is as any other: it ends where it begins."""
    table = pa.table({"id": [1, 2], "ts": [5, FOREVER]})
    assert reading(time="ts", invalid="drop").read(table).invalid["id"].to_pylist() == [2]
    assert read(table, time="ts", window=Range(5)).te.tolist() == [10, FOREVER]
    with pytest.raises(InvalidRowError, match="its time column 'ts' is the largest number, which is no time"):
        reading(time="ts").read(table)


def test_where_rows_only_choose_one_without_time_matches_nothing_and_is_not_invalid() -> None:
    rows = read(INVALID_TIME, time="ts", timeless=True)
    assert rows.ts.tolist() == [0, NEVER, 5]


def test_fail_says_which_row_and_why() -> None:
    wanted = (
        r"input 1 has 1 invalid row\(s\), the first is \{'id': 2\}: its time column 'ts' is NULL. "
        r'Hint: repair or filter such rows, or choose invalid="drop" or invalid="output".'
    )
    with pytest.raises(InvalidRowError, match=wanted):
        reading("input 1", time="ts", window=Range(5)).read(INVALID_TIME)
    wanted = r"input 0 has 2 invalid row\(s\), .*: a validity needs a start, and b must not be before a"
    with pytest.raises(InvalidRowError, match=wanted):
        reading(called=("a", "b"), window=Validity("a", "b")).read(INVALID_VALIDITY)


def test_errors_show_columns_as_the_frame_calls_them() -> None:
    named = Reading("orders", (("0.id", "id"), ("k", "Key")), ("when",), "__time", Range(5))
    with pytest.raises(
        InvalidRowError, match=r"orders has 1 .* \{'id': 2, 'Key': 'b'\}: its time column 'when' is NULL"
    ):
        named.read(INVALID_TIME.rename_columns(["0.id", "__time", "k"]))


def test_a_validity_that_ends_where_it_begins_is_a_ghost_not_an_error() -> None:
    rows = read(pa.table({"id": [1], "a": [5], "b": [5]}), window=Validity("a", "b"))
    assert (rows.ts.tolist(), rows.te.tolist()) == ([5], [5])
