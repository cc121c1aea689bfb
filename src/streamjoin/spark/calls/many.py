"""Joins of more than two frames, from calls to trees.

As for two (see `pairs` and `joins`): in the tree a column is called `<input>.<column>`. A predicate is for all inputs,
between every two of them, or with `of=` between the two that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamjoin.algebra import Band, Equals, Overlaps, Predicate, Similar, Theta, Validity, Window, join_type
from streamjoin.algebra.policy import Nway, Outer, one_of
from streamjoin.algebra.predicate import Of, conjuncts
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering.joining import order_of
from streamjoin.plan.multi_join import Between, MultiJoin, cascade_of, for_all
from streamjoin.plan.naming import name_columns
from streamjoin.runtime.naming import INVALID_FLAG, LATE_FLAG, OutputColumn
from streamjoin.spark.calls.column_text import column_text
from streamjoin.spark.calls.inputs import inputs_of
from streamjoin.spark.calls.joins import check_timeless
from streamjoin.spark.calls.options import Joining, listed, per_input
from streamjoin.spark.calls.pairs import ColumnCondition, Pair, as_predicate, priorities_of, two_frames
from streamjoin.spark.typing import SparkTyping


class Many(Pair):
    """Frames that are joined at once."""

    def __init__(self, frames: Any, joining: Joining) -> None:
        given = two_frames(frames)
        self.joining = joining
        self.by_name = inputs_of({str(number): frame for number, frame in enumerate(given)}, joining, "input")
        self.inputs = list(self.by_name.values())
        self.called = [{} for _ in given]
        self.casts = [{} for _ in given]
        self.by = []
        self.theta = None
        self.keys = []
        self.priorities = priorities_of(self.inputs, joining)
        self.asked: dict[tuple[int, int], tuple[Any, str]] = {}  # Columns that have been asked for, and their names

    @property
    def numbers(self) -> range:
        """The numbers of the inputs."""
        return range(len(self.inputs))

    def column(self, number: int, reference: Any) -> str:
        """What the tree calls a column. A predicate for all asks for its columns once for every two inputs: what one
        Column computes is computed once.
        """
        if isinstance(reference, str):
            return super().column(number, reference)
        known = self.asked.get((number, id(reference)))
        if known is None:
            known = self.asked[number, id(reference)] = reference, super().column(number, reference)
        return known[1]

    # -- keys and conditions -------------------------------------------------------------------------------------------

    def keys_of_all(self, by: Any) -> list[Between]:
        """The equality keys of the call, of all inputs."""
        return [each for name in listed(by) for each in self._key_of_all(name)]

    def _key_of_all(self, name: Any) -> list[Between]:
        """A key that appears once: all inputs call it what input 0 calls it. What is computed does not appear."""
        own = [part.resolve(name) for part in self.inputs]
        if any(column in part.hidden for column, part in zip(own, self.inputs, strict=True)):
            return self._equal([self.in_tree(number, column) for number, column in enumerate(own)])
        if own[0] in self.by:
            raise CallError(f"by has {name!r} twice", hint="name every key once")
        self.by.append(own[0])
        common = self.inputs[0].types[own[0]]
        for number, column in enumerate(own):
            self.called[number][column] = own[0]
            kind = self.inputs[number].types[column]
            found = kind if kind == common else SparkTyping(self.inputs[0].frame.sparkSession).common(common, kind)
            if found is None:
                sides = f"{own[0]!r} ({common.text}) and {column!r} of input {number} ({kind.text})"
                raise CallError(f"equality compares {sides}, which have no common type", hint="cast one of them")
            common = found
        for number, column in enumerate(own):
            if self.inputs[number].types[column] != common:
                self.casts[number][column] = common
        return self._equal([f"{number}.{own[0]}" for number in self.numbers])

    def _equal(self, names: Sequence[str]) -> list[Between]:
        return [Between(0, number, Equals(names[0], names[number])) for number in self.numbers if number]

    def conditions(self, where: Any) -> tuple[list[Between], str | None]:
        """What holds between two inputs at a time, over the tree's columns, and the text of what is left."""
        between: list[Between] = []
        texts: list[str] = []
        for part in conjuncts(None if where is None else as_predicate(where)):
            if isinstance(part, Theta):
                texts.append(part.text)
            elif isinstance(part, ColumnCondition):
                inputs = self.inputs
                texts.append(column_text(part.column, [one.frame for one in inputs], [one.columns for one in inputs]))
            elif isinstance(part, Of):
                between.append(self._between(part.predicate, *self._inputs_of(part)))
            else:
                between += [self._between(part, *ends) for ends in self._ends_for_all(part)]
        if not texts:
            return between, None
        whole = texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)
        self.theta = Expression.parse(whole, [self.schema(number) for number in self.numbers])
        return between, self.theta.spark_sql(lambda number, column: f"{number}.{column}")

    def _ends_for_all(self, predicate: Predicate) -> list[tuple[int, int]]:
        """Between which inputs a predicate for all is asked: every two, but a path is enough where one column of each
        is equal to that of the next."""
        if isinstance(predicate, Equals) and (
            predicate.left is predicate.right
            or (
                isinstance(predicate.left, str)
                and isinstance(predicate.right, str)
                and predicate.left == predicate.right
            )
        ):
            return [(number, number + 1) for number in self.numbers[:-1]]
        return for_all(len(self.inputs))

    def _inputs_of(self, predicate: Of) -> tuple[int, int]:
        for number in predicate.inputs:
            if number not in self.numbers:
                raise CallError(
                    f"of={predicate.inputs} names input {number}, and there are inputs 0 to {len(self.inputs) - 1}",
                    hint="inputs are counted from 0, in the order of the frames",
                )
        return predicate.inputs

    def _between(self, predicate: Predicate, one: int, two: int) -> Between:
        return Between(one, two, self.over(predicate, (one, two)))

    # -- time ----------------------------------------------------------------------------------------------------------

    def times_of_all(self, time: Any, window: Any) -> tuple[list[Window | None], list[str | None]]:
        """The window and the time column of each input, which all have or none has."""
        inputs = len(self.inputs)
        windows, names = per_input(window, inputs, "window"), per_input(time, inputs, "time")
        for number in self.numbers:
            windows[number], names[number] = self.time_and_window(number, names[number], windows[number])
        known = [number for number in self.numbers if names[number] is not None]
        if known and len(known) < inputs:
            raise CallError("either all inputs have a time or none", hint="give time= and window= one per input")
        for number in known[1:]:
            self.check_axes((str(names[0]), str(names[number])), (0, number))
        return windows, names

    # -- names ---------------------------------------------------------------------------------------------------------

    def _columns(self, *, windowed: bool) -> tuple[OutputColumn, ...]:
        options, names = self.joining, list(self.by_name)
        late, invalid = options.late_of(names), options.invalid_of(names)
        flags = [INVALID_FLAG] * ("output" in invalid.values()) + [LATE_FLAG] * ("output" in late.values())
        own = [[self.called[n].get(name, name) for name in self.shown(n)] for n in self.numbers]
        kinds = [
            {
                self.called[n].get(name, name): self.casts[n].get(name, self.inputs[n].types[name]).arrow
                for name in self.inputs[n].columns
            }
            for n in self.numbers
        ]
        return name_columns(
            own, kinds, by=self.by, how="inner", suffix=self._suffixes(options.suffix),
            validity=options.validity_names() if windowed else None, flags=tuple(flags),
        )  # fmt: skip

    def _suffixes(self, suffix: Any) -> list[str]:
        numbered = [f"_{number + 1}" for number in self.numbers if number]
        if suffix == "_right":  # the default, which says which of two
            return numbered
        given = suffix if isinstance(suffix, list | tuple) else None
        if given is None or len(given) != len(numbered) or not all(isinstance(each, str) for each in given):
            raise CallError(
                f"suffix of a join of {len(self.inputs)} frames is one of each frame but the first, got {suffix!r}",
                hint=f"leave it out for {', '.join(numbered)}, or give a list of {len(numbered)} texts",
            )
        return list(given)


