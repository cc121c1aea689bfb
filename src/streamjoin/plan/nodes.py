"""The logical join: what a call means, checked, with columns by name and sizes in ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from streamjoin.algebra import (
    AsOf,
    BestOf,
    Emit,
    How,
    InvalidPolicy,
    LatePolicy,
    NearestOf,
    Outer,
    OutputMode,
    Predicate,
    TimeAxis,
    Window,
)
from streamjoin.algebra.policy import Hold
from streamjoin.algebra.predicate import Closed
from streamjoin.plan.expression import Expression


@dataclass(frozen=True)
class InputNode:
    """One input of a join. `schema` also has the hidden columns that were derived for keys, values and times."""

    schema: pa.Schema
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    time: str | None = None
    window: Window | None = None
    derived: tuple[str, ...] = ()  # what the hidden columns are computed from


@dataclass(frozen=True)
class IntervalBounds:
    """`lower <= right - left <= upper` in ticks: the condition of an event join."""

    lower: int
    upper: int
    closed: Closed = "both"


@dataclass(frozen=True)
class JoinNode:
    """A join of two inputs, as the user meant it.

    A row matches by keys and `predicates`; or with a `choice` it takes only some of those that could match.
    """

    inputs: tuple[InputNode, InputNode]
    by: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    theta: Expression | None = None
    interval: IntervalBounds | None = None
    choice: AsOf | BestOf | NearestOf | None = None
    axis: TimeAxis | None = None
    time_type: pa.DataType | None = None
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

    @property
    def windowed(self) -> bool:
        """Whether rows have a validity."""
        return self.inputs[0].window is not None
