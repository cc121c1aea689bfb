"""A catalogue of rows: each different row has a number, dense from 0, as long as somebody needs it.

Rows are looked up by a hash of 64 bits and compared with what the catalogue has under it, so a number never stands for
two rows. Rows are equal as in GROUP BY: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, and is written so: which of
them came first must not be seen.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask
from streamjoin.errors import StreamjoinError
from streamjoin.state.batch import RESERVED_PREFIX, Indices
from streamjoin.state.columns import grouping_texts, has_no_order, row_hashes
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes

MOST_PARTS: Final = 16
_CODE: Final = RESERVED_PREFIX + "code"
FEW: Final = 64  # rows that may be kept in vain


def _one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """-0.0 + 0.0 is 0.0, and everything else stays."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


@dataclass
class CatalogueRows:
    """Rows that came together, and the numbers they were given."""

    rows: pa.Table
    codes: Indices
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class Catalogue:
    """Numbers for rows of one schema. A number keeps its row until it is released; then another row may get it."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.clear()

    def clear(self) -> None:
        """Know nothing."""
        self.parts: list[CatalogueRows] = []
        self.hashes: npt.NDArray[np.int64] = np.empty(0, np.int64)  # in order
        self.codes_of_hashes: Indices = np.empty(0, np.int64)
        self.place: Indices = np.empty(0, np.int64)  # where the row of each code is, among the rows of all parts
        self.free: Indices = np.empty(0, np.int64)  # codes that nobody has

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        rows = sum(int(part.rows.nbytes) + part.codes.nbytes for part in self.parts)
        return rows + self.hashes.nbytes + self.codes_of_hashes.nbytes + self.place.nbytes

    def codes(self, table: pa.Table, rows: int) -> Indices:
        """The numbers of these rows; rows that are not known yet get free ones.

        >>> catalogue = Catalogue(pa.schema({"a": pa.string()}))
        >>> catalogue.codes(pa.table({"a": ["x", None, "x"]}), 3).tolist()
        [0, 1, 0]
        >>> catalogue.release(np.array([0]))
        >>> catalogue.codes(pa.table({"a": ["y", None]}), 2).tolist()
        [0, 1]
        """
        if not self.schema.names or not rows:  # there is one row without columns, and it is number 0
            return np.zeros(rows, np.int64)
        hashes = row_hashes(table)
        places = np.searchsorted(self.hashes, hashes)
        known = np.zeros(rows, np.bool_)
        inside = places < len(self.hashes)
        known[inside] = self.hashes[places[inside]] == hashes[inside]
        codes = np.empty(rows, np.int64)
        codes[known] = self.codes_of_hashes[places[known]]
        if not known.all():
            codes[~known] = self._add(hashes, known, table)
        self._check(codes, table)
        return codes

    def _add(self, hashes: npt.NDArray[np.int64], known: Mask, table: pa.Table) -> Indices:
        """New numbers; those of the rows that are not known."""
        unknown = np.flatnonzero(~known)
        _, first, which = np.unique(hashes[unknown], return_index=True, return_inverse=True)
        came = np.argsort(first)
        chosen = unknown[first[came]]  # in the order in which they came
        codes = self._new_codes(len(chosen))
        columns = pa.table([_one_zero(column) for column in table.columns], schema=self.schema)
        self.place[codes] = sum(len(part.codes) for part in self.parts) + np.arange(len(chosen))
        self.parts.append(CatalogueRows(columns.take(pa.array(chosen)), codes))
        order = np.argsort(hashes[chosen])
        at = np.searchsorted(self.hashes, hashes[chosen][order])
        self.hashes = np.insert(self.hashes, at, hashes[chosen][order])
        self.codes_of_hashes = np.insert(self.codes_of_hashes, at, codes[order])
        if len(self.parts) > MOST_PARTS:
            self._tidy()
        code_of = np.empty(len(codes), np.int64)
        code_of[came] = codes
        numbers: Indices = code_of[which]
        return numbers

    def _new_codes(self, count: int) -> Indices:
        used, self.free = self.free[:count], self.free[count:]
        first, more = len(self.place), count - len(used)
        self.place = np.concatenate([self.place, np.zeros(more, np.int64)])
        return np.concatenate([used, first + np.arange(more)])

    def _check(self, codes: Indices, table: pa.Table) -> None:
        """Different rows of one hash: so improbable that there is no second way, but never a wrong result."""
        for mine, known in zip(table.columns, self.take(codes).columns, strict=True):
            if not same_values(mine, known).all():
                raise StreamjoinError("two different rows have the same hash", hint="add a constant column to them")

    def take(self, codes: Indices) -> pa.Table:
        """The rows with these numbers."""
        if not self.parts:
            return self.schema.empty_table()
        if len(self.parts) > 1:
            return pa.concat_tables([part.rows for part in self.parts]).take(pa.array(self.place[codes]))
        return self.parts[0].rows.take(pa.array(self.place[codes]))

    def release(self, codes: Indices) -> None:
        """Nobody needs the rows of these numbers any more."""
        if not self.schema.names or not len(codes):
            return
        gone = np.zeros(len(self.place), np.bool_)
        gone[codes] = True
        keep = ~gone[self.codes_of_hashes]
        self.hashes, self.codes_of_hashes = self.hashes[keep], self.codes_of_hashes[keep]
        self.free = np.concatenate([self.free, codes])
        if sum(len(part.codes) for part in self.parts) > 2 * len(self) + FEW:
            self._tidy()

    def _tidy(self) -> None:
        """All rows that are needed, in one part."""
        codes = np.sort(self.codes_of_hashes)
        rows = self.take(codes).combine_chunks()
        self.parts = [CatalogueRows(rows, codes)] if len(codes) else []
        self.place[codes] = np.arange(len(codes))

    def snapshot(self, name: str) -> Snapshot:
        """What is known, to be stored."""
        makers = {f"{name}/{part.id}": partial(_bytes, part) for part in self.parts}
        manifest = {"name": name, "parts": [part.id for part in self.parts], "free": self.free.tolist()}
        return Snapshot({**manifest, "codes": len(self.place)}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.clear()
        name = snapshot.manifest["name"]
        self.free = np.array(snapshot.manifest["free"], np.int64)
        self.place = np.zeros(snapshot.manifest["codes"], np.int64)
        first = 0
        for part_id in snapshot.manifest["parts"]:
            table = table_from_bytes(snapshot.blobs[f"{name}/{part_id}"])
            codes = table[_CODE].to_numpy()
            self.parts.append(CatalogueRows(table.drop_columns([_CODE]), codes, part_id))
            self.place[codes] = first + np.arange(len(codes))  # a later row of a code replaces an earlier one
            first += len(codes)
        living = np.ones(len(self.place), np.bool_)
        living[self.free] = False
        codes = np.flatnonzero(living)
        if len(codes) and self.schema.names:
            hashes = row_hashes(self.take(codes))
            order = np.argsort(hashes)
            self.hashes, self.codes_of_hashes = hashes[order], codes[order]


def same_values(one: Any, two: Any) -> Mask:
    """Where two columns have equal values, as GROUP BY sees it.

    >>> nan = float("nan")
    >>> same_values(pa.array([1.0, nan, None, None]), pa.array([1.0, nan, None, 1.0])).tolist()
    [True, True, True, False]
    """
    if has_no_order(one.type):
        one, two = grouping_texts(one), grouping_texts(two)
    equal = pc.fill_null(pc.equal(one, two), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(two)))
    if pa.types.is_floating(one.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(two)), False))
    return (
        np.asarray(equal.to_numpy(zero_copy_only=False), np.bool_) if isinstance(equal, pa.Array) else equal.to_numpy()
    )


def _bytes(part: CatalogueRows) -> bytes:
    return table_to_bytes(part.rows.append_column(_CODE, pa.array(part.codes)))
