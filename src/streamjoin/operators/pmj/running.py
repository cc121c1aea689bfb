"""One PMJ at work (see `configuration`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Progress
from streamjoin.operators.contract import ALONE, Context, Footprint, Operator, Output, Results
from streamjoin.operators.lateness import with_hope
from streamjoin.operators.pmj.configuration import Pmj
from streamjoin.operators.pmj.merge import Finding, Generation, merged, of_input, together
from streamjoin.operators.pmj.runs import RunInMemory, RunWriter, SortedRun
from streamjoin.operators.pmj.sides import Side
from streamjoin.operators.saving import check_snapshot, restored_figures
from streamjoin.operators.tpmj.lists import blob_name, in_room, rows_from_bytes, rows_to_bytes, width_of
from streamjoin.state import Batch, Blobs, Snapshot, table_to_bytes
from streamjoin.state.snapshot import FORMAT

FIGURES: Final = (
    "rows_in", "results", "early_results", "late", "unmatchable", "never_valid", "pages_read", "pages_written",
    "merges", "generations",
)  # fmt: skip
# More generations than so many times the fan-in are merged before the end: each has files open.
MOST_OPEN: Final = 3


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
        self.budget = config.divided(self.context)
        self.finding = Finding(self.context.owned(config.matching), config.validity, self.budget)
        self.folder = None if self.context.scratch is None else Path(self.context.scratch)  # else runs stay in memory
        self.lists: list[list[Batch]] = [[], []]
        self.sizes = [0.0, 0.0]  # bytes of what is in the lists
        self.generations: list[Generation] = []
        self.next = 0

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        batch, _ = with_hope(batch, self.figures, validity=self.config.validity)
        if not len(batch):
            return
        declared = None if self.config.row_bytes is None else (self.config.row_bytes,) * self.inputs
        width = width_of(number, batch, declared)
        for some in in_room(batch, width, lambda: self.budget.lists - self.nbytes):
            # Rows may lie in a larger piece of memory, as Spark has delivered it, which would stay with them.
            self.lists[number].append(some.owned() if some is batch else some)
            self.sizes[number] += len(some) * width
            if self.nbytes + width > self.budget.lists:
                for results in chain(self._generation(last=False), self._merged_down(MOST_OPEN * self.budget.fan_in)):
                    self.figures["early_results"] += len(results)
                    yield results

    @property
    def nbytes(self) -> float:
        """Bytes of what is in the lists of both inputs."""
        return sum(self.sizes)

    def _generation(self, *, last: bool) -> Iterator[Results]:
        """What is in memory is sorted, joined with itself, and written. The last one stays in memory, if it is the only
        one, or small enough to stay beside the pages of a merge.
        """
        stays = self.folder is None or (last and (not self.generations or self.nbytes * 4 <= self.budget.lists))
        sides = [self._listed(number) for number in (0, 1)]
        sizes, self.sizes = self.sizes, [0.0, 0.0]
        yield from self._counted(self.finding.within(sides[0], sides[1]))
        runs = [
            None if side is None else RunInMemory(side) if stays else self._written(side, size)
            for side, size in zip(sides, sizes, strict=True)
        ]
        self._add(Generation(self.next, (runs[0], runs[1]), (sizes[0], sizes[1])))
        self.figures["generations"] += 1
        del sides
        pa.default_memory_pool().release_unused()  # Arrow keeps what is free for itself

    def _listed(self, number: int) -> Side | None:
        """The rows of a list, sorted; it is empty then, so that they are not in memory twice."""
        parts, self.lists[number] = self.lists[number], []
        if not parts:
            return None
        rows = Batch.concat(parts)
        del parts
        return self._sorted(rows, self.next)

    def _sorted(self, rows: Batch, generation: int) -> Side:
        return Side.sorted(self.finding.matching, rows, np.full(len(rows), generation))

    def _written(self, side: Side, size: float) -> SortedRun | None:
        assert self.folder is not None
        writer = RunWriter(self.folder, self._page_rows(len(side), size))
        try:
            writer.append(side)
            return writer.close()
        except BaseException:
            writer.abandon()
            raise

    def _page_rows(self, rows: int, size: float) -> int:
        """Rows of a page, where so many rows have so many bytes."""
        return max(1, int(self.budget.page * rows // max(1.0, size)))

    def _add(self, generation: Generation) -> None:
        self.generations.append(generation)
        self.figures["pages_written"] += generation.pages if generation.nbytes else 0
        self.next += 1

    def _counted(self, found: Iterator[Results]) -> Iterator[Results]:
        for results in found:
            self.figures["results"] += len(results)
            yield results

    # -- merging -------------------------------------------------------------------------------------------------------

    def _merged_down(self, most: int) -> Iterator[Results]:
        """While there are more generations than so many, the smallest become one."""
        while self.folder is not None and len(self.generations) > most:
            by_size = sorted(self.generations, key=lambda each: (each.level, each.rows))
            some = by_size[: min(self.budget.fan_in, max(2, len(by_size) - most + 1))]
            self.generations = [each for each in self.generations if all(each is not other for other in some)]
            self._reads(some)
            page_rows = [self._page_rows(*of_input(some, number)) for number in (0, 1)]
            for found in together(self.finding, some, self.next, self.folder, page_rows):
                if isinstance(found, Generation):
                    self._add(found)
                else:
                    self.figures["results"] += len(found)
                    yield found

    def _reads(self, generations: Sequence[Generation]) -> None:
        self.figures["merges"] += 1
        self.figures["pages_read"] += sum(each.pages for each in generations if each.nbytes)

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from ()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        if any(self.lists):
            yield from self._generation(last=True)
        yield from self._merged_down(self.budget.fan_in)
        generations, self.generations = self.generations, []
        if len(generations) > 1:
            self._reads(generations)
            yield from self._counted(merged(self.finding, generations))

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def progress(self) -> int:
        """Any result may still come before the end."""
        return self.times.least() if self.times.least() == FOREVER else NEVER

    def _rows(self) -> list[int]:
        runs = [[each.runs[number] for each in self.generations] for number in (0, 1)]
        written = [sum(0 if run is None else run.rows for run in mine) for mine in runs]
        return [sum(map(len, parts)) + rows for parts, rows in zip(self.lists, written, strict=True)]

    def kept_rows(self, number: int) -> int:
        return self._rows()[number]

    @property
    def footprint(self) -> Footprint:
        rows = self._rows()
        spilled = sum(each.nbytes for each in self.generations)
        nbytes = spilled + self.nbytes + sum(sum(each.sizes) for each in self.generations if not each.nbytes)
        done = (self.figures[name] for name in ("generations", "merges", "pages_read", "pages_written"))
        runs = self.inputs * len(self.generations)
        return Footprint(sum(rows), int(nbytes), runs, 0, spilled, *done)

    def snapshot(self) -> Snapshot:
        makers: dict[str, Any] = {}
        for number, parts in enumerate(self.lists):
            if parts:
                makers[blob_name(number, self._list_name(number))] = partial(_lists_bytes, list(parts))
        for each in self.generations:
            for number, run in enumerate(each.runs):
                if run is not None:
                    makers[blob_name(number, str(each.number))] = partial(_run_bytes, run)
        manifest = {
            "format": FORMAT, "fingerprint": self.config.fingerprint, "progress": list(self.times.times),
            "figures": dict(self.figures), "next": self.next, "sizes": list(self.sizes),
            "lists": [self._list_name(number) if parts else None for number, parts in enumerate(self.lists)],
            "generations": [[each.number, each.sizes, each.level] for each in self.generations],
        }  # fmt: skip
        return Snapshot(manifest, Blobs(makers))

    def _list_name(self, number: int) -> str:
        """Rows are only added to a list, so it is known by the next generation and their number."""
        return f"list-{self.next}-{sum(len(part) for part in self.lists[number])}"

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        manifest, blobs = snapshot.manifest, snapshot.blobs
        self.times = Progress(self.inputs, list(manifest["progress"]))
        self.figures = restored_figures(self.figures, snapshot)
        self.next, self.sizes = manifest["next"], list(manifest["sizes"])
        names = [None if name is None else blob_name(number, name) for number, name in enumerate(manifest["lists"])]
        self.lists = [[] if name is None else [rows_from_bytes(blobs[name])] for name in names]
        self.generations = []
        for generation, sizes, level in manifest["generations"]:
            runs = [self._restored(number, generation, blobs, size) for number, size in enumerate(sizes)]
            self.generations.append(Generation(generation, (runs[0], runs[1]), (sizes[0], sizes[1]), level))

    def _restored(self, number: int, generation: int, blobs: Any, size: float) -> SortedRun | None:
        name = blob_name(number, str(generation))
        if name not in blobs:
            return None
        side = self._sorted(rows_from_bytes(blobs[name]), generation)
        return RunInMemory(side) if self.folder is None else self._written(side, size)


def _lists_bytes(parts: list[Batch]) -> bytes:
    return rows_to_bytes(Batch.concat(parts))


def _run_bytes(run: SortedRun) -> bytes:
    return table_to_bytes(run.read(0, run.rows))
