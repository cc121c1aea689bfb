"""What the lowerings of all joins share: how a join of two inputs is said to run; its decisions, one per function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import Band, Emit, How, Overlaps, Predicate, Similar, TimeAxis, Within
from streamjoin.algebra.interval import Mask
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators.lateness import LateRows
from streamjoin.operators.urgency import NewPriority
from streamjoin.plan.condition import quoted, readable
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering.predicates import Sides
from streamjoin.plan.types import Fields, arrow_schema, names_of
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.placing import (
    HomePartitioning,
    MatrixPartitioning,
    Partitioning,
    ReferencePartitioning,
    default_cell,
)
from streamjoin.runtime.token_placing import TokenPartitioning, is_selective
from streamjoin.state import Batch, KeyTest, PairTest, SimilarTest, ValueTest
from streamjoin.state.batch import Indices
from streamjoin.state.columns import codes_are_exact

Keys = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Setting:
    """What a join is told beside its node: how results leave, what comes late, and how many buckets there are."""

    emit: Emit = "eager"
    late: tuple[LateRows, LateRows] = ("drop", "drop")
    changelog: bool = False
    buckets: int = 1
    axis: TimeAxis | None = None
    unknown_ends: bool = False  # of rows that a row window or another operator gives
    prioritised: bool = False  # some stream of the tree has urgent rows
    new_priority: NewPriority | None = None  # of results, where it is not the largest of their members'


@dataclass(frozen=True)
class JoinParts:
    """How a join runs: its operator, where rows meet, how each input is read, and what is decided elsewhere.

    `times`: of events, the columns that follow the progress of the results, and how far they can be behind it.
    """

    config: Any
    partitioning: Partitioning
    bindings: tuple[RowBinding, RowBinding]
    payload: tuple[Fields, Fields]
    keys: tuple[tuple[str, str], ...] = ()
    how: How = "inner"
    judged_by: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    times: tuple[tuple[str, int], ...] = ()

    @property
    def followed(self) -> tuple[bool, ...]:
        """Of each input, whether its rows' fate is decided in a second stage."""
        # Plus and minus tuples have no copies.
        copied: tuple[bool, ...] = getattr(self.config, "replicated", (False,) * len(self.payload))
        return copied


@dataclass(frozen=True)
class ExpressionTest:
    """A condition in Spark SQL on index pairs, evaluated on the columns it reads of inputs with these schemas."""

    text: str
    schemas: tuple[pa.Schema, ...]

    @cached_property
    def expression(self) -> Expression:
        """The condition, read."""
        return Expression.parse(self.text, self.schemas)

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        sides = zip(self.expression.columns(), (a.payload, b.payload), (i, j), strict=True)
        members = [payload.select(columns).take(pa.array(rows)) for columns, payload, rows in sides]
        return np.asarray(self.expression.evaluate(members, rows=len(i), called=self.as_written), np.bool_)

    @cached_property
    def as_written(self) -> str:
        """The condition as its user wrote it: columns of two numbered inputs are those of l and r."""
        return self.expression.rewritten(_as_written)

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "schemas": self.schemas}  # it is read again where it is needed


def _as_written(number: int, column: str) -> str:
    """A column of an input.

    >>> _as_written(0, "0.k"), _as_written(1, "1.a b"), _as_written(1, "R.k")
    ('l.k', 'r.`a b`', '`R.k`')
    """
    own = column.removeprefix(f"{number}.")
    return quoted(column) if own == column else f"{'lr'[number]}.{readable(own)}"


def payload_of(sides: Sides, number: int, needed: frozenset[str]) -> Fields:
    """The columns of an input that go on."""
    return tuple(each for each in sides.parts[number].fields if each.name in needed)


def schemas_of(payload: Sequence[Fields]) -> tuple[pa.Schema, pa.Schema]:
    """The payload of both inputs in Arrow."""
    one, two = (arrow_schema(fields) for fields in payload)
    return one, two


def order_of(predicate: Predicate) -> int:
    """Where a predicate stands among those that could sort the runs: the smaller, the fewer candidates it leaves."""
    return (Within, Band, Overlaps, Similar).index(type(predicate))


