"""Probing n - 1 areas with a run of one input: index tuples of all that match, the payload nowhere in sight.

    1. a route: which area is asked next, and by whose rows (`Step`). Inputs that are linked go first, and among them
       those in which a row has found fewest so far: that is counted, so the route changes while the join runs
    2. lists: what each row has found in an area. Rows that found nobody are dropped before the next area is asked, and
       so are those in earlier lists whose only way on they were
    3. tuples: the lists are expanded in the order of the route, with the intersection of the members' intervals; links
       that no step has followed are tested as soon as both ends are there

Where the areas are not much larger than the run, and nothing but a common point is asked for, one sweep over all of
them is cheaper (`kernels.products`), and says the same.

Law: which tuples are found does not depend on the route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask, Times
from streamjoin.kernels import PAIRS_PER_CHUNK, expand_lists, lists_of, sweep_products
from streamjoin.operators.link_tests import link_holds, value_of
from streamjoin.operators.probed import ASKED, FOUND, SWEPT, TURN, figure
from streamjoin.state import Batch, Kept, Run
from streamjoin.state.batch import Indices
from streamjoin.state.links import Link, Order, Orders, same_proof
from streamjoin.state.places import Places

# A sweep goes through the areas as a whole: worth while when they have at most so many rows for one of the run.
SWEEP_UP_TO: Final = 8
# Of more rows than this the older half counts half, so that the route follows what happens now.
REMEMBERED: Final = 1 << 20

Tuples = dict[int, Indices]  # of each input, where its member is: a position in the run, or a place in the area


@dataclass(frozen=True)
class Graph:
    """What holds between the inputs.

    `common`: where the two ends of a value interval begin among each input's values, if all must share a point.
    `proved`: of how many columns of the proof the group is a hash. `timed`: validities must share an instant.
    """

    inputs: int
    links: tuple[Link, ...] = ()
    common: tuple[int, ...] | None = None
    proved: int = 0
    timed: bool = True

    @property
    def swept(self) -> bool:
        """Whether a common point, and equal groups, are all that is asked for."""
        if self.common is None:
            return not self.links
        return all(self.is_common(link) for link in self.links)

    def is_common(self, link: Link) -> bool:
        """Whether a link says no more than that all have a point in common."""
        return self.common is not None and link.of_overlap(self.common)

    def between(self, one: int, two: int) -> list[Link]:
        """The links of two inputs."""
        return [link for link in self.links if link.joins(one) and link.other(one) == two]

    def orders(self) -> tuple[Order, ...]:
        """The order of each input's area: that of its first link, or of its times."""
        mine = [[link for link in self.links if link.joins(number)] for number in range(self.inputs)]
        return tuple(links[0].order(number) if links else Order(None, 0) for number, links in enumerate(mine))


@dataclass(frozen=True)
class Step:
    """An area is asked by rows of `parent`, along a link; `tested` are the links to others that are there then."""

    number: int
    parent: int
    link: Link
    tested: tuple[Link, ...]


