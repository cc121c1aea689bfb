"""A run: rows of one input in the order of the join's matching. Immutable, and named by an id of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels import merge_order
from streamjoin.state.batch import Batch, Indices

HALF_END_SAMPLE: Final = 4096  # rows, of which the end of half a run is told


def _new_id() -> str:
    # Random on purpose: a retried or speculative task must never write a run under a name that another one uses.
    return os.urandom(16).hex()


@dataclass(frozen=True)
class Run:
    """Sorted rows, with the columns they are sorted by: (group, cell, value), `cell` only where a grid is used."""

    rows: Batch
    value: npt.NDArray[Any]
    cell: Indices
    axes: npt.NDArray[np.float64] | None = None
    id: str = field(default_factory=_new_id)

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Run:
        """The rows from one position to before another, as a run of their own; they are not copied."""
        cell = self.cell[start:stop] if len(self.cell) else self.cell
        axes = None if self.axes is None else self.axes[start:stop]
        return Run(self.rows.part(start, stop), self.value[start:stop], cell, axes)

    @property
    def sort_columns(self) -> list[npt.NDArray[Any]]:
        """What the rows are ordered by, the most significant column first."""
        return [self.rows.group, *([self.cell] if len(self.cell) else []), self.value]

    @cached_property
    def last_end(self) -> int:
        """The largest end: when progress is there, the whole run can go."""
        return int(self.rows.te.max())

    @cached_property
    def first_end(self) -> int:
        """The smallest end: before progress is there, no row can go."""
        return int(self.rows.te.min())

    @cached_property
    def half_end(self) -> int:
        """When progress is here, about half of the rows can go. A sample tells: rows lie in the order of their values,
        so every n-th is as good as all of them, and nothing depends on it but when a run is made anew.
        """
        ends = self.rows.te[:: max(1, len(self.rows) // HALF_END_SAMPLE)]
        middle = (len(ends) - 1) // 2
        return int(np.partition(ends, middle)[middle])

    @cached_property
    def by_end(self) -> Indices:
        """The positions of the rows ordered by their ends, so that the next to expire are found without a scan."""
        return np.argsort(self.rows.te, kind="stable")


def merged_order(runs: Sequence[Run]) -> Indices:
    """The order that merges the runs, as positions into their concatenation."""
    if len(runs) == 1:
        return np.arange(len(runs[0]))
    offsets = np.cumsum([0] + [len(run) for run in runs])
    group = np.concatenate([run.rows.group for run in runs])
    value = np.concatenate([run.value for run in runs])
    cell = np.concatenate([run.cell for run in runs])
    return merge_order(group, cell if len(cell) else np.zeros(len(group), np.int64), value, offsets)
