"""Replays: files that hold when each of their rows arrived, fed to a query as if they arrived now.

    --arrival COLUMN --arrival-interval "1 s"

All streams are cut at the same arrival times: a micro-batch has the rows of every stream that arrived in one interval.
Intervals in which nothing arrived anywhere are left out.

The cut happens once, before the query starts, by Spark: a file for each stream and interval, in the checkpoint, empty
where a stream has no rows and another one has. Spark takes one file of each stream at a time, the oldest first, and the
files' times are made to follow the intervals. So it does not matter how often the query is stopped: what a micro-batch
holds is settled by then. The times are set anew at every start, because copies of a checkpoint lose them.

One thing is repaired before a query goes on. Spark notes the files of the next micro-batch stream by stream, and then
that there is such a micro-batch. Killed in between, it would take one file more of some streams the next time; so notes
of a micro-batch that nobody knows are removed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamjoin import CallError, UnknownColumnError
from streamjoin.algebra import TimeAxis
from streamjoin.cli.job import number_or_text
from streamjoin.cli.tables import files_of, read_stream
from streamjoin.errors import near_or_all
from streamjoin.plan.condition import quoted

PLACE: Final = "replay"  # in the checkpoint
CUT: Final = "cut.json"  # in that place, when all is cut
_OLDEST: Final = 1_000_000_000  # seconds: the time of the first files
_AXES: Final = {
    "timestamp": TimeAxis.TIMESTAMP,
    "timestamp_ntz": TimeAxis.TIMESTAMP,
    "date": TimeAxis.DATE,
    **dict.fromkeys(("byte", "short", "integer", "long"), TimeAxis.INTEGER),
}
_TICKS: Final = {
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})",
    "date": "CAST(unix_date({}) AS BIGINT)",
}


@dataclass(frozen=True)
class Replay:
    """What was asked for: the column that says when a row arrived, and how much arrival makes a micro-batch."""

    column: str
    interval: str

    @staticmethod
    def of(column: str | None, interval: str | None, **beside: Any) -> Replay | None:
        """From the options as they were typed; `beside` are options that mean nothing then."""
        if column is None and interval is None:
            return None
        if column is None or interval is None:
            raise CallError(
                "--arrival-interval is missing" if interval is None else "--arrival is missing beside its interval",
                hint='a replay needs both: --arrival COLUMN --arrival-interval "1 s"',
            )
        for option, value in beside.items():
            if value is not None:
                raise CallError(
                    f"--{option.replace('_', '-')} beside --arrival: a replay is cut by arrival before it starts, "
                    "and ends with its files",
                    hint="leave one of the two out",
                )
        return Replay(column, interval)

    def ticks(self, frames: Mapping[str, Any]) -> int:
        """The interval in ticks of the column, which every stream must have, of one type."""
        kinds: dict[str, str] = {}
        for name, frame in frames.items():
            found = {field.name: field.dataType.typeName() for field in frame.schema}
            if self.column not in found:
                raise UnknownColumnError(
                    f"--arrival is {self.column}, and the stream {name} has no such column",
                    hint=near_or_all(self.column, found, "it has"),
                )
            kinds[name] = found[self.column]
        axes = {name: _AXES.get(kind) for name, kind in kinds.items()}
        for name, axis in axes.items():
            if axis is None:
                raise CallError(
                    f"--arrival is {self.column}, which is of type {kinds[name]} in the stream {name}",
                    hint="it must be a timestamp, a date or a whole number; --schema says the types of CSV and JSON",
                )
        if len({(axes[name], kind == "timestamp_ntz") for name, kind in kinds.items()}) > 1:
            types = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            raise CallError(f"streams are cut at the same arrival times, and {self.column} is {types}")
        axis = next(iter(axes.values()))
        assert axis is not None
        plain = axis is TimeAxis.INTEGER
        ticks = axis.ticks(number_or_text(self.interval) if plain else self.interval, "--arrival-interval")
        if ticks <= 0:
            raise CallError(f"--arrival-interval must be positive, got {self.interval!r}")
        return ticks

    def streams(
        self, spark: Any, frames: Mapping[str, Any], paths: Mapping[str, Path], checkpoint: Path, schemas: Any
    ) -> dict[str, Any]:
        """The streams to replay. `frames` have all of their rows; they are cut here, unless that has been done."""
        place, interval = checkpoint / PLACE, self.ticks(frames)
        cut = {"column": self.column, "interval": interval, "schemas": dict(schemas)}
        if not (place / CUT).exists():
            self._check_new(checkpoint)
            files = {name: _stamps(path) for name, path in paths.items()}
            self._cut(frames, interval, place)
            whole = place / f".{CUT}.new"
            whole.write_text(json.dumps(cut | {"files": files, "place": str(place.resolve())}, indent=1) + "\n")
            whole.rename(place / CUT)
        self._check_same(place, cut, paths)
        intervals = max(_in_order(place / name) for name in paths)
        # Removing the note of a micro-batch must not remove those before it, which Spark writes together and tidies up.
        # As they stay, it must not write all of them together too often.
        spark.conf.set("spark.sql.streaming.fileSource.log.deletion", "false")
        spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", str(max(10, intervals // 10)))
        _forget_unknown(checkpoint)
        return {name: read_stream(spark, place / name, 1) for name in paths}

    def _check_new(self, checkpoint: Path) -> None:
        if (checkpoint / "offsets").is_dir():
            raise CallError(
                f"the query of {checkpoint} was begun without --arrival, from files in the order of their age",
                hint="leave --arrival out, or give a new --checkpoint and a new --out",
            )

    def _check_same(self, place: Path, cut: Mapping[str, Any], paths: Mapping[str, Path]) -> None:
        known = json.loads((place / CUT).read_text())
        for what, option in (("column", "--arrival"), ("interval", "--arrival-interval"), ("schemas", "--schema")):
            if known[what] != cut[what]:
                raise CallError(
                    f"{option} is another one than the replay of {place.parent} was cut with: {known[what]}",
                    hint="give the same, or a new --checkpoint and a new --out",
                )
        if known["place"] != str(place.resolve()) and (place.parent / "offsets").is_dir():
            raise CallError(
                f"the replay of {place.parent} was begun as {known['place']}: Spark knows files by their place, and "
                "would take all of these again",
                hint="move the checkpoint back, or give a new --checkpoint and a new --out",
            )
        for name, path in paths.items():
            there = _stamps(path)
            news = [file for file, stamp in there.items() if known["files"].get(name, {}).get(file) != stamp]
            if news:
                raise CallError(
                    f"{path} has a file that is not part of the replay, which was cut before: {news[0]}",
                    hint="give a new --checkpoint and a new --out to replay it too",
                )

    def _cut(self, frames: Mapping[str, Any], interval: int, place: Path) -> None:
        """A file for every stream and interval; half of it is never taken for all, as `CUT` comes last."""
        shutil.rmtree(place, ignore_errors=True)
        scratch = place / ".scratch"  # no stream is called so
        ticks = {name: _ticks_of(frame, self.column) for name, frame in frames.items()}
        first = self._first(frames, ticks)
        numbers: set[int] = set()
        for name, frame in frames.items():
            number = _unused_name(frame.columns)
            numbered = frame.selectExpr("*", f"({ticks[name]} - {first}L) div {interval}L AS `{number}`")
            # All rows of an interval meet in one task, which writes one file of them, in order of arrival.
            spread = numbered.repartition(_tasks(frame), number).sortWithinPartitions(number, quoted(self.column))
            rows, empty = scratch / "rows" / name, scratch / "empty" / name
            spread.write.option("maxRecordsPerFile", 0).partitionBy(number).parquet(str(rows.resolve()))
            frame.limit(0).coalesce(1).write.parquet(str(empty.resolve()))
            numbers |= {_interval_of(part) for part in rows.glob("*=*")}
        for name in frames:
            _lay_out(scratch, name, sorted(numbers), place / name)
        shutil.rmtree(scratch)

    def _first(self, frames: Mapping[str, Any], ticks: Mapping[str, str]) -> int:
        """The first arrival of all streams. Rows without one are refused."""
        found: list[int] = []
        for name, frame in frames.items():
            row = frame.selectExpr(f"min({ticks[name]})", f"count_if({quoted(self.column)} IS NULL)").first()
            if row[1]:
                raise CallError(
                    f"{row[1]:,} row(s) of the stream {name} have no {self.column}, and so no place in a replay",
                    hint="leave these rows out, or say when they arrived",
                )
            found += [] if row[0] is None else [int(row[0])]
        if not found:
            raise CallError("there is nothing to replay: no stream has a row")
        return min(found)


def check_no_replay(checkpoint: Path | None) -> None:
    """Refuse to go on with a replay as if its files were new ones."""
    if checkpoint is not None and (checkpoint / PLACE / CUT).exists():
        known = json.loads((checkpoint / PLACE / CUT).read_text())
        raise CallError(
            f"the query of {checkpoint} is a replay in the order of {known['column']}",
            hint=f"add --arrival {known['column']} and its --arrival-interval, or give a new --checkpoint and --out",
        )


def _ticks_of(frame: Any, column: str) -> str:
    """The arrival of a row in ticks, as Spark computes it."""
    return _TICKS.get(frame.schema[column].dataType.typeName(), "CAST({} AS BIGINT)").format(quoted(column))


def _unused_name(columns: list[str]) -> str:
    name, taken = "interval", {column.lower() for column in columns}  # Spark does not tell case apart
    while name in taken:
        name += "_"
    return name


def _tasks(frame: Any) -> int:
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))


def _interval_of(folder: Path) -> int:
    return int(folder.name.rpartition("=")[2])


def _lay_out(scratch: Path, name: str, numbers: list[int], folder: Path) -> None:
    """The files of a stream, one for each interval, with names in order."""
    (empty,) = (scratch / "empty" / name).glob("*.parquet")
    written = {_interval_of(part): part for part in (scratch / "rows" / name).glob("*=*")}
    folder.mkdir(parents=True)
    for at, number in enumerate(numbers):
        file = folder / f"{at:08d}.parquet"
        if number in written:
            (rows,) = written[number].glob("*.parquet")
            rows.rename(file)
        else:
            shutil.copyfile(empty, file)


def _in_order(folder: Path) -> int:
    """Have the times of a stream's files follow their names, as Spark goes by times; copies forget them. How many."""
    files = sorted(folder.glob("*.parquet"))
    for at, file in enumerate(files):
        os.utime(file, (_OLDEST + at,) * 2)
    return len(files)


def _stamps(path: Path) -> dict[str, list[int]]:
    """The files of an input: by name, their size and time."""
    found = {str(file.relative_to(path)) if path.is_dir() else file.name: file.stat() for file in files_of(path)}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in found.items()}


def _forget_unknown(checkpoint: Path) -> None:
    """Remove what Spark has noted of files beyond the last micro-batch that it knows."""
    batches = [int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*") if file.name.isdigit()]
    known = -1
    if batches:
        lines = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
        found = [json.loads(line)["logOffset"] for line in lines if '"logOffset"' in line]
        if not found:  # the query is over
            return
        known = max(found)
    for note in (checkpoint / "sources").glob("*/[0-9]*"):
        if int(note.name.partition(".")[0]) > known:
            note.unlink()
            note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
