"""PMJ against the join in memory: two finite inputs of 4M rows, a band, 64 MB; about 4M results.

Rows come in packets of 125,000, as Spark's exchange brings them, in turns. In memory all packets of an input are put
together, sorted and joined at once. One thread; what counts is time as it passes, so waiting for the disk does, and
seconds of the process stand beside it. Making the rows is not counted, nor is what they need of memory. In the first
repetition, which is not counted, results are compared by their digests.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.contenders.spilled_join import Watch, anonymous
from benchmarks.digest import digest_of
from benchmarks.errors import UnequalResultsError
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
    """What one way gave: seconds of each repetition, those of the process, results, how many of them before the end,
    generations.
    """

    seconds: list[float]
    cpu: list[float]
    results: int
    early: int = 0
    generations: int = 0
    above: int = 0  # bytes of anonymous memory above what the rows need

    def and_then(self, way: Callable[[], int]) -> Pmjs:
        """One more repetition of a way that counts its results."""
        start, cpu = time.perf_counter(), time.process_time()
        results = way()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return replace(self, seconds=[*self.seconds, seconds], cpu=[*self.cpu, cpu], results=results)

    @property
    def median(self) -> float:
        """In the middle of the repetitions."""
        return float(np.median(self.seconds))

    @property
    def median_cpu(self) -> float:
        """The same of the process."""
        return float(np.median(self.cpu))


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
    _counted(_merging(merging, [side[:1] for side in sides], MEMORY // 64))  # compiles
    pa.default_memory_pool().release_unused()
    before, watch = anonymous(), Watch()
    with tempfile.TemporaryDirectory(prefix="streamjoin-pmj-") as folder:
        running: RunningPmj = merging.build(Context(memory=MEMORY, scratch=folder))
        _counted(_taking(running, sides))
    above = watch.end() - before
    figures = running.figures
    memory, pmj = Pmjs([], [], 0), Pmjs([], [], 0, figures["early_results"], figures["generations"], above)
    say("digests of both ...")  # and what is compiled, and caches
    one, two = digest_of(_ids(_in_memory(in_memory, sides))), digest_of(_ids(_merging(merging, sides, MEMORY)))
    if one != two:
        raise UnequalResultsError(f"the merge join gives other results than the join in memory: {two}, not {one}")
    for repetition in range(repetitions):
        say(f"repetition {repetition + 1} of {repetitions} ...")
        memory = memory.and_then(lambda: _counted(_in_memory(in_memory, sides)))
        pmj = pmj.and_then(lambda: _counted(_merging(merging, sides, MEMORY)))
    return memory, pmj


def _in_memory(join: TemporalJoin, sides: Sequence[Sequence[Batch]]) -> Iterator[Output]:
    operator: Operator = join.build()
    for number, side in enumerate(sides):
        yield from operator.on_batch(number, Batch.concat(side))
    yield from operator.on_end()


def _merging(merging: Pmj, sides: Sequence[Sequence[Batch]], memory: int) -> Iterator[Output]:
    with tempfile.TemporaryDirectory(prefix="streamjoin-pmj-") as folder:
        yield from _taking(merging.build(Context(memory=memory, scratch=folder)), sides)


def _taking(running: RunningPmj, sides: Sequence[Sequence[Batch]]) -> Iterator[Output]:
    for pair in zip(*sides, strict=True):
        for number, packet in enumerate(pair):
            yield from running.on_batch(number, packet)
    yield from running.on_end()


def _counted(outputs: Iterator[Output]) -> int:
    return sum(len(output) for output in outputs if isinstance(output, Results))


def _ids(outputs: Iterator[Output]) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    for output in outputs:
        if isinstance(output, Results):
            yield output.payload["0.id"].to_numpy(), output.payload["1.id"].to_numpy()
