"""A table whose pages are read when their rows are asked for: the payload of a run in files.

It stands where an Arrow table stands in a batch, and has those of its methods that are asked of payload: rows at
positions, some of the columns, other names. Whoever asks for whole columns gets them, mapped and not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.state.batch import Indices

# A page may be asked so many times for rows that come in stretches; otherwise they are put in order first.
_MOST_STRETCHES: Final = 2


@dataclass(frozen=True)
class PagedTable:
    """Pages one after the other, page `p` with the rows from `start[p]` on; `names` are those of `columns`' numbers."""

    start: Indices
    page: Callable[[int], pa.Table]
    nbytes: int
    names: tuple[str, ...]
    chosen: tuple[int, ...]
    whole_schema: pa.Schema

    @staticmethod
    def of(start: Indices, page: Callable[[int], pa.Table], nbytes: int, schema: pa.Schema) -> PagedTable:
        """All columns of the pages."""
        return PagedTable(start, page, nbytes, tuple(schema.names), tuple(range(len(schema.names))), schema)

    @property
    def num_rows(self) -> int:
        """Rows of all pages."""
        return int(self.start[-1])

    def __len__(self) -> int:
        return self.num_rows

    @property
    def num_columns(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def column_names(self) -> list[str]:
        """The columns' names."""
        return list(self.names)

    @property
    def schema(self) -> pa.Schema:
        """Names and types."""
        return pa.schema([
            self.whole_schema.field(at).with_name(name) for name, at in zip(self.names, self.chosen, strict=True)
        ])  # fmt: skip

    def select(self, columns: Sequence[str] | Sequence[int]) -> PagedTable:
        """Some of the columns, by name or number."""
        at = [self.names.index(each) if isinstance(each, str) else each for each in columns]
        return replace(self, names=tuple(self.names[n] for n in at), chosen=tuple(self.chosen[n] for n in at))

    def rename_columns(self, names: Sequence[str]) -> PagedTable:
        """Other names."""
        return replace(self, names=tuple(names))

    def take(self, indices: Any) -> pa.Table:
        """The rows at these positions, in memory. Only their pages are read."""
        rows = np.asarray(indices)
        number = np.searchsorted(self.start, rows, side="right") - 1
        order, stretches = None, _stretches(number)
        if len(stretches) > _MOST_STRETCHES * len(self.start):  # every page is asked once, in any order
            order = np.argsort(number, kind="stable")
            rows, number = rows[order], number[order]
            stretches = _stretches(number)
        place = rows - self.start[number]
        found = [
            _taken(self._of_page(int(number[begin])), place[begin:end])
            for begin, end in pairwise([*stretches, len(rows)])
        ]
        if not found:
            return self.schema.empty_table()
        taken = pa.concat_tables(found).combine_chunks()
        if order is None:
            return taken
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return taken.take(pa.array(back))

    def pages(self, first: int, last: int) -> pa.Table:
        """Neighbouring pages as they lie there."""
        if last == first:
            return self.schema.empty_table()
        return pa.concat_tables([self._of_page(page) for page in range(first, last)])

    @property
    def columns(self) -> list[pa.ChunkedArray]:
        """All of them, mapped."""
        return self.pages(0, len(self.start) - 1).columns  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.column(self.names.index(name))

    def column(self, number: int) -> pa.ChunkedArray:
        """One of them, mapped."""
        return self.columns[number]

    def combine_chunks(self) -> pa.Table:
        """All of it, in memory."""
        return self.pages(0, len(self.start) - 1).combine_chunks()

    def _of_page(self, page: int) -> pa.Table:
        whole = self.page(page)
        if self.chosen == tuple(range(whole.num_columns)) and list(self.names) == whole.column_names:
            return whole
        return pa.table([whole.column(at) for at in self.chosen], names=list(self.names))


def _taken(page: pa.Table, rows: Indices) -> pa.Table:
    """Some rows of a page. As one record batch it is asked once, not column by column and chunk by chunk."""
    batches = page.to_batches()
    if len(batches) != 1:  # no columns, or texts of more than two gigabytes
        return page.take(pa.array(rows))
    return pa.Table.from_batches([batches[0].take(pa.array(rows))])


def _stretches(number: Indices) -> list[int]:
    """Where another page begins than that of the row before.

    >>> _stretches(np.array([3, 3, 4, 3]))
    [0, 2, 3]
    """
    return [0, *(np.flatnonzero(np.diff(number)) + 1).tolist()] if len(number) else []
