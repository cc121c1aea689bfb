"""PMJ against the join in memory: two finite inputs of 4M rows, a band, 64 MB; about 4M results.

Rows come in packets of 125,000, as Spark's exchange brings them, in turns. In memory all packets of an input are put
together, sorted and joined at once. Seconds of the process, one thread; making the rows is not counted, nor is what
they need of memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.contenders.spilled_join import Watch, anonymous
from streamjoin.algebra import Band
from streamjoin.operators import Context, Operator, Pmj, TemporalJoin
from streamjoin.operators.contract import Output, Results
from streamjoin.operators.pmj import RunningPmj
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
    above: int = 0  # bytes of anonymous memory above what the rows need

    def and_then(self, seconds: float, results: int) -> Pmjs:
        """One more repetition."""
        return replace(self, seconds=[*self.seconds, seconds], results=results)

    def without_first(self) -> Pmjs:
        """Without the repetition in which caches fill."""
        return replace(self, seconds=self.seconds[1:])

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
    in_memory = TemporalJoin(Matching(Band("v", "v", WIDTH, WIDTH)), (schema, schema))
    merging = Pmj(in_memory.matching, (schema, schema))
    say("memory of the merge join ...")
    _merged(merging, [side[:1] for side in sides], MEMORY // 64)  # compiles
    pa.default_memory_pool().release_unused()
    before, watch = anonymous(), Watch()
    running, _ = _merged(merging, sides, MEMORY)
    above = watch.end() - before
    memory, pmj = Pmjs([], 0), Pmjs([], 0, running.figures["early_results"], running.figures["generations"], above)
    for repetition in range(repetitions + 1):  # the first is not counted
        say(f"repetition {repetition} of {repetitions} ...")
        start = time.process_time()
        operator: Operator = in_memory.build()
        found = sum(_counted(operator.on_batch(number, Batch.concat(side))) for number, side in enumerate(sides))
        memory = memory.and_then(time.process_time() - start, found + _counted(operator.on_end()))
        del operator
        start = time.process_time()
        _, found = _merged(merging, sides, MEMORY)
        pmj = pmj.and_then(time.process_time() - start, found)
    return memory.without_first(), pmj.without_first()


def _merged(merging: Pmj, sides: Sequence[Sequence[Batch]], memory: int) -> tuple[RunningPmj, int]:
    """The operator when all is done, and how many results there were."""
    with tempfile.TemporaryDirectory(prefix="streamjoin-pmj-") as folder:
        running: RunningPmj = merging.build(Context(memory=memory, scratch=folder))
        found = 0
        for pair in zip(*sides, strict=True):
            for number, packet in enumerate(pair):
                found += _counted(running.on_batch(number, packet))
        return running, found + _counted(running.on_end())


def _counted(outputs: Iterator[Output]) -> int:
    return sum(len(output) for output in outputs if isinstance(output, Results))