@dataclass
class Lists:
    """What rows have found in an area: a list for each finder, of places, with what is asked of them all the time."""

    start: Indices
    place: Indices
    lo: npt.NDArray[Any]
    hi: npt.NDArray[Any]
    ts: Times
    te: Times
    row: Indices | None = None  # of an input that asks others: which of those that ask is at a place
    distinct: Indices | None = None  # those that ask

    def finders(self) -> Indices:
        """Of each place in a list, whose list it is."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def kept(self, keep: Mask) -> Lists:
        """The same without some of the places."""
        count = np.bincount(self.finders()[keep], minlength=len(self.start) - 1)
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        row = None if self.row is None else self.row[keep]
        return Lists(
            start, self.place[keep], self.lo[keep], self.hi[keep], self.ts[keep], self.te[keep], row, self.distinct
        )  # fmt: skip


@dataclass
class Grown:
    """Tuples that grow: where their members are, and what these have in common."""

    members: Tuples
    entry: Tuples  # of each input but the first, the place in its lists
    lo: npt.NDArray[Any]
    hi: npt.NDArray[Any]
    ts: Times
    te: Times

    def take(self, rows: Any) -> Grown:
        """Some of them."""
        return Grown(
            {number: each[rows] for number, each in self.members.items()},
            {number: each[rows] for number, each in self.entry.items()},
            self.lo[rows], self.hi[rows], self.ts[rows], self.te[rows],
        )  # fmt: skip


@dataclass
class Probing:
    """How the rows of one input find all others. `figures` is where it counts, and what routes are made of; `probed`
    is what a reader is told: all that was asked since it was built (see `probed`).
    """

    graph: Graph
    figures: dict[str, int]
    chunk: int = PAIRS_PER_CHUNK
    orders: Orders = field(init=False)
    probed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.orders = Orders(self.graph.orders(), self.graph.timed, self.chunk)

    def tuples(
        self, number: int, mine: Run, areas: Sequence[Sequence[Kept]], alive: Mapping[int, Mask] | None
    ) -> Iterator[Tuples]:
        """All tuples of a row of the run and one of each area but its own; `alive` says who may be found there."""
        places = [Places(() if each == number else runs) for each, runs in enumerate(areas)]
        others = [each for each in range(self.graph.inputs) if each != number]
        if any(not len(places[each]) for each in others):
            return
        rows = sum(len(places[each]) for each in others)
        single = all(len(areas[each]) == 1 for each in others)
        if self.graph.swept and single and rows <= SWEEP_UP_TO * len(mine):
            self.figures["swept"] += 1
            self.probed[SWEPT] += 1
            found = self._swept(number, mine, areas)
        else:
            steps = self.route(number, [len(each) for each in places])
            self.probed.update({figure(TURN, number, step.number): turn for turn, step in enumerate(steps, 1)})
            found, alive = Round(self, number, mine, places, alive, steps).tuples(), None
        for some in found:
            if alive is not None:
                keep = np.ones(len(some[number]), np.bool_)
                for each in others:
                    keep &= alive[each][some[each]]
                some = {each: member[keep] for each, member in some.items()}
            if len(some[number]):
                yield some

    # -- one sweep -----------------------------------------------------------------------------------------------------

    def _swept(self, number: int, mine: Run, areas: Sequence[Sequence[Kept]]) -> Iterator[Tuples]:
        runs = [mine if each == number else areas[each][0].run for each in range(self.graph.inputs)]
        valued = self.graph.common is not None
        sides = []
        for each, run in enumerate(runs):
            rows = run.rows
            if self.graph.common is not None:
                at = self.graph.common[each]
                interval = rows.values[at], rows.values[at + 1]
            elif self.graph.timed:
                interval = rows.ts, rows.te
            else:
                interval = np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
            sides.append((rows.group, *interval, rows.ts, rows.te))
        for found in sweep_products(sides, timed=valued and self.graph.timed, limit=self.chunk):
            keep = np.ones(len(found[0]), np.bool_)
            for each, run in enumerate(runs):
                if each != number and self.graph.proved:
                    pairs = [(column, column) for column in range(self.graph.proved)]
                    keep &= same_proof(pairs, mine.rows.proof, found[number], run.rows.proof, found[each])
            yield {each: member if keep.all() else member[keep] for each, member in enumerate(found)}

    # -- area by area --------------------------------------------------------------------------------------------------

    def route(self, number: int, sizes: Sequence[int]) -> list[Step]:
        """In which order the areas are asked, and by whom."""
        steps: list[Step] = []
        there = [number]
        while len(there) < self.graph.inputs:
            absent = [each for each in range(self.graph.inputs) if each not in there]
            linked = [each for each in absent if any(self.graph.between(each, other) for other in there)]
            following = min(linked or absent, key=lambda each: (self._expected(number, each, sizes[each]), each))
            links = [link for other in there for link in self.graph.between(following, other)]
            link = links[0] if links else Link(min(number, following), max(number, following))
            tested = tuple(other for other in links if other is not link and not self.graph.is_common(other))
            steps.append(Step(following, link.other(following), link, tested))
            there.append(following)
        return steps

    def _expected(self, number: int, other: int, size: int) -> float:
        """How many rows of another input a row is expected to find; nothing is known: as if it found all."""
        asked = self.figures.get(f"asked {number} {other}", 0)
        return self.figures.get(f"found {number} {other}", 0) / asked if asked else float(size)

    def count(self, number: int, other: int, asked: int, found: int) -> None:
        """So many rows have asked an area, and so many were found."""
        self.probed.update({figure(ASKED, number, other): asked, figure(FOUND, number, other): found})
        names = f"asked {number} {other}", f"found {number} {other}"
        for name, more in zip(names, (asked, found), strict=True):
            self.figures[name] = self.figures.get(name, 0) + more
        if self.figures[names[0]] > REMEMBERED:
            for name in names:
                self.figures[name] //= 2

    @property
    def nbytes(self) -> int:
        """Bytes of the orders that links have asked for, beside the runs themselves."""
        return self.orders.nbytes


@dataclass
class Round:
    """One run asks the areas along a route. `asks`: which of its rows are still in the game."""

    probing: Probing
    number: int
    mine: Run
    places: Sequence[Places]
    alive: Mapping[int, Mask] | None
    steps: list[Step]
    lists: dict[int, Lists] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asks: Mask = np.ones(len(self.mine), np.bool_)
        self.graph = self.probing.graph
        self.parents = {step.number: step.parent for step in self.steps}

    def tuples(self) -> Iterator[Tuples]:
        """All tuples."""
        for step in self.steps:
            found = self.lists[step.number] = self._ask(step)
            self._drop(step.parent, np.diff(found.start) > 0)
            if not self.asks.any():
                return
        rows = np.flatnonzero(self.asks)
        ts, te = self.mine.rows.ts[rows], self.mine.rows.te[rows]
        lo, hi = ts, te
        if self.graph.common is not None:
            at = self.graph.common[self.number]
            lo, hi = self.mine.rows.values[at][rows], self.mine.rows.values[at + 1][rows]
        yield from (grown.members for grown in self._grown(0, Grown({self.number: rows}, {}, lo, hi, ts, te)))

    # -- lists ---------------------------------------------------------------------------------------------------------

    def _ask(self, step: Step) -> Lists:
        """What the rows of a step's parent that are still in the game find in its area."""
        orders, order, there = self.probing.orders, step.link.order(step.parent), self.places[step.number]
        if step.parent == self.number:
            proof, finders = self.mine.rows.proof, len(self.mine)
            asking = orders.of(self.number, self.mine, order)
            asking = asking if self.asks.all() else orders.some(order, asking, self.asks)
        else:
            found = self._found_so_far(step.parent)
            proof, finders, asking = found.proof, len(found), orders.anew(found, order)
        finder, place = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for kept, first in zip(there.runs, there.first, strict=False):
            for begin, rows, theirs in orders.asked(step.link, step.parent, asking, kept.run):
                for i, j in orders.pairs(step.link, step.parent, asking, theirs):
                    keep = self._proved(step, proof, i, rows, j)
                    if self.alive is not None:
                        keep &= self.alive[step.number][j + (first + begin)]
                    finder.append(i if keep.all() else i[keep])
                    place.append((j if keep.all() else j[keep]) + (first + begin))
        self.probing.count(self.number, step.number, len(asking.run), sum(map(len, finder)))
        start, order_of_lists = lists_of(np.concatenate(finder), finders)
        return self._lists(step.number, start, np.concatenate(place)[order_of_lists])

    def _lists(self, number: int, start: Indices, place: Indices) -> Lists:
        there = self.places[number]
        ts, te = there.column(place, _ts), there.column(place, _te)
        lo = hi = ts
        if self.graph.common is not None:
            at = self.graph.common[number]
            lo, hi = there.column(place, value_of(at)), there.column(place, value_of(at + 1))
        return Lists(start, place, lo, hi, ts, te)

    def _proved(self, step: Step, proof: Any, i: Indices, rows: Batch, j: Indices) -> Mask:
        """Where groups, or a link's values, are hashes: for which pairs the keys themselves are equal."""
        forward = step.parent == step.link.one
        pairs = [(a, b) if forward else (b, a) for a, b in step.link.proof]
        pairs += [(column, column) for column in range(self.graph.proved)]
        return same_proof(pairs, proof, i, rows.proof, j)

    def _found_so_far(self, number: int) -> Batch:
        """The rows of an area that were found, each once; its lists know which of them is at which place."""
        known = self.lists[number]
        if known.distinct is None:
            if self.parents[number] == self.number and not self.asks.all():
                known = self.lists[number] = known.kept(self.asks[known.finders()])
            known.distinct, row = np.unique(known.place, return_inverse=True)
            known.row = row.reshape(-1).astype(np.int64)
        return self.places[number].rows(known.distinct)

    def _drop(self, number: int, hit: Mask) -> None:
        """Rows of an input that led nowhere are no longer in its lists, nor are those that had only them."""
        while number != self.number:
            known = self.lists[number]
            assert known.row is not None
            known = self.lists[number] = known.kept(hit[known.row])
            number, hit = self.parents[number], np.diff(known.start) > 0
        self.asks &= hit

    # -- tuples --------------------------------------------------------------------------------------------------------

    def _grown(self, level: int, grown: Grown) -> Iterator[Grown]:
        """The tuples with one member more for each step from `level` on, depth first."""
        if level == len(self.steps):
            yield grown
            return
        step, bounded = self.steps[level], self.graph.common is not None
        known, key = self.lists[step.number], grown.members[self.number]
        if step.parent != self.number:
            row = self.lists[step.parent].row
            assert row is not None
            key = row[grown.entry[step.parent]]
        found = expand_lists(
            (key, grown.lo, grown.hi, grown.ts, grown.te), (known.start, known.lo, known.hi, known.ts, known.te),
            bounded=bounded, timed=self.graph.timed, limit=self.probing.chunk,
        )  # fmt: skip
        for i, k in found:
            larger = grown.take(i)
            larger.members[step.number], larger.entry[step.number] = known.place[k], k
            larger.ts, larger.te = np.maximum(larger.ts, known.ts[k]), np.minimum(larger.te, known.te[k])
            if bounded:
                larger.lo, larger.hi = np.maximum(larger.lo, known.lo[k]), np.minimum(larger.hi, known.hi[k])
            for link in step.tested:
                larger = larger.take(link_holds(link, self.number, self.mine, self.places, larger.members))
            if len(larger.ts):
                yield from self._grown(level + 1, larger)


def _ts(rows: Batch) -> Times:
    return rows.ts


def _te(rows: Batch) -> Times:
    return rows.te
