"""Streams on Spark, cut in any way and finished, give what the batch gives: a pairwise cover. All of it is `long`."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.spark.labels import bucket_labels, spark_hash
from streamjoin.spark.marks import made_by
from streamjoin.spark.stored.finish import Finishing
from tests.spark.pairwise import Choice, pairwise_cover
from tests.spark.streams import SLACK, Source, counted, random_rows

PARTITIONS = 2  # of every exchange, as the session says: more buckets than that share them
WINDOW = sj.Range("4 seconds")
SHAPES: dict[str, dict[str, Any]] = {
    "keys": {"by": "k"},
    "band": {"where": sj.band("v", below=0.5, above=0.5)},
    "overlap": {"where": sj.overlaps("lo", "hi"), "cell": 2},
    "within": {"where": sj.within("v", "lo", radius=0.8)},
    "theta": {"where": sj.theta("l.v < r.v")},
    "interval": {"by": "k"},
}
NEAR = ("band", "within")  # planned alike: they take turns
FACTORS = {
    "shape": ["keys", "near", "overlap", "theta", "interval"],
    "how": ["inner", "left", "right", "full", "semi", "anti"],
    "emit": ["eager", "ordered"],
    "outer": ["row", "snapshot"],
    "pieces": [1, 3],
    "buckets": [1, 2, 5],
}


def _clash(one: Choice, two: Choice) -> bool:
    return one == ("shape", "interval") and two == ("outer", "snapshot")


def _cover() -> list[dict[str, Any]]:
    """Every kind of join of every shape runs without Spark (test_streaming_plane), and here only all of it."""
    cases = pairwise_cover(FACTORS | {"buckets": [1, 5]}, seed=7, clash=_clash, apart=("shape", "how"))
    turns = itertools.cycle(NEAR)
    for number, case in enumerate(cases):
        case["shape"] = next(turns) if case["shape"] == "near" else case["shape"]
        case["pieces"] = 17 if number == 5 else case["pieces"]  # one in order, of one bucket
    return cases


TOGETHER = ("emit", "buckets")  # cases that differ in nothing else run in one query: starting one takes longest


def _all() -> list[list[dict[str, Any]]]:
    """Every combination, in groups that run together."""
    every = FACTORS | {"shape": list(SHAPES), "pieces": [1, 3, 17]}
    groups: dict[Any, list[dict[str, Any]]] = {}
    for values in itertools.product(*every.values()):
        case = dict(zip(every, values, strict=True))
        if (case["shape"], case["outer"]) != ("interval", "snapshot"):
            alike = tuple(value for name, value in case.items() if name not in TOGETHER)
            groups.setdefault(alike, []).append(case)
    return list(groups.values())


def _name_of_group(group: list[dict[str, Any]]) -> str:
    return "-".join(str(value) for name, value in group[0].items() if name not in TOGETHER)


def _name(case: dict[str, Any]) -> str:
    return "-".join(str(value) for value in case.values())


def joined(frames: list[DataFrame], case: dict[str, Any]) -> DataFrame:
    options = {name: case[name] for name in ("how", "emit", "buckets")} | SHAPES[case["shape"]]
    options["lateness"] = sj.Grace(f"{SLACK} seconds")
    if case["shape"] == "interval":
        return sj.join_interval(*frames, on="ts", lower="-2 seconds", upper="3 seconds", **options)
    return sj.join(frames, time="ts", window=WINDOW, outer=case["outer"], **options)


def check(spark: SparkSession, folder: Path, case: dict[str, Any]) -> None:
    rng, source = random.Random(_name(case)), Source(spark, folder)
    source.add([random_rows(rng, 40), random_rows(rng, 40)], case["pieces"])
    expected = counted(joined(source.frames(streaming=False), case))
    assert expected, "the case itself is wrong: nothing is joined"
    assert source.finished(joined(source.frames(streaming=True), case)) == expected
    check_order(source, [case])


@pytest.mark.parametrize("case", _cover(), ids=_name)
def test_differential_a_finished_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, case: dict[str, Any]
) -> None:
    check(spark, tmp_path, case)


@pytest.mark.long
@pytest.mark.parametrize("group", _all(), ids=_name_of_group)
def test_differential_all_of_it(spark: SparkSession, tmp_path: Path, group: list[dict[str, Any]]) -> None:
    """Several joins of the same rows in one query, each finished by itself."""
    rng, source = random.Random(_name_of_group(group)), Source(spark, tmp_path)
    source.add([random_rows(rng, 40), random_rows(rng, 40)], group[0]["pieces"])
    streams = source.frames(streaming=True)  # one pair for all: Spark then looks for files twice, not twelve times
    frames = {_name(case): joined(streams, case) for case in group}
    calls = {name: str(made_by(frame)) for name, frame in frames.items()}
    query = source.run(reduce(DataFrame.unionAll, (_tagged(frame, name) for name, frame in frames.items())))
    finishing = Finishing.of(spark, str(source.checkpoint))
    rest = counted(reduce(DataFrame.unionAll, (_tagged(finishing.rest(call), name) for name, call in calls.items())))
    expected = counted(joined(source.frames(streaming=False), group[0]))
    assert expected, "the case itself is wrong: nothing is joined"
    for name in frames:
        assert Counter(dict(_of(query, name))) + Counter(dict(_of(rest, name))) == expected, name
    check_order(source, group)


def check_order(source: Source, group: list[dict[str, Any]]) -> None:
    """Results that leave in order do so within a bucket. Where a partition has one bucket, it is in order altogether.

    Where it has more of them, their results of one micro-batch follow each other.
    """
    checked, cases = 0, {_name(case): case for case in group}
    for number, batches in source.partitions().items():
        # No names at all, where a partition had nothing to say.
        names = {row.get("case", _name(group[0])) for rows in batches for row in rows}
        for name in (name for name in names if cases[name]["emit"] == "ordered"):
            buckets = cases[name]["buckets"]
            assert names == {name}, "a partition of the result is one join's"
            together = max(Counter(spark_hash(label) % PARTITIONS for label in bucket_labels(buckets)).values())
            for rows in batches if together > 1 else [list(itertools.chain(*batches))]:
                ends = [_ends(row) for row in rows]
                back = sum(before > after for before, after in itertools.pairwise(ends))
                assert back < together, f"{name}, partition {number}: {ends}"
                checked += len(ends)
    expected = group[0]["pieces"] == 17 and any(case["emit"] == "ordered" for case in group)
    assert checked or not expected, "after so many micro-batches some have left"


def _ends(row: dict[str, Any]) -> tuple[Any, ...]:
    """What ordered results are ordered by: their validity, or the later time of two events."""
    if "valid_from" in row:
        return row["valid_from"], row["valid_to"]
    return (max(time for time in (row["ts"], row.get("ts_right")) if time is not None),)


def _tagged(frame: DataFrame, name: str) -> DataFrame:
    return frame.withColumn("case", F.lit(name))


def _of(rows: Counter[Any], name: str) -> Iterator[tuple[Any, int]]:
    """The rows of one of the joins, as they are without its name."""
    for row, count in rows.items():
        *columns, (_, case) = row
        if case == name:
            yield tuple(columns), count
