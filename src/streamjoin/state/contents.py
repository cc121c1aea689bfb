"""Sets and texts as kernels compare them.

A batch has a column of contents for each similarity, in Arrow, so that it travels and is stored like payload:

    texts       strings, as they are
    sets        lists without duplicates or NULLs, in the order of (hash, value); of bytes or of integers

From that come, once for every run, token lists with 64-bit hashes, and where a run is probed an index of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.similarity import Similar
from streamjoin.kernels import (
    COSINE,
    EDIT,
    JACCARD,
    OVERLAP,
    TokenIndex,
    are_similar,
    code_points,
    hash_bytes,
    hash_integers,
    hash_lists,
    order_equal_hashes,
    prefix_lengths,
    sort_order,
    text_grams,
)
from streamjoin.kernels.sets import Lists
from streamjoin.state.batch import Batch, Indices

MODES: Final = {"jaccard": JACCARD, "cosine": COSINE, "overlap": OVERLAP, "edit": EDIT}


def content_of(predicate: Similar, column: pa.ChunkedArray) -> tuple[pa.Array, Mask]:
    """A column as it is compared, and which of its rows can be similar to anything.

    >>> made, there = content_of(Similar("t", "t", "jaccard", 0.5), pa.chunked_array([[[2, 2, None], [], None]]))
    >>> made.to_pylist(), there.tolist()
    ([[2], [], []], [True, False, False])
    """
    array = _in_one(column)
    if predicate.measure == "edit":
        return array.cast(pa.string()).fill_null(""), pc.is_valid(array).to_numpy(zero_copy_only=False)
    made = _as_sets(array)
    return made, np.diff(made.offsets.to_numpy()) >= (predicate.threshold if predicate.measure == "overlap" else 1)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _as_sets(array: pa.Array) -> pa.Array:
    """Lists without duplicates and NULLs, in the order of (hash, value)."""
    lists = array.cast(pa.list_(pa.int64() if pa.types.is_integer(array.type.value_type) else pa.binary()))
    lists = pc.fill_null(lists, pa.scalar([], lists.type)) if lists.null_count else lists
    row = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    values = lists.flatten()
    if values.null_count:
        there = pc.is_valid(values)
        row, values = row[there.to_numpy(zero_copy_only=False)], values.filter(there)
    hashes = token_hashes(values)
    order = sort_order([row, hashes]) if len(row) else np.zeros(0, np.int64)
    first = np.ones(len(row), np.bool_)
    if pa.types.is_integer(values.type):
        first[1:] = (np.diff(row[order]) != 0) | (np.diff(hashes[order]) != 0)
    else:
        first = order_equal_hashes(row, hashes, *_bytes(values), order)
    order = order[first]
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(np.bincount(row[order], minlength=len(array)), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(order)))


def token_hashes(values: pa.Array) -> Indices:
    """64 bits of each value; different integers have different ones."""
    if pa.types.is_integer(values.type):
        return hash_integers(values.to_numpy(zero_copy_only=False))
    return hash_bytes(*_bytes(values))


def _bytes(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Where each of the strings begins, and their bytes."""
    _, offsets, data = values.buffers()
    if offsets is None:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return bounds.astype(np.int64), content


@dataclass(frozen=True)
class TokenLists:
    """The contents of a batch's rows for one predicate, ready for kernels."""

    lists: Lists
    mode: int
    threshold: float

    @cached_property
    def prefix(self) -> Indices:
        """Of each row, how many tokens are in its prefix."""
        return prefix_lengths(self.mode, self.threshold, self.lists[0])

    def index(self, group: Indices) -> TokenIndex:
        """The rows by the tokens of their prefixes."""
        return TokenIndex.build(group, *self.lists[:3], self.prefix)


def token_lists(batch: Batch, position: int, predicate: Similar) -> TokenLists:
    """The contents number `position` of a batch, worked out once."""
    name = ("lists", position, predicate.measure, predicate.threshold)
    if name not in batch.worked_out:
        assert batch.contents is not None
        batch.worked_out[name] = _worked_out(batch.contents.column(position), predicate)
    found: TokenLists = batch.worked_out[name]
    return found


def _worked_out(column: pa.ChunkedArray, predicate: Similar) -> TokenLists:
    array = _in_one(column)
    mode, threshold = MODES[predicate.measure], float(predicate.threshold)
    if mode == EDIT:
        starts, points = code_points(*_bytes(array))
        offsets, tokens = text_grams(starts, points, int(min(threshold, 1 << 30)))
        return TokenLists((offsets, tokens, np.diff(starts), starts, points), mode, threshold)
    offsets = array.offsets.to_numpy().astype(np.int64)
    values = array.values[int(offsets[0]) : int(offsets[-1])]
    offsets = offsets - offsets[0]
    none = np.zeros(0, np.int64)
    proof = (none, none.astype(np.uint8)) if pa.types.is_integer(values.type) else _bytes(values)
    return TokenLists((offsets, token_hashes(values), np.diff(offsets), *proof), mode, threshold)


def index_of(batch: Batch, predicate: Similar) -> TokenIndex:
    """An index of a batch by its first contents, made once."""
    name = ("index", predicate.measure, predicate.threshold)
    if name not in batch.worked_out:
        batch.worked_out[name] = token_lists(batch, 0, predicate).index(batch.group)
    found: TokenIndex = batch.worked_out[name]
    return found


def content_hashes(batch: Batch) -> list[Indices]:
    """Of each column of contents, a hash per row: equal contents have equal ones."""
    found = []
    for column in [] if batch.contents is None else batch.contents.columns:
        array = _in_one(column)
        if pa.types.is_list(array.type):
            offsets = array.offsets.to_numpy().astype(np.int64)
            values = array.values[int(offsets[0]) : int(offsets[-1])]
            found.append(hash_lists(offsets - offsets[0], token_hashes(values)))
        else:
            found.append(hash_bytes(*_bytes(array)))
    return found


def are_alike(predicate: Similar, left: tuple[Batch, Indices, int], right: tuple[Batch, Indices, int]) -> Mask:
    """Which of the aligned rows are similar: of each side its batch, its rows, and the place of its contents."""
    (a, i, at), (b, j, beside) = left, right
    one, two = token_lists(a, at, predicate), token_lists(b, beside, predicate)
    return are_similar(one.lists, i, two.lists, j, mode=one.mode, threshold=one.threshold)


@dataclass(frozen=True)
class SimilarTest:
    """A similarity beside another predicate; `position` is the place of its contents in a batch."""

    predicate: Similar
    position: int

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        return are_alike(self.predicate, (a, i, self.position), (b, j, self.position))