def run_many(frames: Any, time: Any, window: Any, where: Any, outer: str, joining: Joining, nway: str) -> DataFrame:
    """Tuples of a row of each frame that match while all are valid, or by value alone."""
    way = one_of(nway, Nway, "nway")
    many = Many(frames, joining)
    _check_inner(many, joining, outer)
    keys = many.keys_of_all(joining.by)
    between, theta = many.conditions(where)
    if way == "cascade" and joining.new_priority is not None:
        raise UnsupportedError(
            "new_priority in a cascade: joins of two make it, and none of them has the priorities of all frames",
            hint='leave out nway="cascade"',
        )
    windows, times = many.times_of_all(time, window)
    timed = times[0] is not None
    if not timed:
        check_timeless(many)
    parts = tuple(
        many.stream(number, None if isinstance(windows[number], Validity) else times[number], windows[number])
        for number in many.numbers
    )
    cell = _cell(joining, many, between, times[0])
    hold = joining.checked_hold()
    strategy = joining.strategy()
    if strategy is not None and way == "cascade":
        raise CallError(
            'algorithm="tpmj" joins all frames at once: in a cascade what each join gives would be sorted anew',
            hint="leave nway out, or algorithm",
        )
    relation = MultiJoin(parts, (*keys, *between), theta, timed, hold, cell, strategy)
    _check_connected(relation)
    return many.run(cascade_of(relation) if way == "cascade" else relation, windowed=timed)


