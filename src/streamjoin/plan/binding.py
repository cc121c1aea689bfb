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
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER, NEVER, InvalidPolicy, Overlaps, Predicate, Validity, Window, Within
from streamjoin.algebra.interval import Mask, Times, saturating_add
from streamjoin.errors import InvalidRowError
from streamjoin.kernels import combine_hashes, hash_bytes, hash_integers, order_keys
from streamjoin.state import Batch
from streamjoin.state.batch import Indices


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
                columns = [_finite(*column) for column in columns]
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
            why = f"its time column {self.time!r} is NULL"
        return InvalidRowError(
            f"input {self.number} has {rows.num_rows} invalid row(s), the first is {first}: {why}",
            hint='repair or filter such rows, or choose invalid="drop" or invalid="output"',
        )


def codes_are_exact(types: list[pa.DataType]) -> bool:
    """Whether key codes are the values themselves, so that equal codes need no proof.

    >>> codes_are_exact([pa.int32()]), codes_are_exact([pa.string()]), codes_are_exact([pa.int32(), pa.int32()])
    (True, False, False)
    """
    return len(types) == 1 and _fits_64_bits(types[0])


def _fits_64_bits(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_temporal(kind)
    )


def group_codes(columns: list[pa.ChunkedArray], rows: int) -> tuple[Indices, Mask]:
    """One code per row for its keys, and which rows have keys that can equal anything.

    >>> codes, present = group_codes([pa.chunked_array([[1, None, 1]])], 3)
    >>> bool(codes[0] == codes[2]), present.tolist()
    (True, [True, False, True])
    """
    present = np.ones(rows, np.bool_)
    if not columns:
        return np.zeros(rows, np.int64), present
    codes: Indices | None = None
    for column in columns:
        code, there = _code(column)
        present &= there
        if len(columns) > 1 and _fits_64_bits(column.type):
            code = hash_integers(code)
        codes = code if codes is None else combine_hashes(codes, code)
    assert codes is not None
    return np.where(present, codes, 0), present


def _code(column: pa.ChunkedArray) -> tuple[Indices, Mask]:
    if _fits_64_bits(column.type):
        values, present = number_values(column)
        if values.dtype == np.float64:
            values = (values + 0.0).view(np.int64)  # adding zero makes -0.0 and 0.0 the same bits
        return values, present
    array = _one_chunk(column)
    present = _present(array)
    if pa.types.is_decimal(array.type):
        halves = _decimal_halves(array)
        return combine_hashes(np.ascontiguousarray(halves[:, 1]), np.ascontiguousarray(halves[:, 0])), present
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return hash_bytes(bounds, content), present


def number_values(column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], Mask]:
    """The values as int64 or float64, and which are neither NULL nor NaN. Decimals become their unscaled integers.

    >>> values, present = number_values(pa.chunked_array([[1.5, None, float("nan")]]))
    >>> present.tolist()
    [True, False, False]
    """
    array = _one_chunk(column)
    present = _present(array)
    if pa.types.is_decimal(array.type):
        return np.ascontiguousarray(_decimal_halves(array)[:, 0]), present
    if pa.types.is_floating(array.type):
        floats = array.cast(pa.float64()).fill_null(0.0).to_numpy()
        present = present & ~np.isnan(floats)
        return np.where(present, floats, 0.0), present
    return time_values(column)


def _finite(values: npt.NDArray[Any], present: Mask) -> tuple[npt.NDArray[Any], Mask]:
    """An infinite coordinate is at no distance from anything, and has no place on a sphere: as if it were NaN."""
    finite = np.isfinite(values)
    return np.where(finite, values, 0), present & finite


def time_values(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], Mask]:
    """Ticks of a time stamp, date, integer or boolean column, and which are not NULL.

    >>> time_values(pa.chunked_array([[3, None]]))[0].tolist()
    [3, 0]
    """
    array = _one_chunk(column)
    present = _present(array)
    if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        array = array.cast(pa.int32())
    return array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), present


def _present(array: pa.Array) -> Mask:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return pc.is_valid(array).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _decimal_halves(array: pa.Array) -> npt.NDArray[np.int64]:
    """The low and the high 64 bits of decimals; NULLs may hold anything."""
    array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    _, data = array.buffers()
    if data is None:
        return np.zeros((len(array), 2), np.int64)
    return np.frombuffer(data, np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
