"""How fast is a streaming join in warm micro-batches, beside Spark's own, and what does its time consist of?

    equality    equal keys and a bound on time, at three sizes: against Spark's own join with either state store
    keyless     band, overlap and distance without a key, which Spark refuses: against our own equality join
    breakdown   reading alone, the floor of a stateful operator in Python, and ours
    state       windows of 2, 20 and 200 seconds: ten and a hundred times the state, equally many results

Everyone reads the same Parquet files, as many per micro-batch, on local[2] with two shuffle partitions, in a process of
its own. `micro_batches.py` has the rules; `streaming_peers.py` has the race against systems other than Spark.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.micro_batches import StreamRun, check_as_many, check_equal, check_rows, speed_up
from benchmarks.one_shot import ask
from benchmarks.race import Verdict
from benchmarks.streams import BATCH_US, FILES_PER_BATCH, Kind, Stream, link_batches, usual_step, write_parquet

ROWS: Final = 1_000_000  # of both sides of a micro-batch
QUICK_ROWS: Final = 40_000
SIZES: Final = (0.1, 1.0, 4.0)  # times the rows; the places in BATCHES

OURS: Final = "streamjoin"
NATIVE: Final = {"hdfs": "Spark, HDFSBacked, format 2", "rocksdb": "Spark, RocksDB, format 4"}
# How many micro-batches each runs at the three sizes, 0 for none. Spark's RocksDB takes a minute for one of a million
# rows, so it gets few; where few are run, each has so many rows that one of them warms the JVM up.
BATCHES: Final = {OURS: (20, 10, 4), "hdfs": (20, 8, 3), "rocksdb": (6, 3, 0)}
QUICK_BATCHES: Final = {OURS: (0, 4, 0), "hdfs": (0, 4, 0), "rocksdb": (0, 3, 0)}

FASTER_THAN_BEST: Final = 3.0
FASTER_THAN_ROCKSDB: Final = 10.0
KEYLESS_SHARE: Final = 0.5
ADDED_PERCENT: Final = 60.0
STATE_FALL: Final = 2.0
KEYLESS: Final[tuple[Kind, ...]] = ("band", "overlap", "within")
BOUNDS: Final = (2, 20, 200)
KEYLESS_BATCHES: Final = 8
BREAKDOWN_BATCHES: Final = 10
STATE_WARM: Final = 6  # micro-batches that count, once the state is full

Batches = Mapping[str, tuple[int, ...]]


@dataclass
class Track:
    """Where streaming contenders run: the files they read, and our run that several questions compare with."""

    folder: Path
    say: Callable[[str], None]
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _written: dict[Stream, Path] = field(default_factory=dict)
    _reference: dict[int, StreamRun] = field(default_factory=dict)

    def run(self, label: str, module: str, stream: Stream, *, cold: int | None = None, **request: Any) -> StreamRun:
        """One contender over the first micro-batches of a stream, in a process of its own."""
        self.say(f"{label}: {stream.batches} micro-batches of {stream.rows:,} rows ...")
        answered = self.ask(module, stream, **request)
        run = StreamRun.of(label, answered["batches"], cold)
        check_rows(run, stream.rows, stream.batches)
        return run

    def ask(
        self, module: str, stream: Stream, *, environment: Mapping[str, str] | None = None, **request: Any
    ) -> dict[str, Any]:
        """What a contender has to say about a stream."""
        place = self.folder / f"run-{next(self._numbers)}"
        try:
            data = link_batches(self.write(stream), stream.batches, place / "data")
            request |= {"folder": str(data), "kind": stream.kind, "bound_seconds": stream.bound_seconds}
            request |= {"checkpoint": str(place / "checkpoint"), "scratch": str(place / "scratch")}
            contender, variables = f"benchmarks.contenders.{module}", environment or {}
            answered, _ = ask(sys.executable, contender, ROOT, request, place / "tmp", **variables)
            return answered
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def write(self, stream: Stream) -> Path:
        """The files of a stream. A longer stream begins like a shorter one, so the files of the longer serve both."""
        name = replace(stream, batches=0)
        folder = self._written.get(name)
        if folder is None or len(list((folder / "left").iterdir())) < FILES_PER_BATCH * stream.batches:
            self.forget(stream)
            folder = self._written[name] = self.folder / f"stream-{next(self._numbers)}"
            write_parquet(stream, folder)
        return folder

    def reference(self, rows: int, batches: int) -> StreamRun:
        """Our equality join at this size: run once, for all questions that compare with it."""
        if rows not in self._reference:
            stream = Stream("equality", rows, batches, usual_step(rows))
            self._reference[rows] = self.run(OURS, "stream_ours", stream)
        return self._reference[rows]

    def forget(self, stream: Stream) -> None:
        """Remove the files of a stream that nobody needs any more."""
        folder = self._written.pop(replace(stream, batches=0), None)
        if folder is not None:
            shutil.rmtree(folder)


@dataclass
class EqualityOutcome:
    """One size: ours, and Spark's own by state store."""

    rows: int
    ours: StreamRun
    native: dict[str, StreamRun]

    @property
    def verdicts(self) -> list[Verdict]:
        question = f"equality, {self.rows:,} rows a micro-batch"
        if not self.native:
            return []
        best = max(self.native.values(), key=lambda run: run.throughput)
        found = [_faster(question, self.ours, best, FASTER_THAN_BEST)]
        if "rocksdb" in self.native:
            found.append(_faster(question, self.ours, self.native["rocksdb"], FASTER_THAN_ROCKSDB))
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [run.to_json() for run in (self.ours, *self.native.values())],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def _faster(question: str, ours: StreamRun, other: StreamRun, target: float) -> Verdict:
    measured = speed_up(ours, other)
    text = (
        f"{measured:.2f} times the throughput of {other.label} "
        f"({ours.throughput:,.0f} against {other.throughput:,.0f} rows/s)"
    )
    return Verdict(question, measured, target, text)


