"""Lanes of a stream on the command line, and how much a micro-batch takes of the last one.

    --lane R:urgent=alarms --lane R:normal=readings --batch-seconds 2

Lanes come in the order in which they are given, the most urgent first. Only the last is limited, by bytes, because
files differ in size. With `--batch-seconds` the limit is measured: some micro-batches with a small one, some with one
four times as large (or as small, if they take too long), and then the one that `sj.lane_limit` says. For another limit
the query is stopped between two micro-batches, and goes on from its checkpoint. A limit that was found is kept there.

Rows of all inputs take time. So what micro-batches usually take of the others is subtracted, and what is left is
divided by the number of limited lanes, one for each stream in lanes.

Only micro-batches that were near their limit say something of it. While there is no backlog the limit stays small, so
that it is there when one comes, and the query is watched until then.

What it does not do: measure again later, when rows or the machine have become others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from streamjoin import CallError
from streamjoin.api import NeverSoShortError, limit_of, ran_of, rows_read
from streamjoin.cli.tables import UNKNOWN, Shape, files_of, kind_of, options_of

KEPT: Final = "streamjoin_lanes.json"
FIRST_BYTES: Final = 1 << 20
STEP: Final = 4
BATCHES: Final = 4  # with one limit; the first of them starts workers, and does not count
MOST_STEPS: Final = 6
# Of the limit. Files are taken whole, so a micro-batch that leaves some behind has at least half of it; less than that,
# because the size of rows is an estimate.
NEAR: Final = 0.4
REMEMBERED: Final = 100  # micro-batches of earlier limits
SAMPLE: Final = 4  # files
UNKNOWN_SIZE: Final = 100.0  # bytes of a row, while there is none


def lanes_by_stream(options: Iterable[str] | None) -> dict[str, dict[str, Path]]:
    """The lanes of each stream, in order.

    >>> lanes_by_stream(["R:urgent=a", "R:normal=b"])
    {'R': {'urgent': PosixPath('a'), 'normal': PosixPath('b')}}
    """
    found: dict[str, dict[str, Path]] = {}
    for option in options or ():
        names, equals, path = option.partition("=")
        stream, colon, lane = names.partition(":")
        if not (equals and colon and path and stream.isidentifier() and lane.isidentifier()):
            raise CallError(
                f"a lane is written STREAM:LANE=PATH, got {option!r}", hint="for example --lane R:urgent=data/alarms"
            )
        if lane in found.setdefault(stream, {}):
            raise CallError(f"the lane {lane!r} of {stream!r} was given twice", hint="a folder can hold several files")
        found[stream][lane] = Path(path)
    for stream, lanes in found.items():
        if len(lanes) < 2:
            raise CallError(
                f"{stream!r} has one lane, {next(iter(lanes))!r}, and nothing that it could overtake",
                hint=f"add --lane {stream}:normal=PATH, or give --stream {stream}=PATH",
            )
    return found


def as_input(stream: str, lane: str) -> str:
    """What a lane is called among the inputs of a query.

    >>> as_input("R", "urgent")
    'R:urgent'
    """
    return f"{stream}:{lane}"


def shapes_of_empty(stream: str, lanes: Mapping[str, Path], known: Mapping[str, Shape]) -> dict[str, Shape]:
    """Of lanes without files, what they will be: the first alarm comes after the job has started. Their format is that
    of the other lanes, their columns are those that are said.
    """
    shapes = {lane: known.get(as_input(stream, lane), UNKNOWN) for lane in lanes}
    empty = [lane for lane, path in lanes.items() if path.is_dir() and not files_of(path)]
    found = {}
    for lane in empty:
        kind, columns = shapes[lane].kind, shapes[lane].columns
        if columns is None:
            raise CallError(
                f"the lane {lane!r} of {stream!r} has no files yet ({lanes[lane]}), which would show its columns",
                hint=f'say them: --schema {stream}="k string, ts timestamp"',
            )
        kinds = {kind_of(path, shapes[other]) for other, path in lanes.items() if other not in empty}
        if kind is None and len(kinds) != 1:
            seen = " and ".join(sorted(kinds)) or "none"
            raise CallError(
                f"the lane {lane!r} of {stream!r} has no files yet ({lanes[lane]}), and the formats of the other "
                f"lanes, {seen}, do not say what it will have",
                hint="put a first file into it; one without rows will do",
            )
        found[as_input(stream, lane)] = Shape(kind or kinds.pop(), columns)
    return found


@dataclass
class Measuring:
    """Finds the limit of each normal lane, in bytes. `wanted` is how long micro-batches shall take, in seconds;
    `bytes_per_row` is the least of the normal lanes, so that none takes more rows than is meant; `sizes` has it by
    their folders.
    """

    wanted: float
    checkpoint: Path
    bytes_per_row: float
    sizes: dict[str, float]
    lanes: int = 1
    limit: int = FIRST_BYTES
    found: bool = False
    steps: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)  # with earlier limits
    warning: str | None = None
    unsized: dict[Path, Callable[[], float]] = field(default_factory=dict)  # normal lanes that had no files yet

    @staticmethod
    def of(
        wanted: float | None, checkpoint: Path, spark: Any, lanes: Mapping[str, Mapping[str, Path]],
        inputs: Mapping[str, Path], known: Mapping[str, Shape],
    ) -> Measuring | None:  # fmt: skip
        """Of a command with all its inputs; None where nothing is to be measured."""
        if wanted is None:
            return None
        if not 0 < wanted < 1e6:  # as `sj.lane_limit` takes them: for others no limit would ever be found
            raise CallError(f"--batch-seconds must be positive and finite, got {wanted}", hint="--batch-seconds 2")
        normal = {as_input(stream, last(paths)): paths[last(paths)] for stream, paths in lanes.items()}
        _check_apart(normal, inputs)
        kept = checkpoint / KEPT
        if kept.exists():
            told = json.loads(kept.read_text())
            if (told["batch_seconds"], told.get("lanes", 1)) == (wanted, len(normal)):
                return Measuring(wanted, checkpoint, told["bytes_per_row"], {}, len(normal), told["bytes"], found=True)
        sizes = {folder_of(path): size_of_row(spark, path, known[name]) for name, path in normal.items()}
        later: dict[Path, Callable[[], float]] = {
            path: partial(size_of_row, spark, path, known[name]) for name, path in normal.items() if not files_of(path)
        }
        return Measuring(wanted, checkpoint, min(sizes.values()), sizes, len(normal), unsized=later)

    def enough(self, progress: list[dict[str, Any]]) -> bool:
        """Whether another limit shall be tried, or the one that was found: the query is to start anew."""
        ran = ran_of(progress)[1:]
        if self.found or len(ran) < BATCHES - 1:
            return False
        for path in [path for path in self.unsized if files_of(path)]:
            self.sizes[folder_of(path)] = self.unsized.pop(path)()
            self.bytes_per_row = min(self.sizes.values())
        if not self._near(ran):
            return False
        known = [*self.seen, *ran]
        try:
            limit = limit_of([known[0], *known], self.wanted)
        except NeverSoShortError as error:
            hint = (error.hint or "").replace("batch_seconds=", "--batch-seconds ")
            self.warning = f"{error.message}: the limit stays small. Hint: {hint}"
            return self._go_on(min(self.limit, FIRST_BYTES), ran)
        except CallError as error:
            if self.steps < MOST_STEPS:
                return self._step(ran)
            self.warning = f"no limit was found that keeps micro-batches to {self.wanted} s: {error}"
            return False
        others = median(rows_read(each) - sum(self._rows(each).values()) for each in known)
        if limit.rows <= others:
            self.warning = (
                f"micro-batches take about {others:,.0f} rows of inputs without a limit, which alone take longer than "
                f"{self.wanted} s: the limit stays small. Hint: a larger --batch-seconds, or fewer urgent rows"
            )
            return self._go_on(min(self.limit, FIRST_BYTES), ran)
        size = max(1, round((limit.rows - others) / self.lanes * self.bytes_per_row))
        if size > STEP * self.limit:  # too far from what was seen: a line through small ones may be anything there
            if self.steps < MOST_STEPS:
                return self._step(ran)
            size = STEP * self.limit
        self.found, self.warning = True, None
        said = {
            "batch_seconds": self.wanted, "bytes": size, "bytes_per_row": self.bytes_per_row,
            "rows": round(size / self.bytes_per_row), "seconds_per_batch": limit.seconds_per_batch,
            "throughput": limit.throughput, "lanes": self.lanes,
        }  # fmt: skip
        (self.checkpoint / KEPT).write_text(json.dumps(said, indent=1) + "\n")
        return self._go_on(size, ran)

    def _rows(self, batch: Mapping[str, Any]) -> dict[str, int]:
        """How many rows a micro-batch took of each normal lane, by its folder."""
        found = dict.fromkeys(self.sizes, 0)
        for source in batch["sources"]:
            folder = folder_in(source["description"])
            if folder in found:
                found[folder] += int(source["numInputRows"])
        return found

    def _near(self, ran: list[dict[str, Any]]) -> bool:
        """Whether the last micro-batches took about as much of a normal lane as they might."""
        sizes = (
            max(rows * self.sizes[folder] for folder, rows in self._rows(each).items()) for each in ran[1 - BATCHES :]
        )
        return min(sizes) >= NEAR * self.limit

    def _step(self, ran: list[dict[str, Any]]) -> bool:
        """Another size, for a line through two: a smaller one where this one takes too long."""
        self.steps += 1
        seconds = min(each["durationMs"]["triggerExecution"] for each in ran[1 - BATCHES :]) / 1000
        return self._go_on(self.limit * STEP if seconds < self.wanted else max(1, self.limit // STEP), ran)

    def _go_on(self, limit: int, ran: list[dict[str, Any]]) -> bool:
        if limit == self.limit:
            return False
        self.limit, self.seen = limit, [*self.seen, *ran][-REMEMBERED:]
        return True

    def describe(self) -> str:
        """What is known, in a line."""
        rows = self.limit / self.bytes_per_row
        what = "micro-batches take" if self.found else "to be measured: they take"
        return f"{what} {self.limit:,} bytes of a normal lane, about {rows:,.0f} rows"


def _check_apart(normal: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Refuse inputs in the folder of a normal lane: Spark tells of its sources by folder, so rows of both would count
    as rows of the lane.
    """
    for name, path in normal.items():
        for other, place in inputs.items():
            if other != name and folder_of(place) == folder_of(path):
                raise CallError(
                    f"{name} and {other} are files of one folder, {folder_of(path)}, and --batch-seconds cannot tell "
                    "whose rows a micro-batch took",
                    hint="give each a folder of its own, or a limit in files: --files-per-batch 1",
                )


def last(lanes: Mapping[str, Path]) -> str:
    """The lane that is limited."""
    return list(lanes)[-1]


def folder_of(path: Path) -> str:
    """The folder that Spark reads for a path: a single file is a stream of its folder."""
    place = path.resolve()
    return str(place.parent if place.is_file() else place)


def folder_in(description: str) -> str | None:
    """The folder of a source of files, as Spark describes it.

    >>> folder_in("FileStreamSource[file:/data/normal]")
    '/data/normal'
    """
    found = re.fullmatch(r"FileStreamSource\[[\w+.-]+:(?://[^/]*)?(/.*)\]", description)
    return found and found[1]


def size_of_row(spark: Any, path: Path, known: Shape) -> float:
    """How many bytes of its files a row of a lane takes, by the first of them."""
    files = files_of(path)[:SAMPLE]
    if not files:
        return UNKNOWN_SIZE
    kind = kind_of(path, known)
    reader = spark.read.format(kind).options(**options_of(kind))
    rows = reader.load([str(file.resolve()) for file in files]).count()
    return sum(file.stat().st_size for file in files) / rows if rows else UNKNOWN_SIZE
