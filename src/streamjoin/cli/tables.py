"""Inputs from files: `NAME=PATH` on the command line to frames by name. A path is a file or a folder of them.

| files end in                    | format  | types                                            |
|---------------------------------|---------|--------------------------------------------------|
| .parquet                        | Parquet | the files'                                       |
| .csv                            | CSV     | guessed from the values; the first line has names |
| .json, .jsonl, .ndjson          | JSON    | guessed from the values; one object per line     |

The last two also compressed: .gz, .bz2, .zst. In a folder, names that begin with `_` or `.` do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamjoin import CallError
from streamjoin.api import schema_from_json

FORMATS: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
COMPRESSED: Final = (".gz", ".bz2", ".zst")
# Types from values: the first for CSV, the second for JSON; each format leaves alone what it does not know.
GUESSING: Final = {"inferSchema": True, "inferTimestamp": True}
# A file that comes later and does not fit the guess stops the query. Otherwise Spark would read CSV by position,
# whatever its first line says, and a value of another type as NULL.
STRICT: Final[dict[str, dict[str, Any]]] = {
    # Of a row that does not fit Spark would not notice it where the columns that are wrong are not asked for.
    "csv": {"enforceSchema": False, "mode": "FAILFAST", "columnPruning": False},
    "json": {"mode": "FAILFAST"},
}
# The column in which a row has its text that does not fit the others.
BAD: Final = "_streamjoin_bad_row"


def named_paths(options: Iterable[str]) -> dict[str, Path]:
    """The paths by name.

    >>> named_paths(["R=data/r.csv"])
    {'R': PosixPath('data/r.csv')}
    """
    paths: dict[str, Path] = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not equals or not name.isidentifier() or not path:
            raise CallError(f"an input is written NAME=PATH, got {option!r}", hint="for example R=data/r.csv")
        if name == "spark":
            raise CallError("an input cannot be called 'spark'", hint="that name is the session's")
        if name in paths:
            raise CallError(f"the input {name!r} was given twice", hint="a folder can hold several files")
        paths[name] = Path(path)
    return paths


def format_of(path: Path) -> str:
    """The format of a file, or the one format of all files in a folder."""
    if not path.exists():
        raise CallError(f"there is no file or folder {path}")
    files = files_of(path)
    if not files:
        raise CallError(f"the folder {path} has no files")
    found: dict[str, Path] = {}
    for file in files:
        plain = file.with_suffix("") if file.suffix in COMPRESSED else file
        kind = FORMATS.get(plain.suffix.lower())
        if kind is None:
            raise CallError(f"cannot tell the format of {file}", hint=f"files must end in {', '.join(FORMATS)}")
        found.setdefault(kind, file)
    if len(found) > 1:
        raise CallError(
            f"the folder {path} mixes formats: {' and '.join(str(file) for file in found.values())}",
            hint="put them into folders of their own",
        )
    return next(iter(found))


def files_of(path: Path) -> list[Path]:
    """The file, or the files of a folder that count."""
    return [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if _counts(file, path)]


def _counts(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden


@dataclass(frozen=True)
class Shape:
    """What is known of an input without a look at its files: their format, and its columns, as Spark takes them."""

    kind: str | None = None
    columns: Any = None


UNKNOWN: Final = Shape()


def kind_of(path: Path, known: Shape) -> str:
    """The format of an input, which does not change; files that were read may have been removed."""
    if known.kind is not None and path.is_dir() and not files_of(path):
        return known.kind
    found = format_of(path)
    if known.kind not in (None, found):
        raise CallError(
            f"the files of {path} are {found}, and the query has begun with {known.kind}",
            hint="put them into a folder of their own, for a query of its own",
        )
    return found


def read_table(spark: Any, path: Path, known: Shape = UNKNOWN) -> Any:
    """The rows of a file or folder as a frame."""
    kind = kind_of(path, known)
    reader = spark.read.format(kind).options(**options_of(kind))
    if known.columns is None:
        return reader.options(**GUESSING).load(str(path.resolve()))
    return reader.schema(known.columns).options(**STRICT.get(kind, {})).load(str(path.resolve()))


def read_strictly(spark: Any, path: Path, known: Shape = UNKNOWN) -> Any:
    """The same, where rows that do not fit the columns end it, as they end a stream, and are not read as NULLs."""
    columns = read_table(spark, path, known).schema
    return read_table(spark, path, Shape(kind_of(path, known), columns))


def read_stream(
    spark: Any,
    path: Path,
    files_per_batch: int | None = None,
    known: Shape = UNKNOWN,
    *,
    bad_rows: bool = False,
    bytes_per_batch: int | None = None,
) -> Any:
    """The rows of a folder as a stream: of the files that are there, the oldest first, and of those that come.

    A single file is a stream that ends with it. With `bad_rows` rows that do not fit the columns do not end the query:
    they have their text in a column `BAD`, see `good_part`.
    """
    kind = kind_of(path, known)
    # A stream must know its columns before it begins; the files that are there show them.
    columns = read_table(spark, path, known).schema
    reader = spark.readStream.format(kind).options(**options_of(kind)).options(**STRICT.get(kind, {}))
    if bad_rows and kind in STRICT:
        columns = schema_from_json(columns.json()).add(BAD, "string")
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=BAD)
    reader = reader.schema(columns)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    if bytes_per_batch is not None:
        reader = reader.option("maxBytesPerTrigger", bytes_per_batch)
    if path.is_file():  # Spark knows streams of folders only
        return reader.option("pathGlobFilter", path.name).load(str(path.resolve().parent))
    return reader.load(str(path.resolve()))


def options_of(kind: str) -> dict[str, Any]:
    """How files of a format are read, and written.

    >>> options_of("csv"), options_of("parquet")
    ({'header': True}, {})
    """
    return {"header": True} if kind == "csv" else {}
