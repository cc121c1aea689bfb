"""The common order of values: what lets rows of n inputs be sorted once, and merged and joined in that order.

    equality alone   by the code of the keys: everyone of a group matches
    overlap          by the low ends of value intervals; all of a result share a point
    band             by one value of each input; links bound the differences of some, and lead from every input to every
                     other, so that nobody has to be waited for forever

Rows that are equal by it are ordered by their validity, so the order says as much about rows as a merge can see.
What a predicate asks beyond the order is a test of pairs (`Between`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.predicate import Band
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import sort_order
from streamjoin.kernels.merge_sweep import Bounds, Rows
from streamjoin.operators.probing import Graph
from streamjoin.state import Batch, PairTest
from streamjoin.state.batch import Indices
from streamjoin.state.links import Link, same_proof

Columns = list[npt.NDArray[Any]]

# Differences along a way of several links add up; each is rounded by less than this.
ROUNDING: Final = 1e-12
MOST: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Between:
    """A test of the rows that two inputs have in a result."""

    one: int
    two: int
    test: PairTest


@dataclass(frozen=True)
class LinkTest:
    """A link that the order does not follow, and proofs of keys whose codes are hashes."""

    link: Link
    proved: int = 0

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        link, holds = self.link, np.ones(len(i), np.bool_)
        if link.predicate is not None:
            sides = [
                [rows.values[column][where] for column in range(at, at + link.width)]
                for rows, where, at in ((a, i, link.at[0]), (b, j, link.at[1]))
            ]
            holds = np.asarray(link.predicate.holds(*sides), np.bool_)
        pairs = [*link.proof, *((column, column) for column in range(self.proved))]
        return holds & same_proof(pairs, a.proof, i, b.proof, j)


@dataclass(frozen=True)
class ValueOrder:
    """By which values rows are sorted: number `at` of each input's; None: by their groups alone. `by_time`: and then
    by their validity.

    `interval`: the value behind it is the high end of an interval. `bands`: otherwise, links that bound differences.
    """

    at: tuple[int, ...] | None = None
    interval: bool = False
    bands: tuple[Link, ...] = ()
    by_time: bool = True

    def value(self, number: int, batch: Batch) -> npt.NDArray[Any]:
        """What an input's rows are sorted by within their groups."""
        return np.zeros(len(batch), np.int64) if self.at is None else batch.values[self.at[number]]

    def columns(self, number: int, batch: Batch) -> Columns:
        """The four columns that rows are sorted by."""
        last = (batch.ts, batch.te) if self.by_time else (batch.group, batch.group)
        return [batch.group, self.value(number, batch), *last]

    def sorted(self, number: int, batch: Batch) -> Batch:
        """Rows of an input in this order; those that are equal stay as they are."""
        return batch.take(sort_order(self.columns(number, batch)[: 4 if self.by_time else 2]))

    def rows(self, number: int, batch: Batch) -> Rows:
        """As a sweep takes them."""
        value = self.value(number, batch)
        if self.at is None:
            high: npt.NDArray[Any] = np.ones(len(batch), np.int64)
        else:
            high = batch.values[self.at[number] + 1] if self.interval else value
        return batch.group, value, high, batch.ts, batch.te

    def alive(self, number: int, batch: Batch, group: Any, value: Any, bounds: Bounds | None) -> Mask:
        """Which rows may still find somebody when the sweep has come to this group and value."""
        alive = np.asarray(batch.group == group, np.bool_)
        if self.at is None:
            return alive
        mine = self.value(number, batch)
        if bounds is None:
            return np.asarray(alive & (batch.values[self.at[number] + 1] > value), np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            gap = value - mine.astype(np.float64) if mine.dtype.kind == "f" else _gap(value, mine)
        return np.asarray(alive & ~(gap > bounds.reach[number]), np.bool_)

    def bounds(self, inputs: int) -> Bounds | None:
        """The bands as arrays."""
        if self.at is None or self.interval:
            return None
        exact = all(_whole(bound) for link in self.bands for bound in _of(link))
        kind = np.int64 if exact else np.float64
        shape = (inputs, inputs)
        linked, low_closed, high_closed = (np.zeros(shape, np.bool_) for _ in range(3))
        low, high = np.zeros(shape, kind), np.zeros(shape, kind)
        for link in self.bands:
            one, two = link.one, link.two
            assert isinstance(link.predicate, Band)
            below, above = _of(link)
            ends = (-below, above, link.predicate.low_closed, link.predicate.high_closed)
            if one > two:
                one, two = two, one
                ends = (-above, below, link.predicate.high_closed, link.predicate.low_closed)
            linked[one, two] = True
            low[one, two], high[one, two], low_closed[one, two], high_closed[one, two] = ends
        return Bounds(linked, low, high, low_closed, high_closed, self._reach(inputs, kind, exact=exact))

    def _reach(self, inputs: int, kind: type, *, exact: bool) -> npt.NDArray[Any]:
        """How far above a row of each input another of its result can lie, along the shortest ways."""
        far = np.full((inputs, inputs), np.inf).tolist()
        for link in self.bands:
            below, above = _of(link)
            far[link.one][link.two] = min(far[link.one][link.two], above)
            far[link.two][link.one] = min(far[link.two][link.one], below)
        for middle in range(inputs):
            for a in range(inputs):
                for b in range(inputs):
                    far[a][b] = min(far[a][b], far[a][middle] + far[middle][b])
        reach = [max(far[a][b] for b in range(inputs) if b != a) for a in range(inputs)]
        # Differences of doubles may be rounded, with whole bounds too; what lies too far is tested in the end.
        if exact:
            reach = [min(int(each) + int(abs(each) * ROUNDING) + 1, MOST) for each in reach]
        else:
            reach = [each + abs(each) * ROUNDING if math.isfinite(each) else each for each in reach]
        return np.array(reach, kind)


def _of(link: Link) -> tuple[Any, Any]:
    assert isinstance(link.predicate, Band)
    return link.predicate.below, link.predicate.above


def _whole(bound: Any) -> bool:
    """Whether it is an integer, and not so large that a sum of some would be none."""
    return bool(abs(bound) < MOST >> 8 and float(bound).is_integer())


def _gap(value: Any, mine: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Differences of integers that are not below zero; those too large for an integer count as the largest."""
    gap = np.asarray(value, np.int64) - mine
    return np.where(gap < 0, np.iinfo(np.int64).max, gap)


def value_order(graph: Graph, *, keyed: bool = False) -> tuple[ValueOrder, tuple[Between, ...]]:
    """The order of a join of many inputs, and what is left to be tested. `keyed`: groups are keys that all have."""
    inputs = graph.inputs
    if graph.common is not None:
        order = ValueOrder(graph.common, interval=True)
        rest = [link for link in graph.links if not graph.is_common(link)]
    elif not graph.links:
        order, rest = ValueOrder(), []
    else:
        order, rest = _by_bands(graph, keyed=keyed)
    tests = [Between(link.one, link.two, LinkTest(link)) for link in rest]
    if graph.proved:
        tests += [Between(0, other, LinkTest(Link(0, other), graph.proved)) for other in range(1, inputs)]
    tests += [
        Between(link.one, link.two, LinkTest(Link(link.one, link.two, proof=link.proof)))
        for link in order.bands
        if link.proof
    ]
    return order, tuple(tests)


def _by_bands(graph: Graph, *, keyed: bool) -> tuple[ValueOrder, list[Link]]:
    """Bands over one value of each input, that lead from input 0 to all others."""
    banded = [link for link in graph.links if isinstance(link.predicate, Band)]
    for first in banded:
        at = {first.one: first.at[0], first.two: first.at[1]}
        grown = True
        while grown:
            grown = False
            for link in banded:
                for one, two, here, there in ((link.one, link.two, *link.at), (link.two, link.one, *link.at[::-1])):
                    if at.get(one) == here and two not in at:
                        at[two], grown = there, True
        if len(at) == graph.inputs:
            bands: dict[frozenset[int], Link] = {}
            for link in banded:
                if at[link.one] == link.at[0] and at[link.two] == link.at[1]:
                    bands.setdefault(frozenset((link.one, link.two)), link)
            chosen = tuple(bands.values())
            order = ValueOrder(tuple(at[number] for number in range(graph.inputs)), bands=chosen)
            return order, [link for link in graph.links if not any(link is each for each in chosen)]
    if keyed:
        return ValueOrder(), list(graph.links)
    raise UnsupportedError(
        'algorithm="tpmj" sorts the rows of all inputs by one value, and these predicates give none',
        hint="join by keys that all have, by overlapping intervals of all, or by bands over one column of each; or "
        "leave algorithm out",
    )


def tested(tests: Sequence[Between], rows: Sequence[Batch], places: Sequence[Indices]) -> Mask:
    """Which tuples pass all tests."""
    keep = np.ones(len(places[0]), np.bool_)
    for each in tests:
        where = np.flatnonzero(keep)
        if not len(where):
            break
        one, two = each.one, each.two
        keep[where] = each.test.holds(rows[one], places[one][where], rows[two], places[two][where])
    return keep
