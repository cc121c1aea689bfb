"""Predicates over relations: columns to common types, bounds to the unit of those types.

On whole numbers (integers, decimals as their unscaled digits, times as ticks) every bound becomes a closed integer
bound, so that nothing is rounded. On doubles bounds stay as they were given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Band, Equals, Near, Overlaps, Predicate, Similar, TimeAxis, Within
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.condition import quoted
from streamjoin.plan.lowering.feeds import Lowered, SourceFeed
from streamjoin.plan.physical import Computed
from streamjoin.plan.types import Field, Type, Typing, plain_type, type_of
from streamjoin.runtime.intake import HIDDEN

_LONG, _DOUBLE, _BYTES = plain_type(pa.int64()), plain_type(pa.float64()), plain_type(pa.binary())


@dataclass
class Sides:
    """The two inputs of a join while it is bound: columns are added where something must be cast first."""

    parts: list[Lowered]
    typing: Typing
    added: int = 0

    def type(self, number: int, name: str) -> Type:
        """The type of a column."""
        return type_of(self.parts[number].fields, name)

    def cast(self, number: int, name: str, kind: Type) -> str:
        """A column with this type: the column itself if it has it, else one more."""
        return name if self.type(number, name) == kind else self._add(number, Computed("", quoted(name), kind), kind)

    def collation_key(self, number: int, name: str) -> str:
        """A column of bytes that are equal where the collation says that the strings are."""
        return self._add(number, Computed("", quoted(name), collation_key=True), _BYTES)

    def _add(self, number: int, column: Computed, kind: Type) -> str:
        self.added += 1
        name = f"{HIDDEN}v{self.added}"
        named = Computed(name, column.text, column.cast, column.collation_key)
        self.parts[number] = self.parts[number].with_column(named, Field(name, kind))
        return name

    def called(self, number: int, name: str) -> str:
        """What errors call a column."""
        feed = self.parts[number].feeds[0]
        return name.removeprefix(feed.info.prefix) if isinstance(feed, SourceFeed) else name

    def where(self, number: int) -> str:
        """What errors call an input."""
        feed = self.parts[number].feeds[0]
        return feed.info.label if isinstance(feed, SourceFeed) else f"input {number}"

    def common(self, names: tuple[str, str], what: str) -> Type:
        """The type in which two columns are compared."""
        one, two = (self.type(number, name) for number, name in enumerate(names))
        found = one if one == two else self.typing.common(one, two)
        texts = pa.types.is_string(one.arrow) != pa.types.is_string(two.arrow)
        if found is None or (texts and one != two):
            sides = " and ".join(
                f"{self.called(n, each)!r} ({self.type(n, each).text})" for n, each in enumerate(names)
            )
            raise CallError(f"{what} compares {sides}, which have no common type", hint="cast one of them")
        return found

    def both_cast(self, names: tuple[str, str], kind: Type) -> tuple[str, str]:
        """Both columns with this type."""
        return self.cast(0, names[0], kind), self.cast(1, names[1], kind)


def bind_key(sides: Sides, names: tuple[str, str]) -> tuple[str, str]:
    """The columns that stand for an equality key on both inputs, in a common type."""
    kind = sides.common(names, "equality")
    if kind.collated:
        one, two = sides.both_cast(names, kind)
        return sides.collation_key(0, one), sides.collation_key(1, two)
    if pa.types.is_nested(kind.arrow):
        called = sides.called(0, names[0])
        raise CallError(f"equality keys must be scalars, {called!r} is {kind.text}", hint="compare its fields instead")
    return sides.both_cast(names, kind)


def bind_predicates(
    sides: Sides, predicates: Sequence[Predicate]
) -> tuple[list[tuple[str, str]], tuple[Predicate, ...]]:
    """The equality keys, and the predicates over values with their columns in common types."""
    keys: list[tuple[str, str]] = []
    bound: list[Predicate] = []
    for part in predicates:
        if isinstance(part, Equals):
            keys.append(bind_key(sides, (part.left, part.right)))
        elif type(part) in _BINDERS:
            bound.append(_BINDERS[type(part)](sides, part))
        else:
            raise UnsupportedError(f"a predicate of type {type(part).__name__} cannot be joined on")
    return keys, tuple(bound)


def bind_band(sides: Sides, band: Band) -> Band:
    """A band with its columns in a common type and its bounds in that type's unit."""
    kind = value_type(sides, (band.left, band.right), "a band")
    left, right = sides.both_cast((band.left, band.right), kind)
    if kind == _DOUBLE:
        for bound in (band.below, band.above):
            _check_number(bound, "on a double column")
        return Band(left, right, float(band.below), float(band.above), band.closed)
    low, high = (_whole(kind, bound) for bound in (-_signed(kind, band.below), _signed(kind, band.above)))
    lowest = math.ceil(low) if band.low_closed else math.floor(low) + 1
    highest = math.floor(high) if band.high_closed else math.ceil(high) - 1
    if lowest > highest:  # nothing lies between, as between 0 and 1 where both are left out
        return Band(left, right, 0, 1, "neither")
    return Band(left, right, -max(lowest, NEVER + 1), min(highest, FOREVER))


