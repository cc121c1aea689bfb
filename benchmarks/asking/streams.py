"""Micro-batches on Spark and state in files: streaming, spill, replay, lanes, house."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from benchmarks import (
    bounded,
    checkouts,
    house,
    house_restore,
    house_start,
    house_tables,
    recall,
    recall_spark,
    spill,
    spill_questions,
    spill_restore,
    spill_spark,
    streaming,
    streaming_peers,
    streaming_tables,
)
from benchmarks.asking.command import Asked, Command, Described, Question, said
from benchmarks.environments import requirements_of
from benchmarks.priority_lanes import overload, task
from benchmarks.priority_lanes.report import table_of, write_plot
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


def _spill(asked: Asked, folder: Path) -> Outcomes:
    yield from spill_questions.outcomes(progress(asked.console), asked.names, asked.quick, folder)


def _replay(asked: Asked, folder: Path) -> Outcomes:
    import streamjoin as sj

    spark = sj.session()
    with progress(asked.console) as say:
        for name in asked.names:
            if not recall.DATA[name].there:
                say(f"{name}: its file is not there")
                continue
            for buckets in (2, 1, 5) if name == recall_spark.QUESTIONS[0] else (2,):
                outcome = recall_spark.measure(spark, name, buckets, asked.quick, folder / name, say)
                yield f"{name}, {buckets} buckets", outcome.verdicts, outcome, recall_spark.table_of(outcome)


def _effort(asked: Asked) -> overload.Effort:
    usual = overload.QUICK if asked.quick else overload.FULL
    return replace(usual, seconds=usual.seconds if asked.seconds is None else asked.seconds)


def _overloaded(asked: Asked) -> Described:
    effort = _effort(asked)
    return Described(f"{effort.seconds:g} s of overload in each of three runs", asdict(effort))


def _lanes(asked: Asked, folder: Path) -> Outcomes:
    if "overload" in asked.names:
        with progress(asked.console) as say:
            outcome = overload.measure(_effort(asked), folder, say)
        plot = write_plot(outcome, asked.quick)
        yield "overload", outcome.verdicts, outcome, table_of(outcome)
        asked.console.print(f"plot: {plot}", highlight=False, soft_wrap=True)
    if "task" in asked.names:
        with progress(asked.console) as say:
            in_task = task.measure(task.QUICK if asked.quick else task.FULL, say)
        yield "task", in_task.verdicts, in_task, task.table_of(in_task)


def _rounds(asked: Asked) -> int:
    return asked.rounds or (1 if asked.quick else house.ROUNDS)


def _against(asked: Asked) -> Described:
    earlier, times = checkouts.named(asked.against), _rounds(asked)
    whom = "nothing earlier" if earlier is None else f"against {earlier.name}"
    figures = {"rounds": times, "against": earlier and earlier.name}
    return Described(f"{whom}; {times} rounds in turn, medians", figures)


def _house(asked: Asked, folder: Path) -> Outcomes:
    earlier, quick = checkouts.named(asked.against), asked.quick
    with progress(asked.console) as say, checkouts.checkouts(earlier, folder) as states:
        home = house.House(streaming.Track(folder, say), states, _rounds(asked))
        if set(asked.names) != {"restore"}:
            home.prepare()
        for question, measure in house.MEASURES.items():
            if question in asked.names:
                measured = measure(home, quick)
                yield question, measured.verdicts, measured, house_tables.house_table(measured)
        if "start" in asked.names:
            for started in house_start.measure(home, quick):
                name = f"start, {house_start.TIMES[started.which]}"
                yield name, started.verdicts, started, house_tables.start_table(started)
        if "restore" in asked.names:
            say("restoring, all states in turn ...")
            for restored in house_restore.measure(states, quick, _rounds(asked), folder / "restore"):
                yield f"restore, {restored.job}", restored.verdicts, restored, house_tables.restore_table(restored)


STREAMING: Final = Command(
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
    _streaming, _described, _peers,
)  # fmt: skip


def _spill_goal(slowest: float, over: int, above: str) -> str:
    return f"{slowest:g} of the rows per second, at most {over >> 20} MB above {above}, no longer micro-batch"


_SPILL_GOAL: Final = _spill_goal(spill.SLOWEST, spill.OVER, "start and budget")
_SPARK_SPILL_GOAL: Final = _spill_goal(
    spill_spark.SLOWEST, spill_spark.OVER, "a worker that hands rows back, the budget and the rows that arrive"
)
SPILL: Final = Command(
    "spill",
    (
        *(Question(name, f"{name}: state in files under {spill.MEMORY >> 20} MB, through the operator",
                   "the same with all of it in memory", _SPILL_GOAL, 3) for name in spill.QUESTIONS),
        *(Question(name, f"{name.removeprefix(spill_spark.PREFIX)}: the same in two workers of Spark",
                   "the same with all of it in memory", _SPARK_SPILL_GOAL, 12) for name in spill_spark.QUESTIONS),
        *(Question(name, "restoring state that is in files", "reading its bytes",
                   f"at most {spill_restore.MOST_SECONDS:g} s beyond that", 4) for name in spill_restore.QUESTIONS),
    ),
    _spill, said("one run each; in this process one thread, on Spark two workers"), expand=spill_questions.expanded,
)  # fmt: skip

REPLAY: Final = Command(
    "replay",
    tuple(
        Question(name, f"{name}: a recall target of {recall_spark.TARGET:g} through Spark, cut by arrival",
                 "the same plan in one process", "no row differs", 2)
        for name in recall_spark.QUESTIONS
    ),
    _replay, said("replays through Spark, nothing is timed"),
)  # fmt: skip

LANES: Final = Command(
    "lanes",
    (
        Question("overload", f"urgent rows at {overload.OVERLOAD:g} times the throughput, in a lane of their own",
                 "one lane, with and without a limit",
                 f"p99 {overload.GAIN:g} times shorter, or {overload.SHARE_OF_MODEL:g} of the model", 12),
        Question("task", "urgent results of three joins in a task", "the same without priorities",
                 f"left by {task.LEFT_BY:.0%} of its CPU time, at most {task.ADDED:g} times as much of it", 2),
    ),
    _lanes, _overloaded,
)  # fmt: skip

HOUSE: Final = Command(
    "house",
    (
        Question("equality", "the equality join beside the floor", "the floor, an earlier state",
                 f"at most {house.ADDED_PERCENT:g}% above the floor; not slower", 10),
        Question("group", "a join with GROUP BY on its key", "the join alone, an earlier state",
                 f"at most {house.GROUPED:g} times the join", 10),
        Question("small", "micro-batches of 1,000 rows", "an earlier state",
                 f"{house.SMALL_QUERY:g} times as fast", 8, earlier=True),
        Question("start", "from the call to the end of the first micro-batch", "an earlier state",
                 f"{house_start.FASTER:g} times as fast", 8, earlier=True),
        Question("restore", "a large state of many small parts", "an earlier state", "not slower", 4, earlier=True),
    ),
    _house, _against,
)  # fmt: skip
