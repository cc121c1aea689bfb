"""A batch: rows of one input as the operators see them. Payload that travels, and arrays that decide.

    payload    Arrow table, never looked into
    ts, te     the validity `[ts, te)`; in an event join `te` is the instant from which the row can be forgotten
    group      the code of its equality keys (0 where there are none); equal keys have equal codes
    values     the columns that the predicates read, one predicate after the other
    contents   sets and texts that predicates compare, in Arrow, one predicate after the other (see `contents`)
    proof      the key values themselves, where codes are hashes and have to be verified
    matchable  False for rows that can match nothing: a NULL or NaN key or value, an empty value interval
    origin     a number that all replicas of one row share, where a row goes to several buckets
    home       True for exactly one of the replicas
    holder     where an end is not known yet, who will know it (see `holders`); -1 where it is known
    sign       in a stream of plus and minus tuples: 1 where a row appears at `ts`, -1 where it disappears; then
               `holder` is what a plus and its minus have in common
    priority   larger than 0 where a row is urgent; None where no row of the batch is

What can be done with rows follows from these fields alone (see `row_table`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask
from streamjoin.state.row_table import RESERVED_PREFIX, RowTable, beside, numbered, optional, with_columns

__all__ = ["NO_HOLDER", "RESERVED_PREFIX", "Batch", "Indices", "Priorities", "Signs", "with_columns"]

Indices = npt.NDArray[np.int64]

Signs = npt.NDArray[np.int8]

Priorities = npt.NDArray[np.int64]

NO_HOLDER: Final = -1


@dataclass(frozen=True)
class Batch(RowTable):
    """Rows of one input: payload and the arrays that decide about them."""

    group: Indices
    values: tuple[npt.NDArray[Any], ...] = field(default=(), metadata=numbered("value"))
    proof: pa.Table | None = field(default=None, metadata=beside("proof"))
    matchable: Mask | None = field(default=None, metadata=optional(True))
    origin: Indices | None = None
    home: Mask | None = None
    holder: Indices | None = field(default=None, metadata=optional(NO_HOLDER))
    sign: Signs | None = None
    contents: pa.Table | None = field(default=None, metadata=beside("content"))
    priority: Priorities | None = field(default=None, metadata=optional(0))

    @cached_property
    def worked_out(self) -> dict[object, Any]:
        """What has been worked out from these rows, and is needed again as long as they are kept."""
        return {}

    def without_matchable(self) -> Batch:
        """The same rows, once it has been settled that all of them can match."""
        return replace(self, matchable=None)
