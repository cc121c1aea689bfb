"""Our equality join over many windows of event time, and a last row that closes them: what the state held, and when."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import streamjoin as sj
from benchmarks.contenders.spark_query import read, serve
from benchmarks.contenders.stream_ours import joined, session
from benchmarks.one_shot import Answer
from benchmarks.streams import EPOCH_US, SIDES


def measured(request: dict[str, Any]) -> Answer:
    for number, side in enumerate(SIDES):
        close(Path(request["folder"]) / side, key=-1 - number)
    frames = read(session(request), request)
    result = joined("equality", frames, f"{request['bound_seconds']} seconds", sj.Grace("0 seconds"))
    writer = result.writeStream.format("noop").option("checkpointLocation", request["checkpoint"])
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return {"batches": [described(progress) for progress in query.recentProgress if progress["numInputRows"]]}


def close(folder: Path, key: int) -> None:
    """One row a year later, in a file that comes last; its key is nobody else's."""
    files = sorted(folder.iterdir())
    schema = pq.read_schema(files[0])
    year_us = 365 * 86_400_000_000
    row = {"ts": EPOCH_US + year_us, "k": key, "v": 0.0, "p": -1}
    last = folder / "closing.parquet"
    pq.write_table(pa.table({name: pa.array([row[name]]).cast(schema.field(name).type) for name in schema.names}), last)
    os.utime(last, (EPOCH_US // 1_000_000 + len(files),) * 2)


def described(progress: Any) -> dict[str, Any]:
    ((_, figures),) = sj.from_progress(progress)["joins"].items()
    return {"rows": figures["rows_in"], **{name: figures[f"state_{name}"] for name in ("runs", "bytes")}} | {
        "kept": figures["state_rows"],
        "purged": figures["purged"],
    }


if __name__ == "__main__":
    serve(measured)