def bind_overlaps(sides: Sides, overlaps: Overlaps) -> Overlaps:
    """An overlap with all four columns in one type."""
    kinds = [value_type(sides, (a, b), "an overlap") for a in overlaps.left for b in overlaps.right]
    kind = next((kind for kind in kinds if kind == _DOUBLE), kinds[0])
    if any(other != kind for other in kinds) and kind != _DOUBLE:
        raise CallError(
            f"the four ends of an overlap must have one type, got {', '.join(each.text for each in kinds)}",
            hint="cast them to a common type",
        )
    lo, hi = (sides.cast(0, name, kind) for name in overlaps.left)
    start, end = (sides.cast(1, name, kind) for name in overlaps.right)
    return Overlaps((lo, hi), (start, end))


def bind_within(sides: Sides, within: Within) -> Within:
    """A distance with its axes as doubles."""
    axes: list[list[str]] = [[], []]
    for pair in zip(within.left, within.right, strict=True):
        for number, name in enumerate(pair):
            kind = sides.type(number, name)
            if not _is_number(kind.arrow):
                raise CallError(
                    f"a radius needs numbers, {sides.called(number, name)!r} of {sides.where(number)} is {kind.text}",
                    hint="cast the column to double",
                )
            axes[number].append(sides.cast(number, name, _DOUBLE))
    return Within(tuple(axes[0]), tuple(axes[1]), float(within.radius), within.metric)


def bind_similar(sides: Sides, similar: Similar) -> Similar:
    """A similarity over texts, or over arrays of one type of elements."""
    texts, kinds = similar.measure == "edit", []
    for number, name in enumerate((similar.left, similar.right)):
        kind = sides.type(number, name)
        called, where = sides.called(number, name), sides.where(number)
        if texts and not pa.types.is_string(kind.arrow):
            raise CallError(
                f"edit counts changes of a text, {called!r} of {where} is {kind.text}",
                hint="cast the column to string; arrays are compared by jaccard, cosine or overlap",
            )
        if not texts and not _is_token_list(kind.arrow):
            raise CallError(
                f"{similar.measure} compares sets, arrays of strings or of integers; {called!r} of {where} is "
                f"{kind.text}",
                hint="make tokens of a text with split(lower(name), ' '), or compare texts by edit",
            )
        if not texts and kind.collated:
            raise UnsupportedError(
                f"{called!r} of {where} is {kind.text}: elements are compared by their bytes, its collation by others",
                hint="cast it to array<string>",
            )
        kinds.append(kind)
    if not texts and pa.types.is_integer(kinds[0].arrow.value_type) != pa.types.is_integer(kinds[1].arrow.value_type):
        raise CallError(
            f"{similar.measure} compares {kinds[0].text} and {kinds[1].text}, whose elements are never equal",
            hint="cast one of them",
        )
    return similar


def _is_token_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) and (pa.types.is_string(kind.value_type) or pa.types.is_integer(kind.value_type))
    )


_BINDERS: Final[dict[type, Callable[[Sides, Any], Predicate]]] = {
    Band: bind_band,
    Overlaps: bind_overlaps,
    Within: bind_within,
    Similar: bind_similar,
    Near: lambda sides, near: near,  # a function says what is near, of values as they are
}


def value_type(sides: Sides, names: tuple[str, str], what: str) -> Type:
    """The type in which two value columns are subtracted and ordered: long, double, a short decimal, or a time."""
    for number, name in enumerate(names):
        kind = sides.type(number, name)
        if not _is_number(kind.arrow) and time_axis(kind.arrow) is None:
            called, where = sides.called(number, name), sides.where(number)
            raise CallError(
                f"{what} needs numbers or times, {called!r} of {where} is {kind.text}",
                hint="cast the column to a number",
            )
    kind = sides.common(names, what)
    if pa.types.is_integer(kind.arrow):
        return _LONG
    if pa.types.is_floating(kind.arrow):
        return _DOUBLE
    if pa.types.is_decimal(kind.arrow) and kind.arrow.precision > 18:
        raise CallError(
            f"{what} on {kind.text} is wider than the 18 digits that are compared exactly",
            hint="cast to decimal(18, s) or to double",
        )
    return kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _signed(kind: Type, bound: Any) -> Any:
    """A bound as an exact number in the column's own unit: ticks for times."""
    axis = time_axis(kind.arrow)
    if axis in (TimeAxis.TIMESTAMP, TimeAxis.DATE):
        return axis.ticks(bound, "a band's bound")
    _check_number(bound, f"on a {kind.text} column")
    if isinstance(bound, float) and math.isinf(bound):
        return FOREVER if bound > 0 else -FOREVER
    # What the user wrote as 0.1 means a tenth where numbers are exact, not the double next to it.
    return Fraction(repr(bound)) if isinstance(bound, float) else Fraction(bound)


def _whole(kind: Type, bound: Any) -> Any:
    return bound * 10**kind.arrow.scale if pa.types.is_decimal(kind.arrow) and abs(bound) < FOREVER else bound


def _check_number(bound: Any, where: str) -> None:
    if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal | Fraction):
        raise CallError(
            f"a band's bounds must be numbers {where}, got {bound!r}", hint="for example below=0.5, above=0.5"
        )
