"""A streaming join that keeps much, with a limit of memory or without; and a stage that only hands rows back.

Beside the micro-batches: the anonymous memory of the Python workers while they run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamjoin as sj
from benchmarks.contenders.spark_query import described, digest_columns, serve
from benchmarks.contenders.stream_floor import PACKED, labels, packer, sides_of, to_blob, unpack
from benchmarks.contenders.stream_ours import session
from benchmarks.one_shot import Answer
from benchmarks.spill_streams import FILES, SIDES, Kept
from benchmarks.worker_memory import WorkerMemory
from streamjoin.state.stores.scratch import FOLDER

LOOK_SECONDS = 0.02


def read(spark: SparkSession, stream: Kept, folder: str) -> list[DataFrame]:
    """Both sides, a micro-batch of each per trigger."""
    reader = spark.readStream.schema(stream.schema).option("maxFilesPerTrigger", FILES)
    return [reader.parquet(str(Path(folder) / side)) for side in SIDES]


def joined(stream: Kept, frames: list[DataFrame], memory: int) -> DataFrame:
    """The join of a kind of stream; without a limit for 0."""
    options: dict[str, Any] = {"time": "ts", "window": sj.Range(f"{stream.window} seconds")}
    options |= {"lateness": sj.Grace("0 seconds"), "memory": memory or None}
    if stream.kind == "band":
        return sj.join_band(*frames, on="v", below=0.5, above=0.5, **options)
    if stream.kind == "equality":
        return sj.join(*frames, by="k", **options)
    return sj.join_overlap(*frames, on=("lo", "hi"), cell=64.0, **options)


class HandBack(StatefulProcessor):
    """Keeps nothing; hands back the left rows of a bucket."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.nothing = handle.getValueState("nothing", "n long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        left, _ = sides_of(rows)
        yield pd.DataFrame({"blob": [to_blob(left)]})

    def close(self) -> None:
        pass


def handed_back(spark: SparkSession, stream: Kept, frames: list[DataFrame]) -> DataFrame:
    """All rows through a stage and back, and no join."""
    label = labels(spark)
    left, right = (frame.mapInArrow(packer(side, label, "id"), PACKED) for side, frame in enumerate(frames))
    back = left.unionAll(right).groupBy("label").transformWithStateInPandas(HandBack(), "blob binary", "append", "none")
    return back.mapInArrow(unpack, stream.schema)


def measured(request: dict[str, Any]) -> Answer:
    """Micro-batches, what was kept after each, and memory. The last `uncached` find the files of runs on disk only."""
    stream, memory = Kept(**request["stream"]), request["memory"]
    spark = session(request)
    frames = read(spark, stream, request["folder"])
    frame = handed_back(spark, stream, frames) if request["do"] == "hand back" else joined(stream, frames, memory)
    with WorkerMemory() as watch:
        query = (
            frame.observe("digest", *digest_columns(frame))
            .writeStream.format("noop")
            .option("checkpointLocation", request["checkpoint"])
            .trigger(availableNow=True)
            .start()
        )
        seen = 0
        while not query.awaitTermination(LOOK_SECONDS):  # type: ignore[arg-type] # fractions are fine
            last = query.lastProgress
            if last is not None and last["batchId"] >= seen:
                seen = last["batchId"] + 1
                if memory and seen >= stream.batches - request["uncached"]:
                    put_out(Path(request["scratch"]))
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    kept = [] if request["do"] == "hand back" else [figures(each) for each in progress]
    return {"batches": [described(each) for each in progress], "kept": kept, "memory": watch.series}


def figures(progress: Any) -> dict[str, int]:
    ((_, told),) = sj.from_progress(progress)["joins"].items()
    return {"rows": told["state_rows"], "bytes": told["state_bytes"]}


def put_out(scratch: Path) -> None:
    """Out of the system's cache with the files of runs, as far as nobody looks at them just now."""
    for folder, _, names in os.walk(scratch):
        for name in names if FOLDER in Path(folder).parts else ():
            with suppress(OSError):  # runs come and go
                handle = os.open(Path(folder, name), os.O_RDONLY)
                try:
                    os.fdatasync(handle)  # only what is on disk can be let go
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(handle)


if __name__ == "__main__":
    serve(measured)
