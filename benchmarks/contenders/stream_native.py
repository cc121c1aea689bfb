"""Spark's own stream-stream join, with the state store that is asked for; reading alone; and what Spark refuses."""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.contenders.spark_query import CORES, columns_of_result, read, reason, run, serve, settings
from benchmarks.one_shot import Answer
from benchmarks.streams import COLUMNS, REACH

_PROVIDER: Final = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"
# Each with the format that suits it best; only changes of a RocksDB are written at a commit, as in our own session.
STORES: Final = {
    "hdfs": {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER.format("HDFSBacked"),
        "spark.sql.streaming.join.stateFormatVersion": "2",
    },
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER.format("RocksDB"),
        "spark.sql.streaming.join.stateFormatVersion": "4",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}
_CONDITIONS: Final = {
    "equality": "k = k_right",
    "band": f"x_right BETWEEN x - {REACH} AND x + {REACH}",
    "overlap": "lo < hi_right AND lo_right < hi",
    "within": f"pow(x_right - x, 2) + pow(y_right - y, 2) <= {REACH * REACH}",
}


def session(request: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.appName("streamjoin-bench").master(f"local[{CORES}]")
    for name, value in {**settings(request["scratch"]), **STORES[request.get("store", "hdfs")]}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def joined(request: dict[str, Any], frames: list[DataFrame]) -> DataFrame:
    kind = request["kind"]
    left, right = (frame.withWatermark("ts", "0 seconds") for frame in frames)
    right = right.withColumnsRenamed({name: f"{name}_right" for name in COLUMNS[kind]})
    bound = f"INTERVAL {request['bound_seconds']} SECONDS"
    condition = f"{_CONDITIONS[kind]} AND ts_right BETWEEN ts - {bound} AND ts + {bound}"
    return left.join(right, F.expr(condition)).select(*columns_of_result(kind))


def do(request: dict[str, Any]) -> Answer:
    frames = read(session(request), request)
    if request["do"] == "read":
        left, right = frames
        return run(left.unionAll(right), request)
    if request["do"] == "refuse":
        try:
            run(joined(request, frames), request)
        except (AnalysisException, StreamingQueryException) as error:  # said at the call, or by the first micro-batch
            refusal = reason(error)
            if "not supported" not in refusal:
                raise
            return {"refusal": refusal}
        return {"refusal": None}
    return run(joined(request, frames), request)


if __name__ == "__main__":
    serve(do)
