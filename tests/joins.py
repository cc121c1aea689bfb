"""Joins of two frames as calls, over plain schemas: the tree, the sources and the plan that such a call makes.

What the functions of the library make on Spark of frames with these schemas, made without it: `JoinCall.plan()` is the
plan that is simulated, and must be equal to the one that runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from streamjoin.algebra import (
    AsOf,
    BestOf,
    Emit,
    Equals,
    How,
    InvalidPolicy,
    LatePolicy,
    Near,
    NearestOf,
    Outer,
    OutputMode,
    Predicate,
    Validity,
    Window,
    Within,
)
from streamjoin.algebra.policy import Hold
from streamjoin.algebra.predicate import Closed
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.naming import name_columns
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    EVENT_JOINS,
    AsOfJoin,
    BestMatchJoin,
    IntervalJoin,
    Join,
    NearestJoin,
    Relation,
    Stream,
)
from streamjoin.runtime.lateness import Complete, Lateness
from streamjoin.runtime.naming import INVALID_FLAG, LATE_FLAG
from tests.in_process import source
from tests.interpreter import PlainTyping


@dataclass(frozen=True)
class Bounds:
    """`lower <= right - left <= upper` in ticks."""

    lower: int
    upper: int
    closed: Closed = "both"


@dataclass(frozen=True)
class JoinCall:
    """A join of two frames. Columns are named as in the frames, and keys alike in both; sizes are in ticks.

    With windows it is `sj.join`, with an interval `sj.join_interval`, with a choice one of the others; `predicates` of
    a best match are its dimensions. `by` are those of the keys that appear once in the result. `time` is None where
    rows have none. A best match that is counted in steps has them in its time column.
    """

    schemas: tuple[pa.Schema, pa.Schema]
    keys: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    theta: str | None = None
    interval: Bounds | None = None
    choice: AsOf | BestOf | NearestOf | None = None
    time: str | None = "ts"
    windows: tuple[Window | None, Window | None] = (None, None)
    how: How = "inner"
    outer: Outer = "row"
    emit: Emit = "eager"
    output: OutputMode = "append"
    hold: Hold | Literal["auto"] = "auto"
    late: tuple[LatePolicy, LatePolicy] = ("drop", "drop")
    invalid: InvalidPolicy = "fail"
    suffix: str = "_right"
    validity: tuple[str, str] = ("valid_from", "valid_to")
    buckets: int = 1
    cell: float | None = None
    lateness: tuple[Lateness, Lateness] = (Complete(), Complete())
    idle_after: int | None = None
    timers: bool = False
    memory: int | None = None

    @property
    def windowed(self) -> bool:
        """Whether rows have a validity."""
        return self.windows[0] is not None

    @property
    def residual(self) -> bool:
        """Whether the further condition is left to Spark, on the pairs."""
        return self.theta is not None and self.how == "inner"

    def plan(self) -> PhysicalPlan:
        """How it runs."""
        return lower(self.relation(), self.sources(), PlainTyping(), self.leaving())

    def sources(self) -> dict[str, SourceInfo]:
        """What is known of the two frames."""
        return {
            str(number): source(
                str(number), self.schemas[number], self.lateness[number], label=f"input {number}",
                late=self.late[number], invalid=self.invalid, prefix=f"{number}.",
            )
            for number in (0, 1)
        }  # fmt: skip

    def leaving(self) -> Leaving:
        """What leaves, and how."""
        change, events = self.output == "changelog", isinstance(self.relation(), EVENT_JOINS)
        validity = self.validity if self.windowed else None
        flags = [INVALID_FLAG] * (self.invalid == "output") + [LATE_FLAG] * ("output" in self.late)
        columns = name_columns(
            [schema.names for schema in self.schemas],
            [{field.name: field.type for field in schema} for schema in self.schemas],
            by=self.by, how=self.how, suffix=self.suffix, validity=validity, flags=tuple(flags), changelog=change,
        )  # fmt: skip
        return Leaving(
            columns, validity, change=change, emit=self.emit, flagged=True,
            method="negative" if change and not events else "direct",
            buckets=self.buckets, idle_after=self.idle_after, memory=self.memory, timers=self.timers,
        )  # fmt: skip

    # -- the tree ------------------------------------------------------------------------------------------------------

    def relation(self) -> Relation:
        """The tree."""
        if isinstance(self.choice, AsOf):
            return self._asof(self.choice)
        if isinstance(self.choice, NearestOf):
            return self._nearest(self.choice)
        if isinstance(self.choice, BestOf):
            return self._best_match(self.choice)
        left, right = (self._stream(number) for number in (0, 1))
        matched = (*(Equals(*_both(key)) for key in self.keys), *(_over_both(each) for each in self.predicates))
        if self.interval is None:
            return Join(
                left, right, matched, self._theta(), self.how, self.outer, self.windowed, self.hold, self.cell
            )  # fmt: skip
        assert self.time is not None
        bounds = self.interval
        return IntervalJoin(
            left, right, _both(self.time), bounds.lower, bounds.upper, bounds.closed, matched, self._theta(),
            self.how, self.hold, self.cell,
        )  # fmt: skip

    def _asof(self, choice: AsOf) -> Relation:
        assert self.time is not None
        return AsOfJoin(
            self._stream(0), self._stream(1), _both(self.time), self._key_pairs(), choice.direction, choice.exact,
            choice.tolerance, self.how, tuple(f"1.{name}" for name in choice.tie_break),
        )  # fmt: skip

    def _nearest(self, choice: NearestOf) -> Relation:
        (near,) = self.predicates
        within: Any = _over_both(near)
        assert isinstance(within, Within)
        ties = tuple(f"1.{name}" for name in choice.tie_break)
        times = None if self.time is None else _both(self.time)
        return NearestJoin(
            self._stream(0), self._stream(1), within, replace(choice, tie_break=ties), times, self._key_pairs(),
            self.how, self.cell,
        )  # fmt: skip

    def _best_match(self, choice: BestOf) -> Relation:
        dimensions: list[Any] = list(self.predicates)
        functions = tuple((n, each.compare) for n, each in enumerate(dimensions) if isinstance(each, Near))
        return BestMatchJoin(
            self._stream(0), self._stream(1),
            tuple((f"0.{each.left}", f"1.{each.right}", _largest(each)) for each in dimensions),
            self._key_pairs(), self.how, choice, functions,
            None if choice.reach is None or self.time is None else _both(self.time), self.cell,
        )  # fmt: skip

    def _stream(self, number: int) -> Stream:
        reads = tuple((f"{number}.{name}", name) for name in self.schemas[number].names)
        window = self.windows[number]
        time = None if window is None or isinstance(window, Validity) else self.time
        return Stream(str(number), reads, time, window)

    def _key_pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(_both(key) for key in self.keys)

    def _theta(self) -> str | None:
        if self.theta is None:
            return None
        expression = Expression.parse(self.theta, self.schemas)
        return expression.spark_sql(lambda number, column: f"{number}.{column}")


def _both(column: str) -> tuple[str, str]:
    return f"0.{column}", f"1.{column}"


def _largest(dimension: Any) -> Any:
    return dimension.epsilon if isinstance(dimension, Near) else dimension.above


def _over_both(predicate: Any) -> Predicate:
    """A predicate over the columns of the tree."""
    sides: dict[str, Any] = {}
    for number, side in enumerate(("left", "right")):
        columns = getattr(predicate, side)
        named = tuple(f"{number}.{each}" for each in (columns if isinstance(columns, tuple) else (columns,)))
        sides[side] = named if isinstance(columns, tuple) else named[0]
    made: Predicate = replace(predicate, **sides)
    return made
