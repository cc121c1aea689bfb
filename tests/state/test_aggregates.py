"""Aggregates of groups over lifetimes, against brute force over all elements; cut into sweeps, stored and renumbered."""

from __future__ import annotations

import datetime
import itertools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Aggregate
from streamjoin.errors import CallError, EvaluationError, SnapshotError, UnknownColumnError, UnsupportedError
from streamjoin.state import Changes, GroupAggregates, Pieces, table_from_bytes, table_to_bytes

SLOW = os.environ.get("NUMBA_DISABLE_JIT") == "1"
UTC = datetime.UTC
DAY = datetime.date(2024, 5, 1)
FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev")
COMPARED = ("count", "min", "max")
# type, values to draw from, functions
COLUMNS: dict[str, tuple[pa.DataType, list[Any], tuple[str, ...]]] = {
    "byte": (pa.int8(), [-128, -1, 0, 5, 127], FUNCTIONS),
    "whole": (pa.int64(), [-(2**61), -3, 0, 7, 2**60 + 1], FUNCTIONS),
    "float": (pa.float32(), [0.5, -0.0, 1e30, -2.25, math.nan], FUNCTIONS),
    "double": (pa.float64(), [0.1, 1e300, -1e300, 5e-324, 0.0, -0.0, math.inf, -math.inf, math.nan], FUNCTIONS),
    "tame": (pa.float64(), [0.1, 0.2, 0.3, 1e16, -1e16], FUNCTIONS),
    "money": (pa.decimal128(9, 2), [Decimal(x) for x in ("-0.05", "0.01", "1.25", "9999999.99")], FUNCTIONS),
    "coin": (pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(1 - 10**18), Decimal(7)], FUNCTIONS),
    "long": (pa.decimal128(38, 3), [Decimal(x) for x in ("-1e30", "1e30", "-0.001", "0", "1.5")], COMPARED),
    "date": (pa.date32(), [DAY, datetime.date(1969, 1, 1), datetime.date(2030, 1, 1)], COMPARED),
    "time": (pa.timestamp("us", "UTC"), [datetime.datetime(y, 1, 1, tzinfo=UTC) for y in (1950, 2000, 2020)], COMPARED),
    "lapse": (pa.duration("us"), [datetime.timedelta(seconds=s) for s in (-1, 0, 90)], COMPARED),
    "truth": (pa.bool_(), [True, False], COMPARED),
    "text": (pa.string(), ["", "a", "ab", "b", "é", "abcdefghi", "abcdefghj"], COMPARED),
    "bytes": (pa.binary(), [b"", b"\0", b"a", b"\xff\xff"], COMPARED),
    "list": (pa.list_(pa.int64()), [[1], []], ("count",)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _, _) in COLUMNS.items()])
ALL = (
    Aggregate("count", None, "n"),
    *(Aggregate(f, name, f"{f} {name}") for name, (*_, functions) in COLUMNS.items() for f in functions),  # type: ignore[arg-type]
)


# Brute force ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    group: str
    ts: int
    te: int
    values: dict[str, Any] = field(hash=False)


def single(x: float) -> float:
    return float(np.float32(x))


def expected_value(aggregate: Aggregate, elements: list[Element]) -> Any:
    if aggregate.column is None:
        return len(elements)
    kind = SCHEMA.field(aggregate.column).type
    values = [e.values[aggregate.column] for e in elements if e.values[aggregate.column] is not None]
    if kind == pa.float32():
        values = [single(value) for value in values]
    if aggregate.function == "count":
        return len(values)
    if not values:
        return None
    if aggregate.function in ("min", "max"):
        return (min if aggregate.function == "min" else max)(values, key=ordered(kind))
    if aggregate.function == "stddev":
        return expected_deviation(values)
    if pa.types.is_decimal(kind):
        total = sum(values)
        if aggregate.function == "sum":
            return total
        with localcontext() as context:
            context.prec = 60
            return (total / len(values)).quantize(Decimal(1).scaleb(-kind.scale - 4), ROUND_HALF_UP)
    if pa.types.is_integer(kind):
        return sum(values) if aggregate.function == "sum" else float(sum(values)) / len(values)
    strange = [value for value in values if not math.isfinite(value)]
    total = sum(strange) if strange else float(sum(Fraction(value) for value in values))
    return total if aggregate.function == "sum" else total / len(values)


def ordered(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_floating(kind):
        return lambda value: (math.isnan(value), 0.0 if math.isnan(value) else value)
    return (lambda value: value.encode()) if kind == pa.string() else (lambda value: value)


def expected_deviation(values: list[Any]) -> float | None:
    if len(values) < 2:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / (len(exact) - 1)
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt())


def brute_force(aggregates: tuple[Aggregate, ...], elements: list[Element]) -> list[tuple[Any, ...]]:
    rows = []
    for group in sorted({element.group for element in elements}):
        mine = [element for element in elements if element.group == group]
        times = sorted({time for element in mine for time in (element.ts, element.te)})
        for start, end in itertools.pairwise(times):
            valid = [element for element in mine if element.ts <= start < element.te]
            if valid:
                values = [expected_value(aggregate, valid) for aggregate in aggregates]
                rows.append((group, start, end, *values))
    return rows


