"""`streamjoin version`."""

import typer

from streamjoin import __version__


def version() -> None:
    """Show the version."""
    typer.echo(f"streamjoin {__version__}")
