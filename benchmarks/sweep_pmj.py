"""PMJ against the join in memory: two finite inputs of 4M rows, a band, 64 MB; about 4M results.

Rows come in packets of 125,000, as Spark's exchange brings them, in turns. In memory all packets of an input are put
together, sorted and joined at once. Seconds of the process, one thread; making the rows is not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import Band
from streamjoin.operators import Context, Operator, Pmj, TemporalJoin
from streamjoin.operators.contract import Output, Results
from streamjoin.state import Batch, Matching

ROWS: Final = 4_000_000
QUICK_ROWS: Final = 100_000
PACKET: Final = 125_000
MEMORY: Final = 64 << 20
WIDTH: Final = 25.0
PER_ROW: Final = 50.0  # the values' range for each row: as many results as rows
REPETITIONS: Final = 3


@dataclass(frozen=True)
class Pmjs:
    """What one way gave: seconds of each repetition, results, how many of them before the end, generations."""

    seconds: list[float]
    results: int
    early: int = 0
    generations: int = 0

    @property
    def median(self) -> float:
        """In the middle of the repetitions."""
        return float(np.median(self.seconds))


def packets(seed: int, rows: int) -> Iterator[Batch]:
    """One input, packet by packet."""
    rng = np.random.default_rng(seed)
    for start in range(0, rows, PACKET):
        count = min(PACKET, rows - start)
        ts = rng.integers(0, 1000, count)
        notes = pa.array(np.char.add("note-of-row-", rng.integers(10_000, 99_999, count).astype("U5")))
        payload = pa.table({"id": rng.integers(0, 1 << 60, count), "price": rng.random(count), "note": notes})
        yield Batch(payload, ts, ts + 1_000_000, np.zeros(count, np.int64), (rng.random(count) * PER_ROW * rows,))


def compare(rows: int, repetitions: int, say: Callable[[str], None]) -> tuple[Pmjs, Pmjs]:
    """In memory, and with a budget; in turns."""
    sides = [list(packets(seed, rows)) for seed in (1, 2)]
    schema = sides[0][0].payload.schema
    band = Band("v", "v", WIDTH, WIDTH)
    in_memory = TemporalJoin(Matching(band), (schema, schema))
    merging = Pmj(in_memory.matching, (schema, schema))
    ways: dict[str, list[float]] = {"memory": [], "pmj": []}
    counts: dict[str, int] = {}
    early = generations = 0
    for repetition in range(repetitions + 1):  # the first compiles, and is not counted
        say(f"repetition {repetition} of {repetitions} ...")
        start = time.process_time()
        operator: Operator = in_memory.build()
        found = sum(_counted(operator.on_batch(number, Batch.concat(side))) for number, side in enumerate(sides))
        counts["memory"] = found + _counted(operator.on_end())
        ways["memory"].append(time.process_time() - start)
        del operator
        with tempfile.TemporaryDirectory(prefix="streamjoin-pmj-") as folder:
            start = time.process_time()
            running = merging.build(Context(memory=MEMORY, scratch=folder))
            found = 0
            for pair in zip(*sides, strict=True):
                for number, packet in enumerate(pair):
                    found += _counted(running.on_batch(number, packet))
            counts["pmj"] = found + _counted(running.on_end())
            ways["pmj"].append(time.process_time() - start)
            early, generations = running.figures["early_results"], running.figures["generations"]
    return (
        Pmjs(ways["memory"][1:], counts["memory"]),
        Pmjs(ways["pmj"][1:], counts["pmj"], early, generations),
    )


def _counted(outputs: Iterator[Output]) -> int:
    return sum(len(output) for output in outputs if isinstance(output, Results))
