"""Every public name in a call, on whatever session it is given; `test_connect` compares what two sessions give.

A case says which names it is about, and is handed the package by somebody who notes which names were asked for: so a
name is among those that were tried only if it was.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as package
from streamjoin import errors
from tests.deployments import rows_of, steady
from tests.spark.options import FUNCTIONS, GRACE
from tests.spark.streams import SLACK, Source, random_rows, row

Results = dict[str, Any]
Call = Callable[[Any, DataFrame, DataFrame], DataFrame]

_OURS: Final = re.compile(r"streamjoin\.errors\.(\w+Error: [^\n]*)")
_TOGETHER: Final = 4  # streams whose results are written by one query


class Package:
    """The package, and the names that were asked of it."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(package, name)


def _timed(sj: Any, **more: Any) -> dict[str, Any]:
    return {"time": "ts", "window": sj.Range("5 seconds"), "buckets": 2, **more}


def _merged(sj: Any, merge: Any) -> dict[str, Any]:
    return _timed(sj, by="k", algorithm="tpmj", emit="ordered", merge=merge)


def _valid(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id", "ts AS since", "ts + INTERVAL 3 SECONDS AS until")


def _words(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id", "array(k, id % 5, 7) AS words", "ts")


def _keys(frame: DataFrame) -> DataFrame:
    return frame.select("k", "ts")


def _found(sj: Any, one: DataFrame, two: DataFrame) -> DataFrame:
    exact = sj.join(one, two, **_timed(sj, by="k"))
    return sj.true_recall(exact.filter("id % 3 > 0"), exact, time="valid_from", period="10 seconds")  # type: ignore[no-any-return]


# Tables: what is given, by the names that it is about.
TABLES: Final[Mapping[tuple[str, ...], Call]] = {
    ("join", "Range", "equals", "band"): lambda sj, a, b: sj.join(
        a, b, **_timed(sj, where=sj.equals("k") & sj.band("v", below=1, above=1))
    ),
    ("Fixed", "overlaps"): lambda sj, a, b: sj.join(
        [a, b, a], time="ts", window=sj.Fixed("4 seconds"), by="k", where=sj.overlaps("lo", "hi")
    ),
    ("Rows", "within"): lambda sj, a, b: sj.join(
        a, b, time="ts", window=sj.Rows(3), where=sj.within(("v", "lo"), radius=1.0)
    ),
    ("Now", "theta"): lambda sj, a, b: sj.join(
        a, b, time="ts", window=sj.Now(), how="left", where=sj.theta("l.v <= r.v")
    ),
    ("Unbounded", "similar"): lambda sj, a, b: sj.join(
        _words(a), _words(b), time="ts", window=sj.Unbounded(), where=sj.similar("words", jaccard=0.6)
    ),
    ("Validity",): lambda sj, a, b: sj.join(_valid(a), _valid(b), window=sj.Validity("since", "until")),
    ("Adaptive",): lambda sj, a, b: sj.join(a, b, **_merged(sj, sj.Adaptive())),
    ("Greedy",): lambda sj, a, b: sj.join(a, b, **_merged(sj, sj.Greedy())),
    ("MaxFanIn",): lambda sj, a, b: sj.join(a, b, **_merged(sj, sj.MaxFanIn())),
    ("join_interval",): lambda sj, a, b: sj.join_interval(a, b, on="ts", by="k", lower="0 s", upper="5 s", how="full"),
    ("join_band",): lambda sj, a, b: sj.join_band(a, b, on="v", below=1, above=0.5, by="k"),
    ("join_overlap",): lambda sj, a, b: sj.join_overlap(_valid(a), _valid(b), on=("since", "until")),
    ("join_within",): lambda sj, a, b: sj.join_within(a, b, on=("v", "lo"), radius=0.5, by="k"),
    ("join_asof",): lambda sj, a, b: sj.join_asof(a, b, on="ts", by="k", tolerance="9 s"),
    ("join_best_match",): lambda sj, a, b: sj.join_best_match(a, b, on={"ts": "5 s", "v": 0.5}),
    ("join_nearest",): lambda sj, a, b: sj.join_nearest(a, b, on=("v", "lo"), within=1.0, k=2, by="k"),
    ("aggregate",): lambda sj, a, _: sj.aggregate(a, {"n": "count", "most": ("max", "v")}, by="k", **_timed(sj)),
    ("distinct",): lambda sj, a, _: sj.distinct(_keys(a), **_timed(sj)),
    ("union",): lambda sj, a, b: sj.union(_keys(a), _keys(b), all=False, **_timed(sj)),
    ("except_",): lambda sj, a, b: sj.except_(_keys(a), _keys(b), **_timed(sj)),
    ("intersect",): lambda sj, a, b: sj.intersect(_keys(a), _keys(b), **_timed(sj)),
    ("reorder",): lambda sj, a, _: sj.reorder(a, time="ts"),
    ("cql",): lambda sj, a, b: sj.cql(
        a.sparkSession,
        "SELECT R.k, COUNT(*) AS n FROM R [RANGE :size] JOIN S [ROWS 3] ON R.k = S.k GROUP BY R.k",
        args={"size": "5 seconds"}, R=a, S=b, buckets=2,
    ),
    ("prioritise", "lanes"): lambda sj, a, b: sj.join(
        sj.lanes(urgent=sj.prioritise(a, {"v > 5": 7}), normal=sj.prioritise(b, {"k = 1": 2})), b,
        **_timed(sj, by="k", priority=["priority", None]),
    ),
    ("deprioritise",): lambda sj, a, _: sj.deprioritise(sj.prioritise(a, {"v > 5": 7}), time="ts"),
    ("true_recall",): _found,
}  # fmt: skip

# Streams: all of them in one query.
STREAMS: Final[Mapping[tuple[str, ...], Call]] = {
    ("join_interval",): lambda sj, a, b: sj.join_interval(
        a,
        b,
        on="ts",
        by="k",
        lower="0 s",
        upper="9 s",
        lateness=GRACE,
        buckets=2,
        where=(a.id < b.id) | (F.col("l.v") > 0.5),
    ),
    ("MaxDelay",): lambda sj, a, b: sj.join_asof(a, b, on="ts", by="k", lateness=sj.MaxDelay(), buckets=2),
    ("Recall",): lambda sj, a, b: sj.join(a, b, **_timed(sj, by="k", lateness=sj.Recall(0.9))),
    ("arrival",): lambda sj, a, b: sj.join(a, b, time=sj.arrival(), window=sj.Range("1 day"), by="k", buckets=2).select(
        "id", "id_right"
    ),
}


class Tried:
    """What was tried on a session, and which names were in it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.names, self.results = spark, set[str](), Results()
        self.source, rng = Source(spark, folder), random.Random(5)
        sides = [random_rows(rng, 24) for _ in (0, 1)]
        for begin, end in ((0, 4), (4, 10), (10, 24)):  # of different sizes
            self.source.add([rows[begin:end] for rows in sides])

    def case(self, names: tuple[str, ...], call: Callable[[Any], Any]) -> Any:
        """What a call gives, a frame or anything else. It has to ask for these names."""
        sj = Package()
        given = call(sj)
        given = rows_of(given) if hasattr(given, "collect") else json.loads(json.dumps(given, default=str))
        assert set(names) <= sj.asked, f"{names} are not all in this case"
        self.names |= set(names)
        self.results.setdefault(", ".join(names), []).append(given)
        return given

    def refused(self, name: str, call: Callable[[Any], Any]) -> None:
        """What a call says that is refused with an error of this name: at once, or by a worker."""

        def saying(sj: Any) -> str:
            try:
                call(sj)
            except getattr(sj, name) as error:
                return f"{type(error).__name__}: {error}"
            except PySparkException as error:
                return str((_OURS.findall(str(error)) or [error])[-1])
            return "taken"

        kind, _, told = self.case((name,), saying).partition(": ")
        assert issubclass(getattr(errors, kind, object), getattr(package, name)), f"{kind}: {told}"

    def started(self, frame: DataFrame, folder: str) -> Any:
        """A query over what is there, its output and checkpoint in a folder of this name."""
        place = self.source.folder / folder
        writer = frame.writeStream.format("parquet").option("path", str(place / "out"))
        return writer.option("checkpointLocation", str(place / "state")).trigger(availableNow=True).start()

    def written(self, frames: Mapping[str, DataFrame], folder: str) -> list[list[Any]]:
        """What one query has written of several streams: rows as text, with the name of the stream."""
        texts = [frame.select(F.lit(name).alias("of"), F.to_json(F.struct("*"))) for name, frame in frames.items()]
        first, *others = texts
        for other in others:
            first = first.unionAll(other)
        self.started(first, folder).awaitTermination()
        return rows_of(self.spark.read.parquet(str(self.source.folder / folder / "out")))


def tried(spark: SparkSession, folder: Path) -> Results:
    """What every public name gives on a session; and under "names" which those were."""
    on = Tried(spark, folder)
    through_tables(on)
    through_streams(on)
    through_a_query(on)
    return {**on.results, "names": sorted(on.names)}


def through_tables(on: Tried) -> None:
    """Every function over tables, and what is refused there."""
    one, two = on.source.frames(streaming=False)
    for names, call in TABLES.items():
        assert on.case(names, lambda sj, call=call: call(sj, one, two)), f"{names} find nothing"
    timed = _timed(package)
    without = one.withColumn("ts", F.when(one.id != 3, one.ts))
    on.refused("CallError", lambda sj: sj.join(one, two, by="k", how="sideways"))
    on.refused("UnknownColumnError", lambda sj: sj.join(one, two, by="key"))
    on.refused("UnsupportedError", lambda sj: sj.cql(on.spark, "SELECT * FROM R [NOW]", R=one, algorithm="tpmj"))
    on.refused("StreamjoinError", lambda sj: sj.join(one, one.toPandas(), by="k"))
    on.refused("InvalidRowError", lambda sj: sj.join(without, two, **timed).collect())
    on.refused("EvaluationError", lambda sj: sj.join(one, two, how="left", where="1 / (l.k - l.k) > r.k").collect())


def through_streams(on: Tried) -> None:
    """Streams whose lateness is not said in advance, or whose time is that of their arrival."""
    one, two = on.source.frames(streaming=True)
    frames: dict[str, DataFrame] = {}
    for names, call in STREAMS.items():
        on.case((*names, "explain"), lambda sj, call=call, names=names: _kept(sj, frames, names, call(sj, one, two)))
    on.results["streams"] = on.written(frames, "streams")
    assert {of for of, _ in on.results["streams"]} == set(frames)
    # That its rows may be urgent is known of a frame, and a call that does not say so is refused.
    for ranked in (package.prioritise(one, {"v > 5": 7}), package.lanes(urgent=one, normal=two)):
        on.refused("CallError", lambda sj, ranked=ranked: sj.join(ranked, two, **_timed(sj, by="k", lateness=GRACE)))


def _kept(sj: Any, frames: dict[str, DataFrame], names: tuple[str, ...], frame: DataFrame) -> str:
    frames[", ".join(names)] = frame
    return str(sj.explain(frame))


def through_a_query(on: Tried) -> None:
    """One query from its begin to its end: what is said of it, and what it says that goes on otherwise."""
    one, two = on.source.frames(streaming=True)

    def joined(sj: Any, seconds: int) -> DataFrame:
        held = {"how": "left", "emit": "ordered", "late": "fail", "lateness": sj.Grace(f"{SLACK} seconds")}
        return sj.join(one, two, **_timed(sj, by="k", **held) | {"window": sj.Range(f"{seconds} seconds")})  # type: ignore[no-any-return]

    state = on.source.folder / "query" / "state"
    on.case(("checkpoint",), lambda sj: str(sj.checkpoint(state, on.spark)))  # before it is there
    on.case(("Grace", "output_delay"), lambda sj: sj.output_delay(joined(sj, 5)))
    query = on.started(joined(package, 5), "query")
    on.case(("report",), lambda sj: sj.report(query, spark=on.spark).error)
    query.awaitTermination()
    on.case(("report",), lambda sj: sj.report(query, spark=on.spark).figures()["rows_in"])
    on.case(("progress",), lambda sj: steady(sj.progress(query)))
    on.case(("from_progress",), lambda sj: [steady(sj.from_progress(each)) for each in query.recentProgress])
    on.case(("lane_limit",), lambda sj: str(sj.lane_limit(_as_if_timed(query), batch_seconds=3)))
    on.case(("checkpoint",), lambda sj: str(sj.checkpoint(state, on.spark)))
    on.case(("session",), lambda sj: sj.session() is on.spark)
    on.case(("configure",), lambda sj: _configured(sj, on.spark))
    ended = state.with_name("ended")
    shutil.copytree(state, ended)
    assert on.case(("finish",), lambda sj: sj.finish(ended, on.spark)), "nothing was held"
    on.source.add([[row(90, 1, 0)], [row(91, 1, 0)]])  # long after their time
    on.refused("SnapshotError", lambda sj: on.started(joined(sj, 7), "query").awaitTermination())
    on.refused("LateRowError", lambda sj: on.started(joined(sj, 5), "query").awaitTermination())


def _as_if_timed(query: Any) -> Any:
    """A query's own reports, as if its micro-batches had taken what no machine can change."""
    took = [{"addBatch": 1, "triggerExecution": 500 + 100 * number**2} for number, _ in enumerate(query.recentProgress)]
    timed = [{**each, "durationMs": time} for each, time in zip(query.recentProgress, took, strict=True)]
    return SimpleNamespace(recentProgress=timed)


def _configured(sj: Any, spark: SparkSession) -> list[Any]:
    """Which settings of a session `sj.configure` makes, and whether the session that runs is the one that it gives."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]") if hasattr(spark, "_jvm") else builder.remote("local[2]")
    said = dict(sj.configure(builder)._options)
    of_sessions = {name: value for name, value in said.items() if name.startswith("spark.sql.")}
    return [of_sessions, sj.configure(builder).getOrCreate() is spark]


def streamed(spark: SparkSession, folder: Path) -> Results:
    """What streams give through every function that takes one, some of them in each query."""
    on, results = Tried(spark, folder), Results()
    on.source.close()  # so that everything leaves
    frames = {
        name: function.call(spark, on.source.frames(streaming=True), buckets=2) for name, function in FUNCTIONS.items()
    }
    names = list(frames)
    for begin in range(0, len(names), _TOGETHER):
        some = names[begin : begin + _TOGETHER]
        results["; ".join(some)] = on.written({name: frames[name] for name in some}, f"streams{begin}")
    return results
