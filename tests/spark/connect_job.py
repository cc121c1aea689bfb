"""The same calls on a classic session and through Spark Connect; `test_connect.py` runs this in a process of its own.

    python -m tests.spark.connect_job calls INPUTS FOLDER     what the calls told
    python -m tests.spark.connect_job streams INPUTS FOLDER   what streams gave, through every function

Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

import streamjoin as sj
from streamjoin.errors import StreamjoinError
from tests.deployments import suite
from tests.spark.conditions import differing
from tests.spark.every_name import streamed, tried

T = TypeVar("T")

# Of the server, which `sj.session` starts; whatever a query needs besides is its business.
SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
LIKED = ("spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
SCHEMA = "id long, k long, ts long"


def write_inputs(spark: SparkSession, folder: Path) -> None:
    """Three files of each side."""
    for side, shift in enumerate((0, 2)):
        rows = spark.range(60).selectExpr("id", "id % 3 AS k", f"id + {shift} AS ts")
        rows.repartition(3, "ts").write.parquet(str(folder / str(side)))


def told(spark: SparkSession, folder: Path, scratch: Path) -> dict[str, Any]:
    """What the calls give and say. The inputs lie in `folder`, what is written goes into `scratch`."""

    def frames(streaming: bool) -> list[DataFrame]:
        reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
        return [reader.schema(SCHEMA).parquet(str(folder / side)) for side in "01"]

    def joined(stream: bool, **known: Any) -> DataFrame:
        options: dict[str, Any] = {"time": "ts", "window": sj.Range(4), "by": "k", "how": "left", "emit": "ordered"}
        return sj.join(frames(stream), **options, buckets=2, lateness=sj.Grace(100), **known)

    def priced(one: DataFrame, two: DataFrame, **known: Any) -> DataFrame:
        return sj.join_asof(one, two, on="ts", by="k", tolerance=3, buckets=2, **known)

    def start(frame: DataFrame) -> None:
        frame.writeStream.format("noop").start()

    def unasked(call: Callable[[], T]) -> T:
        """The result of a call that may ask Spark nothing."""
        if hasattr(spark, "_jvm"):
            return call()
        client: Any = spark.client
        try:
            client._analyze = None
            return call()
        finally:
            del client._analyze

    def refused(call: Any) -> str:
        try:
            call()
        except (StreamjoinError, AnalysisException) as error:
            return f"{type(error).__name__}: {error}"
        return "taken"

    stream, batch = joined(True), joined(False)
    collated = [frame.selectExpr("collate(cast(k AS string), 'UTF8_LCASE') AS k", "ts") for frame in frames(False)]
    one, two = frames(False)
    schema = StructType([StructField(name, LongType()) for name in ("id", "k", "ts")])
    return {
        "suite": suite(spark, scratch),
        "every name": tried(spark, scratch / "names"),
        "explain": [sj.explain(stream), sj.explain(batch)],
        "asof": _rows(priced(one, two)),
        "differing conditions": [] if hasattr(spark, "_jvm") else differing(spark),  # there: `test_conditions`
        "condition": _rows(sj.join(one, two, by="k", where=one.id < two.id)),
        "condition of another frame": refused(lambda: sj.join(one, two, where=one.where("id > 3").id < two.id)),
        "condition of a function": refused(lambda: sj.join(one, two, where=F.udf(bool, "boolean")(one.id))),
        "unasked": _rows(unasked(lambda: priced(*frames(False), schemas=schema, streaming=False))),
        "unasked stream": unasked(lambda: sj.output_delay(joined(True, schemas=schema, streaming=True))),
        "a stream called none": refused(lambda: start(priced(*frames(True), schemas=schema, streaming=False))),
        "collated": refused(lambda: sj.join(collated, by="k").schema),
        "finish elsewhere": None
        if hasattr(spark, "_jvm")
        else refused(lambda: sj.finish("s3a://nowhere/checkpoint", spark)),
        "of computed columns": sj.explain(joined(False).filter("k > 0").selectExpr("k + 1 AS w")),
    }


def _rows(frame: DataFrame) -> list[list[object]]:
    return sorted([list(row) for row in frame.collect()], key=str)


def of_a_server_that_runs(spark: SparkSession) -> list[str | None]:
    """What `sj.session()` sets in a session of a server that somebody else has started, and set nothing."""
    for name in LIKED:
        spark.conf.unset(name)
    assert int(spark.conf.get(LIKED[1]) or 0) == 200, "Spark's default"
    os.environ["SPARK_REMOTE"] = "sc://localhost"
    with ThreadPoolExecutor(1) as elsewhere:  # where no session is active
        assert elsewhere.submit(sj.session).result() is spark
    return [spark.conf.get(name) for name in LIKED]


def main(what: str, folder: Path, scratch: Path) -> None:
    os.environ["SPARK_REMOTE"] = "local[2]"
    spark = sj.session(**{name.replace(".", "__"): value for name, value in SETTINGS.items()})
    assert not hasattr(spark, "_jvm"), "this is no Connect session"
    if what == "streams":
        print(json.dumps(streamed(spark, scratch)))
        return
    chosen = [spark.conf.get(name) for name in LIKED]
    settings = {"settings": [chosen, of_a_server_that_runs(spark)]}
    print(json.dumps(told(spark, folder, scratch) | settings))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
