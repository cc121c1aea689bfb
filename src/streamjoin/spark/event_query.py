"""Joins of events in a query: an as-of or best-match join of streams without windows.

Their rows have no validity, so Spark itself does the selections and projections above and below the join. The join is
stored in the checkpoint as such, with the tree that it stands in: `sj.finish` does to the rest what the query did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.naming import INVALID_FLAG, LATE_FLAG
from streamjoin.plan.relation import AsOfJoin, BestMatchJoin, Projection, Relation, Selection, Stream, streams_of
from streamjoin.plan.stored import to_stored
from streamjoin.spark.build import JoinCall, run_best_match
from streamjoin.spark.choices import AsOfCall, BestMatchCall
from streamjoin.spark.explain import made_by
from streamjoin.spark.frames import quoted, reason


@dataclass(frozen=True)
class EventQuery:
    """A tree with a join of events in it, and what the query says beside it; `options` are the join's own."""

    frames: Mapping[str, DataFrame]
    relation: Relation
    lateness: Any
    options: Mapping[str, Any]

    def run(self) -> tuple[DataFrame, str | None]:
        """The result, and the name of the streaming join that is stored."""
        top = event_join(self.relation)
        assert top is not None
        joined = self._join(top, to_stored(self.relation))
        return above_events(self.relation, joined), made_by(joined)

    def _rows(self, relation: Relation) -> DataFrame:
        match relation:
            case Stream():
                frame = self.frames[relation.source]
                return frame.select(*(F.col(quoted(column)).alias(name) for name, column in relation.reads))
            case AsOfJoin() | BestMatchJoin():
                return _named(relation, self._join(relation, None))
        return _computed(relation, self._rows)

    def _join(self, join: AsOfJoin | BestMatchJoin, within: dict[str, Any] | None) -> DataFrame:
        """The join itself; `within`: the tree that is stored with it."""
        sides = [self._rows(child) for child in join.children]
        number_of = _numbers(join)
        left, right = (
            side.select(*(F.col(quoted(name)).alias(number_of[name]) for name in child.columns))
            for side, child in zip(sides, join.children, strict=True)
        )
        keys: dict[str, Any] = {}
        if join.keys:
            keys = {"left_by": [number_of[a] for a, _ in join.keys], "right_by": [number_of[b] for _, b in join.keys]}
        options = {"how": join.how, "lateness": self._per_side(join), "within": within, **self.options, **keys}
        if isinstance(join, AsOfJoin):
            asof = AsOfCall(join.direction, join.tolerance, None, join.exact, None)
            times = [number_of[name] for name in join.times]
            return JoinCall([left, right], time=times, asof=asof, **options).run()
        on = {(number_of[a], number_of[b]): largest for a, b, largest in join.dimensions}
        return run_best_match(left, right, BestMatchCall(on), options)

    def _per_side(self, join: AsOfJoin | BestMatchJoin) -> Any:
        if not isinstance(self.lateness, Mapping):
            return self.lateness
        return [self.lateness.get(streams_of(child)[0].source) for child in join.children]


def event_join(relation: Relation) -> AsOfJoin | BestMatchJoin | None:
    """The topmost join of events in a tree."""
    if isinstance(relation, AsOfJoin | BestMatchJoin):
        return relation
    found = (event_join(child) for child in relation.children)
    return next((each for each in found if each is not None), None)


def above_events(relation: Relation, joined: DataFrame) -> DataFrame:
    """What a query gives of its join's result."""
    if isinstance(relation, AsOfJoin | BestMatchJoin):
        return _named(relation, joined)
    return _computed(relation, lambda child: above_events(child, joined))


def _computed(relation: Relation, lower: Callable[[Relation], DataFrame]) -> DataFrame:
    match relation:
        case Selection():
            child = lower(relation.child)
            keep = F.expr(relation.condition)
            for flag in (INVALID_FLAG, LATE_FLAG):  # rows that leave unjoined, marked, are not asked
                keep = keep | F.col(flag) if flag in child.columns else keep
            return child.filter(keep)
        case Projection():
            columns = [F.expr(text).alias(name) for name, text in relation.computed]
            try:
                child = lower(relation.child)
                added = [name for name in child.columns if name not in relation.child.columns]
                return child.select(*columns, *added)
            except AnalysisException as error:
                raise CallError(f"Spark cannot evaluate this projection: {reason(error)}") from error
    raise UnsupportedError(
        f"{type(relation).__name__} cannot stand beside a join of events", hint="give every stream a window"
    )


def _numbers(join: AsOfJoin | BestMatchJoin) -> dict[str, str]:
    """Columns have numbers while they are joined: the join's own functions read names with dots as fields."""
    numbers = [f"l{number}" for number in range(len(join.left.columns))]
    numbers += [f"r{number}" for number in range(len(join.right.columns))]
    return dict(zip(join.columns, numbers, strict=True))


def _named(join: AsOfJoin | BestMatchJoin, joined: DataFrame) -> DataFrame:
    """The join's columns by their own names again, and what it added."""
    number_of = _numbers(join)
    extra = [name for name in joined.columns if name not in number_of.values()]
    return joined.select(*(F.col(number_of[name]).alias(name) for name in join.columns), *extra)
