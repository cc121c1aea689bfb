"""What `streamjoin bench` runs: one function per command."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

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
    recall,
    recall_questions,
    recall_spark,
    similar,
    spark_nested_loop,
    spark_rivals,
    streaming,
    streaming_peers,
    streaming_tables,
    tables,
)
from benchmarks.environments import ROOT, peers_python, requirements_of
from benchmarks.errors import BenchmarkError
from benchmarks.lifetimes_run import QUICK, Effort
from benchmarks.race import Verdict

PEERS_FILE: Final = Path(__file__).parent / "peers.txt"
KERNEL_QUESTIONS: Final = (*kernels.PEERS, "spark", "growth")
STREAMING_QUESTIONS: Final = ("equality", "peers", "keyless", "breakdown", "state", "bounded")
FEWEST_REPETITIONS: Final = 5
BUSY: Final = 0.5  # of a core, by others, when a measurement begins

# The question's name, its verdicts, all that was found out, and a table of it.
Outcomes = Iterator[tuple[str, list[Verdict], Any, Table]]


def run_kernels(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench kernels`: measure, print a table as soon as it is there, and all verdicts at the end."""
    asked = _asked(only, KERNEL_QUESTIONS)
    _check_repetitions(repetitions, quick)
    report = {
        "command": "kernels",
        "quick": quick,
        "repetitions": repetitions,
        **_circumstances(requirements_of(PEERS_FILE.read_text())),
    }
    _introduce(console, report, f"{repetitions} repetitions in turn, medians")
    return _reported(
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
    asked = _asked(only, STREAMING_QUESTIONS)
    size = rows or (streaming.QUICK_ROWS if quick else streaming.ROWS)
    streaming.check_size(size)
    counts = streaming.chosen_batches(batches, streaming.QUICK_BATCHES if quick else streaming.BATCHES)
    report = {"command": "streaming", "quick": quick, "rows": size, "batches": counts}
    # A peer comes first in its file; what it stands on follows.
    report |= _circumstances([requirements_of(file.read_text())[0] for file in streaming_peers.REQUIREMENTS.values()])
    _introduce(console, report, "medians of warm micro-batches")
    return _reported(
        console,
        report,
        lambda folder: _streaming_outcomes(console, asked, quick, size, counts, repetitions, folder),
        json_path,
    )


def run_asof(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench asof`: the same for joins whose rows choose, as-of and best match."""
    asked = _asked(only, asof.QUESTIONS)
    _check_repetitions(repetitions, quick)
    report = {"command": "asof", "quick": quick, "repetitions": repetitions}
    report |= _circumstances(requirements_of(PEERS_FILE.read_text()))
    _introduce(console, report, f"{repetitions} repetitions in turn, medians")
    return _reported(
        console, report, lambda folder: _asof_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def run_lifetimes(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench lifetimes`: the direct method against plus and minus tuples; plots go to build/lifetimes."""
    asked = _asked(only, lifetimes.QUESTIONS)
    _check_repetitions(repetitions, quick)
    report = {"command": "lifetimes", "quick": quick, "repetitions": repetitions, **_circumstances([])}
    _introduce(console, report, f"{repetitions} repetitions in turn, medians, one thread")
    return _reported(
        console, report, lambda folder: _lifetimes_outcomes(console, asked, quick, repetitions, folder), json_path
    )


def run_recall(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench recall`: joins to a recall target, by data set."""
    asked = _asked(only, recall_questions.QUESTIONS)
    report = {"command": "recall", "quick": quick, **_circumstances([])}
    _introduce(console, report, "replays in micro-batches; only `cost` is timed, in seconds of the process")
    return _reported(console, report, lambda folder: _recall_outcomes(console, asked, quick), json_path)


def run_replay(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench replay`: the same through Spark, row for row against this process."""
    asked = _asked(only, recall_spark.QUESTIONS)
    report = {"command": "replay", "quick": quick, **_circumstances([])}
    _introduce(console, report, "replays through Spark, nothing is timed")
    return _reported(console, report, lambda folder: _replay_outcomes(console, asked, quick, folder), json_path)


def run_enough(console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None) -> list[Verdict]:
    """`streamjoin bench enough`: graces, the largest delay and targets on the same streams, for the guide."""
    asked = _asked(only, enough.QUESTIONS)
    report = {"command": "enough", "quick": quick, **_circumstances([])}
    _introduce(console, report, "replays in micro-batches, nothing is timed")
    return _reported(console, report, lambda folder: _enough_outcomes(console, asked, quick), json_path)


def run_similar(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench similar`: similar sets against Spark's nested loop, their growth, and boxes."""
    asked = _asked(only, similar.QUESTIONS)
    _check_repetitions(repetitions, quick)
    report = {"command": "similar", "quick": quick, "repetitions": repetitions, **_circumstances([])}
    _introduce(console, report, f"{repetitions} repetitions of ours, medians")
    return _reported(
        console,
        report,
        lambda folder: similar.outcomes(_progress(console), asked, quick, repetitions, folder),
        json_path,
    )


def run_house(
    console: Console, *, quick: bool, against: str, rounds: int | None, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench house`: this state of the code, and an earlier one beside it."""
    asked = _asked(only, house.QUESTIONS)
    earlier = checkouts.named(against)
    times = rounds or (1 if quick else house.ROUNDS)
    report = {"command": "house", "quick": quick, "rounds": times, "against": earlier and earlier.name}
    report |= _circumstances([])
    against_whom = "nothing earlier" if earlier is None else f"against {earlier.name}"
    _introduce(console, report, f"{against_whom}; {times} rounds in turn, medians")
    return _reported(
        console, report, lambda folder: _house_outcomes(console, asked, quick, times, earlier, folder), json_path
    )


def _check_repetitions(repetitions: int, quick: bool) -> None:
    if repetitions < FEWEST_REPETITIONS and not quick:
        raise BenchmarkError(
            f"a measurement needs at least {FEWEST_REPETITIONS} repetitions, got {repetitions}",
            hint="--quick allows fewer, and is not a measurement",
        )


def _asked(only: Sequence[str], questions: Sequence[str]) -> list[str]:
    unknown = sorted(set(only) - set(questions))
    if unknown:
        raise BenchmarkError(f"there is no question {unknown[0]!r}", hint="choose from " + ", ".join(questions))
    return [question for question in questions if not only or question in only]


def _reported(
    console: Console, report: dict[str, Any], outcomes: Callable[[Path], Outcomes], json_path: Path | None
) -> list[Verdict]:
    report["questions"] = {}
    verdicts: list[Verdict] = []
    start = time.monotonic()
    # Whoever is asked to end, ends its contenders too, and removes its files: as for ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="streamjoin-bench-") as folder:
        for name, found, outcome, table in outcomes(Path(folder)):
            console.print(table)
            verdicts.extend(found)
            report["questions"][name] = outcome.to_json()
            report["minutes"] = (time.monotonic() - start) / 60
            if json_path is not None:  # every time: an hour's work is not lost with its last minute
                json_path.write_text(json.dumps(report, indent=2) + "\n")
    tables.print_verdicts(console, verdicts, report["quick"])
    console.print(f"{(time.monotonic() - start) / 60:.1f} minutes in all", highlight=False)
    return verdicts


def _kernel_outcomes(console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path) -> Outcomes:
    for question in kernels.PEERS:
        if question in asked:
            python = peers_python(PEERS_FILE, console.print)
            rows = kernels.QUICK_ROWS if quick else kernels.ROWS
            with _progress(console) as say:
                say(f"{question}: ours and its peers in turn ...")
                raced = kernels.measure(question, rows, repetitions, folder / question, python)
            yield question, [raced.verdict], raced, tables.kernel_table(raced)
    if "spark" in asked:
        for question in spark_nested_loop.QUESTIONS:
            rows = spark_nested_loop.QUICK_ROWS if quick else spark_nested_loop.ROWS
            with _progress(console) as say:
                joined = spark_nested_loop.measure(question, rows, repetitions, folder / "spark" / question, say)
            yield f"spark {question}", [joined.verdict], joined, tables.spark_table(joined)
    if "growth" in asked:
        for question in growth.QUESTIONS:
            smallest = growth.QUICK_SMALLEST if quick else growth.SMALLEST
            with _progress(console) as say:
                say(f"growth of {question} ...")
                grown = growth.measure(question, smallest, repetitions, folder / "growth" / question)
            yield f"growth {question}", [grown.verdict], grown, tables.growth_table(grown)


def _asof_outcomes(console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path) -> Outcomes:
    if "kernel" in asked:
        python = peers_python(PEERS_FILE, console.print)
        rows = asof.QUICK_ROWS if quick else asof.ROWS
        with _progress(console) as say:
            say(f"{rows:,} x {rows:,} rows in arrays: ours and its peers in turn ...")
            raced = kernels.measure("asof", rows, repetitions, folder / "asof", python, asof.PEERS, asof.TARGET)
        yield "kernel", [raced.verdict], raced, tables.kernel_table(raced)
    if "spark" in asked:
        for rival in asof.RIVALS:
            with _progress(console) as say:
                there = folder / "spark" / rival.job
                raced_on_spark = spark_rivals.measure("as-of", rival, quick, repetitions, there, say)
            yield f"spark {rival.job}", [raced_on_spark.verdict], raced_on_spark, spark_rivals.table_of(raced_on_spark)
    if "stream" in asked:
        with _progress(console) as say:
            streamed = asof.measure_stream(streaming.Track(folder, say), quick)
        yield "stream", streamed.verdicts, streamed, asof.stream_table(streamed)
    if "best" in asked:
        with _progress(console) as say:
            say("growth of best match ...")
            grown = best_match.measure_growth(quick, repetitions, folder / "best")
        yield "best growth", [grown.verdict], grown, tables.growth_table(grown)
        with _progress(console) as say:
            there = folder / "nearest"
            nearest = spark_rivals.measure("best match", best_match.NEAREST, quick, repetitions, there, say)
        yield "best spark", [nearest.verdict], nearest, spark_rivals.table_of(nearest)


def _lifetimes_outcomes(
    console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path
) -> Outcomes:
    sizes = lifetimes.QUICK_SIZES if quick else lifetimes.SIZES
    effort = replace(QUICK if quick else Effort(), repetitions=repetitions)
    plots = lifetimes_report.FOLDER / "quick" if quick else lifetimes_report.FOLDER
    with _progress(console) as say:
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
    with _progress(console) as say:
        yield from recall_questions.outcomes(asked, quick, say)
    console.print(f"plots: {recall_questions.folder_of(quick) / 'index.html'}", highlight=False, soft_wrap=True)


def _replay_outcomes(console: Console, asked: Sequence[str], quick: bool, folder: Path) -> Outcomes:
    import streamjoin as sj

    spark = sj.session()
    with _progress(console) as say:
        for name in asked:
            if not recall.DATA[name].there:
                say(f"{name}: its file is not there")
                continue
            for buckets in (2, 1, 5) if name == asked[0] else (2,):
                outcome = recall_spark.measure(spark, name, buckets, quick, folder / name, say)
                yield f"{name}, {buckets} buckets", outcome.verdicts, outcome, recall_spark.table_of(outcome)


def _enough_outcomes(console: Console, asked: Sequence[str], quick: bool) -> Outcomes:
    with _progress(console) as say:
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
    with _progress(console) as say:
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
    with _progress(console) as say, checkouts.checkouts(earlier, folder) as states:
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


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A line that says what is going on: it changes on a terminal, and is a new one in a log."""
    with console.status("") as status:
        yield status.update if console.is_terminal else partial(console.print, style="dim", highlight=False)


def _circumstances(peers: Sequence[str]) -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line.split(":")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
        model = names[0].strip() if names else model
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "machine": f"{model}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "load": os.getloadavg()[0],
        "peers": list(peers),
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _introduce(console: Console, report: dict[str, Any], how: str) -> None:
    if report["quick"]:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    console.print(
        f"streamjoin at {report['commit']}; {report['machine']}; Python {report['python']}; "
        f"{'; '.join(filter(None, [', '.join(report['peers']), how]))}; started {report['started']}",
        highlight=False,
        soft_wrap=True,
    )
    if report["load"] > BUSY:
        console.print(f"[yellow]This machine is busy (load {report['load']:.1f}): expect noise.[/]", highlight=False)
