"""Joins of more than two frames on Spark: what brute force gives, at once and in a cascade, batch and stream."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.errors import CallError, UnsupportedError

SCHEMA = "id int, ts long, k int, s string, v double, lo double, hi double"
NAMES = ["id", "ts", "k", "s", "v", "lo", "hi"]
TYPES = [pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.float64(), pa.float64()]


def drawn(seed: int, rows: int = 60) -> list[tuple]:
    rng = random.Random(seed)
    found = []
    for number in range(rows):
        lo = rng.randint(0, 20) / 2
        found.append((
            number, number // 2 + rng.randint(0, 3), rng.choice([None, 1, 2, 3]), rng.choice("abc"),
            rng.randint(0, 8) / 2, lo, lo + rng.choice([0.5, 2.0, 4.0]),
        ))  # fmt: skip
    return found


DATA = [drawn(seed) for seed in range(3)]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> list[DataFrame]:
    return [spark.createDataFrame(rows, SCHEMA) for rows in DATA]


def brute(match, window: int = 6) -> Counter:
    """Ids of each tuple that matches while all are valid, and its validity."""
    found: Counter = Counter()
    for a in DATA[0]:
        for b in DATA[1]:
            for c in DATA[2]:
                ts = max(a[1], b[1], c[1])
                te = min(a[1], b[1], c[1]) + window
                if ts < te and match(a, b, c):
                    found[a[0], b[0], c[0], ts, te] += 1
    return found


def counted(frame: DataFrame) -> Counter:
    rows = frame.select("id", "id_2", "id_3", "valid_from", "valid_to").collect()
    return Counter(tuple(row) for row in rows)


def overlap(a: tuple, b: tuple, c: tuple) -> bool:
    return max(a[5], b[5], c[5]) < min(a[6], b[6], c[6])


def mixed(a: tuple, b: tuple, c: tuple) -> bool:
    return a[3] == b[3] and -1 <= c[4] - b[4] <= 0.5


MIXED = sj.equals("s", of=(0, 1)) & sj.band("v", below=1, above=0.5, of=(1, 2))


@pytest.mark.parametrize("nway", ["at once", "cascade"])
def test_oracle_batch(frames: list[DataFrame], nway: str) -> None:
    options = {"time": "ts", "window": sj.Range(6), "buckets": 3, "nway": nway}
    boxes = sj.join(frames, where=sj.overlaps("lo", "hi"), **options)
    assert counted(boxes) == brute(overlap)
    assert boxes.columns[:3] == ["id", "ts", "k"]
    assert boxes.columns[7:9] == ["id_2", "ts_2"]
    assert counted(sj.join(frames, where=MIXED, **options)) == brute(mixed)
    alike = sj.overlaps("lo", "hi", of=(2, 0)) & sj.similar("s", edit=0, of=(1, 2))
    similar = brute(lambda a, b, c: b[3] == c[3] and max(a[5], c[5]) < min(a[6], c[6]))
    assert counted(sj.join(frames, where=alike, **options)) == similar
    sums = "in0.v + in1.v > in2.v" if nway == "cascade" else frames[0].v + F.col("in1.v") > frames[2].v
    keyed = sj.join(frames, by="k", where=sums, **options)
    assert keyed.columns.count("k") == 1
    expected = brute(lambda a, b, c: None is not a[2] == b[2] == c[2] and a[4] + b[4] > c[4])
    assert counted(keyed) == expected


def test_oracle_batch_with_a_cell_and_without_time(frames: list[DataFrame]) -> None:
    boxes = sj.join(
        frames, time="ts", window=sj.Range(6), where=sj.overlaps("lo", "hi"), cell=2.0, buckets=4, emit="ordered"
    )
    assert counted(boxes) == brute(overlap)
    timeless = sj.join(frames, where=MIXED, buckets=4)
    found = Counter(tuple(row) for row in timeless.select("id", "id_2", "id_3").collect())
    expected = Counter((a[0], b[0], c[0]) for a in DATA[0] for b in DATA[1] for c in DATA[2] if mixed(a, b, c))
    assert found == expected


def test_equality_of_two_columns_for_all_is_between_every_two(spark: SparkSession) -> None:
    """A path would not do: 0.a = 1.b and 1.a = 2.b say nothing of 0.a and 2.b."""
    frames = [spark.createDataFrame([row], "a int, b int") for row in ((1, 9), (5, 1), (7, 5))]
    more = [frame.unionAll(spark.createDataFrame([(3, 3)], "a int, b int")) for frame in frames]
    for nway in ("at once", "cascade"):
        assert sj.join(more, where=sj.equals("a", "b"), nway=nway).select("a").collect() == [(3,)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_keys_of_several_types_meet_in_a_common_one(spark: SparkSession, order: tuple[int, ...]) -> None:
    """Whatever their order, by hash: a large integer that is no double is equal to itself alone."""
    large = 2**53
    made = [
        spark.createDataFrame([(1,), (2,), (None,)], "k int").selectExpr("k", "k as a"),
        spark.createDataFrame([(1,), (2,), (large + 1,)], "k long").selectExpr("k", "k as b"),
        spark.createDataFrame([(1,), (3,)], "k int").selectExpr("cast(k AS decimal(12, 1)) AS k", "k as c"),
    ]
    joined = sj.join([made[number] for number in order], where=sj.equals("k"), buckets=3)
    assert [int(row.a) for row in joined.collect()] == [1]
    assert "hash of the equality keys over 3 buckets" in str(sj.explain(joined))
    doubles = spark.createDataFrame([(float(large),)], "k double").selectExpr("k", "k as d")
    exact = spark.createDataFrame([(large,), (large + 1,)], "k long").selectExpr("k", "k as e")
    longs = [made[1], exact, doubles]
    joined = sj.join([longs[number] for number in order], where=sj.equals("k", of=(order.index(0), order.index(1)))
                     & sj.equals("k", of=(order.index(1), order.index(2))), buckets=3)  # fmt: skip
    assert [(row.b, row.e) for row in joined.select("b", "e").collect()] == [(large + 1, large + 1)]


def test_a_common_type_that_tells_more_apart_is_refused(spark: SparkSession) -> None:
    """Without ANSI an int and a float are compared as floats, and 2^24 + 1 is none."""
    kinds, values = ("int", "float", "double"), (2**24 + 1, 2.0**24, 2.0**24)
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frames = [spark.createDataFrame([(value,)], f"k {kind}") for value, kind in zip(values, kinds, strict=True)]
        where = sj.equals("k", of=(0, 1)) & sj.equals("k", of=(1, 2))
        with pytest.raises(sj.CallError, match="int, is compared as float with one column, and as double with all"):
            sj.join(frames, where=where)
        assert len(sj.join(frames, where=where, nway="cascade").collect()) == 1
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_streaming_equals_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Three streams, a mixed predicate over four buckets: rows expire, and the query stops and goes on."""
    folders = [tmp_path / f"in{number}" for number in range(3)]
    streams = []
    for folder in folders:
        folder.mkdir()
        streams.append(spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder)))
    joined = sj.join(streams, time="ts", window=sj.Range(6), where=MIXED, lateness=sj.Grace(3), buckets=4)
    told = []
    for parts in ((0, 1), (2,)):
        for part in parts:
            for folder, rows in zip(folders, DATA, strict=True):
                columns = zip(*rows[part * 20 : part * 20 + 20], strict=True)
                file = folder / f"{part}.parquet"
                pq.write_table(pa.table([pa.array(*each) for each in zip(columns, TYPES, strict=True)], NAMES), file)
                os.utime(file, (part + 1, part + 1))  # streams read files by age
        query = (
            joined.writeStream.format("parquet").option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        told += [figures for each in query.recentProgress for figures in sj.from_progress(each)["joins"].values()]
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == brute(mixed)
    assert sum(figures["late"] for figures in told) == 0
    assert sum(figures["purged"] for figures in told) > 60, "hardly a row has expired"
    (probing,) = sj.progress(query)["joins"].popitem()[1]["probing"]
    # Rows of inputs 0 and 2 are joined with input 1 alone, so that one is asked first; all have asked, and found.
    assert (probing["order"][0], probing["order"][2]) == ([1, 2], [1, 0])
    assert probing["asked"][0][1] >= 20
    assert probing["found"][0][1] > 0


def test_what_is_refused(frames: list[DataFrame]) -> None:
    timed = {"time": "ts", "window": sj.Range(6)}
    with pytest.raises(UnsupportedError, match=r"how='left' of 3 frames at once(?s:.*)sj\.join\(sj\.join\(a, b"):
        sj.join(frames, by="k", how="left", **timed)
    with pytest.raises(CallError, match="of=\\(1, 3\\) names input 3, and there are inputs 0 to 2"):
        sj.join(frames, where=sj.equals("k", of=(1, 3)), **timed)
    with pytest.raises(CallError, match="of takes the numbers of two different inputs"):
        sj.equals("k", of=(1, 1))
    with pytest.raises(CallError, match="nothing joins input 0, 1 and input 2"):
        sj.join(frames, where=sj.equals("k", of=(0, 1)))
    with pytest.raises(CallError, match="of=\\(1, 2\\) in a join of two frames"):
        sj.join(frames[:2], where=sj.equals("k", of=(1, 2)), **timed)
    with pytest.raises(CallError, match="left_by and right_by are for two frames"):
        sj.join(frames, left_by="k", right_by="k", **timed)
    with pytest.raises(CallError, match="nway='cascade' says how more than two"):
        sj.join(frames[:2], by="k", nway="cascade", **timed)
    with pytest.raises(CallError, match=r"several inputs of the join have a column 'v'(?s:.*)in2\.v"):
        sj.join(frames, by="k", where=F.col("v") > 1, **timed)
    with pytest.raises(UnsupportedError, match='a similarity with algorithm="tpmj"'):
        sj.join(frames, by="k", where=sj.similar("s", edit=1), algorithm="tpmj", emit="ordered", **timed)
    with pytest.raises(CallError, match="nothing joins input 0, 1 and input 2"):
        sj.join(frames, where="in0.v < in1.v AND in2.v < 3")
    with pytest.raises(CallError, match="cell says where rows without keys meet, and here they meet by key"):
        sj.join(frames[:2], where=sj.equals("k"), cell=2, **timed)
    with pytest.raises(CallError, match="cell says where rows without keys meet, and here they meet by key"):
        sj.join(frames, where=sj.equals("k"), cell=2, **timed)
    for pairs in (sj.overlaps("lo", "hi", of=(0, 1)), sj.equals("k", of=(0, 1)), MIXED):
        with pytest.raises(CallError, match="no grid lies over what this join compares"):
            sj.join(frames, where=pairs, cell=2, **timed)
    with pytest.raises(CallError, match="no grid lies over what this join compares"):
        sj.join(frames[:2], where=sj.similar("s", edit=1), cell=2)
    with pytest.raises(CallError, match="suffix of a join of 3 frames"):
        sj.join(frames, by="k", suffix="_x", **timed)


def test_a_column_for_all_is_computed_once_for_each_input(frames: list[DataFrame]) -> None:
    """As the same in SQL text: then it is a key, or an interval, that all inputs have."""
    timed = {"time": "ts", "window": sj.Range(6), "buckets": 3}
    for key in ("upper(s)", F.upper("s")):
        assert "hash of the equality keys over 3 buckets" in sj.explain(sj.join(frames, where=sj.equals(key), **timed))
    for ends in (("lo + 0", "hi + 0"), (F.col("lo") + 0, F.col("hi") + 0)):
        assert "grid of cell 2" in sj.explain(sj.join(frames, where=sj.overlaps(*ends), cell=2, **timed))


def test_a_condition_joins_those_whose_columns_it_compares(frames: list[DataFrame]) -> None:
    """Without time, and nothing else: as it does with two frames."""
    few = [frame.where("id < 6") for frame in frames]
    found = sj.join(few, where="in0.v < in1.v AND in1.v < in2.v", buckets=2).select("id", "id_2", "id_3").collect()
    rows = [[row for row in some if row[0] < 6] for some in DATA]
    expected = [(a[0], b[0], c[0]) for a in rows[0] for b in rows[1] for c in rows[2] if a[4] < b[4] < c[4]]
    assert sorted(map(tuple, found)) == sorted(expected)
    assert expected, "the example itself is wrong"


def test_a_query_joins_at_once_what_it_is_told_to(spark: SparkSession, frames: list[DataFrame]) -> None:
    """A chain by different keys is a cascade, unless it is asked for at once; what cannot be is refused."""
    named = dict(zip("RST", frames, strict=True))
    chain = "SELECT R.id FROM R [RANGE 6], S [RANGE 6], T [RANGE 6] WHERE R.k = S.k AND S.s = T.s"
    for nway, at_once in (("auto", False), ("at once", True), ("cascade", False)):
        explained = str(sj.explain(sj.cql(spark, chain, nway=nway, buckets=4, **named)))
        assert ("join of 3 inputs at once" in explained) == at_once, nway
        assert ("cube of 2 x 2 x 1 buckets" in explained) == at_once, nway
    two = "SELECT R.id FROM R [RANGE 6], S [RANGE 6] WHERE R.k = S.k"
    with pytest.raises(CallError, match='nway="at once" says how a chain of inner joins of three streams'):
        sj.cql(spark, two, nway="at once", R=named["R"], S=named["S"])
    with pytest.raises(UnsupportedError, match="of plus and minus tuples: these are joined two by two"):
        sj.cql(spark, chain, nway="at once", method="negative", **named)
    far = chain.replace("S.s = T.s", "distance(R.v, S.v, T.v, T.lo) <= 2")
    with pytest.raises(UnsupportedError, match="compares columns of several streams with another"):
        sj.cql(spark, far, nway="at once", **named)


def test_explain_says_what_joins_whom(frames: list[DataFrame]) -> None:
    joined = sj.join(frames, time="ts", window=sj.Range(6), where=sj.equals("s", of=(0, 1)), buckets=4)
    text = str(sj.explain(joined))
    assert "join of 3 inputs at once" in text
    assert "s of input 0 = s of input 1" in text
    assert "validity alone for input 2" in text
