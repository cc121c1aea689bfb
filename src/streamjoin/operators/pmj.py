"""PMJ, the progressive merge join: inner joins of finite inputs that do not fit into memory, with early results.

After Dittrich, Seeger, Taylor, Widmayer: Progressive Merge Join, as section 3.2 of "Sortierbasierte Joins ueber
Datenstroemen" has it, with a number per row instead of runs that stay paired.

    rows --> [lists in memory] --full--> sorted, joined with each other (early results), written as a *generation*
    end  --> all runs of all inputs are merged, and joined as they merge

Law: rows that were together in a generation have found each other then, and nobody else has. So a merge lets those
results go that have members of different generations, and what it writes is one generation.

A merge takes as many generations as there are pages for; while there are more, the oldest become one. The last merge
writes nothing. Results leave as they are found, in no order.

Needs  a common order of the values (see `tpmj.order`), and inputs that end: rows are not forgotten before
Cost   sorting, one copy of every row to disk and back, and one more for each merge before the last
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Emit, How, Progress
from streamjoin.errors import CallError
from streamjoin.operators.contract import ALONE, Context, Footprint, Operator, Output, OwnerOfPoints, Results
from streamjoin.operators.joining import described
from streamjoin.operators.lateness import with_hope
from streamjoin.operators.saving import check_snapshot
from streamjoin.operators.tpmj.configuration import Shares, Tpmj
from streamjoin.operators.tpmj.cursors import Cursor
from streamjoin.operators.tpmj.groups import labelled, unlabelled
from streamjoin.operators.tpmj.lists import blob_name, in_room, rows_from_bytes, rows_to_bytes, width_of
from streamjoin.operators.tpmj.merge import Join, Merge
from streamjoin.operators.tpmj.order import Between, ValueOrder
from streamjoin.state import Batch, Blobs, Snapshot
from streamjoin.state.paged import FilePages, MemoryPages, PagedRun, PageStore
from streamjoin.state.snapshot import FORMAT

FIGURES: Final = (
    "rows_in", "results", "early_results", "late", "unmatchable", "ghosts", "pages_read", "pages_written", "merges",
    "generations",
)  # fmt: skip


@dataclass(frozen=True)
class Pmj:
    """What to join and how. `build()` makes the running operator. Fields as those of `Tpmj`."""

    schemas: tuple[pa.Schema, ...]
    order: ValueOrder = field(default_factory=ValueOrder)
    tests: tuple[Between, ...] = ()
    memory: int | Shares | None = None
    page_bytes: int | None = None
    row_bytes: tuple[int, ...] | None = None
    folder: str | None = None
    producer: int = 0

    def __post_init__(self) -> None:
        if len(self.schemas) < 2:
            raise CallError(f"a join needs two inputs or more, got {len(self.schemas)}")

    @property
    def how(self) -> How:
        """Every result has a row of each input."""
        return "inner"

    @property
    def emit(self) -> Emit:
        """Results leave as they are found."""
        return "eager"

    @property
    def areas(self) -> int:
        """What it may use of memory is counted as for as many sweep areas."""
        return len(self.schemas)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr(("pmj", self.order, self.tests, described(self.schemas), self.producer))

    @property
    def by_value(self) -> ValueOrder:
        """The order, in which rows of one value may stand as they like."""
        return replace(self.order, by_time=False)

    @property
    def sized(self) -> Tpmj:
        """Who knows how memory is divided into pages."""
        return Tpmj(self.schemas, self.order, memory=self.memory, page_bytes=self.page_bytes)

    def store(self, context: Context) -> PageStore:
        """Where runs lie: in a folder, or in memory where there is none."""
        folder = self.folder or context.scratch
        return MemoryPages() if folder is None else FilePages(Path(folder) / f"pmj-{self.producer}-{context.bucket}")

    def build(self, context: Context = ALONE) -> RunningPmj:
        """The running operator, empty."""
        return RunningPmj(self, context, len(self.schemas))


@dataclass(frozen=True)
class Generation:
    """Runs that were written together, one of each input; rows have its number as their label."""

    number: int
    runs: tuple[PagedRun, ...]

    @property
    def rows(self) -> int:
        """Rows of all inputs."""
        return sum(run.rows for run in self.runs)


@dataclass
class NewOnes:
    """Results of a step that have members of different generations."""

    found: list[Results] = field(default_factory=list)
    nbytes: int = 0

    def add(self, results: Results) -> None:
        """More results."""
        self.found.append(results)

    def leave(self) -> Iterator[Results]:
        """All that there are."""
        found, self.found = self.found, []
        yield from found

    def forget(self) -> None:
        """None of them is needed."""
        self.found = []


@dataclass(frozen=True)
class Apart(Join):
    """Looks for results whose members are not all of one generation."""

    def results(self, rows: Any, places: Any) -> Results | None:
        first = rows[0].values[-1][places[0]]
        apart = np.zeros(len(first), np.bool_)
        for each, at in zip(rows[1:], places[1:], strict=True):
            apart |= each.values[-1][at] != first
        if not apart.any():
            return None
        return super().results(rows, places if apart.all() else [at[apart] for at in places])


@dataclass
class RunningPmj(Operator):
    """One join at work."""

    config: Pmj
    context: Context = ALONE
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        self.times = Progress(self.inputs)
        self.figures = dict.fromkeys(FIGURES, 0)
        self.shares = config.sized.shares(self.context)
        self.page_bytes, self.fan_in = config.sized.page_size(self.shares), config.sized.fan_in(self.shares)
        owner = self.context.owner if isinstance(self.context.owner, OwnerOfPoints) else None
        join = (self.inputs, config.by_value, config.tests, owner)
        self.within, self.apart = Join(*join), Apart(*join)
        self.store = config.store(self.context)
        self.lists: list[list[Batch]] = [[] for _ in range(self.inputs)]
        self.nbytes, self.widths = 0.0, [1.0] * self.inputs
        self.generations: list[Generation] = []
        self.next = 0

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        batch, _ = with_hope(batch, self.figures)
        if not len(batch):
            return
        width = self.widths[number] = width_of(number, batch, self.config.row_bytes)
        for some in in_room(batch, width, lambda: self.shares.lists - self.nbytes):
            self.lists[number].append(some)
            self.nbytes += len(some) * width
            if self.nbytes + width > self.shares.lists:
                yield from self._generation()

    def _generation(self) -> Iterator[Results]:
        """What is in memory is sorted, joined with itself, and written."""
        runs, self.figures["generations"] = [], self.figures["generations"] + 1
        for number, parts in enumerate(self.lists):
            rows = None
            if parts:
                rows = self.config.by_value.sorted(number, labelled(Batch.concat(parts), self.next))
            runs.append(rows)
        self.lists, self.nbytes = [[] for _ in self.lists], 0.0
        memory = MemoryPages()
        sizes = [max(1, int(self.page_bytes // width)) for width in self.widths]
        there = [memory.writer(size, 0) for size in sizes]
        for writer, rows in zip(there, runs, strict=True):
            if rows is not None:
                writer.append(rows)
        closed = [writer.close() for writer in there]
        for results in self._merged(self.within, [closed], None, counted=False):
            self.figures["early_results"] += len(results)
            yield results
        written = []
        for rows, size in zip(runs, sizes, strict=True):
            writer = self.store.writer(size, 0 if rows is None else len(rows))
            if rows is not None:
                writer.append(rows)
            written.append(writer.close())
        self.figures["pages_written"] += sum(run.pages for run in written)
        self.generations.append(Generation(self.next, tuple(written)))
        self.next += 1

    # -- merging -------------------------------------------------------------------------------------------------------

    def _merged(
        self, join: Join, runs: list[list[PagedRun]], writers: Any, *, counted: bool = True
    ) -> Iterator[Results]:
        """Merge runs of all inputs, and let go what is found."""
        cursors = [
            Cursor(number, each[number], counted=counted)
            for number in range(self.inputs)
            for each in runs
            if each[number].rows
        ]
        ahead = max(1, self.shares.pages // (self.page_bytes * (len(cursors) + self.inputs)))
        ahead = ahead if counted else max((cursor.run.pages for cursor in cursors), default=1)
        found: Any = NewOnes()
        merge = Merge(join, [cursors], [ahead], writers, (NEVER, FOREVER), NEVER, found)
        while not merge.done:
            read, written = merge.step()
            self.figures["pages_read"] += read
            self.figures["pages_written"] += written
            for results in found.leave():
                self.figures["results"] += len(results)
                yield results

    def _together(self, generations: list[Generation]) -> Iterator[Results]:
        """Several generations become one."""
        number = self.next
        self.next += 1
        rows = [sum(each.runs[input_].rows for each in generations) for input_ in range(self.inputs)]
        writers = [
            _Relabelling(self.store.writer(run.page_rows, most), number)
            for run, most in zip(generations[0].runs, rows, strict=True)
        ]
        yield from self._merged(self.apart, [list(each.runs) for each in generations], writers)
        closed = []
        for writer in writers:
            filled = writer.pages
            closed.append(writer.close())
            self.figures["pages_written"] += closed[-1].pages - filled
        self.figures["merges"] += 1
        self._delete(generations)
        self.generations = [Generation(number, tuple(closed)), *self.generations[len(generations) :]]

    def _delete(self, generations: list[Generation]) -> None:
        for each in generations:
            for run in each.runs:
                run.delete()

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from ()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        if any(self.lists):
            yield from self._generation()
        while len(self.generations) > self.fan_in:
            yield from self._together(self.generations[: self.fan_in])
        if len(self.generations) > 1:
            yield from self._merged(self.apart, [list(each.runs) for each in self.generations], None)
            self.figures["merges"] += 1
        self._delete(self.generations)
        self.generations = []

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def progress(self) -> int:
        """Any result may still come before the end."""
        return self.times.least() if self.times.least() == FOREVER else NEVER

    @property
    def footprint(self) -> Footprint:
        rows = [sum(len(part) for part in parts) for parts in self.lists]
        for each in self.generations:
            rows = [mine + run.rows for mine, run in zip(rows, each.runs, strict=True)]
        nbytes = sum(count * width for count, width in zip(rows, self.widths, strict=True))
        return Footprint(sum(rows), int(nbytes), self.inputs * len(self.generations))

    def snapshot(self) -> Snapshot:
        makers: dict[str, Any] = {}
        for number, parts in enumerate(self.lists):
            if parts:
                makers[blob_name(number, self._list_name(number))] = partial(rows_to_bytes, Batch.concat(parts))
        for each in self.generations:
            for number, run in enumerate(each.runs):
                if run.rows:
                    makers[blob_name(number, str(each.number))] = partial(_run_bytes, run)
        manifest = {
            "format": FORMAT, "fingerprint": self.config.fingerprint, "progress": list(self.times.times),
            "figures": dict(self.figures), "next": self.next, "widths": list(self.widths), "bytes": self.nbytes,
            "lists": [self._list_name(number) if parts else None for number, parts in enumerate(self.lists)],
            "generations": [[each.number, [run.page_rows for run in each.runs]] for each in self.generations],
        }  # fmt: skip
        return Snapshot(manifest, Blobs(makers))

    def _list_name(self, number: int) -> str:
        """Rows are only added to a list, so it is known by the next generation and their number."""
        return f"list-{self.next}-{sum(len(part) for part in self.lists[number])}"

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        manifest, blobs = snapshot.manifest, snapshot.blobs
        self.times = Progress(self.inputs, list(manifest["progress"]))
        self.figures = dict(manifest["figures"])
        self.next, self.widths, self.nbytes = manifest["next"], list(manifest["widths"]), manifest["bytes"]
        names = [None if name is None else blob_name(number, name) for number, name in enumerate(manifest["lists"])]
        self.lists = [[] if name is None else [rows_from_bytes(blobs[name])] for name in names]
        self.generations = []
        for generation, sizes in manifest["generations"]:
            runs = []
            for number, page_rows in enumerate(sizes):
                name = blob_name(number, str(generation))
                rows = rows_from_bytes(blobs[name]) if name in blobs else None
                writer = self.store.writer(page_rows, 0 if rows is None else len(rows))
                if rows is not None:
                    writer.append(rows)
                runs.append(writer.close())
            self.generations.append(Generation(generation, tuple(runs)))


class _Relabelling:
    """Writes rows on as those of one generation."""

    def __init__(self, writer: Any, number: int) -> None:
        self.writer, self.number = writer, number

    @property
    def pages(self) -> int:
        return int(self.writer.pages)

    def append(self, rows: Batch) -> None:
        self.writer.append(labelled(unlabelled(rows), self.number))

    def close(self) -> PagedRun:
        run: PagedRun = self.writer.close()
        return run


def _run_bytes(run: PagedRun) -> bytes:
    return rows_to_bytes(run.read(0, run.pages))
