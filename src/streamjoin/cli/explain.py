"""`streamjoin explain`: what a job's join will do, without doing it."""

from __future__ import annotations

from typing import Annotated

import typer

import streamjoin as sj
from streamjoin.cli.complaint import complaints
from streamjoin.cli.job import JobFile, QueryOptions, TimeOption, check_names, load_job, run_job
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.tables import format_of, named_paths, read_table


def explain(
    job: JobFile,
    table: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=PATH",
            help="An input: the parameter's name, and a file or folder of Parquet, CSV or JSON. Once per input.",
        ),
    ],
    time: TimeOption = "ts",
) -> None:
    """Show the plan of a job's join: operator, order, buckets, and how long rows are kept."""
    with complaints():
        # Everything that can be wrong without Spark is found before it starts.
        paths = named_paths(table)
        for path in paths.values():
            format_of(path)
        function = load_job(job, QueryOptions(time))
        check_names(function, paths)
        spark = local_spark()
        frames = {name: read_table(spark, path) for name, path in paths.items()}
        typer.echo(sj.explain(run_job(function, spark, frames)))
