"""Groups: one sorted run per input, written together. And the parts by which their rows are stored for a restart.

Runs lie in a store of pages on this host, and can be made again: what is durable are *parts*, rows as they came, each
stored once under a name of its own. A row carries the number of its part (its *label*, behind its values). A merged run
has the parts of all runs that it was merged from, as long as rows of them are left.

Two laws keep what is stored in proportion (they are those of `state.layout`). A part of which less than a quarter is
left is stored anew. Small neighbours become one part, so that parts are not many.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamjoin.state import Batch
from streamjoin.state.batch import Indices
from streamjoin.state.layout import Layout
from streamjoin.state.paged import PagedRun


def new_name() -> str:
    """A name that no attempt at the same work uses."""
    return uuid.uuid4().hex


def labelled(rows: Batch, label: int) -> Batch:
    """Rows of the part with this number."""
    return replace(rows, values=(*rows.values, np.full(len(rows), label, np.int64)))


def unlabelled(rows: Batch) -> Batch:
    """Rows as they came."""
    return replace(rows, values=rows.values[:-1])


@dataclass(frozen=True)
class Parts:
    """Names of parts, and with how many rows each was stored; `of`: which part the rows with a label are in."""

    names: tuple[str, ...]
    stored: tuple[int, ...]
    of: Indices

    @staticmethod
    def plain(names: Sequence[str], stored: Sequence[int]) -> Parts:
        """Labels are the numbers of parts."""
        return Parts(tuple(names), tuple(stored), np.arange(len(names)))

    @staticmethod
    def together(parts: Sequence[Parts]) -> Parts:
        """The parts of several runs, one after the other."""
        return Parts.plain(
            [name for each in parts for name in each.names], [rows for each in parts for rows in each.stored]
        )

    def relabelled(self, rows: Batch, first: int) -> Batch:
        """Rows with the numbers of their parts as labels, counted from `first` on."""
        return replace(rows, values=(*rows.values[:-1], self.of[rows.values[-1]] + first))

    def tidied(self, left: Mapping[int, int], width: float) -> Parts:
        """The same rows, stored by the two laws. `left`: rows that are left with each label; `width`: bytes of a row.

        >>> Parts.plain(["a", "b"], [9, 1]).tidied({0: 1, 1: 1}, 1e9).stored
        (1, 1)
        >>> Parts.plain(["a", "b", "c"], [1, 1, 1]).tidied({0: 1, 2: 1}, 8).of.tolist()
        [0, -1, 0]
        """
        rows = np.zeros(len(self.names), np.int64)
        rows[list(left)] = list(left.values())
        laid_out, number = Layout(self.names, self.stored).laid_out(rows, width)
        return Parts(laid_out.names, laid_out.stored_rows, np.where(rows > 0, number, np.int64(-1)))


@dataclass(frozen=True)
class StoredRun:
    """A run of one input: its pages, its parts, and how many bytes a row has. `in_memory`: it was never written."""

    pages: PagedRun
    parts: Parts
    width: float
    in_memory: bool = False

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.pages.rows

    @property
    def nbytes(self) -> float:
        """About how many bytes they have."""
        return self.rows * self.width


class RowsOfParts:
    """The rows of a run, part by part. Where they lie is found once: parts are many, with rows in most of the pages."""

    def __init__(self, run: StoredRun) -> None:
        self.run = run
        self.found: tuple[Indices, Indices] | None = None  # positions part by part, and where each part begins

    def of(self, number: int) -> Batch:
        """The rows of one part, as they came."""
        positions, start = self._positions()
        return unlabelled(self.run.pages.take(positions[start[number] : start[number + 1]]))

    def _positions(self) -> tuple[Indices, Indices]:
        if self.found is None:
            part = self.run.parts.of[self.run.pages.labels()]
            positions = np.argsort(part, kind="stable")
            numbers = np.arange(len(self.run.parts.names) + 1)
            self.found = positions, np.searchsorted(part, numbers, sorter=positions)
        return self.found


@dataclass(frozen=True)
class Group:
    """Runs of all inputs. `e`: no row that begins earlier is missing here and in the groups before. `cut`: rows that
    end here or earlier have been left behind. `level`: the higher, the more has been merged into it.
    """

    runs: tuple[StoredRun, ...]
    e: int
    cut: int
    level: int = 0

    @property
    def rows(self) -> int:
        """Rows of all inputs."""
        return sum(run.rows for run in self.runs)

    @property
    def nbytes(self) -> float:
        """About how many bytes they have."""
        return sum(run.nbytes for run in self.runs)

    @property
    def pages(self) -> int:
        """Pages of all inputs."""
        return sum(run.pages.pages for run in self.runs)

    def delete(self) -> None:
        """Its pages are not needed any more."""
        for run in self.runs:
            run.pages.delete()


def level_of(size: float, unit: float, fan_in: int) -> int:
    """How often `fan_in` groups have to be merged until one is of this size, when those that are written first have
    the size `unit`.

    >>> [level_of(size, 1, 4) for size in (0.5, 1, 3.9, 4, 16)]
    [0, 0, 0, 1, 2]
    """
    level = 0
    while unit * fan_in ** (level + 1) <= size * 1.000001:
        level += 1
    return level
