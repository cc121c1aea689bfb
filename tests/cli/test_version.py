"""`streamjoin version`, and that the command line as a whole is there."""

from __future__ import annotations

import re
import tomllib

from typer.testing import CliRunner

from streamjoin import __version__
from streamjoin.cli import app
from tests.conftest import ROOT


def test_version_is_shown() -> None:
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0
    assert result.output == f"streamjoin {__version__}\n"


def test_version_is_the_package_s() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("demo", "explain", "run", "state", "version"):
        assert re.search(rf"\b{command}\b", result.output)


def test_an_unknown_command_is_refused() -> None:
    assert CliRunner().invoke(app, ["dmeo"]).exit_code == 2
