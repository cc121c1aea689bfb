"""Coverage: which parts of a row's validity had a partner, and which had none.

    row        |-----------------------)
    pieces       |----)   |----)             intersections with its partners, sorted by start
                      |-------)
    covered      |-------------)
    uncovered  |-)              |------)

Pieces are the intersections of a row's validity with its partners'. One pass over rows and sorted pieces gives the
maximal parts that are covered, or the maximal parts that are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.kernels.pairs import Indices, compiled, frozen
from streamjoin.kernels.sorting import sort_order


@compiled
def _parts(
    ts: Any,
    te: Any,
    piece_row: Any,
    piece_ts: Any,
    piece_te: Any,
    covered: bool,
    out_row: Any,
    out_ts: Any,
    out_te: Any,
) -> int:
    found, piece = 0, 0
    for row in range(len(ts)):
        reached = ts[row]  # everything before this instant is settled
        while piece < len(piece_row) and piece_row[piece] == row:
            start, end = piece_ts[piece], piece_te[piece]
            piece += 1
            while piece < len(piece_row) and piece_row[piece] == row and piece_ts[piece] <= end:
                end = max(end, piece_te[piece])
                piece += 1
            part_start, part_end = (start, end) if covered else (reached, start)
            if part_start < part_end:
                if out_row is not None:
                    out_row[found], out_ts[found], out_te[found] = row, part_start, part_end
                found += 1
            reached = end
        if not covered and reached < te[row]:
            if out_row is not None:
                out_row[found], out_ts[found], out_te[found] = row, reached, te[row]
            found += 1
    return found


def parts_of_validity(
    ts: Times, te: Times, pieces: tuple[Indices, Times, Times], *, covered: bool
) -> tuple[Indices, Times, Times]:
    """Row numbers and maximal parts of `[ts, te)` that the pieces `(row, from, to)` cover, or that they leave free.

    >>> row, start, end = np.array([0, 0]), np.array([2, 3]), np.array([4, 6])
    >>> rows, starts, ends = parts_of_validity(np.array([0]), np.array([9]), (row, start, end), covered=False)
    >>> list(zip(starts.tolist(), ends.tolist()))
    [(0, 2), (6, 9)]
    """
    order = sort_order(pieces[:2]) if len(pieces[0]) else np.empty(0, np.int64)
    row, start, end = (frozen(column[order]) for column in pieces)
    ts, te = frozen(ts), frozen(te)
    count = _parts(ts, te, row, start, end, covered, None, None, None)
    parts = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    _parts(ts, te, row, start, end, covered, *parts)
    return parts
