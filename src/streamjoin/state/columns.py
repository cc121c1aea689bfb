"""Columns as arrays: what kernels can compare and hash.

Equality keys become one int64 code per row. A single key whose type fits into 64 bits is its own code; anything else is
hashed. `group_codes` is for joins, where NULL and NaN equal nothing; `row_hashes` for GROUP BY, where they equal
themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask
from streamjoin.kernels import combine_hashes, hash_bytes, hash_integers
from streamjoin.state.batch import Indices


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
        if len(columns) > 1:  # as `row_hashes` has it: one hash for whoever goes by these columns
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


def finite(values: npt.NDArray[Any], present: Mask) -> tuple[npt.NDArray[Any], Mask]:
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


def row_hashes(table: pa.Table) -> Indices:
    """A hash of each row. Rows that are equal as in GROUP BY have equal hashes.

    >>> nan = float("nan")
    >>> a, b, c, d = row_hashes(pa.table({"a": [nan, nan, None, 0.0]})).tolist()
    >>> a == b, a == c, c == d
    (True, False, False)
    """
    hashes: Indices | None = None
    for column in table.columns:
        code = _grouping_code(_one_chunk(column))
        hashes = code if hashes is None else combine_hashes(hashes, code)
    assert hashes is not None, "a row without columns has no hash"
    return hashes


def _grouping_code(array: pa.Array) -> Indices:
    if has_no_order(array.type):
        array = grouping_texts(array)
    if pa.types.is_floating(array.type):
        floats = array.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
        code, present = np.where(np.isnan(floats), np.nan, floats).view(np.int64), _present(array)
    else:
        code, present = _code(array)
    return np.where(present, hash_integers(code), 0)


def has_no_order(kind: pa.DataType) -> bool:
    """Whether Arrow cannot compare values of this type: of nested ones, and of a column of NULLs."""
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))


def grouping_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values as texts that are equal where the values are, as GROUP BY sees it.

    >>> grouping_texts(pa.array([[0.0], [-0.0], None])).to_pylist()
    ['[0.0]', '[0.0]', None]
    """
    return pa.array([None if value is None else repr(_unsigned(value)) for value in column.to_pylist()], pa.string())


def _unsigned(value: Any) -> Any:
    """The same with zeros that have no sign."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {name: _unsigned(part) for name, part in value.items()}
    return [_unsigned(part) for part in value] if isinstance(value, list | tuple) else value
