"""Reading: what gives the rows of a source their times, and which are invalid."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Fixed, Now, Range, Rows, Unbounded, Validity
from streamjoin.errors import InvalidRowError
from streamjoin.runtime.reading import Reading


def table(*times: int | None, ends: list[int | None] | None = None) -> pa.Table:
    columns = {"k": list(range(len(times))), "t": pa.array(times, pa.int64())}
    return pa.table(columns | ({} if ends is None else {"e": pa.array(ends, pa.int64())}))


def reading(**options: Any) -> Reading:
    return Reading("stream R", (("k", "key"),), ("at", "until"), **options)


def times(read: Reading, rows: pa.Table) -> tuple[list[int], list[int]]:
    elements = read.read(rows).elements
    return elements.ts.tolist(), elements.te.tolist()


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        (Range(5), [5, 12]), (Fixed(4), [4, 8]), (Now(), [1, 8]), (Unbounded(), [FOREVER] * 2),
        (Rows(3), [FOREVER] * 2), (None, [FOREVER] * 2),
    ],
)  # fmt: skip
def test_a_window_gives_ends_and_a_row_window_only_starts(window: Any, ends: list[int]) -> None:
    assert times(reading(time="t", window=window), table(0, 7)) == ([0, 7], ends)


def test_a_validity_has_both_and_null_as_its_end_is_for_ever() -> None:
    rows = table(1, 2, 3, ends=[5, None, 3])
    assert times(reading(window=Validity("t", "e")), rows) == ([1, 2, 3], [5, FOREVER, 3]), "ghosts are no errors"


def test_without_a_time_all_rows_are_there_from_the_start() -> None:
    assert times(reading(), table(4, None)) == ([0, 0], [FOREVER, FOREVER])


@pytest.mark.parametrize(
    ("options", "rows", "why"),
    [
        ({"time": "t", "window": Range(5)}, table(1, None, 2), "its time column 'at' is NULL"),
        ({"time": "t", "window": Rows(2)}, table(1, FOREVER, 2), "is the largest number, which is no time"),
        ({"time": "t"}, table(1, FOREVER, 2), "is the largest number, which is no time"),
        ({"window": Validity("t", "e")}, table(1, 5, 2, ends=[3, 4, 3]), "until must not be before at"),
        ({"window": Validity("t", "e")}, table(1, None, 2, ends=[3, 4, 3]), "a validity needs a start"),
    ],
)
def test_invalid_rows_fail_or_are_set_apart(options: dict[str, Any], rows: pa.Table, why: str) -> None:
    with pytest.raises(InvalidRowError, match=rf"stream R has 1 invalid row\(s\), the first is {{'key': 1}}: .*{why}"):
        reading(**options).read(rows)
    for policy in ("drop", "output"):
        read = reading(**options, invalid=policy).read(rows)
        assert (read.elements.payload["k"].to_pylist(), read.invalid["k"].to_pylist()) == ([0, 2], [1])


def test_a_row_without_time_is_not_invalid_where_it_only_matches_nothing() -> None:
    assert times(reading(time="t", timeless=True), table(1, None, FOREVER))[0] == [1, NEVER, NEVER]


def test_rows_may_come_in_chunks() -> None:
    rows = pa.concat_tables([table(1), table(2)])
    assert times(reading(time="t", window=Now()), rows) == ([1, 2], [2, 3])