def measure_equality(track: Track, rows: int, size: int, batches: Batches) -> EqualityOutcome | None:
    """Ours and Spark's own at the size of this number; None where ours is not to run."""
    count = batches[OURS][size]
    if not count:
        return None
    large = round(rows * SIZES[size])
    # The same pace at every size: a larger micro-batch is a longer one.
    stream = Stream("equality", large, max(counts[size] for counts in batches.values()), usual_step(rows))
    track.say(f"equality: writing {stream.batches} micro-batches of {large:,} rows ...")
    track.write(stream)
    if large == rows:
        ours = track.reference(rows, count)
    else:
        ours = track.run(OURS, "stream_ours", replace(stream, batches=count))
    native = {}
    for store, label in NATIVE.items():
        if batches[store][size]:
            some = replace(stream, batches=batches[store][size])
            native[store] = track.run(label, "stream_native", some, do="join", store=store)
            check_equal(ours, native[store])
    if large != rows:
        track.forget(stream)
    return EqualityOutcome(large, ours, native)


@dataclass
class KeylessOutcome:
    """Joins without a key beside our equality join, and what Spark says to them."""

    equality: StreamRun
    runs: dict[Kind, StreamRun]
    refusal: str

    def share(self, kind: Kind) -> float:
        """The throughput of a join without a key, in terms of the equality join's."""
        check_as_many(self.equality, self.runs[kind])
        return self.runs[kind].throughput / self.equality.throughput

    @property
    def verdicts(self) -> list[Verdict]:
        return [
            Verdict(
                f"{kind} without a key",
                self.share(kind),
                KEYLESS_SHARE,
                f"{self.share(kind):.2f} of the equality join's throughput "
                f"({run.throughput:,.0f} against {self.equality.throughput:,.0f} rows/s)",
            )
            for kind, run in self.runs.items()
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [run.to_json() for run in (self.equality, *self.runs.values())],
            "refusal": self.refusal,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure_keyless(track: Track, rows: int, batches: Batches, quick: bool) -> KeylessOutcome:
    """Ours without a key, after Spark has been asked for the first of them."""
    equality = track.reference(rows, batches[OURS][1])
    streams = {kind: Stream(kind, rows, 4 if quick else KEYLESS_BATCHES, usual_step(rows)) for kind in KEYLESS}
    track.say("Spark is asked for a band join without a key ...")
    refusal = track.ask("stream_native", streams["band"], do="refuse")["refusal"]
    if refusal is None:
        raise BenchmarkError(
            "Spark was to refuse a band join of streams without a key, but ran it",
            hint="then it has become a contender, and belongs into this comparison",
        )
    runs = {}
    for kind, stream in streams.items():
        runs[kind] = track.run(f"{kind} without a key", "stream_ours", stream)
        check_as_many(equality, runs[kind])
        track.forget(stream)
    return KeylessOutcome(equality, runs, refusal)


@dataclass
class BreakdownOutcome:
    """One warm micro-batch: reading alone, the floor, ours."""

    read: StreamRun
    floor: StreamRun
    ours: StreamRun

    @property
    def added(self) -> float:
        """What ours takes beyond the floor, in percent of the floor."""
        check_as_many(self.ours, self.floor)
        return 100 * (self.ours.median / self.floor.median - 1)

    @property
    def verdicts(self) -> list[Verdict]:
        text = f"ours adds {self.added:.0f}% to the floor ({self.ours.median:.2f} s against {self.floor.median:.2f} s)"
        return [Verdict("breakdown", self.added, ADDED_PERCENT, text, at_most=True)]

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [run.to_json() for run in (self.read, self.floor, self.ours)],
            "added_percent": self.added,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure_breakdown(track: Track, rows: int, quick: bool) -> BreakdownOutcome:
    """The three one after the other. Ours is run anew: a difference of times wants them to be near each other."""
    stream = Stream("equality", rows, 4 if quick else BREAKDOWN_BATCHES, usual_step(rows))
    read = track.run("read only", "stream_native", stream, do="read")
    floor = track.run("floor: pack, exchange, hand back", "stream_floor", stream)
    ours = track.run(OURS, "stream_ours", stream)
    check_as_many(ours, floor)
    return BreakdownOutcome(read, floor, ours)


@dataclass
class StateOutcome:
    """The equality join with longer and longer bounds on time, hence more and more state."""

    runs: dict[int, StreamRun]

    def fall(self, bound: int) -> float:
        """How many times the throughput of the shortest bound is that of this one."""
        first = self.runs[BOUNDS[0]]
        check_as_many(first, self.runs[bound])
        return first.throughput / self.runs[bound].throughput

    @property
    def verdicts(self) -> list[Verdict]:
        times = BOUNDS[-1] // BOUNDS[0]
        measured = self.fall(BOUNDS[-1])
        first, last = self.runs[BOUNDS[0]], self.runs[BOUNDS[-1]]
        text = (
            f"{times} times the state: throughput falls {measured:.2f} times "
            f"({first.throughput:,.0f} to {last.throughput:,.0f} rows/s)"
        )
        return [Verdict("state", measured, STATE_FALL, text, at_most=True)]

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [run.to_json() for run in self.runs.values()],
            "bounds": list(self.runs),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure_state(track: Track, rows: int, batches: Batches, quick: bool) -> StateOutcome:
    """Ours with each bound, counted from where the state has stopped growing."""
    runs: dict[int, StreamRun] = {}
    for bound in BOUNDS:
        if bound == BOUNDS[0]:
            runs[bound] = track.reference(rows, batches[OURS][1])
            continue
        cold = filled_after(bound)
        stream = Stream("equality", rows, cold + (2 if quick else STATE_WARM), usual_step(rows), bound)
        runs[bound] = track.run(f"{OURS}, {bound} s", "stream_ours", stream, cold=cold)
        check_as_many(runs[BOUNDS[0]], runs[bound])
        track.forget(stream)
    return StateOutcome(runs)


def filled_after(bound_seconds: int) -> int:
    """After how many micro-batches the oldest rows begin to leave the state, and at least a few to warm up."""
    return max(4, 1 + -(-bound_seconds * 1_000_000 // BATCH_US))


def check_size(rows: int) -> None:
    """Refuse a size that cannot be cut into two sides, files, and a tenth of it."""
    smallest = 40
    if rows < smallest or rows % smallest:
        raise BenchmarkError(
            f"a micro-batch must have a multiple of {smallest} rows, got {rows:,}",
            hint="two sides, two files each, also at a tenth of the size",
        )


def chosen_batches(text: str, default: Batches) -> dict[str, tuple[int, ...]]:
    """`hdfs=8,rocksdb=6/3/2`: micro-batches of a contender, at all sizes it runs at, or at each of the three."""
    chosen = dict(default)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, numbers = part.partition("=")
        if name not in chosen:
            raise BenchmarkError(f"there is no contender {name!r}", hint="choose from " + ", ".join(chosen))
        try:
            counts = tuple(int(number) for number in numbers.split("/"))
        except ValueError:
            counts = ()
        if len(counts) == 1:
            counts = tuple(counts[0] if usual else 0 for usual in chosen[name])
        if len(counts) != len(SIZES) or any(count < 0 or count == 1 for count in counts):
            raise BenchmarkError(
                f"{name} cannot run {numbers!r} micro-batches",
                hint="write one number, or one for each size: rocksdb=6/3/0; at least 2, or 0 for none",
            )
        chosen[name] = counts
    if not chosen[OURS][1]:
        raise BenchmarkError(f"{OURS} must run at the usual size", hint="everything else is compared with that run")
    return chosen
