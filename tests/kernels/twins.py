"""A plain twin of every kernel: NumPy over all pairs, or Python's unbounded integers. Slow, short, and obviously right.

Sides are tuples of arrays as the kernels take them. Pairs come as a Counter, because kernels promise no order of pairs.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

Side = tuple[np.ndarray, ...]
Pairs = Counter[tuple[int, int]]

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
CELL_LIMIT = 2**40


# Pairs ---------------------------------------------------------------------------------------------------------------


def counted(chunks: Iterable[tuple[np.ndarray, np.ndarray]]) -> Pairs:
    """All pairs of a kernel's chunks."""
    return Counter(pair for i, j in chunks for pair in zip(i.tolist(), j.tolist(), strict=True))


def _all_pairs(column: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return column[:, None], other[None, :]


def _where(mask: np.ndarray) -> Pairs:
    return Counter(zip(*(index.tolist() for index in np.nonzero(mask)), strict=True))


def _same_group_and_time(a: Side, b: Side, timed: bool) -> np.ndarray:
    one, two = _all_pairs(a[0], b[0])
    mask = one == two
    if timed:
        (a_ts, b_ts), (a_te, b_te) = _all_pairs(a[-2], b[-2]), _all_pairs(a[-1], b[-1])
        mask = mask & (np.maximum(a_ts, b_ts) < np.minimum(a_te, b_te))
    return mask


def overlap(a: Side, b: Side, timed: bool) -> Pairs:
    """Twin of `overlap_pairs` over sides (group, lo, hi, ts, te)."""
    (a_lo, b_lo), (a_hi, b_hi) = _all_pairs(a[1], b[1]), _all_pairs(a[2], b[2])
    return _where(_same_group_and_time(a, b, timed) & (np.maximum(a_lo, b_lo) < np.minimum(a_hi, b_hi)))


def band(a: Side, b: Side, low: float, high: float, low_closed: bool, high_closed: bool, timed: bool) -> Pairs:
    """Twin of `band_pairs` over sides (group, value, ts, te); integers as Python's own, which never wrap around."""
    exact = object if a[1].dtype == np.int64 else np.float64
    one, two = _all_pairs(a[1].astype(exact), b[1].astype(exact))
    with np.errstate(invalid="ignore", over="ignore"):
        gap = two - one
    above = gap >= low if low_closed else gap > low
    below = gap <= high if high_closed else gap < high
    return _where(_same_group_and_time(a, b, timed) & above.astype(bool) & below.astype(bool))


def box(a: Side, b: Side, far: float, reach: np.ndarray) -> Pairs:
    """Sides (group, cell, value, axes): values at most `far` apart, and each axis at most its reach."""
    one, two = _all_pairs(a[0], b[0])
    near = one == two
    values = [[int(v) if a[2].dtype.kind == "i" else float(v) for v in side[2]] for side in (a, b)]
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = [[abs(y - x) <= far for y in values[1]] for x in values[0]]
        near &= np.array(gaps, bool).reshape(near.shape)
        for axis, limit in enumerate(reach):
            x, y = _all_pairs(a[3][:, axis], b[3][:, axis])
            near &= np.abs(y - x) <= limit
    return _where(near)


def within(a: Side, b: Side, radius: float, metric: str, timed: bool) -> Pairs:
    """Twin of `within_pairs` over sides (group, cell, axes, ts, te); cells are not looked at."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(b[2][None, :, :] - a[2][:, None, :])
        near = (gaps <= radius).all(axis=2)
        if metric == "euclidean":
            near &= sum(gaps[:, :, axis] * gaps[:, :, axis] for axis in range(gaps.shape[2])) <= radius * radius
        if metric == "manhattan":
            near &= sum(gaps[:, :, axis] for axis in range(gaps.shape[2])) <= radius
    return _where(_same_group_and_time(a, b, timed) & near)


# Orders and expiry ---------------------------------------------------------------------------------------------------


def sort_order(columns: Sequence[np.ndarray]) -> list[int]:
    """Twin of `sort_order`: Python's sort is stable, and compares -0.0 and 0.0 as equal."""
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return sorted(range(len(rows)), key=rows.__getitem__)


def merge_order(group: np.ndarray, cell: np.ndarray, value: np.ndarray) -> list[int]:
    """Twin of `merge_order`: sorting everything anew, stably, gives the same as merging sorted runs."""
    return sort_order([group, cell, value])


def expired_mask(until: np.ndarray, progress: int) -> tuple[list[bool], int]:
    """Twin of `expired_mask`."""
    alive = [int(end) > progress for end in until]
    return alive, alive.count(False)


# Hashes --------------------------------------------------------------------------------------------------------------


def mix(value: int) -> int:
    """Twin of `mix`: the finaliser of splitmix64."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


def signed(word: int) -> int:
    """64 bits read as an int64."""
    return word - 2**64 if word >= 2**63 else word


def hash_integer(value: int) -> int:
    """Twin of `hash_integers`, for one."""
    return signed(mix((value + GOLDEN) & WORD))


def hash_bytes(text: bytes) -> int:
    """Twin of `hash_bytes`, for one."""
    state = mix((len(text) + GOLDEN) & WORD)
    for start in range(0, len(text), 8):
        state = (mix(state ^ int.from_bytes(text[start : start + 8], "big")) + GOLDEN) & WORD
    return signed(mix(state))


def combine_hashes(first: int, second: int) -> int:
    """Twin of `combine_hashes`, for one."""
    return signed(mix((mix(first & WORD) + second) & WORD))


# The grid ------------------------------------------------------------------------------------------------------------


def cell_of(value: float, width: float) -> int:
    """Twin of `cells_of`, for one."""
    quotient = value / width
    if math.isinf(quotient):
        return CELL_LIMIT if quotient > 0 else -CELL_LIMIT
    return max(-CELL_LIMIT, min(CELL_LIMIT, math.floor(quotient)))


def bucket_of_cell(cell: Sequence[int], buckets: int) -> int:
    """Twin of `bucket_of_cells`, for one."""
    state = 0
    for coordinate in cell:
        state = mix((state + coordinate) & WORD)
    return state % buckets


def spread_over_buckets(low: np.ndarray, high: np.ndarray, buckets: int) -> Counter[tuple[int, int]]:
    """Twin of `spread_over_buckets` for boxes small enough to be counted cell by cell."""
    placed = set()
    for row, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        ranges = [range(one, two + 1) for one, two in zip(first, last, strict=True)]
        if math.prod(len(cells) for cells in ranges) > 16 * buckets:
            placed |= {(row, bucket) for bucket in range(buckets)}
        else:
            placed |= {(row, bucket_of_cell(cell, buckets)) for cell in itertools.product(*ranges)}
    return Counter(placed)


# Coverage ------------------------------------------------------------------------------------------------------------


def parts_of_validity(
    ts: np.ndarray, te: np.ndarray, pieces: tuple[np.ndarray, np.ndarray, np.ndarray], covered: bool
) -> list[tuple[int, int, int]]:
    """Twin of `parts_of_validity`, tick by tick."""
    parts = []
    for row, (start, end) in enumerate(zip(ts.tolist(), te.tolist(), strict=True)):
        mine = [(a, b) for r, a, b in zip(*(column.tolist() for column in pieces), strict=True) if r == row]
        ticks = [t for t in range(start, end) if any(a <= t < b for a, b in mine) == covered]
        for tick in ticks:
            if parts and parts[-1][0] == row and parts[-1][2] == tick:
                parts[-1] = (row, parts[-1][1], tick + 1)
            else:
                parts.append((row, tick, tick + 1))
    return parts
