"""What a lowering is told beside the tree: the sources, and what shall leave."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamjoin.algebra import Emit, InvalidPolicy, LatePolicy, Method
from streamjoin.algebra.policy import ToStream
from streamjoin.operators.urgency import NewPriority
from streamjoin.plan.types import Fields
from streamjoin.runtime.intake import HIDDEN
from streamjoin.runtime.lateness import Complete, Lateness
from streamjoin.runtime.naming import OutputColumn


@dataclass(frozen=True)
class SourceInfo:
    """A frame that a tree reads by name. `label` is what errors call it."""

    name: str
    fields: Fields
    label: str
    lateness: Lateness = field(default_factory=Complete)
    streaming: bool = False
    late: LatePolicy = "drop"
    invalid: InvalidPolicy = "fail"
    prefix: str = ""
    made_by: str | None = None
    derived: tuple[str, ...] = ()
    whole: bool = False  # rows that leave unjoined are shown as they are in the source

    @property
    def shown(self) -> Fields:
        """The columns that are the user's own."""
        return tuple(each for each in self.fields if not each.name.startswith(HIDDEN))


@dataclass(frozen=True)
class Leaving:
    """What leaves of a tree, and how.

    `columns`: the result's columns by name and where they come from; None: those of the tree. `marks`: rows that leave
    unjoined are shown by flags beside their own columns, otherwise as whole rows in columns of their own.
    """

    columns: tuple[OutputColumn, ...] | None = None
    validity: tuple[str, str] | None = ("valid_from", "valid_to")
    to_stream: ToStream | None = None
    change: bool = False
    emit: Emit = "eager"
    flagged: bool = False
    method: Method = "direct"
    buckets: int = 1
    idle_after: int | None = None
    memory: int | None = None  # bytes that the state of a stage may use in each process
    timers: bool = False
    reordered: bool = False  # rows of a stream, which nothing but order is asked of
    priority: str | None = None  # the column that says how urgent results are
    new_priority: NewPriority | None = None  # of a join's results, where it is not the largest of their members'
