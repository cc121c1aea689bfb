"""Brute force over elements: what aggregates of groups over lifetimes are, and a caller that keeps their codes."""

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

from streamjoin.algebra import FOREVER, Aggregate
from streamjoin.state import Changes, GroupAggregates, Pieces, table_from_bytes, table_to_bytes

SLOW = os.environ.get("NUMBA_DISABLE_JIT") == "1"
UTC = datetime.UTC
DAY = datetime.date(2024, 5, 1)
FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev")
COMPARED = ("count", "min", "max")
# type, values to draw from, functions
COLUMNS: dict[str, tuple[pa.DataType, list[Any], tuple[str, ...]]] = {
    "byte": (pa.int8(), [-128, -1, 0, 5, 127], FUNCTIONS),
    "whole": (pa.int64(), [-(2**58), -3, 0, 7, 2**57 + 1], FUNCTIONS),
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
