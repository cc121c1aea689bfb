"""The two frames of a join: keys, predicates and names, as columns of a tree.

In the tree a column is called `<input>.<column>`. Keys given as `by` appear once in the result, in a common type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from streamjoin.algebra import Equals, Overlaps, Predicate, Theta, Validity, Window, Within, join_type
from streamjoin.algebra.predicate import Of, conjuncts
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering.joining import theta_test
from streamjoin.plan.naming import name_columns
from streamjoin.plan.relation import Projection, Query, Relation, Stream
from streamjoin.plan.types import Type
from streamjoin.runtime.naming import INVALID_FLAG, LATE_FLAG, OutputColumn
from streamjoin.spark.calls.column_text import column_text
from streamjoin.spark.calls.inputs import Input, inputs_of
from streamjoin.spark.calls.options import Joining, listed, per_input
from streamjoin.spark.calls.tree import TreeCall
from streamjoin.spark.typing import SparkTyping


@dataclass(frozen=True)
class ColumnCondition(Predicate):
    """A condition given as a Column; its text is known when both frames are."""

    column: Column


class Pair:
    """Two frames that are joined. `keys` are the equality keys of the call."""

    def __init__(self, frames: Any, joining: Joining) -> None:
        given = two_frames(frames)
        if len(given) < 2:
            raise CallError(f"a join needs two frames, got {len(given)}", hint="sj.join(a, b, ...)")
        if len(given) > 2:
            raise UnsupportedError(
                f"this join takes two frames, got {len(given)}",
                hint="join two, then join the result with the next; sj.join takes any number",
            )
        self.joining = joining
        self.by_name = inputs_of({str(number): frame for number, frame in enumerate(given)}, joining, "input")
        self.inputs = list(self.by_name.values())
        self.called: list[dict[str, str]] = [{}, {}]  # what the tree calls a column, where it is not its own name
        self.casts: list[dict[str, Type]] = [{}, {}]
        self.by: list[str] = []
        self.theta: Expression | None = None  # a condition that is no predicate, as it was written
        self.keys = self._keys(joining.by, joining.left_by, joining.right_by)
        self.priorities = priorities_of(self.inputs, joining)

    @property
    def streaming(self) -> bool:
        """Whether any of the frames is a stream."""
        return any(part.streaming for part in self.inputs)

    def column(self, number: int, reference: Any) -> str:
        """What the tree calls the column that a name or an expression means."""
        return self.in_tree(number, self.inputs[number].resolve(reference))

    def in_tree(self, number: int, column: str) -> str:
        """What the tree calls a column of an input."""
        return f"{number}.{self.called[number].get(column, column)}"

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _keys(self, by: Any, left_by: Any, right_by: Any) -> list[Equals]:
        if by is not None and (left_by is not None or right_by is not None):
            raise CallError("give either by= or left_by= and right_by=, not both")
        if by is not None:
            return [self._merged_key(name) for name in listed(by)]
        left, right = listed(left_by), listed(right_by)
        if len(left) != len(right):
            raise CallError(f"left_by and right_by must be equally many, got {len(left)} and {len(right)}")
        return [Equals(self.column(0, a), self.column(1, b)) for a, b in zip(left, right, strict=True)]

    @property
    def equal(self) -> tuple[tuple[str, str], ...]:
        """The keys as pairs of columns."""
        return tuple((str(each.left), str(each.right)) for each in self.keys)

    def _merged_key(self, name: Any) -> Equals:
        """A key that appears once: input 1 calls it what input 0 calls it. What is computed does not appear."""
        one, two = (part.resolve(name) for part in self.inputs)
        if one in self.inputs[0].hidden or two in self.inputs[1].hidden:  # computed: no column of the result
            return Equals(self.in_tree(0, one), self.in_tree(1, two))
        if one in self.by:
            raise CallError(f"by has {name!r} twice", hint="name every key once")
        self.by.append(one)
        self.called[1][two] = one
        kinds = self.inputs[0].types[one], self.inputs[1].types[two]
        if kinds[0] != kinds[1]:
            common = SparkTyping(self.inputs[0].frame.sparkSession).common(*kinds)
            if common is None:
                sides = f"{one!r} ({kinds[0].text}) and {two!r} ({kinds[1].text})"
                raise CallError(
                    f"equality compares {sides}, which have no common type", hint="cast one of them"
                )  # fmt: skip
            for number, column in enumerate((one, two)):
                if kinds[number] != common:
                    self.casts[number][column] = common
        return Equals(f"0.{one}", f"1.{one}")

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, where: Any) -> tuple[list[Predicate], str | None]:
        """The predicates of `where` over the tree's columns, and the text of what is left."""
        where = None if where is None else as_predicate(where)
        predicates: list[Predicate] = []
        texts: list[str] = []
        for part in conjuncts(where):
            part = part if not isinstance(part, Of) else self._of_two(part)
            if isinstance(part, Theta):
                texts.append(part.text)
            elif isinstance(part, ColumnCondition):
                inputs = self.inputs
                texts.append(column_text(part.column, [one.frame for one in inputs], [one.columns for one in inputs]))
            else:
                predicates.append(self.over(part))
        if not texts:
            return predicates, None
        whole = texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)
        self.theta = Expression.parse(whole, [self.schema(number) for number in (0, 1)])
        return predicates, self.theta.spark_sql(lambda number, column: f"{number}.{column}")

    def _check_theta(self) -> None:
        """Refuse a condition that must be decided while joining, and cannot be."""
        how = join_type(self.joining.how)
        if self.theta is not None and how != "inner":
            theta_test(self.theta, (), how)

    def _in_words(self, error: CallError) -> CallError:
        """The same error, with the condition as it was written."""
        if self.theta is None:
            return error
        inside = self.theta.spark_sql(lambda number, column: f"{number}.{column}")
        return type(error)(error.message.replace(inside, f"theta {self.theta.text!r}"), hint=error.hint)

    def _of_two(self, predicate: Of) -> Predicate:
        """Of two frames there is one pair, in one order."""
        if predicate.inputs != (0, 1):
            raise CallError(
                f"of={predicate.inputs} in a join of two frames, which are inputs 0 and 1",
                hint="leave of= out; the first column is that of input 0",
            )
        return predicate.predicate

    def over(self, predicate: Predicate, ends: tuple[int, int] = (0, 1)) -> Predicate:
        """A predicate over the tree's columns of two inputs."""
        if not isinstance(predicate, Equals | Overlaps | Within) and not hasattr(predicate, "left"):
            raise UnsupportedError(f"a predicate of type {type(predicate).__name__} cannot be joined on")
        sides: dict[str, Any] = {}
        for number, side in zip(ends, ("left", "right"), strict=True):
            columns = getattr(predicate, side)
            several = isinstance(columns, tuple)
            named = tuple(self.column(number, each) for each in (columns if several else (columns,)))
            sides[side] = named if several else named[0]
        return replace(predicate, **sides)  # type: ignore[type-var]

    def schema(self, number: int) -> pa.Schema:
        """The user's columns of an input, as the tree calls them, without the number."""
        part = self.inputs[number]
        kinds = [(self.called[number].get(name, name), part.types[name].arrow) for name in part.columns]
        return pa.schema(kinds)

    # -- time ----------------------------------------------------------------------------------------------------------

    def times(self, time: Any, window: Any) -> tuple[list[Window | None], list[str | None]]:
        """The window and the time column of each input, which both have or both have not."""
        windows, times = per_input(window, 2, "window"), per_input(time, 2, "time")
        names: list[str | None] = [None, None]
        for number, (each, given) in enumerate(zip(windows, times, strict=True)):
            windows[number], names[number] = self.time_and_window(number, given, each)
        if (names[0] is None) != (names[1] is None):
            raise CallError("either both inputs have a time or none", hint="give time= and window= one per input")
        if names[0] is not None and names[1] is not None:
            self.check_axes((names[0], names[1]))
        return windows, names

    def time_and_window(self, number: int, given: Any, each: Any) -> tuple[Window | None, str | None]:
        """The window of an input, and the frame's column that says when its rows are."""
        part = self.inputs[number]
        if each is not None and not isinstance(each, Window):
            raise CallError(f"window must be a window, got {each!r}", hint='for example window=sj.Range("2 seconds")')
        if isinstance(each, Validity):
            if given is not None:
                raise CallError("Validity brings its own time", hint="leave time= out for this input")
            start, end = part.resolve(each.start), part.resolve(each.end)
            part.time_axis(start)
            kinds = part.types[start], part.types[end]
            if kinds[0] != kinds[1]:
                raise CallError(
                    f"the two ends of a validity must have one type, got {kinds[0].text} and {kinds[1].text}",
                    hint="cast one of them",
                )
            return Validity(start, end), start
        if given is not None:
            if each is None:
                raise CallError(
                    f"input {number} has a time but no window",
                    hint='say how long a row is valid, window=sj.Range("2 seconds"), or use sj.join_interval',
                )
            time = self.time(number, given)
            return part.with_groups(each), time
        if each is not None:
            raise CallError(f"input {number} has a window but no time", hint='give time="ts"')
        return None, None

    def time(self, number: int, given: Any) -> str:
        """The frame's column that says when an input's rows are."""
        column = self.inputs[number].time_column(given)
        self.inputs[number].time_axis(column)
        return column

    def event_times(self, on: Sequence[Any]) -> tuple[str, str]:
        """The frames' columns that say when their events are."""
        times = self.time(0, on[0]), self.time(1, on[1])
        self.check_axes(times)
        return times

    def check_axes(self, times: tuple[str, str], ends: tuple[int, int] = (0, 1)) -> None:
        """Two inputs count the same thing."""
        parts = [self.inputs[number] for number in ends]
        axes = [part.time_axis(name) for part, name in zip(parts, times, strict=True)]
        kinds = [part.types[name].text for part, name in zip(parts, times, strict=True)]
        if axes[0] != axes[1] or (axes[0].value != "integer" and kinds[0] != kinds[1]):
            raise CallError(
                f"the inputs' times have different types: {kinds[0]} and {kinds[1]}",
                hint="cast one of them: they must count the same thing",
            )

    # -- the tree ------------------------------------------------------------------------------------------------------

    def stream(self, number: int, time: str | None = None, window: Window | None = None) -> Relation:
        """One of the frames as a relation, with its keys in a common type."""
        part = self.inputs[number]
        reads = tuple((self.in_tree(number, name), name) for name in part.types)
        priority = self.priorities[number]
        stream: Relation = Stream(str(number), reads, time, window, None if priority is None else quoted(priority))
        casts = self.casts[number]
        if not casts:
            return stream
        computed = tuple((name, _cast(name, casts.get(column))) for name, column in reads)
        return Projection(stream, computed)

    def run(self, relation: Relation, *, windowed: bool = False) -> DataFrame:
        """The result of a tree over the two frames."""
        self._check_theta()
        columns = self._columns(windowed=windowed)
        try:
            return TreeCall(self.by_name, Query(relation), relation, self.joining, columns, numbered=True).run()
        except CallError as error:
            raise self._in_words(error) from error.__cause__

    def shown(self, number: int) -> list[str]:
        """The columns of an input that the result has: its priority gives way to the result's, if that has its name."""
        own, result = self.priorities[number], self.joining.priority_as
        return [
            name
            for name in self.inputs[number].columns
            if name != own or name.lower() != str(result).lower() or self.called[number].get(name, name) in self.by
        ]

    def _columns(self, *, windowed: bool) -> tuple[OutputColumn, ...]:
        """The columns of the result."""
        options, suffix, kind = self.joining, self.joining.suffix, join_type(self.joining.how)
        if not isinstance(suffix, str):
            raise CallError(f"suffix must be text, got {suffix!r}", hint='for example suffix="_right"')
        late, invalid = options.late_of(["0", "1"]), options.invalid_of(["0", "1"])
        for what, policies in (("late", late), ("invalid", invalid)):
            if policies["1"] == "output" and kind in ("semi", "anti"):
                raise CallError(
                    f'{what}="output" cannot show rows of input 1 in a semi or anti join, whose result has no column '
                    "of it",
                    hint=f'use {what}=["output", "drop"] or {what}=["output", "fail"]',
                )
        flags = [INVALID_FLAG] * ("output" in invalid.values()) + [LATE_FLAG] * ("output" in late.values())
        names = [[self.called[number].get(name, name) for name in self.shown(number)] for number in (0, 1)]
        kinds = [
            {
                self.called[number].get(name, name): self.casts[number].get(name, part.types[name]).arrow
                for name in part.columns
            }
            for number, part in enumerate(self.inputs)
        ]
        return name_columns(
            names, kinds, by=self.by, how=kind, suffix=suffix,
            validity=options.validity_names() if windowed else None,
            flags=tuple(flags), changelog=options.output == "changelog",
        )  # fmt: skip


