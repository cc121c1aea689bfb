"""Links: what holds between two of several inputs, and rows in the order that a link wants.

A join of n inputs is a graph. Its nodes are the inputs; a link has a predicate over values of the two that it joins.
What holds for all inputs at once is a link between every two of them; equality of all is the rows' group, and needs no
link. Two inputs that no link joins find each other by their groups and their validities alone (`Link` without a
predicate).

A run has the order of its area. Where a link wants another one, the run is put into that order once, when somebody asks
first, and kept beside it (`Orders`), with positions that lead back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.algebra.similarity import Similar
from streamjoin.kernels import PAIRS_PER_CHUNK, sort_order
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.kept import Kept
from streamjoin.state.matching import Matching
from streamjoin.state.run import Run
from streamjoin.state.spilled_run import SpilledRun

_NOTHING = pa.table({})


@dataclass(frozen=True)
class Link:
    """What holds between inputs `one` and `two`; `one` is the predicate's left side.

    `at`: where the predicate's values begin among those of each input; of a similarity, which of each input's contents
    it compares. `proof`: pairs of columns of the two inputs'
    proofs that must be equal, where the values are hashes of keys.
    """

    one: int
    two: int
    predicate: Band | Overlaps | Within | Similar | None = None
    at: tuple[int, int] = (0, 0)
    proof: tuple[tuple[int, int], ...] = ()

    def joins(self, number: int) -> bool:
        """Whether it is about this input."""
        return number in (self.one, self.two)

    def other(self, number: int) -> int:
        """The input at its other end."""
        return self.two if number == self.one else self.one

    def of_overlap(self, common: tuple[int, ...]) -> bool:
        """Whether it is an overlap of the intervals that begin there among the values of each input."""
        return isinstance(self.predicate, Overlaps) and self.at == (common[self.one], common[self.two])

    def order(self, number: int) -> Order:
        """The order that it wants the rows of one of its inputs in."""
        if self.predicate is None:
            return Order(None, 0)
        return Order(self.predicate, self.at[0] if number == self.one else self.at[1])

    @property
    def width(self) -> int:
        """How many values the predicate reads of each input; a similarity reads contents."""
        return 0 if self.predicate is None or isinstance(self.predicate, Similar) else len(self.predicate.columns(0))


@dataclass(frozen=True)
class Order:
    """By which values rows are sorted: those that a predicate reads, from number `at` on; none: by their times. So are
    rows that are found by contents number `at`: they have an index of these beside them.
    """

    predicate: Band | Overlaps | Within | Similar | None
    at: int

    @property
    def key(self) -> Any:
        """Equal orders have equal keys: a band sorts by its value, whatever its bounds are."""
        if self.predicate is None:
            return ()
        if isinstance(self.predicate, Similar):
            return (self.at, self.predicate.measure, self.predicate.threshold)
        if isinstance(self.predicate, Within):
            return (self.at, len(self.predicate.left), self.predicate.radius, self.predicate.metric)
        return (self.at,)

    def values(self, rows: Batch) -> Batch:
        """The rows, with nothing but these values and no payload: what a kernel looks at."""
        if isinstance(self.predicate, Similar):
            assert rows.contents is not None
            return Batch(_NOTHING, rows.ts, rows.te, rows.group, contents=rows.contents.select([self.at]))
        width = 0 if self.predicate is None else len(self.predicate.columns(0))
        return Batch(_NOTHING, rows.ts, rows.te, rows.group, rows.values[self.at : self.at + width])


def same_proof(
    pairs: Iterable[tuple[int, int]], one: pa.Table | None, i: Indices, two: pa.Table | None, j: Indices
) -> Mask:
    """For which rows the columns of two proofs are equal."""
    equal = np.ones(len(i), np.bool_)
    for a, b in pairs:
        assert one is not None and two is not None
        alike = pc.equal(one.column(a).take(pa.array(i)), two.column(b).take(pa.array(j)))
        equal &= alike.to_numpy(zero_copy_only=False).astype(np.bool_)
    return equal


@dataclass(frozen=True)
class Sorted:
    """A run in another order than its own: position `back[i]` of the run is at `i`."""

    run: Run
    back: Indices | None

    def positions(self, found: Indices) -> Indices:
        """The run's own positions."""
        return found if self.back is None else self.back[found]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes beside the run."""
        if self.back is None:
            return 0
        rows = self.run.rows
        arrays = (self.back, rows.ts, rows.te, rows.group, *rows.values)
        return sum(each.nbytes for each in arrays) + (0 if rows.contents is None else rows.contents.nbytes)


@dataclass
class Orders:
    """Runs of areas in the orders that links want. It can be thrown away at any time: it is made again when asked for.

    `own`: the order of each input's area.
    """

    own: tuple[Order, ...]
    timed: bool
    chunk: int = PAIRS_PER_CHUNK
    made: dict[tuple[str, Any], Sorted] = field(default_factory=dict)

    def of(self, number: int, run: Run, order: Order) -> Sorted:
        """A run of an input in this order. The values of an area's own order are its first."""
        if order.key == self.own[number].key and order.at == 0:
            return Sorted(run, None)
        known = self.made.get((run.id, order.key))
        if known is None:
            known = self.made[run.id, order.key] = self.anew(run.rows, order)
        return known

    def asked(self, link: Link, parent: int, asking: Sorted, run: Run) -> Iterator[tuple[int, Batch, Sorted]]:
        """What rows of input `parent` have to look at in a run of the input at the link's other end: the number of the
        first row, the rows, and the same in the order of the link. Of a run in a store it is some pages at a time.
        """
        number = link.other(parent)
        order = link.order(number)
        if not isinstance(run, SpilledRun):
            yield 0, run.rows, self.of(number, run, order)
        elif order.key == self.own[number].key and order.at == 0:
            matching = Matching(link.predicate, timed=self.timed, chunk=self.chunk)
            for first, _, _, pages in run.met_by(asking.run, 0 if parent == link.one else 1, matching):
                yield first, pages.rows, Sorted(pages, None)
        else:
            for page in range(len(run.stored.index)):
                rows = run.stored.pages(page, page + 1)
                yield int(run.stored.index.start[page]), rows, self.anew(rows, order)
            run.stored.forget()

    def anew(self, rows: Batch, order: Order) -> Sorted:
        """Rows in this order."""
        matching, slim = self._matching(order), order.values(rows)
        back = sort_order(matching.run_of(slim).sort_columns)
        return Sorted(matching.run_of(slim.take(back)), back)

    def pairs(self, link: Link, number: int, mine: Sorted, theirs: Sorted) -> Iterator[tuple[Indices, Indices]]:
        """Positions in a run of input `number` and in one of the input at the link's other end, that match."""
        matching = Matching(link.predicate, timed=self.timed, chunk=self.chunk)
        if number == link.one:
            for i, j in matching.pairs(mine.run, theirs.run):
                yield mine.positions(i), theirs.positions(j)
        else:
            for j, i in matching.pairs(theirs.run, mine.run):
                yield mine.positions(i), theirs.positions(j)

    def some(self, order: Order, rows: Sorted, keep: Mask) -> Sorted:
        """Those of the rows, by their positions in the run, in the order that they have."""
        place = np.arange(len(rows.run)) if rows.back is None else rows.back
        left = np.flatnonzero(keep[place])
        slim = rows.run.rows.take(left) if rows.back is not None else order.values(rows.run.rows).take(left)
        return Sorted(self._matching(order).run_of(slim), place[left])

    def forget(self, areas: Iterable[Iterable[Kept]]) -> None:
        """Runs that are no longer there need no order."""
        there = {kept.run.id for area in areas for kept in area}
        self.made = {key: each for key, each in self.made.items() if key[0] in there}

    @property
    def nbytes(self) -> int:
        """Bytes of what has been made."""
        return sum(each.nbytes for each in self.made.values())

    def _matching(self, order: Order) -> Matching:
        return Matching(order.predicate, timed=self.timed, chunk=self.chunk)
