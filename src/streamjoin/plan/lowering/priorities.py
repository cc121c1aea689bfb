"""Priorities in a tree: what is refused beside them, and how a source's rows get theirs.

A stream says how urgent its rows are by an expression over the frame's columns (`Stream.priority`). Spark computes it
where it reads the rows, unless it is a column of the frame already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.errors import CallError, EvaluationError, UnsupportedError
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.condition import one_column, quoted, substituted
from streamjoin.plan.expression import grammar
from streamjoin.plan.expression.evaluate import whole_numbers
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.parse import references
from streamjoin.plan.expression.sqltypes import INTEGERS
from streamjoin.plan.expression.tree import Field as ColumnNode
from streamjoin.plan.expression.tree import Node, Outside
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.multi_join import MultiJoin
from streamjoin.plan.physical import Rank, Step
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    OfPairs,
    Query,
    Relation,
    Stream,
    streams_of,
)
from streamjoin.plan.types import Field, Typing, type_of
from streamjoin.plan.wording import written_as
from streamjoin.runtime.intake import HIDDEN, PRIORITY
from streamjoin.runtime.recall import ToRecall
from streamjoin.state.batch import Priorities

# Of what has a value for any priorities: conditions are not evaluated here, so a divisor cannot be tested before.
_DEFINED: Final = (
    "keep divisors from 0, as in p0 % greatest(p1, 1), and values in 64 bits; or use greatest() and least()"
)
_FOLLOWS: Final = "{} follows snapshots, and so what leaves has priority 0"
_OF_SNAPSHOTS: Final[dict[type[Relation], str]] = {
    Aggregation: "GROUP BY",
    Distinct: "DISTINCT",
    Difference: "EXCEPT",
    Intersection: "INTERSECT",
}


def is_prioritised(relation: Relation) -> bool:
    """Whether any stream of a tree has urgent rows."""
    return any(leaf.priority is not None for leaf in streams_of(relation))


def why_never_urgent(query: Query, *, raised: bool = False) -> str | None:
    """Why no result of a query can be urgent; None where one can. `raised`: something else than the largest priority of
    its members says a result's, so it may be urgent with none among them.

    >>> from dataclasses import replace
    >>> some = Stream("R", (("k", "k"),), "ts", None, "`p`")
    >>> why_never_urgent(Query(some)), why_never_urgent(Query(some, "istream"))
    (None, 'ISTREAM follows snapshots, and so what leaves has priority 0')
    >>> why_never_urgent(Query(Join(replace(some, priority=None), some, (), None, "semi", "row")))
    'only rows of stream R leave, and nothing says which of them are urgent'
    """
    if query.to_stream is not None:
        return _FOLLOWS.format(query.to_stream.upper())
    return _why_never(query.relation, raised=raised)


def _why_never(relation: Relation, *, raised: bool) -> str | None:
    if type(relation) in _OF_SNAPSHOTS:
        return _FOLLOWS.format(_OF_SNAPSHOTS[type(relation)])
    children = relation.children
    if isinstance(relation, OfPairs) and relation.left_alone:
        if isinstance(relation, Join) and relation.outer == "snapshot":
            return _FOLLOWS.format(f"the {relation.how} join by snapshot")
        children = (relation.left,)  # a partner's says nothing of a row that leaves alone
    if raised and isinstance(relation, OfPairs | MultiJoin):
        return None
    if isinstance(relation, Stream):
        label = f"{'input' if relation.source.isdigit() else 'stream'} {relation.source}"
        said = f"only rows of {label} leave, and nothing says which of them are urgent"
        return said if relation.priority is None else None
    reasons = [_why_never(child, raised=raised) for child in children]
    return None if None in reasons else reasons[0]


def check_priorities(relation: Relation, sources: Mapping[str, SourceInfo], leaving: Leaving) -> None:
    """Refuse what urgent rows would break."""
    if not is_prioritised(relation):
        return
    for leaf in streams_of(relation):
        if isinstance(sources[leaf.source].lateness, ToRecall):
            raise UnsupportedError(
                "a recall target beside priorities: it learns delays from all rows, and urgent ones come early",
                hint='lateness=sj.Grace("10 seconds") or sj.MaxDelay() instead',
            )
    if leaving.method == "negative":
        raise UnsupportedError(
            "priorities by plus and minus tuples, which are said in order of time",
            hint='leave out method="negative" and output="changelog"',
        )
    _check_hold(relation)


def _check_hold(relation: Relation) -> None:
    if getattr(relation, "hold", "auto") == "inputs":
        raise CallError(
            'hold="inputs" beside priorities: rows would be joined in order of time, so urgent ones would wait too',
            hint='leave hold out, or hold="outputs"',
        )
    for child in relation.children:
        _check_hold(child)


@dataclass(frozen=True)
class Ranking:
    """How a source's rows get their priorities: what is read for it, what Spark computes, and the column."""

    reads: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    field: Field


