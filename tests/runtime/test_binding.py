"""Binding: elements become the arrays of a batch. Keys, values, who can match, and by which hash a row is placed."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Band, Near, Overlaps, Within
from streamjoin.operators import Results
from streamjoin.runtime.binding import RowBinding
from streamjoin.state import Batch
from streamjoin.state.columns import row_hashes
from tests.state.making import same

EVENTS = pa.table({"id": [1, 2, 3], "hidden": [1.0, 2.0, 3.0]})


def elements(table: pa.Table, ts: list[int] | None = None, **options: object) -> Results:
    start = np.zeros(table.num_rows, np.int64) if ts is None else np.array(ts, np.int64)
    return Results(table, start, np.full(table.num_rows, FOREVER), **options)


def bound(table: pa.Table, ts: list[int] | None = None, **options: object) -> Batch:
    return RowBinding(**{"payload": ("id",), **options}).bind(elements(table, ts))


def test_times_are_those_of_the_elements() -> None:
    rows = RowBinding(("id",)).bind(Results(EVENTS, np.array([0, 7, -3]), np.array([5, 12, FOREVER])))
    assert (rows.ts.tolist(), rows.te.tolist()) == ([0, 7, -3], [5, 12, FOREVER])
    assert rows.group.tolist() == [0, 0, 0]


def test_an_event_can_be_forgotten_after_its_reach() -> None:
    assert bound(EVENTS, [0, 7, -3], forget_after=4).te.tolist() == [4, 11, 1]
    assert bound(EVENTS, [0, 7, -3], forget_after=-2).te.tolist() == [-2, 5, -5]
    assert bound(EVENTS, [0, 7, FOREVER - 1], forget_after=4).te.tolist() == [4, 11, FOREVER]


def test_rows_without_time_match_nothing_where_time_decides() -> None:
    assert bound(EVENTS, [0, NEVER, 3], timeless=True).matchable.tolist() == [True, False, True]
    assert bound(EVENTS, [0, NEVER, 3]).matchable is None


def test_the_payload_is_what_was_asked_for() -> None:
    rows = bound(EVENTS, payload=("hidden", "id"))
    assert rows.payload.to_pydict() == {"hidden": [1.0, 2.0, 3.0], "id": [1, 2, 3]}
    chunked = pa.concat_tables([EVENTS.slice(0, 1), EVENTS.slice(1)])
    assert same(
        bound(chunked, payload=("hidden", "id"), keys=("id",)), bound(EVENTS, payload=("hidden", "id"), keys=("id",))
    )
    nothing = bound(EVENTS, payload=())
    assert (len(nothing), nothing.payload.num_columns) == (3, 0)


def test_holders_and_signs_stay_with_their_rows() -> None:
    holder, sign = np.array([4, -1, 6]), np.array([1, -1, 1], np.int8)
    rows = RowBinding(("id",)).bind(elements(EVENTS, holder=holder, sign=sign))
    assert (rows.holder.tolist(), rows.sign.tolist()) == ([4, -1, 6], [1, -1, 1])
    assert bound(EVENTS).holder is bound(EVENTS).sign is None


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
    left, right = (bound(table, number=number, predicates=(band,)) for number in (0, 1))
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
    rows = bound(EVENTS.slice(0, 0), keys=("id",), predicates=(Band("hidden", "x", 1, 1),), placed_by=("id",))
    assert len(rows) == 0
    assert rows.matchable is None


@pytest.mark.parametrize(
    ("values", "ts", "te"),
    [
        ([3, -1, None], [3, -1, NEVER], [8, 4, NEVER + 5]),
        ([1.5, 0.5, None], [None, None, NEVER], [FOREVER] * 3),
    ],
)
def test_the_first_value_can_be_what_rows_are_ordered_by(values: list, ts: list, te: list[int]) -> None:
    """Whole numbers are ticks of their own; doubles are ordered as their values are, and kept until the end."""
    near = Near("id", "id", 1.0, lambda one, two: abs(one - two))
    rows = bound(
        pa.table({"id": [1, 2, 3], "v": values}), predicates=(Band("v", "v", 5, 5), near), ordered=True, forget_after=5
    )
    assert all(wanted is None or got == wanted for got, wanted in zip(rows.ts.tolist(), ts, strict=True))
    assert rows.ts[1] < rows.ts[0]
    assert all(got == wanted for got, wanted in zip(rows.te.tolist()[:2], te[:2], strict=True))
    assert rows.matchable.tolist() == [True, True, False]


def test_row_windows_get_their_groups_and_then_what_says_who_came_first() -> None:
    table = pa.table({"id": [1, 2], "g": ["a", "b"], "n": [8, 7]})
    rows = bound(table, groups=("g",), ties=("n", "id"))
    assert rows.proof.to_pydict() == {"g": ["a", "b"], "n": [8, 7], "id": [1, 2]}
    assert bound(table, ties=("n",)).proof.column_names == ["n"]


# -- one hash for all placings -----------------------------------------------------------------------------------------

KEYS = pa.table({
    "id": range(6),
    "k": pa.array([1, 1, 2, None, 0, -5], pa.int32()),
    "s": ["a", "", "a", "b", None, "a"],
    "x": [0.0, -0.0, 1.5, math.nan, math.nan, None],
    "d": pa.array([1, 1, 2, 3, None, 2], pa.decimal128(38, 2)),
})  # fmt: skip


def hashed(binding: RowBinding, table: pa.Table) -> list[int] | None:
    rows = elements(table)
    hashes = binding.hashes(rows, binding.bind(rows))
    return None if hashes is None else hashes.tolist()


@pytest.mark.parametrize("names", [("k",), ("s",), ("x",), ("d",), ("k", "s"), ("s", "x", "d"), ("k", "k")])
def test_contract_keys_groups_and_payloads_are_placed_by_one_hash(names: tuple[str, ...]) -> None:
    """So that an aggregation, or another join, can share a task with the join below it."""
    by_keys = hashed(RowBinding(("id",), keys=names, placed_by=names), KEYS)
    as_group = hashed(RowBinding(("id",), placed_by=names), KEYS)
    assert as_group == row_hashes(KEYS.select(list(names))).tolist()
    present = [all(row[name] is not None and row[name] == row[name] for name in names) for row in KEYS.to_pylist()]
    assert sum(present) >= 2
    both = zip(by_keys, as_group, present, strict=True)
    assert all(one == two for one, two, there in both if there)


def test_some_of_the_keys_can_place_a_row_in_any_order() -> None:
    names = ("k", "s", "x")
    for placed_by in [("s",), ("s", "k"), ("x", "k", "s")]:
        binding = RowBinding(("id",), keys=names, placed_by=placed_by)
        assert hashed(binding, KEYS) == row_hashes(KEYS.select(list(placed_by))).tolist()


def test_without_columns_that_place_it_a_row_has_no_hash() -> None:
    assert hashed(RowBinding(("id",), keys=("k",)), KEYS) is None


def test_zeros_have_one_hash_and_nulls_another() -> None:
    first, second, *_, null = hashed(RowBinding(("id",), placed_by=("x",)), KEYS)
    assert first == second != null
