"""Where a query's results go: a folder of files.

Spark's file sink keeps a log of the files that it has committed (`_spark_metadata`), and whoever reads the folder with
Spark sees these files only. Three things follow, and each would lose rows:

- A query with a new checkpoint begins to count its batches anew. Into a folder with a log it would write nothing until
  it has counted beyond the log. So it is refused.
- `rescale` adds a micro-batch to the checkpoint that no sink hears of, and a log that leaves a number out cannot be
  read. So its entry is added here, an empty one.
- Rows written by anyone else are not in the log. When the last rows of a finished query are written beside the others,
  the log is put aside, together with what a failed task may have left behind: from then on the folder is a plain one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streamjoin import CallError
from streamjoin.cli.kept import FILE
from streamjoin.cli.replay import PLACE
from streamjoin.cli.tables import options_of

LOG: Final = "_spark_metadata"
OLD_LOG: Final = "_spark_metadata_of_the_stream"
UNCOMMITTED: Final = "_uncommitted_"
COMPACT_INTERVAL: Final = 10  # Spark's default


def check_places(out: Path, checkpoint: Path) -> None:
    """Refuse to begin where other results are, and folders that are none."""
    for option, path in (("--out", out), ("--checkpoint", checkpoint)):
        if path.exists() and not path.is_dir():
            raise CallError(f"{option} must be a folder, and {path} is a file")
    goes_on = (checkpoint / "metadata").exists()
    if not goes_on and checkpoint.is_dir() and any(file.name not in (FILE, PLACE) for file in checkpoint.iterdir()):
        raise CallError(
            f"{checkpoint} has files in it, and is not the checkpoint of a query",
            hint="give a folder that is empty, or does not exist",
        )
    if not goes_on and out.is_dir() and any(out.iterdir()):
        raise CallError(
            f"{out} has files in it, and {checkpoint} is the checkpoint of no query that wrote them",
            hint="give another --out, or the checkpoint of the query that is to go on",
        )


def check_unwritten(out: Path, checkpoint: Path, *, finish: bool) -> None:
    """Refuse to go on with a query that was ended, unless what it held was not written to the end."""
    if not finish or not (out / LOG).exists():
        raise CallError(
            f"the query of {checkpoint} was finished"
            + (", and has written all of its rows" if finish else ", and going on would repeat rows"),
            hint="give a new --checkpoint and a new --out",
        )


def fill_log(out: Path, checkpoint: Path) -> None:
    """Give the sink's log an entry for every micro-batch that is over and not in it. Every tenth has all before it."""
    log, commits = out / LOG, checkpoint / "commits"
    if not log.is_dir() or not commits.is_dir():
        return
    for number in sorted(int(file.name) for file in commits.iterdir() if file.name.isdigit()):
        wholes = sorted(log.glob("[0-9]*.compact"), key=_number)
        if (log / str(number)).exists() or (wholes and number <= _number(wholes[-1])):
            continue
        if (number + 1) % COMPACT_INTERVAL:
            (log / str(number)).write_text("v1")
            continue
        since = _number(wholes[-1]) if wholes else -1
        single = (file for file in log.iterdir() if file.name.isdigit() and since < _number(file) < number)
        parts = [*wholes[-1:], *sorted(single, key=_number)]
        lines = [line for part in parts for line in part.read_text().splitlines()[1:]]
        (log / f"{number}.compact").write_text("\n".join(["v1", *lines]))


def _number(entry: Path) -> int:
    return int(entry.name.partition(".")[0])


def start_query(frame: Any, out: Path, kind: str, checkpoint: Path, trigger: dict[str, Any]) -> Any:
    """Begin, or go on, to write a frame to a folder."""
    writer = frame.writeStream.format(kind).outputMode("append").options(**options_of(kind))
    writer = writer.option("path", str(out.resolve())).option("checkpointLocation", str(checkpoint.resolve()))
    return (writer.trigger(**trigger) if trigger else writer).start()


def write_held(spark: Any, held: Any, out: Path, kind: str) -> int:
    """Write the rows that a finished query still held beside the others; how many they were."""
    before = data_files(out)
    committed = committed_files(spark, held, out, kind) if (out / LOG).exists() else before
    held.write.format(kind).options(**options_of(kind)).mode("append").save(str(out.resolve()))
    new = data_files(out) - before
    for file in before - committed:
        file.rename(file.with_name(UNCOMMITTED + file.name))
    if (out / LOG).exists():
        (out / LOG).rename(out / OLD_LOG)
    if not new:
        return 0
    reader = spark.read.format(kind).options(**options_of(kind)).schema(held.schema)
    return int(reader.load([str(file.resolve()) for file in sorted(new)]).count())


def committed_files(spark: Any, held: Any, out: Path, kind: str) -> set[Path]:
    """The files of the folder that are in its log."""
    seen = spark.read.format(kind).schema(held.schema).load(str(out.resolve())).inputFiles()
    return {out / address.rsplit("/", 1)[1] for address in seen}


def data_files(out: Path) -> set[Path]:
    """The files of the folder that a reader sees who knows no log."""
    files = out.iterdir() if out.is_dir() else ()
    return {file for file in files if file.is_file() and not file.name.startswith(("_", "."))}
