"""Rows that do not fit the columns of their stream, put aside by a query of their own.

It reads the same files beside the main query, and keeps its place in the same checkpoint, so each of these rows is
written once, whatever happens to either of the two. Both see a row alike: in all of its columns, whichever are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamjoin import CallError
from streamjoin.cli.tables import BAD, STRICT

PLACE: Final = "bad_rows"


def check_bad_rows(path: Path | None, kinds: Mapping[str, str]) -> None:
    """Refuse to wait for rows that cannot come."""
    if path is not None and path.exists() and not path.is_dir():
        raise CallError(f"--bad-rows must be a folder, and {path} is a file")
    if path is not None and not any(kind in STRICT for kind in kinds.values()):
        raise CallError(
            "--bad-rows is for rows of CSV and JSON that do not fit, and no stream is of these",
            hint="leave it out",
        )


def good_part(frame: Any) -> Any:
    """The rows that fit."""
    return frame if BAD not in frame.columns else frame.where(f"{BAD} IS NULL AND {_all_read(frame)}").drop(BAD)


def start_bad_rows(frames: Mapping[str, Any], path: Path, checkpoint: Path, trigger: Mapping[str, Any]) -> Any:
    """Begin, or go on, to write the rows that do not fit: as JSON, with the stream and the file that they came in."""
    parts = [_bad_part(frames[name], name) for name in sorted(frames) if BAD in frames[name].columns]
    rows = parts[0]
    for more in parts[1:]:
        rows = rows.unionAll(more)
    writer = rows.writeStream.format("json").option("path", str(path.resolve()))
    writer = writer.option("checkpointLocation", str((checkpoint / PLACE).resolve()))
    return (writer.trigger(**trigger) if trigger else writer).start()


def _bad_part(frame: Any, name: str) -> Any:
    columns = ", ".join(column.simpleString().replace(":", " ", 1) for column in frame.schema if column.name != BAD)
    return frame.where(f"{BAD} IS NOT NULL AND {_all_read(frame)}").selectExpr(
        f"'{name}' stream", "_metadata.file_path file", f"{BAD} row", f"{columns!r} columns"
    )


def _all_read(frame: Any) -> str:
    """A condition that is true of every row, and needs all columns: Spark looks only at those that somebody asks for,
    and would find a row good for one query and bad for the other.
    """
    names = (column.name for column in frame.schema if column.name != BAD and column.dataType.typeName() != "map")
    quoted = ("`" + name.replace("`", "``") + "`" for name in names)
    return f"xxhash64({', '.join(quoted)}) % 2 < 2"
