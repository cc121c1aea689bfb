"""`streamjoin rescale`: the state of a stopped query over more partitions, or fewer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamjoin.api import rescale_query
from streamjoin.cli.arguments import Verbose
from streamjoin.cli.complaint import complaints
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.output import fill_log
from streamjoin.cli.state import check_checkpoint


def rescale(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint of a query that has stopped.")],
    partitions: Annotated[int, typer.Option(min=1, help="How many tasks may work on its state at once.")],
    out: Annotated[
        Path | None, typer.Option(help="The query's output, if it is of files; `run` sees to its own.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Spread the state of a stopped query over another number of partitions. Its buckets stay what they are."""
    with complaints(), readable_failures(verbose=verbose):
        check_checkpoint(checkpoint)
        buckets = rescale_query(local_spark(), str(checkpoint.resolve()), partitions)
        if out is not None:
            fill_log(out, checkpoint)
        typer.echo(f"{checkpoint}: {buckets} buckets over {partitions} partition{'s' * (partitions != 1)}")