def first_of(predicates: Sequence[Predicate]) -> Predicate | None:
    """The predicate that finds the pairs: a similarity, which leaves the fewest, or the first over values."""
    alike = [predicate for predicate in predicates if isinstance(predicate, Similar)]
    return next(iter((*alike, *predicates)), None)


def value_tests(predicates: Sequence[Predicate]) -> list[PairTest]:
    """Tests of all predicates but the one that finds the pairs."""
    tests: list[PairTest] = []
    offset, position, first = 0, 0, first_of(predicates)
    for predicate in predicates:
        if isinstance(predicate, Similar):
            made: PairTest = SimilarTest(predicate, position)
            position += 1
        else:
            made = ValueTest(predicate, offset)
            offset += len(predicate.columns(0))
        if predicate is not first:
            tests.append(made)
    return tests


def key_tests(sides: Sides, keys: Keys) -> list[PairTest]:
    """Where codes of keys are hashes, the keys themselves must be equal."""
    kinds = [sides.type(0, one).arrow for one, _ in keys]
    return [KeyTest()] if kinds and not codes_are_exact(kinds) else []


def theta_test(expression: Expression | None, schemas: Sequence[pa.Schema], how: How) -> list[PairTest]:
    """A condition that must be decided while joining."""
    if expression is None:
        return []
    outside = expression.unsupported()
    if outside is not None:
        raise UnsupportedError(
            f"theta in a join with how={how!r} must be evaluated while joining, and {outside}",
            hint='use how="inner", where Spark evaluates any expression, or write the condition with comparisons, '
            "arithmetic, AND/OR/NOT, NULL tests, IN, BETWEEN and LIKE",
        )
    return [ExpressionTest(expression.text, tuple(schemas))]


def choose_partitioning(
    keys: Keys,
    first: Predicate | None,
    how: How,
    buckets: int,
    cell: float | None,
    *,
    timed: bool,
    alike: Predicate | None = None,
) -> Partitioning:
    """Which rows meet where; `first` is the first predicate over values, `alike` a similarity.

    Keys need no copies. A bound on the values keeps one side at home: the one that must know its partners. Intervals
    have no bound that the call knows, so without a cell size (`cell=`) they go by matrix, which needs to know nothing.
    Sets that must have nearly everything in common go by their tokens.
    """
    chosen = Partitioning(buckets)
    if keys:
        pass
    elif isinstance(first, Band | Within):
        chosen = HomePartitioning(buckets, first, cell or default_cell(first), 1 if how == "right" else 0)
    elif cell is not None and (isinstance(first, Overlaps) or timed):
        chosen = ReferencePartitioning(buckets, cell, on_time=first is None)
    elif isinstance(alike, Similar) and is_selective(alike):
        chosen = TokenPartitioning(buckets, alike)
    else:
        chosen = MatrixPartitioning(buckets)
    return with_cell(chosen, cell)


def with_cell(chosen: Partitioning, cell: float | None) -> Partitioning:
    """The partitioning, which has cells where the call gives their size; over one bucket there is nothing to choose."""
    if cell is not None and type(chosen) is Partitioning:
        raise CallError("cell says where rows without keys meet, and here they meet by key", hint="leave out cell=")
    if cell is not None and getattr(chosen, "cell", None) is None:
        raise CallError(
            "cell is the size of the cells of a grid, and no grid lies over what this join compares",
            hint="leave out cell=; grids are for bands and distances that lead from the first input to all others, and "
            "for intervals, of values or of time, of which all inputs must have a point in common",
        )
    return chosen if chosen.buckets > 1 else Partitioning(1)


def bindings_of(
    payload: tuple[Fields, Fields],
    keys: Keys,
    predicates: tuple[Predicate, ...],
    *,
    forget_after: int | tuple[int, int] | None = None,
    timeless: bool = False,
    ordered: bool = False,
) -> tuple[RowBinding, RowBinding]:
    """What reads each input, see there; a pair where the two differ."""
    forget = forget_after if isinstance(forget_after, tuple) else (forget_after, forget_after)

    def binding(number: int) -> RowBinding:
        own = tuple(key[number] for key in keys)
        return RowBinding(
            names_of(payload[number]), number, own, predicates, own,
            forget_after=forget[number], timeless=timeless, ordered=ordered,
        )  # fmt: skip

    return binding(0), binding(1)
