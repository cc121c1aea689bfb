"""Predicates over frames: names to columns, columns to common types, bounds to the unit of those types.

On whole numbers (integers, decimals as their unscaled digits, times as ticks) every bound becomes a closed integer
bound, so that nothing is rounded. On doubles bounds stay as they were given.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql.types import DataType, DateType, DecimalType, DoubleType, TimestampNTZType, TimestampType

from streamjoin.algebra import FOREVER, NEVER, Band, Equals, Overlaps, Predicate, Theta, TimeAxis, Within
from streamjoin.algebra.predicate import conjuncts
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.expression import Expression
from streamjoin.spark.frames import InputFrame, key_columns, number_type_check, value_type

Inputs = tuple[InputFrame, InputFrame]


def both(inputs: Inputs, left: Any, right: Any) -> tuple[str, str]:
    """The names of a column on both inputs."""
    return inputs[0].resolve(left), inputs[1].resolve(right)


def bind_predicates(
    inputs: Inputs, where: Predicate | None
) -> tuple[list[tuple[str, str]], list[Predicate], str | None]:
    """The equality keys, the predicates over values with their columns found, and the theta text of a conjunction."""
    keys: list[tuple[str, str]] = []
    predicates: list[Predicate] = []
    texts: list[str] = []
    if where is not None and not isinstance(where, Predicate):
        raise CallError(
            f"where must be a predicate, got {where!r}",
            hint='write where=sj.equals("k") & sj.band("v", below=1, above=1), or sj.theta("l.a < r.b")',
        )
    for part in conjuncts(where):
        if isinstance(part, Equals):
            keys.append(key_columns(inputs, both(inputs, part.left, part.right), merged=False))
        elif isinstance(part, Band):
            predicates.append(bind_band(inputs, part))
        elif isinstance(part, Overlaps):
            predicates.append(bind_overlaps(inputs, part))
        elif isinstance(part, Within):
            predicates.append(bind_within(inputs, part))
        elif isinstance(part, Theta):
            texts.append(f"({part.text})")
        else:
            raise UnsupportedError(f"a predicate of type {type(part).__name__} cannot be joined on")
    if len(texts) == 1:
        texts = [texts[0][1:-1]]
    return keys, predicates, " AND ".join(texts) or None


def bind_band(inputs: Inputs, band: Band) -> Band:
    """A band with its columns in a common type and its bounds in that type's unit."""
    names = both(inputs, band.left, band.right)
    kind = value_type(inputs, names, "a band")
    left, right = (part.cast(name, kind) for part, name in zip(inputs, names, strict=True))
    if isinstance(kind, DoubleType):
        for bound in (band.below, band.above):
            _check_number(bound, "on a double column")
        return Band(left, right, float(band.below), float(band.above), band.closed)
    low, high = (_whole(kind, bound) for bound in (-_signed(kind, band.below), _signed(kind, band.above)))
    lowest = math.ceil(low) if band.low_closed else math.floor(low) + 1
    highest = math.floor(high) if band.high_closed else math.ceil(high) - 1
    return Band(left, right, -max(lowest, NEVER + 1), min(highest, FOREVER))


def _signed(kind: DataType, bound: Any) -> Any:
    """A bound as an exact number in the column's own unit: ticks for times."""
    if isinstance(kind, TimestampType | TimestampNTZType):
        return TimeAxis.TIMESTAMP.ticks(bound, "a band's bound")
    if isinstance(kind, DateType):
        return TimeAxis.DATE.ticks(bound, "a band's bound")
    _check_number(bound, f"on a {kind.simpleString()} column")
    if isinstance(bound, float) and math.isinf(bound):
        return FOREVER if bound > 0 else -FOREVER
    # What the user wrote as 0.1 means a tenth where numbers are exact, not the double next to it.
    return Fraction(repr(bound)) if isinstance(bound, float) else Fraction(bound)


def _whole(kind: DataType, bound: Any) -> Any:
    return bound * 10**kind.scale if isinstance(kind, DecimalType) and abs(bound) < FOREVER else bound


def _check_number(bound: Any, where: str) -> None:
    if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal | Fraction):
        raise CallError(
            f"a band's bounds must be numbers {where}, got {bound!r}", hint="for example below=0.5, above=0.5"
        )


def bind_overlaps(inputs: Inputs, overlaps: Overlaps) -> Overlaps:
    """An overlap with all four columns in one type."""
    left = tuple(inputs[0].resolve(column) for column in overlaps.left)
    right = tuple(inputs[1].resolve(column) for column in overlaps.right)
    kinds = [value_type(inputs, (a, b), "an overlap") for a in left for b in right]
    kind = next((kind for kind in kinds if isinstance(kind, DoubleType)), kinds[0])
    if any(other != kind for other in kinds) and not isinstance(kind, DoubleType):
        raise CallError(
            f"the four ends of an overlap must have one type, got {', '.join(k.simpleString() for k in kinds)}",
            hint="cast them to a common type",
        )
    lo, hi = (inputs[0].cast(name, kind) for name in left)
    start, end = (inputs[1].cast(name, kind) for name in right)
    return Overlaps((lo, hi), (start, end))


def bind_within(inputs: Inputs, within: Within) -> Within:
    """A distance with its axes as doubles."""
    axes: list[list[str]] = [[], []]
    for pair in zip(within.left, within.right, strict=True):
        for number, name in enumerate(both(inputs, *pair)):
            number_type_check(inputs[number], name, "a radius")
            axes[number].append(inputs[number].cast(name, DoubleType()))
    return Within(tuple(axes[0]), tuple(axes[1]), float(within.radius), within.metric)


def check_agreement(expression: Expression, inputs: Inputs) -> None:
    """Refuse a theta that this session or these columns would have Spark evaluate in another way than we do."""
    conf = inputs[0].frame.sparkSession.conf
    for name, ours in (("spark.sql.ansi.enabled", "true"), ("spark.sql.caseSensitive", "false")):
        if str(conf.get(name, ours)).lower() != ours:
            raise UnsupportedError(
                f"theta outside an inner join is evaluated as Spark does with {name}={ours}, and this session differs",
                hint=f"set {name}={ours} for this join, or use how='inner'",
            )
    for part, columns in zip(inputs, expression.columns(), strict=True):
        for column in columns:
            kind = part.types[column].simpleString()
            if "collate" in kind or "char" in kind:
                raise UnsupportedError(
                    f"theta outside an inner join compares strings by their bytes, and {column!r} of {part.where} "
                    f"is {kind}",
                    hint="use how='inner', or compare lower(...) of it in a column of its own",
                )
