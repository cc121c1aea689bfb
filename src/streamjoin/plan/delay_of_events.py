"""How late the results of joins of events can be; the laws are in `delay`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamjoin.errors import CallError
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    EVENT_JOINS,
    BestMatchJoin,
    IntervalJoin,
    Relation,
    Stream,
    event_times,
    operator_of,
)
from streamjoin.plan.slack import is_moving, origin_of, slack_of
from streamjoin.runtime.fragment import Inner

Reach = tuple[int | None, int | None]


@dataclass(frozen=True)
class EventDelay:
    """The delay of a tree whose topmost operator joins events."""

    plan: PhysicalPlan
    relation: Relation

    @property
    def join(self) -> Any:
        """The topmost operator."""
        return operator_of(self.relation)

    @property
    def timed(self) -> bool:
        """Whether results have a time. The values that a best-match join orders by may be one."""
        return self.plan.axis is not None or (isinstance(self.join, BestMatchJoin) and self._ordered_by_time())

    def _ordered_by_time(self) -> bool:
        first = self.join.dimensions[0][0]
        kinds = [each.type.arrow for source in self.plan.sources for each in source.fields if each.name == first]
        return any(pa.types.is_integer(kind) or pa.types.is_temporal(kind) for kind in kinds)

    @property
    def time_columns(self) -> set[str]:
        """The columns of the tree that are times."""
        times = set(_all_times(self.join))
        return {name for name in self.relation.columns if origin_of(self.relation, name) in times}

    def delay(self, column: str | None = None) -> int:
        """In ticks, by a time column of the tree; without one, by the time of the left input."""
        name = None if column is None else origin_of(self.relation, column)
        return self._by(self.join, name or _times(self.join)[0])

    def _by(self, join: Any, name: str) -> int:
        """By a time column of a join, or of what it reads."""
        number = 0 if name in join.left.columns else 1
        times = _times(join)
        slacks = self._slack(join.left, times[0]), self._slack(join.right, times[1])
        own = self._by_own_time(join, slacks, number)
        return own if name == times[number] else own + self._apart(join.children[number], times[number], name)

    def _slack(self, child: Relation, time: str) -> int:
        below = operator_of(child)
        if isinstance(below, Stream):
            return slack_of(self.plan, below)
        return self._by(below, origin_of(child, time) or time) if is_moving(self.plan, below) else 0

    def _by_own_time(self, join: Any, slacks: tuple[int, int], number: int) -> int:
        if isinstance(join, IntervalJoin):
            return max(slacks[number], slacks[1 - number] + join.upper - join.lower)
        back, ahead = self._reach(join)
        if ahead is None:
            raise CallError(
                "without tolerance a left row that looks ahead may wait for ever for its answer, so results can be late"
                " without bound",
                hint="give tolerance=",
            )
        chooser = 1 if join.how == "right" else 0
        self._check_final(join, join.children[1 - chooser])
        delay = max(slacks[chooser], ahead)
        if number == chooser:
            return delay
        # Of a best-match join also rows leave that nobody took, a tick later.
        return delay + _some(back) + ahead + isinstance(join, BestMatchJoin)

    def _reach(self, join: Any) -> Reach:
        """How far before and after the time of a row the times of those lie that it takes, in ticks."""
        if isinstance(join, IntervalJoin):
            return -join.lower, join.upper
        if isinstance(join, BestMatchJoin) and join.choice.reach is not None:
            raise CallError(
                "these streams are not ordered by a time, so their results cannot be late by one",
                hint="order them by a timestamp with ordered_by=",
            )
        # Operators are numbered as the tree is walked, children first.
        nodes = [node for stage in self.plan.stages for node in stage.nodes if node.config.terms is not None]
        joins = [each for each in _children_first(self.relation) if isinstance(each, EVENT_JOINS)]
        reach: Reach = sorted(nodes, key=lambda node: node.producer)[joins.index(join)].config.terms.reach
        return reach

    def _check_final(self, join: Any, other: Relation) -> None:
        """Refuse what follows the other input, where that may be any time behind: corrections of a changelog do, and
        buckets that share a stage with another choosing join do, because that has a progress in each.
        """
        alone = (
            isinstance(node.feeds[1 - node.config.terms.chooser], Inner)
            for stage in self.plan.stages
            for node in stage.nodes
            if stage.buckets > 1 and node.config.terms is not None and node.config.terms.chooser is not None
        )
        if is_moving(self.plan, other) and any(alone):
            raise CallError(
                "what a row can take comes from another join of events, whose buckets may be any time apart, so "
                "results can be late without bound",
                hint="join in two calls, the inner one first, or with buckets=1",
            )
        if self.plan.sink.shape.change and join is self.join and is_moving(self.plan, other):
            raise CallError(
                'output="changelog" corrects rows of any age, so results can be late without bound',
                hint='use output="append", where a row leaves when it is final',
            )

    def _apart(self, relation: Relation, one: str, two: str) -> int:
        """How much the distance of two time columns can vary."""
        join: Any = operator_of(relation)
        names = [origin_of(relation, name) or name for name in (one, two)]
        if names[0] == names[1]:
            return 0
        sides = [0 if name in join.left.columns else 1 for name in names]
        if sides[0] == sides[1]:
            return self._apart(join.children[sides[0]], names[0], names[1])
        back, ahead = self._reach(join)
        times = _times(join)
        inside = (self._apart(join.children[n], times[n], names[sides.index(n)]) for n in (0, 1))
        return _some(back) + _some(ahead) + sum(inside)


def _times(join: Any) -> tuple[str, str]:
    times = event_times(join)
    assert times is not None, "what has no time is asked for no delay"
    return times


def _all_times(join: Any) -> Iterator[str]:
    yield from _times(join)
    for child in join.children:
        below = operator_of(child)
        if not isinstance(below, Stream):
            inner = set(_all_times(below))
            yield from (name for name in child.columns if origin_of(child, name) in inner)


def _children_first(relation: Relation) -> Iterator[Relation]:
    for child in relation.children:
        yield from _children_first(child)
    yield relation


def _some(distance: int | None) -> int:
    if distance is None:
        raise CallError(
            "without tolerance the right row's time may lie any distance before the left row's",
            hint="use the left input's time column, or give tolerance=",
        )
    return distance
