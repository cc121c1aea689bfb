"""`streamjoin bench`: measure, beside what users would pick instead. The benchmarks are in the checkout, not here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from streamjoin.cli.checkout import checkout_module

app = typer.Typer(help="Measure, beside what users would pick instead.", no_args_is_help=True)


@app.command()
def kernels(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of every contender, in turn; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of overlap,band,within,spark,growth.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Pairs from arrays against DuckDB, Polars, ncls and scipy; frames against Spark's nested loop; growth with n."""
    _run("kernels", only, quick=quick, repetitions=repetitions, json_path=json)


@app.command()
def streaming(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    rows: Annotated[
        int | None, typer.Option(help="Of both sides of a usual micro-batch; 1,000,000 by default.")
    ] = None,
    batches: Annotated[
        str,
        typer.Option(help="Micro-batches of streamjoin, hdfs or rocksdb, for example hdfs=12,rocksdb=6/3/2 by size."),
    ] = "",
    repetitions: Annotated[int, typer.Option(help="Of the whole runs against peers, in turn.", min=1)] = 1,
    only: Annotated[str, typer.Option(help="Some of equality,peers,keyless,breakdown,state,bounded.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Warm micro-batches against Spark's own join; whole runs against Flink and Pathway; without keys; more state."""
    _run("streaming", only, quick=quick, rows=rows, batches=batches, repetitions=repetitions, json_path=json)


@app.command()
def asof(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of every contender, in turn; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of kernel,spark,stream,best.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """As-of joins against DuckDB, Polars and Spark's own two, and in micro-batches; best match against Spark's own."""
    _run("asof", only, quick=quick, repetitions=repetitions, json_path=json)


@app.command()
def nway(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of every contender, in turn; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of overlap,equality,batch,streaming,document.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Four inputs at once, against DuckDB, Polars and a cascade of our own joins; through Spark, batch and stream."""
    _run("nway", only, quick=quick, repetitions=repetitions, json_path=json)


@app.command()
def spill(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    only: Annotated[str, typer.Option(help="Some of band,equality,overlap,spark,spark-band,...,restore.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """State in files under a budget, beside the same join with all of it in memory; on Spark too; and restoring it."""
    _run("spill", only, quick=quick, json_path=json)


@app.command()
def lifetimes(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of both methods, in turn; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of selection,projection,union,join,sorting,large.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Lifetimes: ends known or held against plus and minus tuples; lazy against insertion sort; 10M-row windows."""
    _run("lifetimes", only, quick=quick, repetitions=repetitions, json_path=json)


@app.command()
def recall(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams: a smoke test, not a measurement.")] = False,
    only: Annotated[str, typer.Option(help="Some of the data sets: exp,pareto,bimodal,mobile,D1,...")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Recall targets on streams out of order: true and predicted recall, and rows kept, beside fixed and K-slack."""
    _run("recall", only, quick=quick, json_path=json)


@app.command()
def sweep(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams: to see that everything works.")] = False,
    only: Annotated[str, typer.Option(help="Some of pages,adaptivity,traversal,pmj.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was counted to this file.")] = None,
) -> None:
    """Joins in sorted runs (TPMJ), the document's experiment: page accesses of strategies, results over time."""
    _run("sweep", only, quick=quick, json_path=json)


@app.command()
def replay(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter streams.")] = False,
    only: Annotated[str, typer.Option(help="Some of the data sets: exp,pareto,bimodal,mobile,D1,...")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was found to this file.")] = None,
) -> None:
    """Recall targets through Spark: every data set, cut by arrival, row for row against the plan in one process."""
    _run("replay", only, quick=quick, json_path=json)


@app.command()
def enough(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams, and the plot of the guide stays.")] = False,
    only: Annotated[str, typer.Option(help="Some of mobile,regime,exp.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Fixed graces, the largest delay and recall targets on the same streams: what each keeps, and misses."""
    _run("enough", only, quick=quick, json_path=json)


@app.command()
def similar(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of ours; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of sets,growth,boxes.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Similar sets against Spark's nested loop with its own functions, their growth; boxes, dimensions together."""
    _run("similar", only, quick=quick, repetitions=repetitions, json_path=json)


@app.command()
def priority(
    quick: Annotated[bool, typer.Option("--quick", help="Few elements and loads: a smoke test.")] = False,
    only: Annotated[str, typer.Option(help="Some of claims,priorities,share,cost,trains,formula,alarms.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Prioritised elements: schedulers and buffers on a virtual clock, each claim of the document, held or not."""
    _run("priority", only, quick=quick, json_path=json)


@app.command()
def lanes(
    quick: Annotated[bool, typer.Option("--quick", help="Small and short: a smoke test, not a measurement.")] = False,
    seconds: Annotated[float | None, typer.Option(help="Of overload; 120 by default, quick 6.", min=1)] = None,
    only: Annotated[str, typer.Option(help="Some of overload,task.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Urgent rows on Spark at 1.5 times the throughput: in a lane of their own, and without; and within a task."""
    _run("lanes", only, quick=quick, seconds=seconds, json_path=json)


@app.command()
def house(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    against: Annotated[str, typer.Option(help="An earlier commit, or a folder with a checkout; none by default.")] = "",
    rounds: Annotated[int | None, typer.Option(help="Of everyone, in turn; 3 by default, quick 1.", min=1)] = None,
    only: Annotated[str, typer.Option(help="Some of equality,group,small,start,restore.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """This state of the code against an earlier one: large, grouped and small micro-batches, the start, a restore."""
    _run("house", only, quick=quick, against=against, rounds=rounds, json_path=json)


@app.command("list")
def list_() -> None:
    """All questions of all commands: what they ask, beside whom, their goals, and how many minutes they take."""
    _benchmarks("all_questions").list_questions(_console(wide=160))


@app.command("all")
def all_(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    only: Annotated[str, typer.Option(help="Some commands or questions: kernels,streaming.equality,...")] = "",
    json: Annotated[
        Path | None, typer.Option(help="Where figures are kept; docs/benchmarks.json, quick ones under build/.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what has an answer for this code.")] = False,
    against: Annotated[str, typer.Option(help="An earlier commit for the questions of `house`.")] = "",
    at_once: Annotated[
        int | None, typer.Option(help="Questions side by side, of those without times; by default 2 on 2 cores.", min=1)
    ] = None,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Answers with times stand that were found on other machines.")
    ] = False,
) -> None:
    """All questions, each in a process of its own; goes on where it was stopped."""
    questions = _benchmarks("all_questions")
    with _told():
        options = {"quick": quick, "only": _names(only), "json_path": json, "again": again, "against": against}
        if not questions.run_all(_console(), at_once=at_once, elsewhere=elsewhere, **options):
            raise typer.Exit(1)


@app.command()
def table(
    into: Annotated[Path | None, typer.Option(help="A file with marks for the table, for example README.md.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the figures are; docs/benchmarks.json by default.")] = None,
) -> None:
    """What `bench all` found as a Markdown table, printed or put into a file."""
    questions = _benchmarks("all_questions")
    with _told():
        questions.show_table(_console(), json_path=json, into=into)


def _run(command: str, only: str, **options: Any) -> None:
    """A command of `benchmarks/asking`."""
    commands = _benchmarks("commands")
    with _told():
        commands.run(_console(), command, only=_names(only), **options)


def _names(only: str) -> list[str]:
    return [name.strip() for name in only.split(",") if name.strip()]


def _console(wide: int = 140) -> Console:
    return Console(width=None if sys.stdout.isatty() else wide)


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong in a benchmark is one sentence."""
    try:
        yield
    except _benchmarks("errors").BenchmarkError as error:
        typer.echo(f"streamjoin bench: {error}", err=True)
        raise typer.Exit(1) from None


def _benchmarks(module: str) -> Any:
    return checkout_module("benchmarks", module, command="bench")
