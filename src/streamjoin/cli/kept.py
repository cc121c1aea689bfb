"""What `streamjoin run` remembers of a query: format and columns of its inputs, format of its results, in a file of the
checkpoint.

A query can only go on with the columns that it has begun with. Types that are guessed from CSV or JSON depend on the
files that are there, and files come and go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamjoin.api import schema_from_json
from streamjoin.cli.tables import Shape

FILE: Final = "streamjoin.json"


def kept_shapes(checkpoint: Path | None) -> dict[str, Shape]:
    """What a query has begun with, by the input's name; nothing while it has begun no micro-batch."""
    inputs = _kept(checkpoint).get("inputs", {})
    return {name: Shape(each["format"], schema_from_json(json.dumps(each["columns"]))) for name, each in inputs.items()}


def kept_format(checkpoint: Path | None) -> str | None:
    """The format in which a query has begun to write; nothing while it has begun no micro-batch."""
    return _kept(checkpoint).get("output")


def keep_shapes(checkpoint: Path, shapes: Mapping[str, Shape], output: str) -> None:
    """Remember it, for whoever goes on. Renamed into place, so that nobody finds half of it."""
    inputs: dict[str, Any] = {
        name: {"format": shape.kind, "columns": json.loads(shape.columns.json())} for name, shape in shapes.items()
    }
    checkpoint.mkdir(parents=True, exist_ok=True)
    scratch = checkpoint / f".{FILE}.new"
    scratch.write_text(json.dumps({"inputs": inputs, "output": output}, indent=1) + "\n")
    scratch.rename(checkpoint / FILE)


def _kept(checkpoint: Path | None) -> dict[str, Any]:
    if checkpoint is None or not (checkpoint / FILE).exists() or not (checkpoint / "offsets").is_dir():
        return {}
    return json.loads((checkpoint / FILE).read_text())  # type: ignore[no-any-return]
