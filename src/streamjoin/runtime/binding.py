"""Binding: how elements become the batch that an operator reads. The place where names end.

Equality keys become one int64 code per row. A single key whose type fits into 64 bits is its own code; anything else is
hashed, and the key values travel along as proof. Codes of different types never meet: both inputs' columns have been
brought to a common type before. NULL and NaN match nothing, nor does an empty value interval, an empty set or an
infinite coordinate: such rows are marked.

One hash places everything: rows that are equal in some columns have equal hashes there (`RowBinding.hashes`), whoever
asks, so that operators which go by the same columns can share a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Equals, Overlaps, Predicate, Similar, Within
from streamjoin.algebra.interval import Mask, Times, saturating_add
from streamjoin.kernels import hash_integers, order_keys
from streamjoin.operators import Results
from streamjoin.state import Batch, content_of
from streamjoin.state.batch import Indices
from streamjoin.state.columns import codes_are_exact, finite, group_codes, number_values, row_hashes, time_values


@dataclass(frozen=True)
class RowBinding:
    """How the elements of one input are read. `number` is the input's side of the predicates.

    `groups` and `ties` are for row windows: the columns that make a group, and those that say who came first among
    equal time stamps. `forget_after` gives an event join the distance from a row's time to the instant from which it
    can be forgotten. `time`: the column that says when a row is, where that is not when the element came to be.
    `ordered`: no column is read as time, it is the first value, whatever that counts.
    """

    payload: tuple[str, ...]
    number: int = 0
    keys: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    placed_by: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    forget_after: int | None = None
    timeless: bool = False
    ordered: bool = False
    time: str | None = None

    def bind(self, elements: Results) -> Batch:
        """Elements as rows of an operator."""
        table, ts, te = elements.payload, elements.ts, elements.te
        group, matchable = group_codes([table[name] for name in self.keys], len(ts))
        if self.time is not None:
            own, present = time_values(table[self.time])
            ts = np.where(present, own, NEVER if self.timeless else ts)
        if self.timeless:
            matchable &= ts > NEVER
        if self.forget_after is not None:
            te = saturating_add(ts, self.forget_after)
        values: list[npt.NDArray[Any]] = []
        contents: list[pa.Array] = []
        for predicate in self.predicates:
            if isinstance(predicate, Similar):
                content, there = content_of(predicate, table[predicate.columns(self.number)[0]])
                contents.append(content)
                matchable &= there
                continue
            coded = isinstance(predicate, Equals)  # of some inputs of a join of many: the code of a key is its value
            read = [table[name] for name in predicate.columns(self.number)]
            columns = [group_codes([column], len(ts)) if coded else number_values(column) for column in read]
            if isinstance(predicate, Within):
                columns = [finite(*column) for column in columns]
            if self.ordered and not values:
                ts, te = self._ordered(*columns[0])
            for _, present in columns:
                matchable &= present
            if isinstance(predicate, Overlaps):
                matchable &= columns[0][0] < columns[1][0]
            values += [column for column, _ in columns]
        return Batch(
            table.select(self.payload) if self.payload else pa.table({}),
            ts,
            te,
            group,
            tuple(values),
            self._proof(table),
            None if matchable.all() else matchable,
            holder=elements.holder,
            sign=elements.sign,
            priority=elements.priority,
            contents=pa.table(contents, names=[str(each) for each in range(len(contents))]) if contents else None,
        )

    def _proof(self, table: pa.Table) -> pa.Table | None:
        if self.groups or self.ties:
            return table.select([*self.groups, *self.ties])
        names = list(self.keys)
        if names and codes_are_exact([table.schema.field(name).type for name in names]):
            names = []
        coded = [str(each.columns(self.number)[0]) for each in self.predicates if isinstance(each, Equals)]
        names += [name for name in coded if not codes_are_exact([table.schema.field(name).type])]
        return table.select(names) if names else None

    def _ordered(self, values: npt.NDArray[Any], present: Mask) -> tuple[Times, Times]:
        ts = np.where(present, order_keys(values), NEVER)
        # Distances of doubles are no distances of their keys: such rows are kept until the end.
        forget = FOREVER if values.dtype.kind == "f" else self.forget_after or 0
        return ts, saturating_add(ts, forget)

    def hashes(self, elements: Results, batch: Batch) -> Indices | None:
        """A hash per row of the columns that place it; None where nothing does."""
        if not self.placed_by:
            return None
        # Keys that match nothing have no code of their own, though others may group by them: NULL, NaN.
        if self.placed_by != self.keys or batch.matchable is not None:
            return row_hashes(elements.payload.select(self.placed_by))
        return batch.group if len(self.keys) > 1 else hash_integers(batch.group)
