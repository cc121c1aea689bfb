"""How fast are best-match joins?

growth   up to 1M x 1M rows in three dimensions, in arrays on one thread, five candidates per row at every size
spark    frames on local[2]: the nearest row no farther than a radius, against Spark's `DataFrame.nearestByJoin`
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import growth
from benchmarks.growth import GrowthOutcome
from benchmarks.spark_rivals import Rival

CANDIDATES: Final = 5
SMALLEST: Final = 31_250  # five doublings later a million
QUICK_SMALLEST: Final = 250

# `nearestByJoin` forms all pairs, 144 million here, and sorts them by their left row before it ranks them.
NEAREST: Final = Rival("best", "best_match_in_spark", "nearestByJoin", 12_000, 100.0, at_most=1, per_row=CANDIDATES)


def measure_growth(quick: bool, repetitions: int, folder: Path) -> GrowthOutcome:
    """The operator's times at growing sizes."""
    return growth.measure("best", QUICK_SMALLEST if quick else SMALLEST, repetitions, folder, CANDIDATES)
