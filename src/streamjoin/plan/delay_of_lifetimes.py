"""How late the results of a tree over lifetimes can be; the laws are in `delay`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from streamjoin.algebra import Rows
from streamjoin.errors import CallError
from streamjoin.operators import NegativeWindow
from streamjoin.operators.temporal_join import TRACKED
from streamjoin.plan.condition import one_column
from streamjoin.plan.multi_join import MultiJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
    operator_of,
)
from streamjoin.plan.slack import is_moving, slack_of, source_of

# Of which inputs columns are never NULL for want of a partner.
_SURE: Final = {"left": (True, False), "right": (False, True), "full": (False, False)}


@dataclass(frozen=True)
class TimeColumn:
    """A time column of a stream, further up: results begin from `ts` to `ts + length`, and at `ts` itself where nothing
    has been made of the stream's rows yet. `sure`: never NULL.
    """

    length: int | None
    stream: Stream
    made: bool = False
    sure: bool = True


@dataclass(frozen=True)
class LifetimesDelay:
    """The delay of a tree over lifetimes."""

    plan: PhysicalPlan
    relation: Relation

    @property
    def timed(self) -> bool:
        """Whether results have a time."""
        return self.plan.axis is not None

    @property
    def time_columns(self) -> set[str]:
        """The columns of the tree that are times."""
        return set(self._times(self.relation))

    def delay(self, column: str | None = None) -> int:
        """In ticks, by a time column of the tree; without one, by the start of the validity, or when it happens."""
        delay = self._delay()
        if column is None:
            return delay
        time = self._times(self.relation)[column]
        if time.length is None:
            raise self._endless(time.stream)
        return delay + (time.length if time.made or self.plan.sink.shape.time is not None else 0)

    def delay_by_end(self) -> int:
        """By the end of the validity: of rows that pass as they come, those that came earlier may end later."""
        passing = not self.plan.stages and isinstance(operator_of(self.relation), Stream)
        return self._until(self.relation) if passing else self._delay()

    def _delay(self) -> int:
        shape, top = self.plan.sink.shape, operator_of(self.relation)
        if shape.time is not None and not shape.change:  # ISTREAM, DSTREAM, RSTREAM
            return self._spread(top)
        if isinstance(top, Union):
            raise self._apart()
        if shape.time is not None:  # plus and minus tuples: a window tells what comes at once, operators go by progress
            return slack_of(self.plan, top) if isinstance(top, Stream) else 0
        if any(isinstance(node.config, NegativeWindow) for stage in self.plan.stages for node in stage.nodes):
            return self._some_length(self.relation)  # an element leaves with its minus tuple
        return self._ahead(top) + (self._some_length(top) if self._open(top) else 0)

    # -- how far beyond progress ---------------------------------------------------------------------------------------

    def _ahead(self, relation: Relation) -> int:
        """How far beyond the progress a result that leaves can begin."""
        if isinstance(relation, Stream):
            return 0 if isinstance(relation.window, Rows) else slack_of(self.plan, relation)
        if isinstance(relation, Join) and relation.how != "inner":
            return self._ahead_of_outer(relation)
        return self._until(relation)

    def _ahead_of_outer(self, join: Join) -> int:
        beside = self._beside_a_table(join)
        if beside is None:
            lengths = [self._some_length(child) for child in join.children]
            until = [self._until(child) for child in join.children]
            ahead = max(until[0] + lengths[1], until[1] + lengths[0])
        else:
            until = [self._until(beside)]
            ahead = until[0]
        judged = any(stage.outlet.testimony for stage in self.plan.stages)
        if judged or any(self._open(child) for child in join.children):
            return max(ahead, max(until) + self._longest_undecided(join))
        return ahead

    def _beside_a_table(self, join: Join) -> Relation | None:
        """The only input of a join that moves, if none but its rows may have no partner: a table decides at once."""
        moving = [is_moving(self.plan, child) for child in join.children]
        if sum(moving) != 1 or any(waits and not moves for waits, moves in zip(TRACKED[join.how], moving, strict=True)):
            return None
        return join.children[moving.index(True)]

    def _longest_undecided(self, join: Join) -> int:
        """How long a row can be that may turn out to have no partner."""
        tracked = zip(join.children, TRACKED[join.how], strict=True)
        return max(self._some_length(child) for child, waits in tracked if waits)

    def _until(self, relation: Relation) -> int:
        """How far beyond the progress a result, whose end is known, can end."""
        match relation:
            case Stream():
                if isinstance(relation.window, Rows):
                    return 0
                return slack_of(self.plan, relation) + self._some_length(relation)
            case Selection() | Projection():
                return self._until(relation.child)
            case Union():
                raise self._apart()
            case MultiJoin():
                moving = [child for child in relation.children if is_moving(self.plan, child)]
                return max((self._until(child) for child in moving), default=0)
            case Join():
                moving = [child for child in relation.children if is_moving(self.plan, child)]
                undecided = 0 if relation.how == "inner" else self._longest_undecided(relation)
                return max([undecided, *(self._until(child) for child in moving)]) + undecided
        return self._spread(relation)

    def _spread(self, relation: Relation) -> int:
        """How far the progress of one bucket can be beyond that of another."""
        if all(stage.buckets == 1 for stage in self.plan.stages):
            return 0
        below = max((self._spread(child) for child in relation.children), default=0)
        if not isinstance(relation, Join) or relation.how == "inner":
            return below
        return below + self._longest_undecided(relation)

    def _open(self, relation: Relation) -> bool:
        """Whether results are said before their ends are known."""
        if not is_moving(self.plan, relation):
            return False
        if isinstance(relation, Stream):
            return isinstance(relation.window, Rows)
        if isinstance(relation, Aggregation | Distinct | Difference | Intersection):
            return True
        return any(self._open(child) for child in relation.children)

    # -- how long ------------------------------------------------------------------------------------------------------

    def _length(self, relation: Relation) -> int | None:
        """How long a result can be valid; None where there is no bound."""
        match relation:
            case Stream():
                assert relation.window is not None and self.plan.axis is not None
                return relation.window.resolve(self.plan.axis).longest
            case Union():
                return _largest([self._length(part) for part in relation.parts])
            case Distinct() | Difference() | Intersection():
                times = self._times(relation).values()
                return min((time.length for time in times if time.sure and time.length is not None), default=None)
            case Join() | MultiJoin():
                lengths = [self._length(child) for child in relation.children]
                if relation.how == "inner":
                    return min((length for length in lengths if length is not None), default=None)
                tracked = TRACKED[relation.how]
                return _largest([length for length, waits in zip(lengths, tracked, strict=True) if waits])
        return self._length(relation.children[0])

    def _some_length(self, relation: Relation) -> int:
        length = self._length(relation)
        if length is None:
            raise self._endless(relation)
        return length

    def _endless(self, relation: Relation) -> CallError:
        """Why there is no bound on how long results are valid."""
        match relation:
            case Stream(window=Rows()):
                return CallError(
                    f"a row of {self._label(relation)} is valid until later ones push it out, which may be never, so "
                    "results can be late without bound",
                    hint="use a window with a size, such as sj.Range or sj.Fixed, or ISTREAM",
                )
            case Stream():
                return CallError(
                    f"rows of {self._label(relation)} may be valid for any length of time, so results can be late "
                    "without bound",
                    hint="use a window with a size, such as sj.Range or sj.Fixed",
                )
            case Distinct() | Difference() | Intersection():
                what = {Distinct: "DISTINCT", Difference: "EXCEPT", Intersection: "INTERSECT"}[type(relation)]
                return CallError(
                    f"{what}: a row may be there for ever, as equal ones follow one another, so results can be late "
                    "without bound",
                    hint="select the time column as well, or use ISTREAM",
                )
        return self._endless(next(child for child in relation.children if self._length(child) is None))

    def _apart(self) -> CallError:
        return CallError(
            "UNION: one of its parts may be any time behind the others, so results can be late without bound",
            hint="run the parts as queries of their own, or use ISTREAM",
        )

    def _label(self, stream: Stream) -> str:
        return source_of(self.plan, stream).reading.label

    # -- time columns --------------------------------------------------------------------------------------------------

    def _times(self, relation: Relation) -> dict[str, TimeColumn]:
        """The time columns of a relation."""
        match relation:
            case Stream():
                start = getattr(relation.window, "start", relation.time)
                time = TimeColumn(self._length(relation), relation)
                return {name: time for name, column in relation.reads if column == start}
            case Selection():
                return self._times(relation.child)
            case Projection():
                own = self._times(relation.child)
                texts = ((name, one_column(text) or "") for name, text in relation.computed)
                return {name: own[column] for name, column in texts if column in own}
            case Union():
                return self._times_of_union(relation)
            case Join() | MultiJoin():
                return self._times_of_join(relation)
        kept = relation.keys if isinstance(relation, Aggregation) else relation.columns
        times = self._times(relation.children[0])
        return {name: replace(time, made=True) for name, time in times.items() if name in kept}

    def _times_of_join(self, join: Join | MultiJoin) -> dict[str, TimeColumn]:
        found = {}
        for child, sure in zip(join.children, _SURE.get(join.how, (True,) * len(join.children)), strict=True):
            for name, time in self._times(child).items():
                found[name] = replace(time, made=True, sure=time.sure and sure)
        return {name: time for name, time in found.items() if name in join.columns}

    def _times_of_union(self, union: Union) -> dict[str, TimeColumn]:
        """Columns that are times in every part; set operators go by position."""
        parts = [self._times(part) for part in union.parts]
        found = {}
        for names in zip(*(part.columns for part in union.parts), strict=True):
            if all(name in times for name, times in zip(names, parts, strict=True)):
                mine = [times[name] for name, times in zip(names, parts, strict=True)]
                longest = _largest([time.length for time in mine])
                endless = next((time for time in mine if time.length is None), mine[0])
                made, sure = any(time.made for time in mine), all(time.sure for time in mine)
                found[names[0]] = TimeColumn(longest, endless.stream, made, sure)
        return found


def _largest(lengths: list[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None
