"""What a join to a recall target tells of a micro-batch, beside its target: how late rows were, and whose.

From the counts that decide, which every bucket hears, so that all of them tell the same: to the width of a cell.

    delay   of a row: how far it is behind the largest time stamp that its input had before its micro-batch; 0 when it
            is not behind. Of rows of one cell the smallest one.
    late    rows behind the progress that was in force, of cells that are all behind it: they have joined, with what
            was still kept. How many, of how many classes of keys, and how many of the class that has most of them:
            where one has nearly all, one key is late, and not the stream.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamjoin.algebra.interval import NEVER
from streamjoin.operators.recall.counts import Counts

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
LATE: Final = ("late", "late_classes", "late_most")
# Per input: the names of all figures, the first ones the same in all buckets, the last ones sums over them.
TOLD: Final = ("slack", "kept_for", *(f"delay_{name}" for name in QUANTILES), *LATE)
KEPT: Final = "kept_rows"


def delays(counts: Counts, largest: int) -> dict[str, int]:
    """How late rows were: the smallest delays that so many of them do not exceed.

    >>> from streamjoin.operators.recall.counts import counted
    >>> delays(counted(np.zeros(4, np.int64), np.array([9, 10, 12, 3]), width=1, bits=0), largest=10)
    {'delay_p50': 0, 'delay_p90': 7, 'delay_p99': 7, 'delay_max': 7}
    """
    if largest == NEVER or not len(counts):
        return {}
    behind = np.maximum(0, largest + 1 - (counts.cell + 1) * counts.width)
    order = np.argsort(behind, kind="stable")
    reached = np.cumsum(counts.rows[order])
    at = np.searchsorted(reached, np.ceil(np.array([*QUANTILES.values()]) * reached[-1]))
    return {f"delay_{name}": int(each) for name, each in zip(QUANTILES, behind[order][at], strict=True)}


def late_rows(counts: Counts, progress: int) -> dict[str, int]:
    """Rows that came behind the progress, the number of their classes, and those of the class that has most.

    >>> from streamjoin.operators.recall.counts import counted
    >>> late_rows(counted(np.array([1, 1, 2, 2]), np.array([3, 4, 4, 9]), width=1, bits=8), progress=5)
    {'late': 3, 'late_classes': 2, 'late_most': 2}
    """
    behind = (counts.cell + 1) * counts.width <= progress
    by_class = np.bincount(np.unique(counts.cls[behind], return_inverse=True)[1], counts.rows[behind])
    figures = (int(by_class.sum()), len(by_class), int(by_class.max(initial=0)))
    return dict(zip(LATE, figures, strict=True))
