"""What `streamjoin bench` runs: one function per command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import (
    asof,
    best_match,
    bounded,
    checkouts,
    enough,
    growth,
    house,
    house_restore,
    house_start,
    house_tables,
    kernels,
    lifetimes,
    lifetimes_report,
    nway,
    nway_spark,
    recall,
    recall_questions,
    recall_spark,
    similar,
    spark_nested_loop,
    spark_rivals,
    spill_questions,
    streaming,
    streaming_peers,
    streaming_tables,
    sweep,
    tables,
)
from benchmarks.environments import peers_python, requirements_of
from benchmarks.lifetimes_run import QUICK, Effort
from benchmarks.priority_lanes.command import run_lanes as run_lanes
from benchmarks.priority_room import questions as priority
from benchmarks.race import Verdict
from benchmarks.reporting import Outcomes, check_repetitions, circumstances, introduce, progress, questions_of, reported

PEERS_FILE: Final = Path(__file__).parent / "peers.txt"
KERNEL_QUESTIONS: Final = (*kernels.PEERS, "spark", "growth")
STREAMING_QUESTIONS: Final = ("equality", "peers", "keyless", "breakdown", "state", "bounded")


def run_kernels(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench kernels`: measure, print a table as soon as it is there, and all verdicts at the end."""
    asked = questions_of(only, KERNEL_QUESTIONS)
    check_repetitions(repetitions, quick)
    report = {
        "command": "kernels",
        "quick": quick,
        "repetitions": repetitions,
        **circumstances(requirements_of(PEERS_FILE.read_text())),
    }
    introduce(console, report, f"{repetitions} repetitions in turn, medians")
    return reported(
        console, report, lambda folder: _kernel_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def run_streaming(
    console: Console,
    *,
    quick: bool,
    rows: int | None,
    batches: str,
    repetitions: int,
    only: Sequence[str],
    json_path: Path | None,
) -> list[Verdict]:
    """`streamjoin bench streaming`: the same for micro-batches."""
    asked = questions_of(only, STREAMING_QUESTIONS)
    size = rows or (streaming.QUICK_ROWS if quick else streaming.ROWS)
    streaming.check_size(size)
    counts = streaming.chosen_batches(batches, streaming.QUICK_BATCHES if quick else streaming.BATCHES)
    report = {"command": "streaming", "quick": quick, "rows": size, "batches": counts}
    # A peer comes first in its file; what it stands on follows.
    report |= circumstances([requirements_of(file.read_text())[0] for file in streaming_peers.REQUIREMENTS.values()])
    introduce(console, report, "medians of warm micro-batches")
    return reported(
        console,
        report,
        lambda folder: _streaming_outcomes(console, asked, quick, size, counts, repetitions, folder),
        json_path,
    )


def run_asof(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench asof`: the same for joins whose rows choose, as-of and best match."""
    asked = questions_of(only, asof.QUESTIONS)
    check_repetitions(repetitions, quick)
    report = {"command": "asof", "quick": quick, "repetitions": repetitions}
    report |= circumstances(requirements_of(PEERS_FILE.read_text()))
    introduce(console, report, f"{repetitions} repetitions in turn, medians")
    return reported(
        console, report, lambda folder: _asof_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def run_nway(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench nway`: the same for four inputs at once, in memory and through Spark."""
    asked = questions_of(only, (*nway.QUESTIONS, *nway_spark.QUESTIONS))
    check_repetitions(repetitions, quick)
    report = {"command": "nway", "quick": quick, "repetitions": repetitions}
    report |= circumstances(requirements_of(PEERS_FILE.read_text()))
    introduce(console, report, f"{repetitions} repetitions in turn, medians")
    return reported(
        console, report, lambda folder: _nway_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def _nway_outcomes(console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path) -> Outcomes:
    in_memory = [question for question in asked if question in nway.QUESTIONS]
    if in_memory:
        python = peers_python(PEERS_FILE, console.print)
        yield from nway.outcomes(progress(console), in_memory, quick, repetitions, folder, python)
    through_spark = [question for question in asked if question in nway_spark.QUESTIONS]
    if through_spark:
        yield from nway_spark.outcomes(progress(console), through_spark, quick, repetitions, folder)


def run_spill(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench spill`: state that does not fit into memory, beside the same join with all of it there."""
    asked = questions_of(spill_questions.expanded(only), spill_questions.QUESTIONS)
    report = {"command": "spill", "quick": quick, **circumstances([])}
    introduce(console, report, "one run each; in this process one thread, on Spark two workers")
    return reported(
        console, report, lambda folder: spill_questions.outcomes(progress(console), asked, quick, folder), json_path
    )


def run_lifetimes(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench lifetimes`: the direct method against plus and minus tuples; plots go to build/lifetimes."""
    asked = questions_of(only, lifetimes.QUESTIONS)
    check_repetitions(repetitions, quick)
    report = {"command": "lifetimes", "quick": quick, "repetitions": repetitions, **circumstances([])}
    introduce(console, report, f"{repetitions} repetitions in turn, medians, one thread")
    return reported(
        console, report, lambda folder: _lifetimes_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def run_recall(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench recall`: joins to a recall target, by data set."""
    asked = questions_of(only, recall_questions.QUESTIONS)
    report = {"command": "recall", "quick": quick, **circumstances([])}
    introduce(console, report, "replays in micro-batches; only `cost` is timed, in seconds of the process")
    return reported(console, report, lambda folder: _recall_outcomes(console, asked, quick), json_path)


def run_sweep(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench sweep`: the document's experiment with joins in sorted runs; plots go to build/sweep."""
    asked = questions_of(only, sweep.QUESTIONS)
    report = {"command": "sweep", "quick": quick, **circumstances([])}
    introduce(console, report, "by a simulated clock; only `pmj` is timed, in seconds of the process")
    return reported(console, report, lambda folder: _sweep_outcomes(console, asked, quick), json_path)


def run_replay(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench replay`: the same through Spark, row for row against this process."""
    asked = questions_of(only, recall_spark.QUESTIONS)
    report = {"command": "replay", "quick": quick, **circumstances([])}
    introduce(console, report, "replays through Spark, nothing is timed")
    return reported(console, report, lambda folder: _replay_outcomes(console, asked, quick, folder), json_path)


def run_enough(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench enough`: graces, the largest delay and targets on the same streams, for the guide."""
    asked = questions_of(only, enough.QUESTIONS)
    report = {"command": "enough", "quick": quick, **circumstances([])}
    introduce(console, report, "replays in micro-batches, nothing is timed")
    return reported(console, report, lambda folder: _enough_outcomes(console, asked, quick), json_path)


def run_similar(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench similar`: similar sets against Spark's nested loop, their growth, and boxes."""
    asked = questions_of(only, similar.QUESTIONS)
    check_repetitions(repetitions, quick)
    report = {"command": "similar", "quick": quick, "repetitions": repetitions, **circumstances([])}
    introduce(console, report, f"{repetitions} repetitions of ours, medians")
    return reported(
        console,
        report,
        lambda folder: similar.outcomes(progress(console), asked, quick, repetitions, folder),
        json_path,
    )


def run_priority(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench priority`: the experiment on prioritised elements; plots go to build/priority."""
    asked = questions_of(only, priority.QUESTIONS)
    report = {"command": "priority", "quick": quick, **circumstances([])}
    introduce(console, report, "virtual time, nothing is timed")
    return reported(console, report, lambda folder: _priority_outcomes(console, asked, quick), json_path)


def run_house(
    console: Console, *, quick: bool, against: str, rounds: int | None, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench house`: this state of the code, and an earlier one beside it."""
    asked = questions_of(only, house.QUESTIONS)
    earlier = checkouts.named(against)
    times = rounds or (1 if quick else house.ROUNDS)
    report = {"command": "house", "quick": quick, "rounds": times, "against": earlier and earlier.name}
    report |= circumstances([])
    against_whom = "nothing earlier" if earlier is None else f"against {earlier.name}"
    introduce(console, report, f"{against_whom}; {times} rounds in turn, medians")
    return reported(
        console, report, lambda folder: _house_outcomes(console, asked, quick, times, earlier, folder), json_path
    )


def _kernel_outcomes(console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path) -> Outcomes:
    for question in kernels.PEERS:
        if question in asked:
            python = peers_python(PEERS_FILE, console.print)
            rows = kernels.QUICK_ROWS if quick else kernels.ROWS
            with progress(console) as say:
                say(f"{question}: ours and its peers in turn ...")
                raced = kernels.measure(question, rows, repetitions, folder / question, python)
            yield question, [raced.verdict], raced, tables.kernel_table(raced)
    if "spark" in asked:
        for question in spark_nested_loop.QUESTIONS:
            rows = spark_nested_loop.QUICK_ROWS if quick else spark_nested_loop.ROWS
            with progress(console) as say:
                joined = spark_nested_loop.measure(question, rows, repetitions, folder / "spark" / question, say)
            yield f"spark {question}", [joined.verdict], joined, tables.spark_table(joined)
    if "growth" in asked:
        for question in growth.QUESTIONS:
            smallest = growth.QUICK_SMALLEST if quick else growth.SMALLEST
            with progress(console) as say:
                say(f"growth of {question} ...")
                grown = growth.measure(question, smallest, repetitions, folder / "growth" / question)
            yield f"growth {question}", [grown.verdict], grown, tables.growth_table(grown)


def _asof_outcomes(console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path) -> Outcomes:
    if "kernel" in asked:
        python = peers_python(PEERS_FILE, console.print)
        rows = asof.QUICK_ROWS if quick else asof.ROWS
        with progress(console) as say:
            say(f"{rows:,} x {rows:,} rows in arrays: ours and its peers in turn ...")
            raced = kernels.measure("asof", rows, repetitions, folder / "asof", python, asof.PEERS, asof.TARGET)
        yield "kernel", [raced.verdict], raced, tables.kernel_table(raced)
    if "spark" in asked:
        for rival in asof.RIVALS:
            with progress(console) as say:
                there = folder / "spark" / rival.job
                raced_on_spark = spark_rivals.measure("as-of", rival, quick, repetitions, there, say)
            yield f"spark {rival.job}", [raced_on_spark.verdict], raced_on_spark, spark_rivals.table_of(raced_on_spark)
    if "stream" in asked:
        with progress(console) as say:
            streamed = asof.measure_stream(streaming.Track(folder, say), quick)
        yield "stream", streamed.verdicts, streamed, asof.stream_table(streamed)
    if "best" in asked:
        with progress(console) as say:
            say("growth of best match ...")
            grown = best_match.measure_growth(quick, repetitions, folder / "best")
        yield "best growth", [grown.verdict], grown, tables.growth_table(grown)
        with progress(console) as say:
            there = folder / "nearest"
            nearest = spark_rivals.measure("best match", best_match.NEAREST, quick, repetitions, there, say)
        yield "best spark", [nearest.verdict], nearest, spark_rivals.table_of(nearest)


def _lifetimes_outcomes(
    console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path
) -> Outcomes:
    sizes = lifetimes.QUICK_SIZES if quick else lifetimes.SIZES
    effort = replace(QUICK if quick else Effort(), repetitions=repetitions)
    plots = lifetimes_report.FOLDER / "quick" if quick else lifetimes_report.FOLDER
    with progress(console) as say:
        track = lifetimes.Track(asdict(effort), folder, say)
        for query in lifetimes.QUERIES:
            if query in asked:
                raced = lifetimes.measure_query(track, query, sizes)
                lifetimes_report.write_plot(query, lifetimes_report.query_plot(raced), plots)
                yield query, raced.verdicts, raced, lifetimes_report.query_table(raced)
        if "sorting" in asked:
            sorting = lifetimes.measure_sorting(track, sizes)
            lifetimes_report.write_plot("sorting", lifetimes_report.sorting_plot(sorting), plots)
            yield "sorting", sorting.verdicts, sorting, lifetimes_report.sorting_table(sorting)
        if "large" in asked:
            methods = ("direct",) if quick else ("direct", "negative")
            large = lifetimes.measure_large(track, lifetimes.QUICK_LARGE if quick else lifetimes.LARGE, methods)
            yield "large", large.verdicts, large, lifetimes_report.large_table(large)
    console.print(f"plots: {plots / 'index.html'}", highlight=False, soft_wrap=True)


def _recall_outcomes(console: Console, asked: Sequence[str], quick: bool) -> Outcomes:
    with progress(console) as say:
        yield from recall_questions.outcomes(asked, quick, say)
    console.print(f"plots: {recall_questions.folder_of(quick) / 'index.html'}", highlight=False, soft_wrap=True)


def _sweep_outcomes(console: Console, asked: Sequence[str], quick: bool) -> Outcomes:
    with progress(console) as say:
        yield from sweep.outcomes(asked, quick, say)
    console.print(f"plots: {sweep.folder_of(quick)}", highlight=False, soft_wrap=True)


def _priority_outcomes(console: Console, asked: Sequence[str], quick: bool) -> Outcomes:
    with progress(console) as say:
        yield from priority.outcomes(asked, quick, say)
    console.print(f"plots: {priority.folder_of(quick) / 'index.html'}", highlight=False, soft_wrap=True)


def _replay_outcomes(console: Console, asked: Sequence[str], quick: bool, folder: Path) -> Outcomes:
    import streamjoin as sj

    spark = sj.session()
    with progress(console) as say:
        for name in asked:
            if not recall.DATA[name].there:
                say(f"{name}: its file is not there")
                continue
            for buckets in (2, 1, 5) if name == asked[0] else (2,):
                outcome = recall_spark.measure(spark, name, buckets, quick, folder / name, say)
                yield f"{name}, {buckets} buckets", outcome.verdicts, outcome, recall_spark.table_of(outcome)


def _enough_outcomes(console: Console, asked: Sequence[str], quick: bool) -> Outcomes:
    with progress(console) as say:
        for name in asked:
            outcome = enough.measure(name, quick, say)
            if name == enough.PLOTTED and not quick:
                enough.write_plot(outcome)
            yield name, [], outcome, enough.table_of(outcome)


def _streaming_outcomes(
    console: Console,
    asked: Sequence[str],
    quick: bool,
    rows: int,
    batches: streaming.Batches,
    repetitions: int,
    folder: Path,
) -> Outcomes:
    with progress(console) as say:
        track = streaming.Track(folder, say)
        if "equality" in asked:
            for size in (1, 0, 2):  # the usual one first: others compare with it
                equal = streaming.measure_equality(track, rows, size, batches)
                if equal is not None:
                    yield f"equality {equal.rows}", equal.verdicts, equal, streaming_tables.equality_table(equal)
        if "breakdown" in asked:
            parts = streaming.measure_breakdown(track, rows, quick)
            yield "breakdown", parts.verdicts, parts, streaming_tables.breakdown_table(parts)
        if "keyless" in asked:
            keyless = streaming.measure_keyless(track, rows, batches, quick)
            yield "keyless", keyless.verdicts, keyless, streaming_tables.keyless_table(keyless)
        if "state" in asked:
            state = streaming.measure_state(track, rows, batches, quick)
            yield "state", state.verdicts, state, streaming_tables.state_table(state)
        if "bounded" in asked:
            flat = bounded.measure(track, quick)
            yield "bounded", flat.verdicts, flat, streaming_tables.bounded_table(flat)
        if "peers" in asked:
            peers = streaming_peers.measure(rows, repetitions, folder / "peers", say, console.print)
            yield "peers", peers.verdicts, peers, streaming_tables.peers_table(peers)


def _house_outcomes(
    console: Console, asked: Sequence[str], quick: bool, rounds: int, earlier: checkouts.Earlier | None, folder: Path
) -> Outcomes:
    with progress(console) as say, checkouts.checkouts(earlier, folder) as states:
        home = house.House(streaming.Track(folder, say), states, rounds)
        if set(asked) != {"restore"}:
            home.prepare()
        for question, measure in house.MEASURES.items():
            if question in asked:
                measured = measure(home, quick)
                yield question, measured.verdicts, measured, house_tables.house_table(measured)
        if "start" in asked:
            for started in house_start.measure(home, quick):
                name = f"start, {house_start.TIMES[started.which]}"
                yield name, started.verdicts, started, house_tables.start_table(started)
        if "restore" in asked:
            say("restoring, all states in turn ...")
            for restored in house_restore.measure(states, quick, rounds, folder / "restore"):
                yield f"restore, {restored.job}", restored.verdicts, restored, house_tables.restore_table(restored)
