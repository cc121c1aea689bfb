"""Joins in which a row takes some of those that match, as they were called: as-of, nearest, best match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import (
    AsOf,
    Band,
    BestOf,
    Direction,
    Dominance,
    Grace,
    Near,
    NearestOf,
    Predicate,
    Steps,
    TimeAxis,
    Within,
)
from streamjoin.algebra.policy import one_of
from streamjoin.errors import CallError
from streamjoin.spark.frames import InputFrame
from streamjoin.spark.predicates import bind_predicates, both


@dataclass(frozen=True)
class AsOfCall:
    """Which right row a left row takes, as it was called."""

    direction: str = "backward"
    tolerance: Any = None
    forget_after: Any = None
    exact: bool = True
    tie_break: Any = None

    def resolve(self, axis: TimeAxis, right: InputFrame) -> AsOf:
        """In ticks, with columns of the right input by name."""
        if not isinstance(self.exact, bool):
            raise CallError(f"allow_exact_matches must be True or False, got {self.exact!r}")
        return AsOf(
            one_of(self.direction, Direction, "direction"),  # type: ignore[arg-type]
            min(self._distances(axis), default=None),
            self.exact,
            tuple(tie_columns(self.tie_break, right)),
        )

    def _distances(self, axis: TimeAxis) -> Iterator[int]:
        for value, what in ((self.tolerance, "tolerance"), (self.forget_after, "forget_after")):
            if value is not None:
                yield distance_in_ticks(axis, value, what)


def distance_in_ticks(axis: TimeAxis, value: Any, what: str) -> int:
    """A distance in time."""
    ticks = axis.ticks(value, what)
    if ticks < 0:
        raise CallError(f"{what} must not be negative, got {value!r}", hint="it is a distance in time")
    return ticks


def tie_columns(names: Any, right: InputFrame) -> Iterator[str]:
    """The columns of the right input by which ties are broken."""
    for name in listed(names):
        if not isinstance(name, str):
            raise CallError(f"tie_break takes column names of the right input, got {name!r}")
        found = right.resolve(name)
        if found not in right.columns:
            raise CallError(
                f"tie_break takes columns of the right input, and {name!r} is a field of one",
                hint="make it a column of its own",
            )
        yield found


@dataclass(frozen=True)
class NearestCall:
    """How many of the right rows a left row takes, as it was called."""

    within: Within
    k: int = 1
    tolerance: Any = None
    tie_break: Any = None

    def resolve(self, axis: TimeAxis | None, right: InputFrame) -> NearestOf:
        """In ticks, with columns of the right input by name."""
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise CallError(f"k must be a whole number from 1 on, got {self.k!r}", hint="k=3 takes the three nearest")
        if (axis is None) != (self.tolerance is None):
            raise CallError(
                f"time and tolerance go together, got time={'' if axis is None else 'a column'!r} and "
                f"tolerance={self.tolerance!r}",
                hint='time="ts", tolerance="10 seconds": only right rows count whose time is at most so far away',
            )
        tolerance = None if axis is None else distance_in_ticks(axis, self.tolerance, "tolerance")
        return NearestOf(self.k, tolerance, tuple(tie_columns(self.tie_break, right)))


@dataclass(frozen=True)
class BestMatchCall:
    """Which candidates a row takes, as it was called: an epsilon per dimension."""

    on: Any
    ordered_by: Any = None
    dominance: Any = "pareto"
    compare: Any = None
    steps: Steps | None = None

    def choice(self) -> BestOf:
        """Which of the candidates are best."""
        reach = None if self.steps is None else self.steps.count(float(self.dimensions()[0][2]))
        if callable(self.dominance):
            return BestOf(self.dominance, reach)
        return BestOf(one_of(self.dominance, Dominance, "dominance"), reach)  # type: ignore[arg-type]

    def in_steps(self, lateness: Any) -> tuple[BestMatchCall, list[Column], list[Grace | None]]:
        """The call with an ordered dimension of doubles counted in steps: the columns to count, and the lateness."""
        one, two, epsilon = self.dimensions()[0]
        given = list(lateness) if isinstance(lateness, list | tuple) else [lateness, lateness]
        for slack in given:
            number = isinstance(slack, Grace) and isinstance(slack.delay, int | float)
            if slack is not None and (not number or not slack.delay >= 0):
                raise CallError(
                    f"lateness along {one!r} is a distance of its values, got {slack!r}", hint="lateness=sj.Grace(0.5)"
                )
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | Decimal) or not epsilon >= 0:
            raise CallError(f"the epsilon of {one!r} must be a number from 0 on, got {epsilon!r}")
        slacks = [float(slack.delay) for slack in given if slack is not None]
        steps = Steps.of(float(epsilon), slacks)
        counted = [None if slack is None else Grace(steps.count(float(slack.delay))) for slack in given]
        return replace(self, steps=steps), [_numbered(side, steps) for side in (one, two)], counted

    def dimensions(self) -> list[tuple[Any, Any, Any]]:
        """Left column, right column, epsilon; the ordered dimension first."""
        if not isinstance(self.on, Mapping) or not self.on:
            raise CallError(
                f"on of a best-match join gives an epsilon per dimension, got {self.on!r}",
                hint='for example on={"ra": 0.01, "dec": 0.01}, or {("ra", "raj"): 0.01} for columns of two names',
            )
        ordered = next(iter(self.on)) if self.ordered_by is None else self.ordered_by
        if ordered not in self.on:
            raise CallError(
                f"ordered_by must be one of the dimensions, got {ordered!r}", hint=f"on has {list(self.on)}"
            )
        unknown = [name for name in self.compare or {} if name not in self.on]
        if unknown:
            raise CallError(f"compare has {unknown[0]!r}, which is no dimension", hint=f"on has {list(self.on)}")
        if ordered in (self.compare or {}):
            raise CallError(
                f"the ordered dimension {ordered!r} is compared by its difference: nothing else keeps to the order",
                hint="order by another dimension with ordered_by=, or leave it out of compare=",
            )
        names = [ordered, *(name for name in self.on if name != ordered)]
        return [(*(name if isinstance(name, tuple) else (name, name)), self.on[name]) for name in names]

    def bind(self, inputs: tuple[InputFrame, InputFrame]) -> list[Predicate]:
        """A predicate per dimension, with its columns found."""
        bound: list[Predicate] = []
        for left, right, epsilon in self.dimensions():
            function = (self.compare or {}).get(left if left == right else (left, right))
            if function is None:
                bound += bind_predicates(inputs, Band(left, right, epsilon, epsilon))[1]
                continue
            if not callable(function):
                raise CallError(f"compare takes functions of two arrays, got {function!r}")
            if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
                raise CallError(f"an epsilon beside a function must be a number, got {epsilon!r}")
            bound.append(Near(*both(inputs, left, right), epsilon, function))
        return bound


def _numbered(side: Any, steps: Steps) -> Column:
    """The number of the step that a value is in; NULL where it is none that could be near another."""
    value = (side if isinstance(side, Column) else F.col(side)).cast("double")
    number = F.floor(F.greatest(F.least(value / steps.width, F.lit(steps.most)), F.lit(-steps.most)))
    return F.when(~F.isnan(value) & (F.abs(value) < float("inf")), number.cast("long"))


def listed(option: Any) -> list[Any]:
    """One or several values as a list.

    >>> listed(None), listed("a"), listed(("a", "b"))
    ([], ['a'], ['a', 'b'])
    """
    if option is None:
        return []
    return list(option) if isinstance(option, list | tuple) else [option]
