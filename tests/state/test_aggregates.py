"""Aggregates of groups over lifetimes, against brute force over elements; swept, stored and renumbered at random."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Aggregate
from streamjoin.errors import CallError, EvaluationError, SnapshotError, UnknownColumnError, UnsupportedError
from streamjoin.state import Changes, GroupAggregates, Pieces
from tests.state.lifetimes import ALL, COLUMNS, SCHEMA, SLOW, Caller, brute_force, check, drawn


@pytest.mark.parametrize("seed", range(10 if SLOW else 60))
def test_oracle_any_sweeps_of_any_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(list(COLUMNS), 5, replace=False)]
    aggregates = tuple(each for each in ALL if each.column is None or each.column in names)
    elements = drawn(rng, names, int(rng.integers(0, 30)))
    ends = [(element, -1) for element in elements if element.te < FOREVER]
    changes = [(element, 1) for element in elements] + ends
    changes.sort(key=lambda change: (change[0].ts if change[1] > 0 else change[0].te, -change[1]))
    caller = Caller(aggregates, pa.schema([SCHEMA.field(name) for name in names]))
    found: list[tuple[Any, ...]] = []
    cuts = sorted(rng.integers(0, len(changes) + 1, int(rng.integers(0, 6))).tolist())
    for first, last in itertools.pairwise([0, *cuts, len(changes)]):
        sweep = changes[first:last]
        rng.shuffle(sweep)  # type: ignore[arg-type]
        found += caller.sweep(sweep)
        if rng.random() < 0.5:
            caller.store()
        if rng.random() < 0.5:
            caller.compact(rng)
    assert caller.state.rows == sum(element.te == FOREVER for element in elements)
    found += caller.rows(caller.state.finish())
    check(found, brute_force(aggregates, elements), [each.name for each in aggregates], seed)


def made(kind: pa.DataType, *functions: str) -> GroupAggregates:
    aggregates = tuple(Aggregate(function, "x", function) for function in functions)  # type: ignore[arg-type]
    return GroupAggregates(aggregates, pa.schema({"x": kind}))


def change(state: GroupAggregates, *changes: tuple[int, int, int, Any]) -> Pieces:
    group, time, sign, values = zip(*changes, strict=True)
    table = pa.table([pa.array(values, state.schema.field("x").type)], schema=state.schema)
    return state.sweep(Changes(np.array(group), np.array(time), np.array(sign, np.int8), table))


def test_types_are_those_of_spark() -> None:
    state = GroupAggregates(ALL, SCHEMA)
    types = {field.name: field.type for field in state.result_schema}
    assert types["n"] == types["count text"] == types["count list"] == pa.int64()
    assert types["sum byte"] == pa.int64()
    assert types["sum float"] == types["avg byte"] == types["stddev money"] == pa.float64()
    assert types["sum money"] == pa.decimal128(19, 2)
    assert types["avg money"] == pa.decimal128(13, 6)
    assert all(types[f"min {name}"] == SCHEMA.field(name).type for name in COLUMNS if name != "list")


def test_a_count_needs_no_column() -> None:
    state = GroupAggregates((Aggregate("count", None, "n"),), pa.schema([]))
    signs = np.array([1, 1, -1, -1], np.int8)
    pieces = state.sweep(Changes(np.zeros(4, np.int64), np.array([1, 2, 3, 9]), signs, pa.table({})))
    assert pieces.values.to_pydict() == {"n": [1, 2, 1]}
    assert len(state.finish()) == 0


def test_open_pieces_and_what_was_carried() -> None:
    state = made(pa.float64(), "sum")
    change(state, (0, 1, 1, 0.1), (2, 5, 1, 7.0))
    shown = state.open_pieces(np.array([2, 1, 0, 99]))
    assert shown.group.tolist() == [2, 0]
    assert (shown.start.tolist(), set(shown.end.tolist())) == ([5, 1], {FOREVER})
    assert shown.values["sum"].to_pylist() == [7.0, 0.1]
    assert not shown.carried.any()
    pieces = change(state, (0, 3, 1, 0.2), (0, 4, 1, 0.3), (1, 3, 1, 1.0), (1, 4, -1, 1.0))
    assert pieces.carried.tolist() == [True, False, False]
    assert pieces.values["sum"].to_pylist() == [0.1, 0.1 + 0.2, 1.0]
    assert state.groups_alive().tolist() == [True, False, True]
    assert state.rows == 4
    assert state.finish().carried.all()
    assert state.finish().values["sum"].to_pylist() == [0.6, 7.0]


def test_a_sum_outside_of_int64_fails_and_a_mean_does_not() -> None:
    large = 2**63 - 1
    state = made(pa.int64(), "avg")
    assert change(state, (0, 1, 1, large), (0, 1, 1, large), (0, 2, 1, 0)).values["avg"].to_pylist() == [2.0**63]
    state = made(pa.int64(), "sum")
    with pytest.raises(EvaluationError, match="the sum 'sum' does not fit into 64 bits"):
        change(state, (0, 1, 1, large), (0, 1, 1, 1), (0, 2, 1, 0))
    state = made(pa.int64(), "sum")
    back = change(state, (0, 1, 1, large), (0, 1, 1, 1), (0, 1, 1, -5), (0, 2, 1, 0))
    assert back.values["sum"].to_pylist() == [large - 4]


def test_a_mean_of_decimals_rounds_half_up() -> None:
    state = made(pa.decimal128(5, 0), "avg")
    values = [Decimal(1)] + [Decimal(0)] * 31  # 0.03125
    pieces = change(state, *((0, 1, 1, value) for value in values), (0, 2, 1, Decimal(0)))
    assert pieces.values["avg"].to_pylist() == [Decimal("0.0313")]
    state = made(pa.decimal128(5, 0), "avg")
    pieces = change(state, *((0, 1, 1, -value) for value in values), (0, 2, 1, Decimal(0)))
    assert pieces.values["avg"].to_pylist() == [Decimal("-0.0313")]


def test_infinities_and_nan_go_as_they_came() -> None:
    state = made(pa.float64(), "sum", "max", "stddev")
    strange = [math.inf, -math.inf, math.nan]
    pieces = change(
        state,
        *((0, time, 1, value) for time, value in enumerate([0.5, 1.5, *strange])),
        *((0, 10 + time, -1, value) for time, value in enumerate(strange)),
        (0, 20, -1, 0.5),
    )
    shown = [str(value) for value in pieces.values["sum"].to_pylist()]
    assert shown == ["0.5", "2.0", "inf", "nan", "nan", "nan", "nan", "2.0"]
    assert [str(value) for value in pieces.values["max"].to_pylist()] == [
        "0.5",
        "1.5",
        "inf",
        "inf",
        "nan",
        "nan",
        "nan",
        "1.5",
    ]
    assert pieces.values["stddev"].to_pylist()[-1] == math.sqrt(0.5)


def test_what_has_gone_leaves_no_memory_behind() -> None:
    state = made(pa.string(), "min", "max")
    words = [f"{number:08}" for number in range(200 if SLOW else 3000)]
    change(state, (0, 0, 1, "~"))
    for time in range(8):
        change(state, *((0, 2 * time + 1, 1, f"{word}{time}") for word in words))
        change(state, *((0, 2 * time + 2, -1, f"{word}{time}") for word in words))
    (column,) = state._columns.values()
    assert column.extremes is not None
    assert column.extremes.texts is not None
    assert column.extremes.texts.count < 2 * len(words) + 1100
    assert state.finish().values.to_pydict() == {"min": ["~"], "max": ["~"]}
    assert state.nbytes < 200_000


def test_what_cannot_be_computed_is_refused() -> None:
    def refused(function: str, kind: pa.DataType) -> str:
        with pytest.raises(UnsupportedError) as error:
            made(kind, function)
        assert error.value.hint
        return str(error.value)

    assert refused("sum", pa.decimal128(19, 2)).startswith("sum of column 'x', which is decimal128(19, 2)")
    no_numbers = (pa.string(), pa.date32(), pa.bool_(), pa.uint64())
    for function, kind in itertools.product(("sum", "avg", "stddev"), no_numbers):
        assert "cast" in refused(function, kind)
    for kind in (pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.null()):
        assert "inside" in refused("max", kind)
    with pytest.raises(UnknownColumnError):
        GroupAggregates((Aggregate("sum", "y", "s"),), pa.schema({"x": pa.int64()}))
    with pytest.raises(CallError, match="same name"):
        made(pa.int64(), "sum", "sum")


def test_codes_and_snapshots_are_checked() -> None:
    state = made(pa.int64(), "sum")
    empty = GroupAggregates.from_tables(state.aggregates, state.schema, state.to_tables())
    assert len(empty.finish()) == empty.rows == 0
    change(state, (0, 1, 1, 5), (1, 1, 1, 5))
    assert state.nbytes > empty.nbytes
    again = GroupAggregates.from_tables(state.aggregates, state.schema, state.to_tables())
    assert again.finish().values == state.finish().values
    with pytest.raises(CallError, match="2 groups, got 1"):
        state.renumber(np.array([0]))
    with pytest.raises(CallError, match="drops a group"):
        state.renumber(np.array([0, -1]))
    with pytest.raises(SnapshotError):
        GroupAggregates.from_tables((Aggregate("max", "x", "m"),), state.schema, state.to_tables())
