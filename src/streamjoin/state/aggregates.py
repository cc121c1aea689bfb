"""Aggregates of groups over lifetimes: changes in, pieces out.

An element of a group comes as two changes: its start, and its end with the same values. Between two neighbouring
instants with changes the group is one piece, with the aggregates of what is valid there. It is cut at every such
instant, even where the aggregates stay the same, and there is no piece where the group is empty.

Laws:

1. A sweep hands out every piece that its changes close, once. What is open stays, and is closed by a later change.
2. Changes of one instant are one step, however they are spread over sweeps: there is no piece of no length.
3. Results do not depend on the order of changes within an instant, nor on what has come and gone: sums are exact.

Needs: the changes of a sweep are not before those of earlier sweeps of the same group. Groups are dense codes that the
caller gives; new ones may come at any time. Cost: per change, times the logarithm of what is alive for min and max;
never per group or per element that is alive. Memory: per group, and for min and max per element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import FOREVER, Aggregate
from streamjoin.algebra.interval import Mask, Times
from streamjoin.errors import CallError, SnapshotError
from streamjoin.kernels import Steps, cut_pieces, fold_counts, renumbered, sort_order, with_room
from streamjoin.state.aggregate_types import result_type
from streamjoin.state.batch import Indices
from streamjoin.state.column_values import present
from streamjoin.state.extremes import Extremes
from streamjoin.state.sums import Sums


@dataclass(frozen=True)
class Changes:
    """Starts (+1) and ends (-1) of elements, in any order; `values` has the columns that the aggregates read.

    An end has the same values as its start.
    """

    group: Indices
    time: Times
    sign: npt.NDArray[np.int8]
    values: pa.Table


@dataclass(frozen=True)
class Pieces:
    """Pieces `[start, end)` of groups, with a column per aggregate.

    `carried`: the piece was already open before the sweep that closes it.
    """

    group: Indices
    start: Times
    end: Times
    values: pa.Table
    carried: Mask

    def __len__(self) -> int:
        return len(self.group)

    def take(self, which: Mask) -> Pieces:
        """Some of them."""
        if which.all():
            return self
        # A table without columns has no rows to be filtered.
        values = self.values.filter(pa.array(which)) if self.values.num_columns else self.values
        return Pieces(self.group[which], self.start[which], self.end[which], values, self.carried[which])


class _Column:
    """What the aggregates of one column keep: how many values there are, and what is asked for of them."""

    def __init__(self, kind: pa.DataType, functions: set[str]) -> None:
        self.kind = kind
        self.counts = np.zeros(0, np.int64)
        summed = functions & {"sum", "avg", "stddev"}
        compared = tuple(sorted(functions & {"min", "max"}))
        self.sums = Sums(kind, squared="stddev" in functions) if summed else None
        self.extremes = Extremes(kind, compared) if compared else None

    def fold(self, steps: Steps, column: pa.ChunkedArray, order: Indices) -> dict[str, Any]:
        """What each kind of aggregate has at each read."""
        known = present(column)[order]
        values = fold_counts(steps.only(known), self.counts)
        found: dict[str, Any] = {"count": values}
        if self.sums is not None:
            found["sums"] = self.sums.fold(steps, column, order, known, values)
        if self.extremes is not None:
            found |= self.extremes.fold(steps, column, order, known, values)
        return found

    def parts(self) -> list[Sums | Extremes]:
        return [part for part in (self.sums, self.extremes) if part is not None]

    def grow(self, groups: int) -> None:
        self.counts = with_room(self.counts, groups)
        for part in self.parts():
            part.grow(groups)

    def renumber(self, old_to_new: Indices) -> None:
        self.counts = renumbered(self.counts, old_to_new)
        for part in self.parts():
            part.renumber(old_to_new)


class GroupAggregates:
    """The aggregates of all groups, kept up to date by changes.

    >>> largest = GroupAggregates((Aggregate("max", "x", "largest"),), pa.schema({"x": pa.int64()}))
    >>> changes = Changes(
    ...     group=np.zeros(3, np.int64), time=np.array([1, 4, 6]), sign=np.array([1, 1, -1], np.int8),
    ...     values=pa.table({"x": [7, 5, 7]}),
    ... )
    >>> pieces = largest.sweep(changes)
    >>> pieces.start.tolist(), pieces.end.tolist(), pieces.values["largest"].to_pylist()
    ([1, 4], [4, 6], [7, 7])
    >>> largest.finish().values["largest"].to_pylist()
    [5]
    """

    def __init__(self, aggregates: tuple[Aggregate, ...], schema: pa.Schema) -> None:
        names = [aggregate.name for aggregate in aggregates]
        if len(set(names)) < len(names):
            raise CallError(f"two aggregates have the same name: {names}", hint="give each a name of its own")
        self.aggregates = aggregates
        self.schema = schema
        self._result_schema = pa.schema([(each.name, result_type(each, schema)) for each in aggregates])
        functions: dict[str, set[str]] = {}
        for each in aggregates:
            if each.column is not None:
                functions.setdefault(each.column, set()).add(each.function)
        self._columns = {name: _Column(schema.field(name).type, asked) for name, asked in functions.items()}
        self._groups = 0
        self._elements = 0
        self._alive = np.zeros(0, np.int64)
        self._opened = np.zeros(0, np.int64)

    @property
    def result_schema(self) -> pa.Schema:
        """One field per aggregate, with the type that Spark gives it."""
        return self._result_schema

    @property
    def rows(self) -> int:
        """Elements that are alive."""
        return self._elements

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        arrays = [self._alive, self._opened, *(column.counts for column in self._columns.values())]
        parts = [part for column in self._columns.values() for part in column.parts()]
        return sum(array.nbytes for array in arrays) + sum(part.nbytes for part in parts)

    def groups_alive(self) -> Mask:
        """For every code that has ever come, whether its group has an element now."""
        mask: Mask = self._alive[: self._groups] > 0
        return mask

    def sweep(self, changes: Changes) -> Pieces:
        """Apply changes; all pieces that they close, in order of (group, start)."""
        self._grow(int(changes.group.max(initial=-1)) + 1)
        starts_first = bool((changes.sign[1:] <= changes.sign[:-1]).all())  # they stay so: sorting is stable
        signs = [] if starts_first else [-changes.sign.astype(np.int64)]
        order = sort_order([changes.group, changes.time, *signs])
        group, time, sign = changes.group[order], changes.time[order], changes.sign[order]
        cuts = cut_pieces(group, time, sign, alive=self._alive, opened=self._opened)
        self._elements += int(sign.sum(dtype=np.int64))
        steps = Steps(group, sign, cuts.reads)
        values = self._read(steps, changes.values, order, cuts.elements)
        return Pieces(cuts.reads.who, cuts.start, cuts.end, values, cuts.carried)

    def open_pieces(self, groups: Indices) -> Pieces:
        """The piece that is open now of each of these groups that is not empty; its end is `FOREVER`."""
        groups = groups[groups < self._groups]
        groups = groups[self._alive[groups] > 0]
        steps, nothing = Steps.none(groups), self.schema.empty_table()
        values = self._read(steps, nothing, np.zeros(0, np.int64), self._alive[groups])
        rows = len(groups)
        return Pieces(groups, self._opened[groups], np.full(rows, FOREVER), values, np.zeros(rows, np.bool_))

    def finish(self) -> Pieces:
        """Every open piece, ended at `FOREVER`. Nothing changes here: who goes on can sweep again."""
        pieces = self.open_pieces(np.flatnonzero(self.groups_alive()))
        return Pieces(pieces.group, pieces.start, pieces.end, pieces.values, np.ones(len(pieces), np.bool_))

    def renumber(self, old_to_new: Indices) -> None:
        """Move every group to a new code; -1 for groups that are empty and go. `old_to_new` has an entry per code."""
        if len(old_to_new) < self._groups:
            raise CallError(
                f"renumber needs a new code for each of {self._groups} groups, got {len(old_to_new)}",
                hint="use -1 for groups that are empty and go",
            )
        self._grow(len(old_to_new))
        if (self._alive[: len(old_to_new)][old_to_new < 0] > 0).any():
            raise CallError("renumber drops a group that has elements", hint="drop only groups that are not alive")
        self._alive, self._opened = renumbered(self._alive, old_to_new), renumbered(self._opened, old_to_new)
        for column in self._columns.values():
            column.renumber(old_to_new)
        self._groups = len(self._alive)

    def to_tables(self) -> dict[str, pa.Table]:
        """What is kept: `groups` has a row per code, `values.i` the living values of column i, for min and max."""
        groups = self._groups
        arrays: dict[str, Any] = {"alive": self._alive[:groups], "opened": self._opened[:groups]}
        tables: dict[str, pa.Table] = {}
        for number, column in enumerate(self._columns.values()):
            arrays[f"{number}.count"] = column.counts[:groups]
            if column.sums is not None:
                arrays |= {f"{number}.{name}": part for name, part in column.sums.to_columns(groups).items()}
            if column.extremes is not None:
                tables[f"values.{number}"] = column.extremes.to_table()
        return {"groups": pa.table(arrays), **tables}

    @staticmethod
    def from_tables(
        aggregates: tuple[Aggregate, ...], schema: pa.Schema, tables: Mapping[str, pa.Table]
    ) -> GroupAggregates:
        """The inverse of `to_tables`, for the same aggregates and schema."""
        made = GroupAggregates(aggregates, schema)
        expected = {name: table.schema.names for name, table in made.to_tables().items()}
        if {name: table.schema.names for name, table in tables.items()} != expected:
            raise SnapshotError("the tables belong to other aggregates", hint="restore with the aggregates they are of")
        stored = tables["groups"]
        made._alive, made._opened = stored["alive"].to_numpy().copy(), stored["opened"].to_numpy().copy()
        made._groups, made._elements = len(made._alive), int(made._alive.sum())
        for number, column in enumerate(made._columns.values()):
            column.counts = stored[f"{number}.count"].to_numpy().copy()
            if column.sums is not None:
                prefix = f"{number}."
                names = [name for name in stored.schema.names if name.startswith(prefix)]
                column.sums.from_columns({name.removeprefix(prefix): stored[name] for name in names})
            if column.extremes is not None:
                column.extremes.grow(made._groups)
                column.extremes.from_table(tables[f"values.{number}"])
        return made

    def _grow(self, groups: int) -> None:
        if groups <= self._groups:
            return
        self._groups = groups
        self._alive, self._opened = with_room(self._alive, groups), with_room(self._opened, groups)
        for column in self._columns.values():
            column.grow(groups)

    def _read(self, steps: Steps, table: pa.Table, order: Indices, elements: Indices) -> pa.Table:
        """Apply the changes to every column; the aggregates at each read."""
        found = {name: column.fold(steps, table[name], order) for name, column in self._columns.items()}
        columns = []
        for each, field in zip(self.aggregates, self._result_schema, strict=True):
            if each.column is None:
                columns.append(pa.array(elements))
            elif each.function == "count":
                columns.append(pa.array(found[each.column]["count"]))
            elif each.function in ("min", "max"):
                columns.append(found[each.column][each.function])
            else:
                columns.append(found[each.column]["sums"].result(each.function, field.type, each.name))
        return pa.table(columns, schema=self._result_schema)
