"""What a plan knows of the streams of a tree: how late their rows may be, and whether they move at all."""

from __future__ import annotations

from streamjoin.plan.condition import one_column
from streamjoin.plan.physical import PhysicalPlan, Source
from streamjoin.plan.relation import Projection, Relation, Selection, Stream, streams_of


def source_of(plan: PhysicalPlan, stream: Stream) -> Source:
    """What reads a stream. A stream that is read twice is as late both times."""
    return next(source for source in plan.sources if source.name == stream.source)


def slack_of(plan: PhysicalPlan, stream: Stream) -> int:
    """How late rows of a stream may be; a table was there from the start, and is never late."""
    return source_of(plan, stream).lateness.delay or 0


def is_moving(plan: PhysicalPlan, relation: Relation) -> bool:
    """Whether anything that a relation reads is a stream."""
    return any(not source_of(plan, leaf).complete for leaf in streams_of(relation))


def origin_of(relation: Relation, name: str) -> str | None:
    """What that operator calls a column of the relation; None where it is computed."""
    while isinstance(relation, Selection | Projection):
        own = one_column(dict(relation.computed)[name]) if isinstance(relation, Projection) else name
        if own is None:
            return None
        relation, name = relation.child, own
    return name
