"""One merge, page by page. It can stop after any step, and go on later.

    flank merge   the oldest groups, all inputs together: rows come by in the order of their values, find each other,
                  and those that end behind `e` are written on. Gives the results that begin in [s, e)
    plain merge   groups that are not the oldest, input by input: nothing is found, nothing is dropped

A step takes one portion (see `cursors`). In memory are a few pages of each run, who is alive at the frontier, an open
page for each input that is written, and results (see `sorted_results`): they leave when the merge is done, in order.
The root (`e` is forever, nothing comes any more) writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamjoin.kernels import sort_order
from streamjoin.kernels.merge_sweep import sweep_on
from streamjoin.operators.contract import OwnerOfPoints, Results, side_by_side
from streamjoin.operators.tpmj.cursors import Cursor, Portion, next_portion
from streamjoin.operators.tpmj.order import Between, ValueOrder, tested
from streamjoin.operators.tpmj.sorted_results import SortedResults
from streamjoin.state import Batch
from streamjoin.state.batch import Indices
from streamjoin.state.paged import PageWriter


@dataclass(frozen=True)
class Join:
    """What a merge looks for: the order, further tests, and which results belong to this bucket."""

    inputs: int
    order: ValueOrder
    tests: tuple[Between, ...] = ()
    owner: OwnerOfPoints | None = None

    @property
    def columns(self) -> Any:
        """What rows are sorted by."""
        return self.order.columns

    def results(self, rows: Sequence[Batch], places: Sequence[Indices]) -> Results | None:
        """Tuples of rows as results; None when none of them is one."""
        keep = tested(self.tests, rows, places)
        ts = np.maximum.reduce([each.ts[at] for each, at in zip(rows, places, strict=True)])
        te = np.minimum.reduce([each.te[at] for each, at in zip(rows, places, strict=True)])
        if self.owner is not None:
            keep &= self.owner.owns(self._reference(rows, places, ts))
        if not keep.any():
            return None
        if not keep.all():
            places, ts, te = [at[keep] for at in places], ts[keep], te[keep]
        members = [each.payload.take(at) for each, at in zip(rows, places, strict=True)]
        return Results(side_by_side(members), ts, te)

    def _reference(self, rows: Sequence[Batch], places: Sequence[Indices], ts: Any) -> Any:
        """The point by which a result belongs to a bucket: the largest low end, or where its validity begins."""
        if not self.order.interval:
            return ts
        lows = [self.order.value(number, each)[places[number]] for number, each in enumerate(rows)]
        return np.maximum.reduce(lows)


@dataclass
class Merge:
    """A merge at work. `phases`: runs that are merged together, one phase after the other; `ahead`: how many pages of a
    run are read at a time; `within`: from where to where results begin, None in a plain merge; `cut`: rows that end
    here or earlier are not written on.
    """

    join: Join
    phases: list[list[Cursor]]
    ahead: list[int]
    writers: list[PageWriter] | None
    within: tuple[int, int] | None
    cut: int
    found: SortedResults
    steps: int = 0
    phase: int = 0
    alive: list[Batch | None] = field(default_factory=list)
    left: list[dict[int, int]] = field(default_factory=list)  # of each input, rows written of each part

    def __post_init__(self) -> None:
        self.bounds = self.join.order.bounds(self.join.inputs)
        self.alive = [None] * self.join.inputs
        self.left = [{} for _ in range(self.join.inputs)]
        self._skip_empty()

    @property
    def done(self) -> bool:
        """Whether everything has been merged."""
        return self.phase == len(self.phases)

    def step(self) -> tuple[int, int]:
        """One portion; pages read and written."""
        before = self._written()
        portion = next_portion(self.phases[self.phase], self.ahead[self.phase], self.join.columns)
        if self.within is not None:
            self._sweep(portion)
        elif self.writers is not None:
            for number, parts in portion.rows.items():
                self._write(number, Batch.concat(parts), in_order=len(parts) == 1)
        self.steps += 1
        if portion.frontier is None:
            self.phase += 1
            self._skip_empty()
        return portion.read, self._written() - before

    def _skip_empty(self) -> None:
        while self.phase < len(self.phases) and not any(cursor.more for cursor in self.phases[self.phase]):
            self.phase += 1

    def _written(self) -> int:
        return 0 if self.writers is None else sum(writer.pages for writer in self.writers)

    def _write(self, number: int, rows: Batch, *, in_order: bool) -> None:
        """Rows are written on, but for those that have ended."""
        assert self.writers is not None
        keep = rows.te > self.cut
        if not in_order:
            order = sort_order(self.join.columns(number, rows))
            kept = rows.take(order[keep[order]])
        else:
            kept = rows if keep.all() else rows.take(keep)
        self.writers[number].append(kept)
        labels, counts = np.unique(kept.values[-1], return_counts=True)
        left = self.left[number]
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            left[label] = left.get(label, 0) + count

    def _sweep(self, portion: Portion) -> None:
        """Rows come by, and find who is alive."""
        assert self.within is not None
        join, (s, e) = self.join, self.within
        together: list[Batch | None] = []
        for number in range(join.inputs):
            alive, come = self.alive[number], portion.rows.get(number, [])
            parts = come if alive is None else [alive, *come]
            together.append(Batch.concat(parts) if parts else None)
            rows = together[-1]
            if come and rows is not None and self.writers is not None:
                old = 0 if alive is None else len(alive)
                self._write(number, rows.part(old, len(rows)), in_order=len(come) == 1)
        if portion.rows and all(each is not None for each in together) and s < e:
            self._find(portion, [each for each in together if each is not None])
        if portion.frontier is None:
            self.alive = [None] * join.inputs
            return
        group, value = portion.frontier[:2]
        for number, rows in enumerate(together):
            if rows is not None:
                keep = join.order.alive(number, rows, group, value, self.bounds) & (rows.te > s) & (rows.ts < e)
                rows = rows if keep.all() else rows.take(keep)
            self.alive[number] = rows if rows is not None and len(rows) else None

    def _find(self, portion: Portion, together: list[Batch]) -> None:
        join = self.join
        assert self.within is not None
        rows = [join.order.rows(number, each) for number, each in enumerate(together)]
        old = [0 if each is None else len(each) for each in self.alive]
        first = np.cumsum([0, *old])
        come = [tuple(column[count:] for column in each) for each, count in zip(rows, old, strict=True)]
        member = np.repeat(np.arange(join.inputs), [len(each[0]) for each in come])
        place = np.concatenate([np.arange(count, len(each)) for each, count in zip(together, old, strict=True)])
        columns = [np.concatenate([each[column] for each in come]) for column in range(5)]
        order = sort_order(columns[:2])
        alive: Any = [tuple(column[:count] for column in each) for each, count in zip(rows, old, strict=True)]
        newcomers: Any = tuple(column[order] for column in columns)
        place = place[order]
        for found in sweep_on(alive, newcomers, member[order], self.bounds, self.within):
            places = []
            for number, at in enumerate(found):
                new = at >= first[-1]
                where = np.where(new, 0, at - first[number])
                where[new] = place[at[new] - first[-1]]
                places.append(where)
            results = join.results(together, places)
            if results is not None:
                self.found.add(results)

    def in_memory(self, widths: Sequence[float]) -> float:
        """About how many bytes are in memory, when rows of each input have so many."""
        pages = (
            sum(
                len(cursor.rows) * widths[cursor.number]
                for cursor in self.phases[self.phase]
                if cursor.rows is not None
            )
            if not self.done
            else 0.0
        )
        alive = sum(0 if rows is None else len(rows) * width for rows, width in zip(self.alive, widths, strict=True))
        return pages + alive + self.found.nbytes

    def abandon(self) -> None:
        """What has been written is not needed."""
        self.found.forget()
        for writer in self.writers or ():
            writer.abandon()
