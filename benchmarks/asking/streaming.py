"""`streamjoin bench streaming`: warm micro-batches and whole runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import bounded, streaming, streaming_peers, streaming_tables
from benchmarks.asking.command import Asked, Command, Described, Question
from benchmarks.environments import requirements_of
from benchmarks.reporting import Outcomes, progress


def _size(asked: Asked) -> tuple[int, streaming.Batches]:
    rows = asked.rows or (streaming.QUICK_ROWS if asked.quick else streaming.ROWS)
    streaming.check_size(rows)
    usual = streaming.QUICK_BATCHES if asked.quick else streaming.BATCHES
    return rows, streaming.chosen_batches(asked.batches, usual)


def _described(asked: Asked) -> Described:
    rows, batches = _size(asked)
    return Described("medians of warm micro-batches", {"rows": rows, "batches": batches})


def _peers() -> Sequence[str]:
    # A peer comes first in its file; what it stands on follows.
    return [requirements_of(file.read_text())[0] for file in streaming_peers.REQUIREMENTS.values()]


def _streaming(asked: Asked, folder: Path) -> Outcomes:
    rows, batches = _size(asked)
    quick, names = asked.quick, asked.names
    with progress(asked.console) as say:
        track = streaming.Track(folder, say)
        if "equality" in names:
            for size in (1, 0, 2):  # the usual one first: others compare with it
                equal = streaming.measure_equality(track, rows, size, batches)
                if equal is not None:
                    yield f"equality {equal.rows}", equal.verdicts, equal, streaming_tables.equality_table(equal)
        if "breakdown" in names:
            parts = streaming.measure_breakdown(track, rows, quick)
            yield "breakdown", parts.verdicts, parts, streaming_tables.breakdown_table(parts)
        if "keyless" in names:
            keyless = streaming.measure_keyless(track, rows, batches, quick)
            yield "keyless", keyless.verdicts, keyless, streaming_tables.keyless_table(keyless)
        if "state" in names:
            state = streaming.measure_state(track, rows, batches, quick)
            yield "state", state.verdicts, state, streaming_tables.state_table(state)
        if "bounded" in names:
            flat = bounded.measure(track, quick)
            yield "bounded", flat.verdicts, flat, streaming_tables.bounded_table(flat)
        if "peers" in names:
            peers = streaming_peers.measure(rows, asked.repetitions, folder / "peers", say, asked.console.print)
            yield "peers", peers.verdicts, peers, streaming_tables.peers_table(peers)


COMMAND: Final = Command(
    "streaming",
    (
        Question("equality", "equal keys and a bound on time, three sizes, warm micro-batches",
                 "Spark's own join, HDFSBacked and RocksDB",
                 f"{streaming.FASTER_THAN_BEST:g} times the best of both, {streaming.FASTER_THAN_ROCKSDB:g} times "
                 "RocksDB", 25),
        Question("peers", "the same stream as a whole run", "Flink SQL, Pathway",
                 f"{streaming_peers.TARGET:g} times as fast", 12),
        Question("keyless", "band, overlap and distance of streams without a key", "our own equality join",
                 f"{streaming.KEYLESS_SHARE:g} of its throughput", 6),
        Question("breakdown", "what the time of a micro-batch consists of", "the floor of a stateful operator",
                 f"at most {streaming.ADDED_PERCENT:g}% above the floor", 4),
        Question("state", "ten and a hundred times the state", "the small state",
                 f"throughput falls at most {streaming.STATE_FALL:g} times", 10),
        Question("bounded", f"{bounded.WINDOWS} windows long", "the first half of the run",
                 f"state grows at most {bounded.GROWTH:g} times, and empties", 4),
    ),
    _streaming, _described, _peers, repetitions=1,
)  # fmt: skip
