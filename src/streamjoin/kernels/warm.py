"""Load every kernel for every kind of array it is called with, from numba's disk cache or by compiling it there.

A process that has done this compiles nothing more; processes forked from it start warm. One that has compiled keeps the
compiler's memory, hundreds of megabytes, and so do those that are forked from it.
"""

from __future__ import annotations

import numpy as np
from numba.core.event import install_recorder

from streamjoin.kernels.aggregation import Reads, Steps, cut_pieces, fold_counts
from streamjoin.kernels.band import band_pairs
from streamjoin.kernels.box import box_pairs
from streamjoin.kernels.box_overlap import box_overlap_pairs
from streamjoin.kernels.cell_pairs import count_pairs, needs_of_pairs
from streamjoin.kernels.cells import (
    classes_of,
    count_cells,
    entries_of,
    extents,
    merge_counts,
    steps_between,
    tally,
)
from streamjoin.kernels.common_groups import rows_of_common_groups
from streamjoin.kernels.coverage import parts_of_validity
from streamjoin.kernels.dominance import rivals, undominated
from streamjoin.kernels.edit_distance import code_points, text_grams
from streamjoin.kernels.exact_sum import fold_sums
from streamjoin.kernels.expiry import expired_mask
from streamjoin.kernels.grid import bucket_of_cells, spread_over_buckets
from streamjoin.kernels.hashing import combine_hashes, hash_bytes, hash_integers, hash_lists
from streamjoin.kernels.heaps import Heaps, fold_heaps
from streamjoin.kernels.long_sums import LongSums
from streamjoin.kernels.merge_sweep import Bounds, Rows, place_of_key, sweep_on
from streamjoin.kernels.multiplicity import multiplicity_sweep
from streamjoin.kernels.neighbours import after, before, successors
from streamjoin.kernels.overlap import overlap_pairs
from streamjoin.kernels.pairs import Indices
from streamjoin.kernels.products import expand_lists, lists_of, sweep_products
from streamjoin.kernels.ring import move_rings, push_rings
from streamjoin.kernels.sets import (
    EDIT,
    JACCARD,
    Lists,
    are_similar,
    order_equal_hashes,
    prefix_lengths,
    similar_pairs,
    smallest_shared_token,
)
from streamjoin.kernels.sorting import _SMALL, merge_order, sort_order
from streamjoin.kernels.staircase import cheapest_step
from streamjoin.kernels.token_index import TokenIndex
from streamjoin.kernels.within import within_pairs


def load_kernels() -> bool:
    """Load all of them. Whether some had to be compiled, because they were not on disk."""
    with install_recorder("numba:compile") as compiled:
        _call_every_kernel()
    return bool(compiled.buffer)


