"""Columns that repeat others are not written.

A row says its time, its end and its key twice: in the payload, and in the arrays that decide.

    __sj_ts     is the user's time, bit for bit
    __sj_te     is __sj_ts and the length of a window
    __sj_group  is the user's key, where that fits into 64 bits

So what crosses Spark's exchange, and what lies in its state, would be up to twice as much as there is to say. Whether a
column repeats another one is seen from the numbers alone: nobody who makes rows need know of it. What is left out is
named in the metadata of the table, with its place, the column that it repeats, and what is to be added to that.

    >>> times = np.arange(LEAST_ROWS)
    >>> repeated = pa.table({"time": times, "__sj_ts": times, "__sj_te": times + 10})
    >>> lean(repeated).column_names, whole(lean(repeated)).equals(repeated)
    (['time'], True)
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.state.row_table import RESERVED_PREFIX

_REPEATS: Final = f"{RESERVED_PREFIX}repeats"
LEAST_ROWS: Final = 4  # fewer are smaller than what would be said about them


def lean(table: pa.Table) -> pa.Table:
    """A table without the columns of ours that repeat others."""
    if table.num_rows < LEAST_ROWS or any(column.num_chunks != 1 for column in table.columns):
        return table
    there: dict[str, npt.NDArray[np.int64]] = {}
    left_out: dict[str, tuple[int, str, int]] = {}
    for place, name in enumerate(table.column_names):
        numbers = _numbers(table.column(place))
        if numbers is None:
            continue
        ours = name.startswith(RESERVED_PREFIX) and pa.types.is_int64(table.column(place).type)
        for other, known in there.items() if ours else ():
            added = int(numbers[0]) - int(known[0])
            if _is_repeated(numbers, known, added):
                left_out[name] = place, other, added
                break
        else:
            there[name] = numbers
    if not left_out:
        return table
    said = {**(table.schema.metadata or {}), _REPEATS: json.dumps(left_out)}
    return table.drop_columns(list(left_out)).replace_schema_metadata(said)


def whole(table: pa.Table) -> pa.Table:
    """The inverse of `lean`."""
    said = dict(table.schema.metadata or {})
    left_out = said.pop(_REPEATS.encode(), None)
    if left_out is None:
        return table
    for name, (place, other, added) in json.loads(left_out).items():
        numbers = _numbers(table[other])
        assert numbers is not None
        table = table.add_column(place, name, pa.array(numbers + added if added else numbers))
    return table.replace_schema_metadata(said or None)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """A column of whole numbers or of times, all of which are there; None of others."""
    kind = column.type
    if column.null_count or not (pa.types.is_int64(kind) or pa.types.is_timestamp(kind)):
        return None
    values: Any = column.chunk(0).view(pa.int64()).to_numpy()
    return values  # type: ignore[no-any-return]


def _is_repeated(numbers: npt.NDArray[np.int64], known: npt.NDArray[np.int64], added: int) -> bool:
    """Whether some numbers are others with so much added; never where that would not fit into 64 bits."""
    if not -(2**63) <= added < 2**63 or int(numbers[-1]) - int(known[-1]) != added:
        return False
    return bool(np.array_equal(numbers, known) if added == 0 else (numbers == known + added).all())
