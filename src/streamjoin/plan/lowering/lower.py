"""The lowering: from a tree of relations to a physical plan, children first.

| node | operator | rows that meet |
|---|---|---|
| Stream | none; a row window is one | of one group, or all of them |
| Selection, Projection | none: Spark computes them, at the source wherever that is directly below | |
| Union | none: its reader has as many channels; one that passes tables and streams, or rows in order, that leave | |
| joins | one each (see `matching_joins`, `choosing_joins`) | by keys, by a grid over values, by a matrix |
| Distinct, Difference, Intersection | a set operator over multiplicities | of one payload |
| Aggregation | pieces between the starts and ends of a group's elements | of one group, or all of them |

Where an operator's rows meet already where its child has them, and Spark computes nothing between, both are one
fragment in one stage: nothing crosses an exchange. With one bucket that is so for all but what reads a union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Rows
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import Aggregating, Multiplicity, NegativeWindow, Passing, RowWindow, StreamOf
from streamjoin.operators.multiplicity import SetOperator
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.lowering.comparing import check_ordered, check_told_apart
from streamjoin.plan.lowering.feeds import Draft, Lowered, SourceFeed, StageFeed, sharing
from streamjoin.plan.lowering.joins import JoinLowering
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.lowering.priorities import check_priorities, is_prioritised
from streamjoin.plan.lowering.recall import check_recall
from streamjoin.plan.multi_join import MultiJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    OfPairs,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
    operator_of,
)
from streamjoin.plan.types import Field, Fields, Type, Typing, arrow_schema, check_name, names_of, plain_type, type_of
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.fragment import Entry, Inner, Node
from streamjoin.runtime.intake import ARRIVAL, HIDDEN, KEEP
from streamjoin.runtime.placing import Partitioning


def lower(
    relation: Relation, sources: Mapping[str, SourceInfo], typing: Typing, leaving: Leaving | None = None
) -> PhysicalPlan:
    """How a tree over these sources runs."""
    return Lowering(sources, typing, leaving or Leaving()).plan(relation)


class Lowering(JoinLowering):
    """Makes the parts of a plan, children first."""

    def plan(self, relation: Relation) -> PhysicalPlan:
        """The whole plan."""
        check_recall(relation, self.sources, self.leaving)
        check_priorities(relation, self.sources, self.leaving)
        self.streams.prioritised = self.closing.prioritised = is_prioritised(relation)
        self.top = operator_of(relation)
        lowered = self.lower(relation, frozenset(relation.columns))
        if self.leaving.to_stream is not None:
            lowered = self._to_stream(lowered)
        if len({feed.complete for feed in lowered.feeds}) > 1 or self.leaving.reordered:
            lowered = self._passing(lowered)
        elif self.leaving.emit == "ordered":
            lowered = self._all_in_stages(lowered)
        return self.closing.plan(lowered)

    def lower(self, relation: Relation, needed: frozenset[str]) -> Lowered:
        """The elements of a relation, with at least these columns."""
        lowered = self.rows(relation, needed)
        if not isinstance(operator_of(relation), Stream):
            return lowered
        (feed,) = lowered.feeds
        assert isinstance(feed, SourceFeed)
        return self._windowed(feed)

    def rows(self, relation: Relation, needed: frozenset[str]) -> Lowered:
        """The same, but for the window of a stream, if that is all there is below.

        Selections and projections above a stream depend on one row alone. So Spark computes them where it reads the
        rows, below the window: no row crosses to Python twice for them.
        """
        match relation:
            case Stream():
                return Lowered((self.streams.feed(relation, needed),))
            case Selection():
                child = self.rows(relation.child, needed | set(columns_of(relation.condition)))
                self.typing.check(child.fields, relation.condition)
                return child.selected(relation.condition)
            case Projection():
                for name, _ in relation.computed:
                    check_name(name)
                wanted = [each for each in relation.computed if each[0] in needed]
                below = frozenset(name for _, text in wanted for name in columns_of(text))
                return self.rows(relation.child, below).computed(wanted, self.typing)
            case Union():
                parts = self._alike(relation, "UNION")
                return Lowered(tuple(feed for part in parts for feed in part.feeds))
            case Aggregation():
                return self._aggregation(relation)
            case Distinct():
                return self._set("distinct", relation)
            case Difference():
                return self._set("except all" if relation.every else "except", relation)
            case Intersection():
                return self._set("intersect all" if relation.every else "intersect", relation)
            case OfPairs():
                return self.lower_join(relation, needed)
            case MultiJoin():
                return self.lower_multi_join(relation, needed)
        raise UnsupportedError(f"{type(relation).__name__} is no relation that can be run")

    # -- windows -------------------------------------------------------------------------------------------------------

    def _windowed(self, feed: SourceFeed) -> Lowered:
        """The elements of a source: its window gives them ends, or an operator does."""
        window = feed.reading.window
        if isinstance(window, Rows):
            return self._row_window(feed, window)
        if not self.negative or feed.stream.window is None:
            return Lowered((feed,))
        config = NegativeWindow(arrow_schema(feed.fields))
        return self._operator(config, [Lowered((feed,))], names_of(feed.fields), feed.fields)

    def _row_window(self, feed: SourceFeed, window: Rows) -> Lowered:
        groups = tuple(each.name for each in feed.hidden if each.name.startswith(HIDDEN + "by"))
        ties = tuple(each.name for each in feed.hidden if each.name.startswith(HIDDEN + "tie"))
        # Urgent rows of a whole frame go first, too, so who came first says nothing there either.
        by_content = self.streams.prioritised and (feed.info.streaming or feed.stream.priority is not None)
        ties = (ARRIVAL,) if feed.info.streaming and not by_content else ties
        fields = (*feed.fields, Field(KEEP, plain_type(pa.bool_()))) if feed.kept else feed.fields
        names = names_of(fields)
        by = arrow_schema(tuple(each for each in feed.hidden if each.name in groups))
        config: RowWindow | NegativeWindow = RowWindow(window.size, by, window.drain, by_content=by_content)
        if self.negative:
            config = NegativeWindow(arrow_schema(fields), window.size, by, window.drain)
        binding = RowBinding(names, groups=groups, ties=ties, placed_by=groups)
        draft = Draft(self.leaving.buckets if groups else 1)
        partitioning = Partitioning(draft.buckets)
        number = draft.add_input(self.closing.attached((feed,), binding, partitioning))
        entry = Entry(number, None if by_content else len(groups))
        node = draft.add_node(Node(config, (entry,), names, self._producer(), kept=feed.kept))
        own = {column: name for name, column in feed.origin.items() if name in names_of(feed.fields)}
        # By the groups as they are hashed: of a column with a collation that is its key, which nobody else has.
        as_they_are = all(each in own and not type_of(feed.info.fields, each).collated for each in feed.groups)
        placed = (tuple(own[column] for column in feed.groups),) if groups and as_they_are else ()
        return Lowered((StageFeed(draft, node, feed.fields, placed),))

    # -- operators but joins -------------------------------------------------------------------------------------------

    def _aggregation(self, relation: Aggregation) -> Lowered:
        read = {each.column for each in relation.aggregates if each.column is not None}
        child = self.lower(relation.child, frozenset(relation.keys) | read)
        check_told_apart(child.fields, relation.keys, "GROUP BY")
        for each in relation.aggregates:
            check_name(each.name)
            if each.function in ("min", "max") and each.column is not None:
                check_ordered(child.fields, (each.column,), each.function)
        config = Aggregating(relation.keys, relation.aggregates, arrow_schema(child.fields), method=self.leaving.method)
        results = list(config.result_schema)[len(relation.keys) :]
        fields = [Field(key, type_of(child.fields, key)) for key in relation.keys]
        for each, result in zip(relation.aggregates, results, strict=True):
            same = each.function in ("min", "max") and each.column is not None
            kind = type_of(child.fields, str(each.column)) if same else plain_type(result.type)
            fields.append(Field(each.name, kind))
        return self._operator(config, [child], relation.keys, tuple(fields))

    def _set(self, operator: SetOperator, relation: Relation) -> Lowered:
        parts = self._alike(relation, operator.upper())
        fields, names = parts[0].fields, parts[0].names
        check_told_apart(fields, names, operator.upper())
        config = Multiplicity(operator, arrow_schema(fields), method=self.leaving.method)
        return self._operator(config, parts, names, fields)

    def _to_stream(self, child: Lowered) -> Lowered:
        kind = self.leaving.to_stream
        assert kind is not None
        check_told_apart(child.fields, child.names, kind.upper())
        config = StreamOf(kind, arrow_schema(child.fields))
        return self._operator(config, [child], () if kind == "rstream" else child.names, child.fields)

    def _passing(self, child: Lowered) -> Lowered:
        """Tables beside streams: Spark has no union of the two, but a state that tables can be put into.

        Rows of sources that leave in order wait in an outlet, which only a stage has. If they are all that leaves, and
        are brought into order for that, they must all be in one bucket.
        """
        hashed = not self.leaving.reordered and not any(pa.types.is_map(each.type.arrow) for each in child.fields)
        passing = Passing(arrow_schema(child.fields), plain=self.leaving.reordered and self.streams.prioritised)
        return self._operator(passing, [child], child.names if hashed else (), child.fields)

    def _all_in_stages(self, lowered: Lowered) -> Lowered:
        """Whatever leaves in order leaves a stage. So do sources beside one in a union; without any there is no order
        (see `TreeCall`), and nothing to be put beside.
        """
        stages = tuple(feed for feed in lowered.feeds if isinstance(feed, StageFeed))
        sources = tuple(feed for feed in lowered.feeds if isinstance(feed, SourceFeed))
        if not stages or not sources:
            return lowered
        return Lowered((*stages, *self._passing(Lowered(sources)).feeds))

    def _operator(self, config: Any, children: Sequence[Lowered], by: tuple[str, ...], fields: Fields) -> Lowered:
        """An operator whose rows meet where they are equal in the columns `by`; without, in one bucket."""
        draft = Draft(self.leaving.buckets if by else 1)
        shared, keys = sharing(children, [(name,) * len(children) for name in by], draft.buckets)
        placed_by = tuple(key[0] for key in keys)
        feeds: list[Entry | Inner] = []
        for number, child in enumerate(children):
            if number in shared:
                inner = shared[number]
                feeds.append(Inner(inner.node + draft.absorb(inner.draft), RowBinding(child.names)))
            else:
                binding = RowBinding(child.names, placed_by=placed_by)
                given = self.closing.attached(child.feeds, binding, Partitioning(draft.buckets))
                feeds.append(Entry(draft.add_input(given)))
        names = names_of(fields)
        node = draft.add_node(Node(config, tuple(feeds), names, self._producer()))
        ways = shared[0].placed_by if shared and len(children) == 1 else (placed_by,)
        return Lowered((StageFeed(draft, node, fields, tuple(each for each in ways if set(each) <= set(names))),))

    def _alike(self, relation: Relation, what: str) -> list[Lowered]:
        """The parts of a set operator: as many columns each, in common types, under the names of the first."""
        parts = [self.lower(child, frozenset(child.columns)) for child in relation.children]
        widths = [len(part.fields) for part in parts]
        if len(set(widths)) > 1:
            raise CallError(
                f"{what} needs parts with as many columns each, got {' and '.join(map(str, widths))}",
                hint="select the same columns on both sides",
            )
        fields = list(parts[0].fields)
        for part in parts[1:]:
            for number, mine in enumerate(part.fields):
                fields[number] = Field(fields[number].name, self._common(fields[number], mine, what))
        return [part.cast_to(tuple(fields)) for part in parts]

    def _common(self, one: Field, two: Field, what: str) -> Type:
        kind = one.type if one.type == two.type else self.typing.common(one.type, two.type)
        if kind is None:
            sides = f"{one.name!r} ({one.type.text}) and {two.name!r} ({two.type.text})"
            raise CallError(f"{what} compares {sides}, which have no common type", hint="cast one of them")
        return kind