def _call_every_kernel() -> None:
    """Once each, on next to nothing."""
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    for kind in (np.int64, np.float64):
        lo, hi = zero.astype(kind), one.astype(kind)
        list(overlap_pairs((zero, lo, hi, zero, one), (zero, lo, hi, zero, one), timed=True))
        list(band_pairs((zero, lo, zero, one), (zero, lo, zero, one), low=kind(0), high=kind(0), timed=True))
        beside = (zero, lo, hi, zero, one, np.array([[0, 1]]), zero, one)
        list(box_overlap_pairs(beside, beside, timed=True))
        boxed = (zero, zero, lo, np.zeros((1, 1)))
        list(box_pairs(boxed, boxed, far=kind(0), reach=np.zeros(1)))
        merge_order(zero, zero, lo, np.array([0, 1]))
        list(sweep_products([(zero, lo, hi, zero, one)] * 2, timed=True))
        link = np.ones((2, 2), np.bool_)
        bounds = Bounds(link, np.zeros((2, 2), kind), np.ones((2, 2), kind), link, link, np.ones(2, kind))
        here: Rows = (zero, lo, hi, zero, one)
        for some in (None, bounds):
            list(sweep_on([here, here], here, zero, some, (0, 1)))
        place_of_key([zero, lo, zero, one], 0, (zero[0], lo[0], zero[0], one[0]), equal=True)
        list(expand_lists((zero, lo, hi, zero, one), (np.array([0, 1]), lo, hi, zero, one), bounded=True, timed=True))
        sort_order([np.arange(_SMALL).astype(kind)])
    link, fraction = np.ones((2, 2), np.bool_), np.full((2, 2), 0.5)
    whole: Rows = (zero, zero, one, zero, one)
    bounds = Bounds(link, fraction, fraction, link, link, fraction[0])
    list(sweep_on([whole, whole], whole, zero, bounds, (0, 1)))
    axes = np.zeros((1, 2))
    side = (zero, zero, axes, zero, one)
    list(within_pairs(side, side, radius=0.0, metric="euclidean", timed=True))
    lists_of(zero, 1)
    rows_of_common_groups([zero, zero])
    expired_mask(zero, 0)
    before((zero, zero), (zero, zero), strict=True)
    after((zero, zero), (zero, zero), strict=True)
    successors((zero, zero), 0)
    undominated(np.array([0, 1]), np.zeros((1, 1), np.int64), strict=False)
    rivals(np.array([0, 1]))
    cells = np.zeros((1, 1), np.int64)
    bucket_of_cells(cells, 1)
    spread_over_buckets(cells, cells, 1)
    hash_integers(zero)
    entries_of(count_cells(classes_of(zero, 1), zero, extents(zero), 1, 0, (1, 1)), 0)
    tally(classes_of(zero, 1), zero, 1, 1, 1)
    steps_between(zero)
    merge_counts((zero, zero, one), (zero, zero, one))
    count_pairs((zero, zero, one), (zero, zero, one), (1, 1), (1, 1))
    needs_of_pairs((zero, zero, one), (zero, zero, one), (1, 1), (1, 1), 0, zero)
    cheapest_step(np.zeros((2, 1)), np.zeros((2, 1)), 0.0, 0.0, np.ones(2), zero)
    combine_hashes(zero, zero)
    hash_bytes(np.zeros(2, np.int64), np.zeros(0, np.uint8))
    parts_of_validity(zero, one, (zero, zero, one), covered=True)
    rings, pool = tuple(np.zeros(1, np.int64) + size for size in (0, 1, 0, 0)), np.zeros((3, 1), np.int64)
    move_rings(zero, zero, one, rings, pool, pool)
    push_rings(zero, np.zeros((3, 1), np.int64), 1, rings, pool)
    multiplicity_sweep(0, (zero, zero, zero, one), np.zeros((1, 2), np.int64), -one, np.zeros((3, 1), np.int64), 0, 0)
    _load_similarity(zero, one)
    _load_aggregation(zero)


def _load_similarity(zero: Indices, one: Indices) -> None:
    bounds = np.array([0, 1])
    letter = np.frombuffer(b"a", np.uint8)
    order_equal_hashes(zero, zero, bounds, letter, np.zeros(1, np.int64))
    hash_lists(bounds, zero)
    starts, points = code_points(bounds, letter)
    grams, tokens = text_grams(starts, points, 1)
    sets: tuple[int, Lists] = (JACCARD, (bounds, zero, one, bounds, letter))
    for mode, lists in (sets, (EDIT, (grams, tokens, one, starts, points))):
        prefix = prefix_lengths(mode, 1, lists[0])
        index = TokenIndex.build(zero, *lists[:3], prefix)
        side = (zero, zero, one, lists)
        list(similar_pairs(side, side, index, mode=mode, threshold=1, timed=True))
        are_similar(lists, zero, lists, zero, mode=mode, threshold=1)
        smallest_shared_token((*lists[:2], prefix), zero, (*lists[:2], prefix), zero)


def _load_aggregation(zero: Indices) -> None:
    start = np.ones(1, np.int8)
    cut_pieces(zero, zero, start, alive=np.zeros(1, np.int64), opened=np.zeros(1, np.int64))
    steps = Steps(zero, start, Reads(np.ones(1, np.int64), zero))
    fold_counts(steps, np.zeros(1, np.int64))
    sums = LongSums.none(real=True, squared=True)
    sums.grow(1)
    fold_sums(steps, np.ones(1), zero, sums)
    for text in (None, (np.array([0, 1]), np.zeros(1, np.uint8), 1)):
        heaps = Heaps()
        heaps.grow(1)
        fold_heaps(steps, zero, heaps, text)
        heaps.living(text)