def ranking_of(stream: Stream, info: SourceInfo, typing: Typing) -> Ranking | None:
    """The same of a stream; None where its rows have no priorities."""
    if stream.priority is None:
        return None
    column = one_column(stream.priority)
    if column is not None:
        kind = type_of(info.fields, column)
        ranking = Ranking(((PRIORITY, column),), (), Field(PRIORITY, kind))
    else:
        names = {name: f"{HIDDEN}p{number}" for number, name in enumerate(columns_of(stream.priority))}
        text = substituted(stream.priority, {name: quoted(own) for name, own in names.items()})
        fields = tuple(Field(own, type_of(info.fields, name)) for name, own in names.items())
        (field,) = typing.computed(fields, [(PRIORITY, text)])
        reads = tuple((own, name) for name, own in names.items())
        ranking = Ranking(reads, (Rank(text, tuple(names.values())),), field)
    if not pa.types.is_integer(ranking.field.type.arrow):
        said = written_as(info.derived, bare_names(stream.priority))
        raise CallError(
            f"a priority is an integer, and {said} of {info.label} is {ranking.field.type.text}",
            hint="cast it, cast(... AS INT); or sj.prioritise(frame, {condition: priority})",
        )
    return ranking


@dataclass(frozen=True)
class PriorityExpression:
    """The priority of results, in SQL over those of their members: `p0`, `p1`, ...

    >>> import numpy as np
    >>> PriorityExpression("least(p0, p1)", 2).of([np.array([0, 8]), np.array([5, 9])]).tolist()
    [0, 8]
    """

    text: str
    inputs: int

    def __post_init__(self) -> None:
        self._tree  # noqa: B018  what is wrong with it is said at once

    @cached_property
    def _tree(self) -> Node:
        if not isinstance(self.text, str):
            raise CallError(
                f"new_priority is SQL text over p0, p1, ..., got {self.text!r}", hint='new_priority="least(p0, p1)"'
            )
        names = [f"p{number}" for number in range(self.inputs)]
        found = references(self.text, [pa.schema([(name, pa.int64()) for name in names])])
        fields = {one.start: (ColumnNode(one.type, 0, one.column), one.stop) for one in found if one.type is not None}
        try:
            tree = grammar.read(tokens(self.text), fields)
        except Outside as outside:
            raise UnsupportedError(
                f"new_priority is worked out while joining, and streamjoin does not evaluate {outside.what}",
                hint=f"use {', '.join(names)}, integers, + - *, abs(), greatest() and least()",
            ) from None
        if tree.type not in INTEGERS:
            raise CallError(
                f"a priority is an integer, and new_priority={self.text!r} is {tree.type}",
                hint="use + - *, greatest() and least(), or cast(... AS INT)",
            )
        return tree

    def of(self, members: Sequence[Priorities]) -> Priorities:
        """One of each result."""
        table = pa.table({f"p{number}": each for number, each in enumerate(members)})
        try:
            return whole_numbers(self._tree, self.text, [table], len(members[0]))
        except EvaluationError as error:
            raise EvaluationError(error.message, hint=_DEFINED) from error


def checked_priority(text: str, inputs: int) -> PriorityExpression:
    """The same of a call, refused if it has no value for rows that are not urgent: most are not.

    >>> checked_priority("p0 % greatest(p1, 1)", 2).of([np.array([7, 5]), np.array([4, 0])]).tolist()
    [3, 0]
    """
    found = PriorityExpression(text, inputs)
    try:
        found.of([np.zeros(1, np.int64)] * inputs)
    except EvaluationError as error:
        raise CallError(
            f"new_priority={text!r} has no value where all priorities are 0: {error.message.rpartition(': ')[2]}",
            hint=error.hint,
        ) from error
    return found


def bare_names(text: str) -> str:
    """A text without backquotes, for people."""
    return text.replace("`", "")
