"""Edit distance of texts: their code points, the q-grams that they must share, and whether they are near enough.

    needs    texts as UTF-8, one after the other, with offsets
    cost     a test of one pair: O((2k + 1) * length), less where the texts agree at their ends or are far apart early

One change spoils at most q grams, so texts of lengths a and b that are k changes apart have at least
`max(a, b) - q + 1 - k * q` grams in common. Where that is not even one, texts are *short*: all of them share a mark
that stands beside their grams, and so meet each other. Equal grams of one text are told apart by how often they came
before, which makes sets of bags.

Only cells of the table that lie at most k beside its diagonal can have a distance of at most k:

              s i t t i n g
          k   1 2 . . . . .         k = 1: a band of three cells
          i   . 1 2 . . . .
          t   . . 1 2 . . .         stops where a whole row is above k
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.hashing import GOLDEN, mix
from streamjoin.kernels.pairs import Indices, compiled, frozen

GRAM: Final = 2  # code points of a gram
_SHORT: Final = np.uint64(0x5B0A7D1E6C4F3829)  # the mark of short texts; grams are numbers below 2**63


@compiled
def _decode(offsets: Any, data: Any, starts: Any, points: Any) -> None:
    found = 0
    for row in range(len(offsets) - 1):
        starts[row] = found
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            lead = np.int32(data[at])
            if lead < 0x80:
                point, more = lead, 0
            elif lead < 0xE0:
                point, more = lead & 0x1F, 1
            elif lead < 0xF0:
                point, more = lead & 0x0F, 2
            else:
                point, more = lead & 0x07, 3
            for step in range(1, more + 1):
                if at + step < end:
                    point = (point << 6) | (np.int32(data[at + step]) & 0x3F)
            points[found] = point
            found += 1
            at += more + 1
    starts[len(offsets) - 1] = found


def code_points(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]) -> tuple[Indices, npt.NDArray[np.int32]]:
    """The code points of UTF-8 texts, and where each text begins among them.

    >>> text = "aé".encode()
    >>> [each.tolist() for each in code_points(np.array([0, 3]), np.frombuffer(text, np.uint8))]
    [[0, 2], [97, 233]]
    """
    starts = np.empty(len(offsets), np.int64)
    points = np.empty(int(offsets[-1] - offsets[0]), np.int32)
    _decode(frozen(offsets), frozen(data), starts, points)
    return starts, points[: starts[-1]].copy()


@compiled
def _grams(starts: Any, points: Any, changes: int, offsets: Any, out: Any) -> None:
    found = 0
    for row in range(len(starts) - 1):
        begin, end = starts[row], starts[row + 1]
        offsets[row] = found
        first = found
        for at in range(begin, end - GRAM + 1):
            out[found] = (np.uint64(points[at]) << np.uint64(21)) | np.uint64(points[at + 1])
            found += 1
        out[first:found] = np.sort(out[first:found])
        # From the end of each row of equals: the n-th of them becomes a token of its own.
        times = np.uint64(0)
        before = np.uint64(0)
        for at in range(first, found):
            gram = out[at]
            times = times + np.uint64(1) if at > first and gram == before else np.uint64(0)
            before = gram
            out[at] = mix((gram | (times << np.uint64(42))) + GOLDEN)
        if end - begin < GRAM + changes * GRAM:
            out[found] = mix(_SHORT)
            found += 1
        out[first:found] = np.sort(out[first:found].view(np.int64)).view(np.uint64)
    offsets[len(starts) - 1] = found


def text_grams(starts: Indices, points: npt.NDArray[np.int32], changes: int) -> tuple[Indices, Indices]:
    """The grams of texts, and the mark of short ones, as ascending hashes; and where those of each text begin.

    >>> starts, points = code_points(np.array([0, 3, 3]), np.frombuffer(b"aaa", np.uint8))
    >>> text_grams(starts, points, 0)[0].tolist()
    [0, 2, 3]
    """
    out = np.empty(len(points) + len(starts), np.uint64)
    offsets = np.empty(len(starts), np.int64)
    _grams(frozen(starts), frozen(points), changes, offsets, out)
    return offsets, out[: offsets[-1]].view(np.int64).copy()


@compiled
def edit_at_most(a: Any, begin: int, end: int, b: Any, start: int, stop: int, most: int, row: Any) -> bool:
    """Whether `a[begin:end]` and `b[start:stop]` are at most `most` changes apart; `row` has room for 2 most + 3."""
    while begin < end and start < stop and a[begin] == b[start]:
        begin += 1
        start += 1
    while begin < end and start < stop and a[end - 1] == b[stop - 1]:
        end -= 1
        stop -= 1
    n, m = end - begin, stop - start
    if abs(n - m) > most:
        return False
    if n == 0 or m == 0:
        return max(n, m) <= most
    # row[d] is the distance in column `i + d - most - 1`, the two outermost cells being out of reach.
    width, far = 2 * most + 3, most + 1
    for d in range(width):
        column = d - far
        row[d] = column if 0 <= column <= most else far
    for i in range(1, n + 1):
        least = far
        for d in range(1, width - 1):
            column = i + d - far
            if column < 0 or column > m:
                row[d] = far
                continue
            # Moving down one row moves the diagonal: what was in d is the cell to the upper left, d + 1 the one above.
            if column == 0:
                best = i
            else:
                best = row[d] + (a[begin + i - 1] != b[start + column - 1])
                best = min(best, row[d - 1] + 1)
                best = min(best, row[d + 1] + 1)
            row[d] = min(best, far)
            least = min(least, row[d])
        row[0] = row[width - 1] = far
        if least > most:
            return False
    return bool(row[m - n + far] <= most)
