"""One streaming join of two inputs through the operator, in a process of its own: with all its state in memory, or with
a budget. Prints one JSON object: micro-batches by CPU and by the clock, memory, bytes in files, and a digest.

    python -m benchmarks.contenders.spilled_join QUESTION ROWS WINDOW BATCHES MEMORY FOLDER     memory 0: no limit
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time

import numpy as np
import pyarrow as pa

from benchmarks.digest import Digest, digest_of
from benchmarks.worker_memory import anonymous
from streamjoin.algebra import Band, Overlaps
from streamjoin.operators import Results
from streamjoin.operators.contract import Context
from streamjoin.operators.temporal_join import TemporalJoin
from streamjoin.state import Batch, Matching

SECOND = 1_000_000
MATCHINGS = {
    "band": lambda reach: Matching(Band("v", "v", reach, reach)),
    "equality": lambda _: Matching(),
    "overlap": lambda _: Matching(Overlaps(("lo", "hi"), ("lo", "hi"))),
}


def rows_of(rng: np.random.Generator, question: str, number: int, rows: int, window: int, first: int) -> Batch:
    """A micro-batch: rows with about 70 bytes each, and about one partner."""
    ts = number * SECOND + np.sort(rng.integers(0, SECOND, rows))
    ids = np.arange(first, first + rows)
    payload = pa.table({
        "id": ids, "price": rng.random(rows),
        "note": pa.array(np.char.add("note-of-row-", rng.integers(10_000, 99_999, rows).astype("U5"))),
    })  # fmt: skip
    value = rng.random(rows) * 1e9
    group = rng.integers(0, rows * window, rows) if question == "equality" else np.zeros(rows, np.int64)
    length = 1e9 / (rows * window)
    values = {"band": (value,), "equality": (), "overlap": (value, value + rng.random(rows) * length)}[question]
    return Batch(payload, ts, ts + window * SECOND, group, values)


class Watch:
    """The largest anonymous memory while it lasts, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.peak, self.over = anonymous(), False
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.over:
            self.peak = max(self.peak, anonymous())
            time.sleep(0.01)

    def end(self) -> int:
        self.over = True
        self.thread.join()
        return self.peak


def measure(question: str, rows: int, window: int, batches: int, memory: int, folder: str) -> dict[str, object]:
    """Run the join over so many micro-batches of each input."""
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])
    matching = MATCHINGS[question](1e9 / (2 * rows * window))
    config = TemporalJoin(matching, (schema, schema))
    join = config.build(Context(memory=memory or None, scratch=folder if memory else None))
    rng = np.random.default_rng(7)
    digests: list[Digest] = []
    cpu, wall = [], []
    watch, base = None, 0
    for number in range(batches):
        given = [rows_of(rng, question, number, rows, window, (2 * number + side) * rows) for side in (0, 1)]
        gc.collect()
        if number == 2:  # kernels are loaded, and this batch's rows are there
            base, watch = anonymous(), Watch()
        began, clock, found = time.process_time(), time.perf_counter(), []
        for side, batch in enumerate(given):
            for results in join.on_batch(side, batch):
                assert isinstance(results, Results)
                found.append((results.payload["0.id"].to_numpy(), results.payload["1.id"].to_numpy()))
        for side in (0, 1):
            list(join.on_progress(side, (number + 1) * SECOND))
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
        digests.append(digest_of(found))
        del found
    steady = cpu[window:] or cpu
    kept = join.footprint
    return {
        "rows_per_cpu_second": 2 * rows * len(steady) / sum(steady),
        "longest": max(wall[window:] or wall),
        "anonymous": 0 if watch is None else watch.end() - base,
        "state": kept.nbytes,
        "spilled": kept.spilled,
        "count": sum(digest.count for digest in digests),
        "digest": "; ".join(map(str, digests)),
    }


if __name__ == "__main__":
    asked, *sizes, place = sys.argv[1:]
    print(json.dumps(measure(asked, *(int(size) for size in sizes), place)))  # type: ignore[arg-type]
