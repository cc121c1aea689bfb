"""A merge of generations: rows of both inputs come by in the order of the matching, and find each other.

A portion at a time: of each run the rows that do not lie behind the next of some keys (`runs.splits`). Those of the
portion meet each other, and those of earlier portions who are *alive*: who can still be met (`state.reaching`).

    portion     . . . . | . . . . | . . . .
    alive             ^ ^ rows near the key; of an overlap, whoever has not ended

Law: rows that were together in a generation have met. So only pairs of different generations are results.

In memory are a portion, and who is alive: of a join by keys alone, all rows of one key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.operators.contract import Results
from streamjoin.operators.pmj.budget import Budget
from streamjoin.operators.pmj.runs import RunWriter, SortedRun, splits
from streamjoin.operators.pmj.sides import Side, results_of
from streamjoin.state import Batch, Matching
from streamjoin.state.reaching import Key, still_met


@dataclass(frozen=True)
class Generation:
    """Runs that were written together, one of each input that had rows. `sizes`: bytes of each input's rows, as budgets
    count them. `level`: the higher, the more was merged.
    """

    number: int
    runs: tuple[SortedRun | None, SortedRun | None]
    sizes: tuple[float, float]
    level: int = 0

    @property
    def rows(self) -> int:
        """Rows of both inputs."""
        return sum(0 if run is None else run.rows for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes in files."""
        return sum(0 if run is None else run.nbytes for run in self.runs)

    @property
    def pages(self) -> int:
        """Pages of both inputs."""
        return sum(0 if run is None else len(run.ends) for run in self.runs)


@dataclass
class Finding:
    """How pairs are found, and how large results may be."""

    matching: Matching
    validity: bool
    budget: Budget

    def within(self, one: Side | None, two: Side | None) -> Iterator[Results]:
        """Results of rows that have not met anybody."""
        return self._found(one, two, apart=False)

    def apart(self, one: Side | None, two: Side | None) -> Iterator[Results]:
        """Results of rows of different generations."""
        return self._found(one, two, apart=True)

    def _found(self, one: Side | None, two: Side | None, *, apart: bool) -> Iterator[Results]:
        if one is not None and two is not None:
            results, validity = self.budget.results, self.validity
            yield from results_of(self.matching, one, two, results, apart=apart, validity=validity)


class Input:
    """The runs of one input in a merge: how far each has been taken, and who is alive."""

    def __init__(self, finding: Finding, number: int, generations: Sequence[Generation]) -> None:
        self.finding, self.number = finding, number
        runs = [(each.number, each.runs[number]) for each in generations]
        self.runs = [(label, run) for label, run in runs if run is not None]
        self.taken = [0] * len(self.runs)
        self.alive: Side | None = None

    def take(self, key: Key | None) -> Side | None:
        """The rows that do not lie behind a key; all that are left without one."""
        parts, labels, matching = [], [], self.finding.matching
        for at, (label, run) in enumerate(self.runs):
            start = self.taken[at]
            stop = run.rows if key is None else run.position(matching, start, key)
            if stop > start:
                parts.append(run.read(start, stop))
                labels.append(np.full(stop - start, label))
                self.taken[at] = stop
        if not parts:
            return None
        return Side.sorted(matching, Batch.from_table(pa.concat_tables(parts)), np.concatenate(labels))

    def move(self, portion: Side | None, key: Key) -> None:
        """Rows have come by, up to a key: who is alive."""
        matching, known = self.finding.matching, []
        for side in (self.alive, portion):
            if side is not None:
                keep = still_met(matching, self.number, side.run, key)
                if keep.any():
                    known.append(side if side is self.alive and keep.all() else side.only(matching, keep))
        self.alive = None if not known else known[0] if len(known) == 1 else Side.together(matching, *known)

    def forget(self) -> None:
        """What has been read need not stay in memory."""
        for (_, run), taken in zip(self.runs, self.taken, strict=True):
            run.forget(taken)


def merged(finding: Finding, generations: Sequence[Generation], writers: Sequence[RunWriter] = ()) -> Iterator[Results]:
    """Results of rows of different generations; with writers, all rows are written on, too."""
    inputs = [Input(finding, number, generations) for number in (0, 1)]
    runs = [run for each in inputs for _, run in each.runs]
    for key in (*splits(runs, finding.budget.portion), None):
        portions = [each.take(key) for each in inputs]
        for number, portion in enumerate(portions):
            if writers and portion is not None:
                writers[number].append(portion)
        one, two = inputs
        for mine, others in ((portions[0], portions[1]), (portions[0], two.alive), (one.alive, portions[1])):
            yield from finding.apart(mine, others)
        for each, portion in zip(inputs, portions, strict=True):
            if key is not None:
                each.move(portion, key)
            each.forget()


def together(
    finding: Finding, generations: Sequence[Generation], number: int, folder: Path, page_rows: Sequence[int]
) -> Iterator[Results | Generation]:
    """Several generations become one: the results of different ones, and last the new one."""
    writers = [RunWriter(folder, size) for size in page_rows]
    try:
        yield from merged(finding, generations, writers)
        one, two = (writer.close() for writer in writers)
    except BaseException:
        for writer in writers:
            writer.abandon()
        raise
    sizes = of_input(generations, 0)[1], of_input(generations, 1)[1]
    yield Generation(number, (one, two), sizes, 1 + max(each.level for each in generations))


def of_input(generations: Sequence[Generation], number: int) -> tuple[int, float]:
    """How many rows of an input there are, and how many bytes."""
    runs = [each.runs[number] for each in generations]
    return sum(0 if run is None else run.rows for run in runs), sum(each.sizes[number] for each in generations)
