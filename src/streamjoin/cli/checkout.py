"""Packages that are in a checkout of streamjoin and not in the installed package: benchmarks and chaos."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import typer


def checkout_module(package: str, module: str, *, command: str) -> Any:
    """A module of the checkout that this package is installed from (`./sj` does that), or that we are in."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / package / "commands.py").is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(f"{package}.{module}")
    typer.echo(
        f"streamjoin {command}: {package}/ is not part of the installed package, and there is none in {Path.cwd()}. "
        f"Hint: run ./sj {command} in a checkout of streamjoin.",
        err=True,
    )
    raise typer.Exit(2)
