"""The command line: one file per subcommand, registered below."""

import typer

from streamjoin.cli import bench
from streamjoin.cli.chaos import chaos
from streamjoin.cli.demo import demo
from streamjoin.cli.explain import explain
from streamjoin.cli.reproduce import reproduce
from streamjoin.cli.rescale import rescale
from streamjoin.cli.run import run
from streamjoin.cli.state import state
from streamjoin.cli.version import version

app = typer.Typer(
    name="streamjoin",
    help="The joins that Spark does not have, over streams and tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.add_typer(bench.app, name="bench")
app.command()(chaos)
app.command()(demo)
app.command()(explain)
app.command()(reproduce)
app.command()(rescale)
app.command()(run)
app.command()(state)
app.command()(version)


@app.callback()
def streamjoin() -> None:
    # With a callback, typer keeps subcommands even while there is only one. Its help is the app's.
    pass


def main() -> None:
    """The entry point of the `streamjoin` script."""
    app()