def _cast(name: str, kind: Type | None) -> str:
    return quoted(name) if kind is None else f"cast({quoted(name)} AS {kind.text})"


def priorities_of(inputs: Sequence[Input], joining: Joining) -> list[str | None]:
    """The column of each frame that says how urgent its rows are; None where none is."""
    given = per_input(joining.priority, len(inputs), "priority")
    return [None if each is None else part.resolve(each) for part, each in zip(inputs, given, strict=True)]


def two_sides(on: Any, left_on: Any, right_on: Any, what: str) -> tuple[Any, Any]:
    """A column of each input: one name for both, or two."""
    if on is not None and left_on is None and right_on is None:
        return on, on
    if on is None and left_on is not None and right_on is not None:
        return left_on, right_on
    raise CallError(f"{what} needs on=, or left_on= and right_on=", hint="give on= when the names are the same")


def two_frames(frames: Sequence[Any]) -> list[Any]:
    """The frames of a call: one after the other, or in one list.

    >>> two_frames(["a", "b"]), two_frames([["a", "b"], None])
    (['a', 'b'], ['a', 'b'])
    """
    return [each for given in frames if given is not None for each in listed(given)]


def as_predicate(where: Any) -> Predicate:
    """A condition on pairs: a predicate, or one in Spark SQL, as text or as a Column."""
    if isinstance(where, str):
        return Theta(where)
    if isinstance(where, Column):
        return ColumnCondition(where)
    if isinstance(where, Predicate):
        return where
    raise CallError(
        f"where must be a predicate, SQL text or a Column, got {where!r}",
        hint='write where=sj.equals("k") & sj.band("v", below=1, above=1), or where="l.a < r.b"',
    )
