"""Law: of a left, full, semi or anti join every left row is in exactly one place: with partners, or alone, never both.

For every way to spread rows over buckets, and every number of them.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

ROWS = 120
SPREAD: dict[str, dict[str, Any]] = {
    "hash": {"where": sj.equals("k")},
    "home": {"where": sj.band("v", below=0.2, above=0.3), "cell": 0.5},
    "reference": {"where": sj.overlaps("v", "w"), "cell": 1.0},
    "reference in time": {"time": "ts", "window": sj.Range(3), "cell": 2},
    "matrix": {"where": sj.theta("l.v < r.v AND l.k = r.k")},
}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Rows with unique ids, in two tasks each. Many keys and values have no partner, some are NULL or NaN."""
    rng = random.Random(11)

    def frame(spread: int) -> DataFrame:
        rows = []
        for number in range(ROWS):
            v = rng.choice([None, float("nan")]) if rng.random() < 0.1 else rng.uniform(0, spread)
            rows.append((
                number,
                rng.choice([None, rng.randint(0, spread)]) if rng.random() < 0.1 else rng.randint(0, spread),
                v,
                None if v is None else v + rng.choice([-1.0, 0.0, 0.1, 2.5]),
                rng.randint(0, 8 * spread),
            ))  # fmt: skip
        return spark.createDataFrame(rows, "id int, k int, v double, w double, ts long").repartition(2)

    return frame(60).cache(), frame(90).cache()


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("spread", SPREAD)
def test_every_row_is_in_exactly_one_place(frames: tuple[DataFrame, DataFrame], spread: str, buckets: int) -> None:
    left, right = frames
    found: dict[str, list[tuple[int | None, int | None]]] = {}
    for how in ("full", "semi", "anti"):
        joined = sj.join([left, right], how=how, buckets=buckets, **SPREAD[spread])
        other = F.col("id_right") if how == "full" else F.lit(None)
        found[how] = [(one, two) for one, two in joined.select("id", other).collect()]

    pairs = Counter(pair for pair in found["full"] if None not in pair)
    assert max(pairs.values()) == 1, "a pair was found twice"
    met, met_right = {one for one, _ in pairs}, {two for _, two in pairs}
    everybody = set(range(ROWS))
    assert met, "the case itself is wrong: nobody met anybody"
    assert met != everybody, "the case itself is wrong: everybody met somebody"

    alone = [(one, None) for one in everybody - met]
    alone_right = [(None, two) for two in everybody - met_right]
    assert Counter(found["full"]) == pairs + Counter(alone) + Counter(alone_right)
    assert Counter(found["semi"]) == Counter((one, None) for one in met)
    assert Counter(found["anti"]) == Counter(alone)


@pytest.mark.parametrize("outer", ["row", "snapshot"])
@pytest.mark.parametrize("spread", ["hash", "matrix", "reference in time"])
def test_every_instant_of_every_row_is_in_exactly_one_place(
    frames: tuple[DataFrame, DataFrame], spread: str, outer: str
) -> None:
    """Semi and anti joins share out the life of the left rows: whole rows, or the parts of their validity."""
    options = {"time": "ts", "window": sj.Range(3), **SPREAD[spread], "outer": outer, "buckets": 5}
    semi, anti = (sj.join(list(frames), how=how, **options) for how in ("semi", "anti"))
    pieces = semi.union(anti).select("id", "valid_from", "valid_to", "ts").collect()
    instants = Counter((row.id, time) for row in pieces for time in range(row.valid_from, row.valid_to))
    assert len({row.id for row in pieces}) == ROWS
    assert set(instants.values()) == {1}
    assert instants.total() == 3 * ROWS
    if outer == "row":
        assert len(pieces) == ROWS
