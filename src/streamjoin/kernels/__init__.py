"""How matches are found: compiled loops over arrays. Sorted arrays in, index pairs out. No names, no Arrow, no Spark.

Every pair kernel has the same shape. It takes two sides sorted by (group, ..., value), a position to start from, and
either nowhere to write (it counts) or two arrays to fill (it fills exactly what it counted). It stops at the first row
boundary where `limit` pairs have been found and returns where to go on, so that a caller never holds more than a chunk
of a large result. The validity test is inside the loop: a pair that fails it is never written down.

Aggregates are folds: they walk over the changes of groups, and write down what they have where it is asked for.
"""

from streamjoin.kernels.aggregation import Cuts, Reads, Steps, cut_pieces, fold_counts
from streamjoin.kernels.band import band_pairs
from streamjoin.kernels.box import MOST_GRID_AXES, box_pairs, packed_cells
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
from streamjoin.kernels.exact_sum import SumsRead, fold_sums
from streamjoin.kernels.expiry import expired_mask
from streamjoin.kernels.grid import NO_CELL_LIMIT, bucket_of_cells, cells_of, spread_over_buckets
from streamjoin.kernels.hashing import combine_hashes, hash_bytes, hash_integers, hash_lists
from streamjoin.kernels.heaps import Heaps, Text, fold_heaps
from streamjoin.kernels.long_sums import LongSums
from streamjoin.kernels.merge_sweep import Bounds, place_of_key, sweep_on
from streamjoin.kernels.multiplicity import OPERATORS, multiplicity_sweep
from streamjoin.kernels.neighbours import after, before, successors
from streamjoin.kernels.overlap import overlap_pairs
from streamjoin.kernels.pairs import PAIRS_PER_CHUNK
from streamjoin.kernels.per_group import renumbered, with_room
from streamjoin.kernels.products import expand_lists, lists_of, sweep_products
from streamjoin.kernels.ring import move_rings, push_rings
from streamjoin.kernels.sets import (
    COSINE,
    EDIT,
    JACCARD,
    OVERLAP,
    are_similar,
    order_equal_hashes,
    prefix_lengths,
    similar_pairs,
    smallest_shared_token,
)
from streamjoin.kernels.sorting import merge_order, order_keys, sort_order
from streamjoin.kernels.staircase import cheapest_step
from streamjoin.kernels.token_index import TokenIndex
from streamjoin.kernels.within import METRICS, within_pairs

__all__ = [
    "COSINE",
    "EDIT",
    "JACCARD",
    "METRICS",
    "MOST_GRID_AXES",
    "NO_CELL_LIMIT",
    "OPERATORS",
    "OVERLAP",
    "PAIRS_PER_CHUNK",
    "Bounds",
    "Cuts",
    "Heaps",
    "LongSums",
    "Reads",
    "Steps",
    "SumsRead",
    "Text",
    "TokenIndex",
    "after",
    "are_similar",
    "band_pairs",
    "before",
    "box_overlap_pairs",
    "box_pairs",
    "bucket_of_cells",
    "cells_of",
    "cheapest_step",
    "classes_of",
    "code_points",
    "combine_hashes",
    "count_cells",
    "count_pairs",
    "cut_pieces",
    "entries_of",
    "expand_lists",
    "expired_mask",
    "extents",
    "fold_counts",
    "fold_heaps",
    "fold_sums",
    "hash_bytes",
    "hash_integers",
    "hash_lists",
    "lists_of",
    "merge_counts",
    "merge_order",
    "move_rings",
    "multiplicity_sweep",
    "needs_of_pairs",
    "order_equal_hashes",
    "order_keys",
    "overlap_pairs",
    "packed_cells",
    "parts_of_validity",
    "place_of_key",
    "prefix_lengths",
    "push_rings",
    "renumbered",
    "rivals",
    "rows_of_common_groups",
    "similar_pairs",
    "smallest_shared_token",
    "sort_order",
    "spread_over_buckets",
    "steps_between",
    "successors",
    "sweep_on",
    "sweep_products",
    "tally",
    "text_grams",
    "undominated",
    "with_room",
    "within_pairs",
]