def _check_inner(many: Many, joining: Joining, outer: str) -> None:
    """Refuse what a join of many frames has not."""
    inputs = len(many.inputs)
    how = join_type(joining.how)
    if how != "inner":
        raise UnsupportedError(
            f"how={joining.how!r} of {inputs} frames at once: which of them a row without partners is measured against "
            "depends on the order in which they are joined",
            hint=f"say the order with a cascade: sj.join(sj.join(a, b, how={joining.how!r}, ...), c, ...)",
        )
    if one_of(outer, Outer, "outer") != "row":
        raise CallError(f"outer={outer!r} says what outer joins mean, and this one is inner", hint="leave it out")
    if joining.left_by is not None or joining.right_by is not None:
        raise CallError(
            f"left_by and right_by are for two frames, got {inputs}",
            hint='give by= where names are equal, or where=sj.equals("a", "b", of=(0, 1)) & ...',
        )


def _check_connected(relation: MultiJoin) -> None:
    """Without time, inputs that nothing joins would give every combination of their rows. A further condition joins
    those whose columns it compares, as it does with two frames.
    """
    groups = relation.unconnected(by_theta=True)
    if relation.timed or len(groups) == 1:
        return
    apart = " and ".join("input " + ", ".join(map(str, group)) for group in groups)
    raise CallError(
        f"nothing joins {apart}: every combination of their rows would be a result",
        hint="give by=, a predicate for all inputs, or with of= between them; or time= and window=, which join them by "
        "validity",
    )


def _cell(joining: Joining, many: Many, between: Sequence[Between], time: str | None) -> float | None:
    """The cell size in the unit of what the grid lies over: time, or the values of the first predicate."""
    if joining.cell is None:
        return None
    if joining.by is not None:
        raise CallError("cell says where rows without keys meet, and here they meet by key", hint="leave out cell=")
    values = [each for each in between if not isinstance(each.predicate, Equals | Similar)]
    first = min(values, key=lambda each: order_of(each.predicate), default=None)
    scale, axis = 0, None
    if first is None and time is not None:
        axis = many.inputs[0].time_axis(time)
    elif first is not None and isinstance(first.predicate, Band | Overlaps):
        part = many.inputs[first.one]
        column = str(first.predicate.columns(0)[0]).removeprefix(f"{first.one}.")
        kind = part.types[column]
        if pa.types.is_timestamp(kind.arrow) or pa.types.is_date(kind.arrow):
            axis = part.time_axis(column)
        scale = kind.arrow.scale if pa.types.is_decimal(kind.arrow) else 0
    size: Any = joining.cell if axis is None else axis.ticks(joining.cell, "cell")
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < float("inf"):
        raise CallError(f"cell must be a positive number, got {joining.cell!r}", hint="leave it out to have it chosen")
    return float(size) * 10.0**scale
