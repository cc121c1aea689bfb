"""Four inputs at once through Spark: what a batch costs beyond its kernel, streams against the cascade, and the
document's experiment.

    batch      4 x 1M value intervals: against the kernel on one thread plus the floor, which is the same rows through
               the same exchange to Python, and as many rows back as there are results
    streaming  four streams by key in micro-batches: throughput and state against the cascade of our own joins of two
    document   four inputs of 100,000 elements, value intervals of length 7.5, window 10,000: as many results as brute
               force over many seeds has, the same in a batch and in a stream

On local[2] in two buckets; results end in Spark's own count and checksum, and equal ones come before any ratio.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812
from rich.table import Table

import streamjoin as sj
from benchmarks.contenders import nway_ours
from benchmarks.contenders.spark_query import CORES, digest_columns, digested
from benchmarks.errors import UnequalResultsError
from benchmarks.nway_data import INPUTS, SHIFT, WIDE, make, write
from benchmarks.race import Verdict
from benchmarks.similar import Outcome

QUESTIONS: Final = ("batch", "streaming", "document")
ROWS: Final = 1_000_000
QUICK_ROWS: Final = 5_000
DANGLING: Final = 10
CELL: Final = 1000 * WIDE
WITHIN: Final = 1.5
STREAM_ROWS: Final = 250_000  # of each input in a micro-batch: a million of all, as in `streaming`
MICRO_BATCHES, COLD = 8, 4
STEP, WINDOW = 1_000, 2_000  # of time from one micro-batch to the next, and how long a row is valid
FASTER: Final = 1.5
STATE: Final = 0.5
ELEMENTS, LENGTH, VALID = 100_000, 7.5, 10_000  # of the document
EXPECTED, TOLERANCE = 626_606, 9_000

Say = Callable[[str], None]
Digest = dict[str, int]


def _session() -> Any:
    chosen = {"spark__driver__memory": "6g", "spark__sql__shuffle__partitions": str(CORES)}
    return sj.session("streamjoin-bench", master=f"local[{CORES}]", **chosen)


def _write(table: pa.Table, folder: Path, parts: int = 1) -> Path:
    """Files of equally many rows, one for each micro-batch."""
    folder.mkdir(parents=True)
    for number in range(parts):
        first, last = (table.num_rows * each // parts for each in (number, number + 1))
        file = folder / f"{number:04}.parquet"
        pq.write_table(table.slice(first, last - first), file)
        os.utime(file, (number + 1, number + 1))  # streams read files by age, and some would be equally old
    return folder


# -- a batch -----------------------------------------------------------------------------------------------------------


def measure_batch(quick: bool, repetitions: int, folder: Path, say: Say) -> Outcome:
    """Overlap of four whole inputs, beside its kernel and the floor."""
    rows = QUICK_ROWS if quick else ROWS
    inputs = make("overlap", rows, DANGLING)
    write("overlap", inputs, folder / "arrays")
    kernel = nway_ours.load(folder / "arrays").jobs["pairs"]
    spark = _session()
    frames = []
    for number, columns in enumerate(inputs):
        table = pa.table({f"id{number}": columns["id"], "lo": columns["lo"], "hi": columns["hi"]})
        frame = spark.read.parquet(str(_write(table, folder / f"in{number}"))).repartition(CORES).cache()
        frame.count()
        frames.append(frame)
    ids = [f"id{number}" for number in range(INPUTS)]
    joined = sj.join(frames, where=sj.overlaps("lo", "hi"), cell=CELL, buckets=CORES).select(*ids)
    expected = _digest(_results_of_kernel(spark, kernel(), ids, folder / "kernel"))
    results = expected["results"]
    floor = _floor(frames, ids, results)
    seconds: dict[str, list[float]] = {"kernel": [], "floor": [], "streamjoin": []}
    for repetition in range(1 + repetitions):
        say(f"overlap of four inputs of {rows:,} rows, round {repetition} ...")
        for name, run in (
            ("kernel", kernel),
            ("floor", lambda: _digest(floor)),
            ("streamjoin", lambda: _digest(joined)),
        ):
            started = time.perf_counter()
            found = run()
            if repetition:
                seconds[name].append(time.perf_counter() - started)
            # The floor makes as many rows of nothing.
            if (name == "floor" and found["results"] != results) or (name == "streamjoin" and found != expected):  # type: ignore[index]
                raise UnequalResultsError(f"the kernel has {expected}, {name} {found}")
    outcome = Outcome(f"batch, {INPUTS} x {rows:,} rows, {results:,} results", ("what", "seconds, median"))
    median = {name: statistics.median(each) for name, each in seconds.items()}
    outcome.lines += [(name, f"{each:.2f}") for name, each in median.items()]
    times = median["streamjoin"] / (median["kernel"] + median["floor"])
    text = f"{times:.2f} times the kernel plus the floor"
    outcome.verdicts.append(Verdict("batch, through Spark", times, WITHIN, text, at_most=True))
    return outcome


def _digest(frame: Any) -> Digest:
    return digested(frame.agg(*digest_columns(frame)).first().asDict())


def _results_of_kernel(spark: Any, pairs: Any, ids: Sequence[str], folder: Path) -> Any:
    """What the kernel has found, as a frame: two members are in one number there."""
    low = (1 << SHIFT) - 1
    found = [(v >> SHIFT, v & low, w >> SHIFT, w & low) for v, w in pairs]
    columns = [np.concatenate([each[number] for each in found]) for number in range(INPUTS)]
    return spark.read.parquet(str(_write(pa.table(columns, names=list(ids)), folder)))


def _floor(frames: Sequence[Any], ids: Sequence[str], results: int) -> Any:
    """All rows through an exchange to Python, and as many results back, made of nothing."""
    share = -(-results // CORES)

    def handed_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        for start in range(0, share, 1 << 17):
            some = np.arange(start, min(start + (1 << 17), share))
            yield pa.RecordBatch.from_arrays([pa.array(some)] * len(ids), names=list(ids))

    alike = [frame.withColumnRenamed(own, "id") for frame, own in zip(frames, ids, strict=True)]
    whole = alike[0].unionAll(alike[1]).unionAll(alike[2]).unionAll(alike[3])
    handed = whole.repartition(CORES, F.col("lo")).mapInArrow(handed_back, ", ".join(f"{name} long" for name in ids))
    return handed.limit(results) if share * CORES != results else handed


# -- streams -----------------------------------------------------------------------------------------------------------


def measure_streaming(quick: bool, repetitions: int, folder: Path, say: Say) -> Outcome:
    """Four streams by key, at once and in a cascade, which keeps the results of its lower joins."""
    rows = QUICK_ROWS if quick else STREAM_ROWS
    spark = _session()
    made: list[list[pa.Table]] = [[] for _ in range(INPUTS)]
    for batch in range(MICRO_BATCHES):
        rng = np.random.default_rng(batch)
        for number, columns in enumerate(make("equality", rows, DANGLING)):
            ts = batch * STEP + rng.integers(0, STEP - 100, len(columns["id"]))
            key = columns["key"] + batch * rows
            made[number].append(pa.table({"id": columns["id"], "key": key, "ts": ts}))
    streams = []
    for number, tables in enumerate(made):
        whole = _write(pa.concat_tables(tables), folder / f"in{number}", MICRO_BATCHES)
        streams.append(
            spark.readStream.schema("id long, key long, ts long").option("maxFilesPerTrigger", 1).parquet(str(whole))
        )
    ran = {}
    for nway in ("at once", "cascade"):
        say(f"four streams, micro-batches of {INPUTS} x {rows:,} rows, {nway} ...")
        ran[nway] = _stream(
            sj.join(
                streams, by="key", time="ts", window=sj.Range(WINDOW), lateness=sj.Grace(0), buckets=CORES, nway=nway
            ),
            folder / f"checkpoint {nway}",
        )
    once, cascade = ran["at once"], ran["cascade"]
    if _all(once) != _all(cascade):
        raise UnequalResultsError(f"at once {_all(once)}, the cascade {_all(cascade)}")
    results = _all(once)["results"]
    late = sum(each["late"] for batches in ran.values() for each in batches)
    if late:
        raise UnequalResultsError(f"{late:,} rows were late: the files were not read in their order")
    outcome = Outcome(
        f"streams, {INPUTS} x {rows:,} rows a micro-batch, {results:,} results",
        ("how", "seconds a warm micro-batch, median", "rows a second", "state, MB", "rows kept"),
    )
    figures = {}
    for name, batches in ran.items():
        warm = batches[COLD:]
        seconds = statistics.median(each["seconds"] for each in warm)
        kept, nbytes = (statistics.median(each[what] for each in warm) for what in ("state_rows", "state_bytes"))
        figures[name] = seconds, nbytes
        speed = warm[0]["rows"] / seconds
        outcome.lines.append((name, f"{seconds:.2f}", f"{speed:,.0f}", f"{nbytes / 1e6:.1f}", f"{kept:,.0f}"))
    faster = figures["cascade"][0] / figures["at once"][0]
    share = figures["at once"][1] / figures["cascade"][1]
    outcome.verdicts += [
        Verdict("streams, throughput", faster, FASTER, f"{faster:.2f} times that of the cascade"),
        Verdict("streams, state", share, STATE, f"{share:.2f} of the cascade's", at_most=True),
    ]
    return outcome


def _stream(joined: Any, checkpoint: Path) -> list[dict[str, Any]]:
    """A query until its input is used up: time, state and digest of each micro-batch."""
    query = (
        joined.observe("digest", *digest_columns(joined.select(sorted(joined.columns))))
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = []
    for progress in query.recentProgress:
        if progress["numInputRows"]:
            told = sj.from_progress(progress)
            kept = {name: sum(join[name] for join in told["joins"].values()) for name in ("state_rows", "state_bytes")}
            found = digested(progress["observedMetrics"]["digest"])
            batches.append({
                "rows": progress["numInputRows"], "seconds": told["seconds"], "late": told["late"], **kept, **found,
            })  # fmt: skip
    return batches


def _all(batches: Sequence[Digest]) -> Digest:
    return {
        "results": sum(each["results"] for each in batches),
        "checksum": sum(each["checksum"] for each in batches) % (1 << 64),
    }


# -- the document ------------------------------------------------------------------------------------------------------


def measure_document(quick: bool, repetitions: int, folder: Path, say: Say) -> Outcome:
    """Random permutations, as a batch and as a stream."""
    elements = ELEMENTS // 100 if quick else ELEMENTS
    spark = _session()
    folders = []
    for number in range(INPUTS):
        lo = np.random.default_rng(number).permutation(elements).astype(np.float64)
        table = pa.table({"ts": np.arange(elements), "lo": lo, "hi": lo + LENGTH})
        folders.append(_write(table, folder / f"in{number}", MICRO_BATCHES))
    options: dict[str, Any] = {
        "time": "ts", "window": sj.Range(VALID), "where": sj.overlaps("lo", "hi"), "cell": 1000.0, "buckets": CORES,
    }  # fmt: skip
    say(f"{INPUTS} x {elements:,} elements, as a batch ...")
    whole = sj.join([spark.read.parquet(str(each)) for each in folders], **options)
    batch = _digest(whole.select(sorted(whole.columns)))
    say(f"{INPUTS} x {elements:,} elements, as a stream ...")
    reader = spark.readStream.schema("ts long, lo double, hi double").option("maxFilesPerTrigger", 1)
    streamed = _stream(
        sj.join([reader.parquet(str(each)) for each in folders], lateness=sj.Grace(0), **options), folder / "checkpoint"
    )
    stream = _all(streamed)
    if batch != stream:
        raise UnequalResultsError(f"the batch has {batch}, the stream {stream}")
    outcome = Outcome("the document's experiment", ("elements an input", "results, batch", "results, stream"))
    outcome.lines.append((f"{elements:,}", f"{batch['results']:,}", f"{stream['results']:,}"))
    if not quick:
        off = abs(batch["results"] - EXPECTED)
        text = f"{batch['results']:,} results, {off:,} from {EXPECTED:,}"
        outcome.verdicts.append(Verdict("the document's experiment", off, TOLERANCE, text, at_most=True))
    return outcome


_MEASURE: Final = {"batch": measure_batch, "streaming": measure_streaming, "document": measure_document}


def outcomes(
    progress: AbstractContextManager[Say], asked: Sequence[str], quick: bool, repetitions: int, folder: Path
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave, as soon as it is there."""
    with progress as say:
        for question in (each for each in QUESTIONS if each in asked):
            place = folder / f"spark-{question}"
            found = _MEASURE[question](quick, repetitions, place, say)
            shutil.rmtree(place, ignore_errors=True)
            yield question, found.verdicts, found, found.table()
