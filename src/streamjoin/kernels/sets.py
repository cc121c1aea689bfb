"""Similarity joins of sets and texts within equal groups, by prefixes, sizes and positions.

    needs    token lists that ascend within each row (see `token_index`), without duplicates; values to prove equal
             hashes, or the code points of texts
    cost     O(tokens of the probing side + candidates), candidates = pairs that share a token of their prefixes, are of
             similar size, and can still share enough behind it

A pair is met at each prefix token that it shares, and taken at the first one, in the order of ranks: whoever comes
again is marked. Then validity, and last the sets themselves, by value: tokens are hashes, and where two of them are
equal the bytes decide.

Quotients are those of doubles, never multiplied out: `shared / union >= 0.8` is asked as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask
from streamjoin.kernels.edit_distance import GRAM, edit_at_most
from streamjoin.kernels.pairs import PAIRS_PER_CHUNK, Indices, Pairs, compiled, frozen, in_chunks
from streamjoin.kernels.token_index import TokenIndex

JACCARD: Final = 0
COSINE: Final = 1
OVERLAP: Final = 2
EDIT: Final = 3

MOST_CHANGES: Final = 1 << 30  # no text is longer

# (offsets, tokens, size, value_starts, values): of texts values are code points, of sets the bytes of each token, none
# where hashes are the values themselves.
Lists = tuple[Indices, Indices, Indices, Indices, npt.NDArray[Any]]


@compiled
def _enough(mode: int, threshold: float, common: int, a: int, b: int) -> bool:
    if mode == JACCARD:
        return bool(common / (a + b - common) >= threshold)
    if mode == COSINE:
        return bool(common / math.sqrt(a * b) >= threshold)
    return bool(common >= threshold)


@compiled
def _least_common(mode: int, threshold: float, a: int, b: int) -> int:
    """The least number of shared tokens with which sets, or texts, of these sizes can be similar."""
    if mode == EDIT:
        return max(a, b) - GRAM + 1 - int(threshold) * GRAM
    if mode == OVERLAP:
        return int(threshold)
    share = threshold / (1 + threshold) * (a + b) if mode == JACCARD else threshold * math.sqrt(a * b)
    least = max(1, int(share))
    while least > 1 and _enough(mode, threshold, least - 1, a, b):
        least -= 1
    while least <= min(a, b) and not _enough(mode, threshold, least, a, b):
        least += 1
    return least


@compiled
def _smallest(mode: int, threshold: float, out: Any) -> None:
    partner = 0
    for size in range(len(out)):
        if mode == EDIT:
            out[size] = max(0, size - int(threshold))
        elif mode == OVERLAP:
            out[size] = int(threshold)
        else:
            # A set of this size and a part of it: the share grows with the part, and falls with the size.
            while size > 0 and (partner == 0 or not _enough(mode, threshold, partner, size, partner)):
                partner += 1
            out[size] = partner


def smallest_partners(mode: int, threshold: float, largest: int) -> Indices:
    """For every size up to the largest, the size of the smallest set, or text, that can be similar to one of it.

    >>> smallest_partners(JACCARD, 0.8, 10).tolist()
    [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    """
    out = np.empty(largest + 1, np.int64)
    _smallest(mode, float(min(threshold, MOST_CHANGES)), out)
    return out


def prefix_lengths(mode: int, threshold: float, offsets: Indices) -> Indices:
    """Of each row, how many of its first tokens, in any order of all tokens, hold one of everyone who is similar.

    >>> prefix_lengths(JACCARD, 0.8, np.array([0, 10, 11])).tolist()
    [3, 1]
    """
    count = np.diff(offsets)
    if mode == EDIT:
        return np.minimum(count, int(min(threshold, MOST_CHANGES)) * GRAM + 1)
    smallest = smallest_partners(mode, threshold, int(count.max(initial=0)))
    return np.where(count > 0, np.maximum(count - smallest[count] + 1, 0), 0)


@compiled
def _compare_values(starts_a: Any, values_a: Any, i: int, starts_b: Any, values_b: Any, j: int) -> int:
    """The order of two tokens with equal hashes: by their bytes, the shorter one first."""
    if len(starts_a) == 0:
        return 0
    long_a, long_b = starts_a[i + 1] - starts_a[i], starts_b[j + 1] - starts_b[j]
    if long_a != long_b:
        return -1 if long_a < long_b else 1
    for step in range(long_a):
        one, two = values_a[starts_a[i] + step], values_b[starts_b[j] + step]
        if one != two:
            return -1 if one < two else 1
    return 0


@compiled
def _order_equal(row: Any, hashes: Any, starts: Any, values: Any, order: Any, first: Any) -> None:
    at = 0
    while at < len(order):
        end = at + 1
        while end < len(order) and row[order[end]] == row[order[at]] and hashes[order[end]] == hashes[order[at]]:
            # Nearly always a token that is there again: then nothing is moved.
            moved, place = order[end], end
            while place > at and _compare_values(starts, values, moved, starts, values, order[place - 1]) < 0:
                order[place] = order[place - 1]
                place -= 1
            order[place] = moved
            end += 1
        first[at] = True
        for place in range(at + 1, end):
            first[place] = _compare_values(starts, values, order[place - 1], starts, values, order[place]) != 0
        at = end


def order_equal_hashes(
    row: Indices, hashes: Indices, starts: Indices, values: npt.NDArray[np.uint8], order: Indices
) -> Mask:
    """Tokens in the order of (row, hash) are brought into that of (row, hash, value), in place; and which of them are
    not the same as the one before.

    >>> order, bounds = np.array([0, 1, 2]), np.array([0, 1, 2, 3])
    >>> same = np.zeros(3, np.int64)
    >>> order_equal_hashes(same, same, bounds, np.frombuffer(b"bab", np.uint8), order).tolist(), order.tolist()
    ([True, True, False], [1, 0, 2])
    """
    first = np.empty(len(order), np.bool_)
    _order_equal(frozen(row), frozen(hashes), frozen(starts), frozen(values), order, first)
    return first


@compiled
def _share(
    offsets_a: Any, tokens_a: Any, starts_a: Any, values_a: Any, i: int,
    offsets_b: Any, tokens_b: Any, starts_b: Any, values_b: Any, j: int, least: int,
) -> bool:  # fmt: skip
    """Whether two rows have at least so many tokens in common, by value."""
    p, a_end = offsets_a[i], offsets_a[i + 1]
    q, b_end = offsets_b[j], offsets_b[j + 1]
    missing = least
    while missing > 0:
        if a_end - p < missing or b_end - q < missing:
            return False
        one, two = tokens_a[p], tokens_b[q]
        if one < two:
            p += 1
        elif two < one:
            q += 1
        else:
            order = _compare_values(starts_a, values_a, p, starts_b, values_b, q)
            if order == 0:
                missing -= 1
            p += order <= 0
            q += order >= 0
    return True


@compiled
def _similar_pair(
    offsets_a: Any, tokens_a: Any, size_a: Any, starts_a: Any, values_a: Any, i: int,
    offsets_b: Any, tokens_b: Any, size_b: Any, starts_b: Any, values_b: Any, j: int,
    mode: int, threshold: float, scratch: Any,
) -> bool:  # fmt: skip
    if mode == EDIT:
        return bool(
            edit_at_most(
                values_a, starts_a[i], starts_a[i + 1], values_b, starts_b[j], starts_b[j + 1], int(threshold), scratch
            )
        )
    if size_a[i] == 0 or size_b[j] == 0:
        return False
    least = _least_common(mode, threshold, size_a[i], size_b[j])
    return bool(_share(offsets_a, tokens_a, starts_a, values_a, i, offsets_b, tokens_b, starts_b, values_b, j, least))


@compiled
def _similar(
    a_group: Any, a_ts: Any, a_te: Any, a_offsets: Any, a_tokens: Any, a_size: Any, a_starts: Any, a_values: Any,
    b_group: Any, b_ts: Any, b_te: Any, b_offsets: Any, b_tokens: Any, b_size: Any, b_starts: Any, b_values: Any,
    ranks: Any, prefix: Any, posted_starts: Any, posted_rows: Any, posted_places: Any, smallest: Any,
    mode: int, threshold: float, timed: bool, i: int, limit: int, out_a: Any, out_b: Any,
) -> tuple[int, bool, int]:  # fmt: skip
    n, found = len(a_group), 0
    seen = np.full(len(b_group), -1, np.int64)
    scratch = np.empty(2 * int(threshold) + 3 if mode == EDIT else 0, np.int64)
    while i < n and found < limit:
        size, count = a_size[i], a_offsets[i + 1] - a_offsets[i]
        for place in range(prefix[i]):
            rank = ranks[a_offsets[i] + place]
            if rank < 0:
                continue
            low, end = posted_starts[rank], posted_starts[rank + 1]
            high = end
            while low < high:  # the first row that is not too small
                middle = (low + high) // 2
                if b_size[posted_rows[middle]] < smallest[size]:
                    low = middle + 1
                else:
                    high = middle
            for at in range(low, end):
                k = posted_rows[at]
                if smallest[b_size[k]] > size:
                    break
                if seen[k] == i:
                    continue
                seen[k] = i
                # This is the first token that they share: what they share besides lies behind it on both sides.
                behind = min(count - place, b_offsets[k + 1] - b_offsets[k] - posted_places[at])
                if behind < _least_common(mode, threshold, size, b_size[k]) or a_group[i] != b_group[k]:
                    continue
                if timed and max(a_ts[i], b_ts[k]) >= min(a_te[i], b_te[k]):
                    continue
                if _similar_pair(
                    a_offsets, a_tokens, a_size, a_starts, a_values, i,
                    b_offsets, b_tokens, b_size, b_starts, b_values, k, mode, threshold, scratch,
                ):  # fmt: skip
                    if out_a is not None:
                        out_a[found] = i
                        out_b[found] = k
                    found += 1
        i += 1
    return found, i >= n, i


def similar_pairs(
    a: tuple[Indices, Indices, Indices, Lists],
    b: tuple[Indices, Indices, Indices, Lists],
    index: TokenIndex,
    *,
    mode: int,
    threshold: float,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, ts, te, lists)` that are similar; `index` is one of the second side.

    >>> zero, one = np.zeros(2, np.int64), np.ones(2, np.int64)
    >>> nothing = np.zeros(0, np.int64)
    >>> lists = (np.array([0, 2, 3]), np.array([5, 6, 6]), np.array([2, 1]), nothing, nothing.astype(np.uint8))
    >>> index = TokenIndex.build(zero, *lists[:3], prefix=prefix_lengths(JACCARD, 0.5, lists[0]))
    >>> side = (zero, zero, one, lists)
    >>> [(i.tolist(), j.tolist()) for i, j in similar_pairs(side, side, index, mode=0, threshold=0.5, timed=True)]
    [([0, 0, 1, 1], [0, 1, 1, 0])]
    """
    threshold = _as_used(mode, threshold, a[3], b[3])
    ranks = index.ranks_of(a[0], a[3][0], a[3][1])
    prefix = prefix_lengths(mode, threshold, a[3][0])
    largest = max(int(side[3][2].max(initial=0)) for side in (a, b))
    smallest = smallest_partners(mode, threshold, largest)
    posted = (index.starts, index.rows, index.places)
    sides = (*a[:3], *a[3], *b[:3], *b[3], ranks, prefix, *posted, smallest, mode, threshold, timed)
    return in_chunks(_similar, sides, (0,), limit)


@compiled
def _are_similar(
    a_offsets: Any, a_tokens: Any, a_size: Any, a_starts: Any, a_values: Any, i: Any,
    b_offsets: Any, b_tokens: Any, b_size: Any, b_starts: Any, b_values: Any, j: Any,
    mode: int, threshold: float, out: Any,
) -> None:  # fmt: skip
    scratch = np.empty(2 * int(threshold) + 3 if mode == EDIT else 0, np.int64)
    for at in range(len(i)):
        out[at] = _similar_pair(
            a_offsets, a_tokens, a_size, a_starts, a_values, i[at],
            b_offsets, b_tokens, b_size, b_starts, b_values, j[at], mode, threshold, scratch,
        )  # fmt: skip


def are_similar(a: Lists, i: Indices, b: Lists, j: Indices, *, mode: int, threshold: float) -> Mask:
    """Which of the pairs `(a[i], b[j])` are similar.

    >>> nothing = np.zeros(0, np.int64)
    >>> lists = (np.array([0, 2, 3]), np.array([5, 6, 6]), np.array([2, 1]), nothing, nothing.astype(np.uint8))
    >>> are_similar(lists, np.array([0, 0]), lists, np.array([0, 1]), mode=JACCARD, threshold=0.9).tolist()
    [True, False]
    """
    out = np.empty(len(i), np.bool_)
    sides: tuple[Any, ...] = tuple(frozen(part) for part in (*a, i, *b, j))
    _are_similar(*(*sides, mode, _as_used(mode, threshold, a, b), out))
    return out


def _as_used(mode: int, threshold: float, a: Lists, b: Lists) -> float:
    """Beyond the longest text every number of changes is the same: no more cells than that are needed."""
    if mode != EDIT:
        return float(threshold)
    return float(min(int(threshold), max(int(side[2].max(initial=0)) for side in (a, b))))


@compiled
def _smallest_shared(
    a_offsets: Any, a_tokens: Any, a_prefix: Any, i: Any, b_offsets: Any, b_tokens: Any, b_prefix: Any, j: Any, out: Any
) -> None:
    for at in range(len(i)):
        p, q = a_offsets[i[at]], b_offsets[j[at]]
        a_end, b_end = p + a_prefix[i[at]], q + b_prefix[j[at]]
        out[at] = 0
        while p < a_end and q < b_end:
            if a_tokens[p] == b_tokens[q]:
                out[at] = a_tokens[p]
                break
            if a_tokens[p] < b_tokens[q]:
                p += 1
            else:
                q += 1


def smallest_shared_token(
    a: tuple[Indices, Indices, Indices], i: Indices, b: tuple[Indices, Indices, Indices], j: Indices
) -> Indices:
    """The smallest token that the prefixes of each pair share; sides are `(offsets, tokens, prefix length)`.

    >>> one = (np.array([0, 3]), np.array([1, 2, 3]), np.array([3]))
    >>> two = (np.array([0, 2]), np.array([2, 3]), np.array([2]))
    >>> smallest_shared_token(one, np.array([0]), two, np.array([0])).tolist()
    [2]
    """
    out = np.empty(len(i), np.int64)
    sides: tuple[Any, ...] = tuple(frozen(part) for part in (*a, i, *b, j))
    _smallest_shared(*(*sides, out))
    return out
