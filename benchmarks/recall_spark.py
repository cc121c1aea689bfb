"""`streamjoin bench replay`: streams of every kind through Spark, row for row against the same plan in this process.

Each data set is drawn short, written as files in no order, cut by arrival as `streamjoin run --arrival` does it, and
joined to a recall target by a streaming query: in 2 buckets, the first one in 1 and 5 too. What is written must be what
the plan gives in this process, fed by the same micro-batches.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from benchmarks.disorder import DATA, SECOND, Arriving, Both
from benchmarks.race import Verdict
from benchmarks.tables import new_table
from tests.interpreter import InProcess

SEED: Final = 2026
QUESTIONS: Final = tuple(DATA)
SECONDS: Final = 60
QUICK_SECONDS: Final = 12
MICRO_BATCHES: Final = 16  # about: intervals without rows are left out
TARGET: Final = 0.9
NAMES: Final = ("R", "S")
_TIME: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Replayed:
    """A data set in so many buckets: how many rows leave, and how many of them differ."""

    name: str
    buckets: int
    batches: int
    rows: int
    found: int
    exact: int
    differ: int

    @property
    def verdicts(self) -> list[Verdict]:
        said = f"{self.name}, {self.buckets} buckets"
        return [
            Verdict(f"{said}: rows that differ", self.differ, 0, f"{self.differ:,}", at_most=True),
            # Where nothing is found, nothing is shown.
            Verdict(f"{said}: results", self.found, 1, f"{self.found:,} of {self.exact:,}"),
        ]

    def to_json(self) -> dict[str, Any]:
        """All that was measured."""
        return asdict(self)


def measure(spark: Any, name: str, buckets: int, quick: bool, folder: Path, say: Callable[[str], None]) -> Replayed:
    """A data set through Spark, and in this process."""
    import streamjoin as sj
    from streamjoin.cli.replay import Replay
    from streamjoin.spark.marks import plan_of

    say(f"{name}: {buckets} buckets ...")
    streams = _short(DATA[name].draw(SEED, QUICK_SECONDS if quick else SECONDS))
    tables = [_table(stream) for stream in streams]
    shutil.rmtree(folder, ignore_errors=True)
    for each, table in zip(NAMES, tables, strict=True):
        _write(table, folder / each)
    first = min(int(stream.arrival[0]) for stream in streams)
    interval = max(SECOND, -(-(max(int(stream.arrival[-1]) for stream in streams) - first) // MICRO_BATCHES))
    cut = Replay("came", f"{interval} us").streams(
        spark, {each: spark.read.parquet(str(folder / each)) for each in NAMES},
        {each: folder / each for each in NAMES}, folder / "checkpoint", {},
    )  # fmt: skip
    both: dict[str, Any] = {"by": "k", "time": "ts", "window": sj.Range("2 s"), "buckets": buckets}
    target = sj.Recall(TARGET, period="10 s", interval="1 s")
    joined = sj.join([cut[each] for each in NAMES], lateness=target, **both)
    writer = joined.writeStream.format("parquet").option("path", str(folder / "out")).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()

    plan = plan_of(joined).plan
    running, left, batches = InProcess(plan), [], 0
    for parts in _by_interval(streams, tables, first, interval):
        batches += 1
        left += list(running.micro_batch({each.name: [parts[int(each.name)]] for each in plan.sources}))
    here = _sorted_pairs(pa.concat_tables(left) if left else None)
    there = _sorted_pairs(pq.read_table(folder / "out", columns=["n", "n_right"]))
    exact = sj.join([spark.read.parquet(str(folder / each)) for each in NAMES], **both).count()
    rows = sum(table.num_rows for table in tables)
    return Replayed(name, buckets, batches, rows, len(there), exact, _differ(here, there))


def _short(streams: Both) -> list[Arriving]:
    """The beginning of files that cannot be drawn short."""
    return [Arriving(*(each[:3000] for each in (stream.arrival, stream.ts, stream.key))) for stream in streams]


def _table(stream: Arriving) -> pa.Table:
    columns = {"n": np.arange(len(stream.ts)), "k": stream.key}
    times = {"ts": stream.ts, "came": stream.arrival}
    return pa.table({**columns, **{name: pa.array(each).cast(_TIME) for name, each in times.items()}})


def _write(table: pa.Table, folder: Path) -> None:
    """In files that have nothing to do with arrival."""
    folder.mkdir(parents=True)
    for at in range(3):
        pq.write_table(table.take(np.arange(at, table.num_rows, 3)), folder / f"{at}.parquet")


def _by_interval(
    streams: list[Arriving], tables: list[pa.Table], first: int, interval: int
) -> Iterator[list[pa.Table]]:
    numbers = [(stream.arrival - first) // interval for stream in streams]
    for at in np.unique(np.concatenate(numbers)):
        yield [table.filter(pa.array(number == at)) for table, number in zip(tables, numbers, strict=True)]


def _sorted_pairs(rows: pa.Table | None) -> Any:
    if rows is None or not rows.num_rows:
        return np.zeros((0, 2), np.int64)
    pairs = np.stack([rows[name].to_numpy() for name in ("n", "n_right")], axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _differ(one: Any, two: Any) -> int:
    """Rows that only one of the two has; numbers of rows make each pair one of its own."""
    mine, theirs = ({*map(tuple, each.tolist())} for each in (one, two))
    copies = len(one) - len(mine) + len(two) - len(theirs)
    return len(mine ^ theirs) + copies


def table_of(replayed: Replayed) -> Table:
    """One data set in so many buckets."""
    table = new_table(
        f"{replayed.name} through Spark, seed {SEED}", "buckets", "micro-batches", "rows", "results", "of", "differ"
    )
    counts = (replayed.batches, replayed.rows, replayed.found, replayed.exact, replayed.differ)
    table.add_row(str(replayed.buckets), *(f"{each:,}" for each in counts))
    return table