# The caller: gives groups dense codes, cuts changes into sweeps ------------------------------------------------------


class Caller:
    def __init__(self, aggregates: tuple[Aggregate, ...], schema: pa.Schema) -> None:
        self.state = GroupAggregates(aggregates, schema)
        self.names: list[str] = []

    def sweep(self, changes: list[tuple[Element, int]]) -> list[tuple[Any, ...]]:
        for element, _ in changes:
            if element.group not in self.names:
                self.names.append(element.group)
        schema = self.state.schema
        columns = [
            pa.array([element.values[name] for element, _ in changes], schema.field(name).type) for name in schema.names
        ]
        pieces = self.state.sweep(
            Changes(
                np.array([self.names.index(element.group) for element, _ in changes], np.int64),
                np.array([element.ts if sign > 0 else element.te for element, sign in changes], np.int64),
                np.array([sign for _, sign in changes], np.int8),
                pa.table(columns, schema=schema),
            )
        )
        order = list(zip(pieces.group.tolist(), pieces.start.tolist(), strict=True))
        assert order == sorted(order)
        return self.rows(pieces)

    def rows(self, pieces: Pieces) -> list[tuple[Any, ...]]:
        assert pieces.values.schema == self.state.result_schema
        groups = [self.names[code] for code in pieces.group.tolist()]
        columns = [column.to_pylist() for column in pieces.values.columns]
        return list(zip(groups, pieces.start.tolist(), pieces.end.tolist(), *columns, strict=True))

    def store(self) -> None:
        tables = {name: table_from_bytes(table_to_bytes(table)) for name, table in self.state.to_tables().items()}
        restored = GroupAggregates.from_tables(self.state.aggregates, self.state.schema, tables)
        assert restored.rows == self.state.rows
        assert restored.groups_alive().tolist() == self.state.groups_alive().tolist()
        self.state = restored

    def compact(self, rng: np.random.Generator) -> None:
        alive = self.state.groups_alive()
        codes = np.full(len(alive), -1, np.int64)
        codes[alive] = rng.permutation(int(alive.sum()))
        names = dict(zip(codes.tolist(), self.names, strict=True))
        self.names = [names[code] for code in range(int(alive.sum()))]
        self.state.renumber(codes)


def drawn(rng: np.random.Generator, names: list[str], count: int) -> list[Element]:
    elements = []
    for _ in range(count):
        start = int(rng.integers(0, 12))
        end = FOREVER if rng.random() < 0.1 else start + int(rng.integers(1, 8))
        values = {name: rng.choice(np.array([None, *COLUMNS[name][1]], object)) for name in names}
        elements.append(Element("abcd"[int(rng.integers(4))], start, end, values))
    return elements


def close(got: Any, expected: Any, name: str) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        if math.isnan(expected) or math.isnan(got):
            return math.isnan(expected) and math.isnan(got)
        if name.startswith("stddev"):
            return got == expected or abs(got - expected) <= 3 * math.ulp(expected)
    return bool(got == expected) and type(got) is type(expected)


def check(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], names: list[str], seed: int) -> None:
    found, expected = (sorted(rows, key=lambda row: row[:3]) for rows in (found, expected))
    assert [row[:3] for row in found] == [row[:3] for row in expected], f"seed {seed}"
    for got, want in zip(found, expected, strict=True):
        for name, one, two in zip(names, got[3:], want[3:], strict=True):
            assert close(one, two, name), f"seed {seed}: {name} in {got[:3]} is {one!r}, expected {two!r}"


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


# One case each -------------------------------------------------------------------------------------------------------


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
    assert column.extremes is not None and column.extremes.texts is not None
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
    for function, kind in itertools.product(
        ("sum", "avg", "stddev"), (pa.string(), pa.date32(), pa.bool_(), pa.uint64())
    ):
        assert "cast" in refused(function, kind)
    for kind in (pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.null()):
        assert "inside" in refused("max", kind)
    with pytest.raises(UnknownColumnError):
        GroupAggregates((Aggregate("sum", "y", "s"),), pa.schema({"x": pa.int64()}))
    with pytest.raises(CallError, match="same name"):
        made(pa.int64(), "sum", "sum")


def test_codes_and_snapshots_are_checked() -> None:
    state = made(pa.int64(), "sum")
    change(state, (0, 1, 1, 5), (1, 1, 1, 5))
    with pytest.raises(CallError, match="2 groups, got 1"):
        state.renumber(np.array([0]))
    with pytest.raises(CallError, match="drops a group"):
        state.renumber(np.array([0, -1]))
    with pytest.raises(SnapshotError):
        GroupAggregates.from_tables((Aggregate("max", "x", "m"),), state.schema, state.to_tables())
