"""Binding: how the columns of an input become the arrays of a batch. The place where names end.

Equality keys become one int64 code per row. A single key whose type fits into 64 bits is its own code; anything else is
hashed, and the key values travel along as proof. Codes of different types never meet: both inputs' columns have been
brought to a common type before. NULL and NaN match nothing, nor does an empty value interval or an infinite coordinate:
such rows are marked.

A row is invalid when its time is NULL, or when its validity ends before it begins. NULL as the end of a validity means
for ever. What happens to invalid rows is the policy's business: `fail` says which row it was, `drop` and `output` set
them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, InvalidPolicy, Overlaps, Predicate, Validity, Window, Within
from streamjoin.algebra.interval import Mask, Times, saturating_add
from streamjoin.errors import InvalidRowError
from streamjoin.kernels import order_keys
from streamjoin.state import Batch
from streamjoin.state.columns import codes_are_exact, finite, group_codes, number_values, time_values


@dataclass(frozen=True)
class Bound:
    """Rows of an input that can be joined, and those that are invalid."""

    batch: Batch
    invalid: pa.Table


@dataclass(frozen=True)
class InputBinding:
    """How one input's columns are read.

    Exactly one of three holds: a `window` gives validity; `forget_after` gives an event join the distance from a row's
    time to the instant from which it can be forgotten; neither, and rows match by value alone.
    """

    number: int
    payload: tuple[str, ...]
    keys: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    time: str | None = None
    window: Window | None = None
    forget_after: int | None = None
    invalid: InvalidPolicy = "fail"
    timeless: bool = False  # a row whose time is NULL is not invalid, it only matches nothing
    ordered: bool = False  # no column is read as time: it is the first value, whatever that counts

    def bind(self, table: pa.Table) -> Bound:
        """The rows of `table` as a batch."""
        table = table.combine_chunks()
        ts, te, valid = self._times(table)
        invalid = table.select(self.payload).slice(0, 0)
        if not valid.all():
            invalid = table.filter(pa.array(~valid)).select(self.payload)
            if self.invalid == "fail":
                raise self._invalid_row(table.filter(pa.array(~valid)))
            table, ts, te = table.filter(pa.array(valid)).combine_chunks(), ts[valid], te[valid]
        group, matchable = group_codes([table[name] for name in self.keys], table.num_rows)
        if self.timeless:
            matchable &= ts > NEVER
        values: list[npt.NDArray[Any]] = []
        for predicate in self.predicates:
            columns = [number_values(table[name]) for name in predicate.columns(self.number)]
            if isinstance(predicate, Within):
                columns = [finite(*column) for column in columns]
            if self.ordered and not values:
                ts, te = self._ordered(*columns[0])
            for _, present in columns:
                matchable &= present
            if isinstance(predicate, Overlaps):
                matchable &= columns[0][0] < columns[1][0]
            values += [column for column, _ in columns]
        proof = None
        if self.keys and not codes_are_exact([table.schema.field(name).type for name in self.keys]):
            proof = table.select(self.keys)
        payload = table.select(self.payload)
        hopeless = None if matchable.all() else matchable
        return Bound(Batch(payload, ts, te, group, tuple(values), proof, hopeless), invalid)

    def _times(self, table: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Mask]:
        rows = table.num_rows
        if isinstance(self.window, Validity):
            ts, valid = time_values(table[self.window.start])
            te, has_end = time_values(table[self.window.end])
            te = np.where(has_end, te, FOREVER)
            return ts, te, valid & (ts <= te)
        if self.time is None or self.ordered:
            return np.zeros(rows, np.int64), np.full(rows, FOREVER), np.ones(rows, np.bool_)
        ts, valid = time_values(table[self.time])
        if self.window is None:
            valid = valid & (ts < FOREVER)  # infinity is no time at which an event could be
        if self.timeless:
            ts, valid = np.where(valid, ts, NEVER), np.ones(rows, np.bool_)
        if self.window is not None:
            return ts, self.window.ends(ts), valid
        return ts, saturating_add(ts, self.forget_after or 0), valid

    def _ordered(self, values: npt.NDArray[Any], present: Mask) -> tuple[Times, Times]:
        ts = np.where(present, order_keys(values), NEVER)
        # Distances of doubles are no distances of their keys: such rows are kept until the end.
        forget = FOREVER if values.dtype.kind == "f" else self.forget_after or 0
        return ts, saturating_add(ts, forget)

    def _invalid_row(self, rows: pa.Table) -> InvalidRowError:
        first = rows.slice(0, 1).select(self.payload).to_pylist()[0]
        if isinstance(self.window, Validity):
            why = f"a validity needs a start, and {self.window.end} must not be before {self.window.start}"
        else:
            missing = self.time is None or not rows[self.time][0].is_valid
            why = f"its time column {self.time!r} is {'NULL' if missing else 'the largest number, which is no time'}"
        return InvalidRowError(
            f"input {self.number} has {rows.num_rows} invalid row(s), the first is {first}: {why}",
            hint='repair or filter such rows, or choose invalid="drop" or invalid="output"',
        )
