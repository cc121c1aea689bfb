"""The operators' configurations that the contract is checked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Adaptive, AsOf, Band, BestOf, Greedy, MaxFanIn, NearestOf, Overlaps, Within
from streamjoin.operators import (
    AsofJoin,
    BestMatchJoin,
    Judging,
    NearestJoin,
    NwayJoin,
    Pmj,
    TemporalJoin,
    Tpmj,
    Verdict,
)
from streamjoin.operators.contract import side_by_side
from streamjoin.operators.pmj import Budget
from streamjoin.operators.tpmj import Shares, ValueOrder
from streamjoin.state import Batch, GridAxis, KeyTest, Matching, ValueTest
from streamjoin.state.links import Link
from tests.contract import Arrivals, Subject
from tests.state.making import PAYLOAD, batch

SCHEMAS = (PAYLOAD, PAYLOAD)
Draw = Callable[[random.Random, int], tuple[Batch, Batch]]
Columns = Callable[[random.Random, int], list[list]]  # value columns for rows with these many entries


def _in_order_of_arrival(rng: random.Random, slack: int, rows: Batch) -> Batch:
    return rows.take(np.array(sorted(range(len(rows)), key=lambda row: rows.ts[row] + rng.randint(0, slack)), np.int64))


def _validities(rng: random.Random, rows: int) -> list[tuple[int, int]]:
    """Short, long, endless and empty ones."""
    starts = [rng.randint(-3, 25) for _ in range(rows)]
    return [(ts, rng.choice([ts + rng.randint(0, 3), ts + rng.randint(1, 9), FOREVER])) for ts in starts]


def joined(
    columns: Columns, *, groups: int = 1, marked: bool = False, replicated: bool = False, proof: bool = False
) -> Draw:
    """Rows for a temporal join: values from `columns`; some can match nothing; some live in several buckets."""

    def draw(rng: random.Random, slack: int) -> tuple[Batch, Batch]:
        sides = []
        for _ in range(2):
            rows = rng.randint(10, 16)
            group = [rng.randrange(groups) for _ in range(rows)]
            side = batch(
                _validities(rng, rows),
                group=[0] * rows if proof else group,
                values=columns(rng, rows),
                matchable=[rng.random() < 0.8 for _ in range(rows)] if marked else None,
                origin=range(100, 100 + rows) if replicated else None,
                home=[rng.random() < 0.5 for _ in range(rows)] if replicated else None,
                proof=pa.table({"k": [f"key {number}" for number in group]}) if proof else None,
            )
            sides.append(_in_order_of_arrival(rng, slack, side))
        return sides[0], sides[1]

    return draw


def many(inputs: int, columns: Columns, **options: object) -> Callable[[random.Random, int], Arrivals]:
    """Rows for a join of so many inputs."""

    def draw(rng: random.Random, slack: int) -> Arrivals:
        return tuple(joined(columns, **options)(rng, slack)[0] for _ in range(inputs))  # type: ignore[arg-type]

    return draw


def events(below: int, above: int) -> Draw:
    """Rows for an event join `-below <= right - left <= above`; `te` is when a row can be forgotten."""

    def draw(rng: random.Random, slack: int) -> tuple[Batch, Batch]:
        sides = []
        for reach in (above, below):
            times = [rng.randint(-3, 25) for _ in range(rng.randint(10, 16))]
            side = batch([(ts, ts + reach + 1) for ts in times], values=[times])
            sides.append(_in_order_of_arrival(rng, slack, side))
        return sides[0], sides[1]

    return draw


def histories(tolerance: int | None, *, proof: bool = False) -> Draw:
    """Rows for an as-of join: few keys and times; some rows can take nobody, and some of those have no time."""

    def draw(rng: random.Random, slack: int) -> tuple[Batch, Batch]:
        sides = []
        for number in (0, 1):
            times = [rng.randint(-3, 12) for _ in range(rng.randint(10, 25))]
            group = [rng.randrange(3) for _ in times]
            ends = [FOREVER if tolerance is None else ts + tolerance + 1 for ts in times]
            side = batch(
                list(zip(times, ends if number else times, strict=True)),
                group=group,
                matchable=[rng.random() < 0.9 for _ in times],
                proof=pa.table({"k": [f"key {number}" for number in group]}) if proof else None,
            )
            sides.append(_in_order_of_arrival(rng, slack, side))
        return sides[0], sides[1]

    return draw


def placed(reach: int) -> Draw:
    """Rows for a best-match join, ordered by a whole number; the other dimensions are tenths."""

    def draw(rng: random.Random, slack: int) -> tuple[Batch, Batch]:
        sides = []
        for _ in range(2):
            places = [rng.randint(-3, 12) for _ in range(rng.randint(10, 25))]
            side = batch(
                [(place, place + reach + 1) for place in places],
                group=[rng.randrange(2) for _ in places],
                values=[places, *_tenths(1)(rng, len(places))],
                matchable=[rng.random() < 0.9 for _ in places],
            )
            sides.append(_in_order_of_arrival(rng, slack, side))
        return sides[0], sides[1]

    return draw


def testimony(outer: str) -> Draw:
    """Rows for a verdict: claimants, and witnesses for some of them, several for one; by snapshot with their parts."""

    def draw(rng: random.Random, slack: int) -> tuple[Batch, Batch]:
        rows = rng.randint(10, 16)
        validities = [(ts, max(te, ts + 1)) for ts, te in _validities(rng, rows)]
        claimants = batch(validities, origin=range(100, 100 + rows), home=[True] * rows)
        some = [rng.randrange(rows) for _ in range(rows)]
        parts: tuple[np.ndarray, ...] = ()
        if outer == "snapshot":
            starts = [rng.randint(ts, min(te - 1, ts + 8)) for ts, te in (validities[row] for row in some)]
            ends = [
                rng.randint(start + 1, min(validities[row][1], start + 9))
                for row, start in zip(some, starts, strict=True)
            ]
            parts = (np.array(starts), np.array(ends))
        seen = claimants.take(np.array(some))
        witnesses = Batch(pa.table({}), seen.ts, seen.te, seen.group, parts, origin=seen.origin)
        return _in_order_of_arrival(rng, slack, claimants), _in_order_of_arrival(rng, slack, witnesses)

    return draw


def judged(outer: str, verdicts: int) -> Callable[[random.Random, int], Arrivals]:
    """Rows for a second stage: results of the first, then testimony for each verdict."""

    def draw(rng: random.Random, slack: int) -> Arrivals:
        members = batch(_validities(rng, rng.randint(10, 16)))
        results = replace(members, payload=side_by_side([members.payload, members.payload]))
        testimonies = [testimony(outer)(rng, slack) for _ in range(verdicts)]
        return _in_order_of_arrival(rng, slack, results), *(rows for two in testimonies for rows in two)

    return draw


def _tenths(count: int) -> Columns:
    return lambda rng, rows: [[rng.choice([-0.3, 0.0, 0.1, 0.2, 0.3, 1.1]) for _ in range(rows)] for _ in range(count)]


def _boxes(rng: random.Random, rows: int) -> list[list]:
    low = [rng.choice([0.0, 1.0, 1.5]) for _ in range(rows)]
    return [low, [one + rng.choice([0.5, 1.0, 2.0]) for one in low], *_tenths(1)(rng, rows)]


NEAR = Within(("x", "y"), ("x", "y"), 0.4)
BAND = Band("v", "v", 0.1, 0.3)
BOX = Overlaps(("lo", "hi"), ("lo", "hi"))
INTERVAL = Band("ts", "ts", 2, 4)
EARTH = replace(NEAR, radius=30_000.0, metric="haversine")

BY_TIME, BY_BAND, BY_PLACE = joined(_tenths(0), groups=3), joined(_tenths(1)), joined(_tenths(2))
MARKED = joined(_tenths(1), marked=True)
COPIED = joined(_tenths(1), replicated=True, marked=True)


def _join(name: str, draw: Draw, matching: Matching, **options: object) -> Subject:
    config = TemporalJoin(matching, SCHEMAS, **options)
    return Subject(name, config, draw, ordered=config.emit == "ordered")


def _nway(name: str, draw: Callable[[random.Random, int], Arrivals], inputs: int, **options: object) -> Subject:
    config = NwayJoin((PAYLOAD,) * inputs, **options)  # type: ignore[arg-type]
    return Subject(name, config, draw, ordered=config.emit == "ordered")


def _tpmj(
    name: str, draw: Callable[[random.Random, int], Arrivals], inputs: int, order: ValueOrder, **options: object
) -> Subject:
    """With a budget of a few rows, so that groups are written and merged all the time."""
    small = {"memory": Shares(9, 3 * inputs * 2, 400), "page_bytes": 2, "row_bytes": (1,) * inputs}
    config = Tpmj((PAYLOAD,) * inputs, order, **{**small, **options})  # type: ignore[arg-type]
    return Subject(name, config, draw, ordered=True)


def _pmj(name: str, draw: Draw, matching: Matching) -> Subject:
    """With a budget of a few rows, so that there are many generations."""
    return Subject(name, Pmj(matching, SCHEMAS, budget=Budget(9, 4, 2, 400), row_bytes=1), draw)


def _asof(name: str, draw: Draw, choice: AsOf, **options: object) -> Subject:
    config = AsofJoin(choice, SCHEMAS, **options)
    return Subject(name, config, draw, ordered=config.emit == "ordered")


def _best(name: str, choice: BestOf, reach: int = 3, **options: object) -> Subject:
    dimensions = (Band("n", "n", reach, reach), Band("v", "v", 0.3, 0.3))
    matching = Matching(dimensions[0], (ValueTest(dimensions[1], 1),), timed=False)
    config = BestMatchJoin(choice, matching, dimensions, reach, SCHEMAS, **options)
    return Subject(name, config, placed(reach), ordered=config.emit == "ordered")


def _boxed(name: str, **options: object) -> Subject:
    """A best match over a grid, as plans have it."""
    dimensions = (Band("n", "n", 3, 3), Band("v", "v", 0.3, 0.3))
    tests = (ValueTest(dimensions[1], 1),)
    matching = Matching(dimensions[0], tests, timed=False, grid=(GridAxis(1, 0.3),))
    config = BestMatchJoin(BestOf(), matching, dimensions, 3, SCHEMAS, **options)
    return Subject(name, config, placed(3), ordered=config.emit == "ordered")


def _nearest(name: str, k: int, **options: object) -> Subject:
    within = Within(("n", "v"), ("n", "v"), 2.0)
    matching = Matching(within, (TimeTest(3),), timed=False)
    config = NearestJoin(NearestOf(k, 3), matching, within, SCHEMAS, **options)
    return Subject(name, config, placed(3), ordered=config.emit == "ordered")


@dataclass(frozen=True)
class TimeTest:
    """Times at most so far apart."""

    tolerance: int

    def holds(self, a: Batch, i: np.ndarray, b: Batch, j: np.ndarray) -> np.ndarray:
        return np.abs(a.ts[i] - b.ts[j]) <= self.tolerance


def _nearer_first(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return one[:, 0] < two[:, 0]


def _verdict(number: int, how: str, outer: str) -> Subject:
    return Subject(
        f"verdict of input {number}, {how} by {outer}", Verdict(number, SCHEMAS, how, outer), testimony(outer)
    )


def _judging(name: str, how: str, outer: str, *numbers: int, ordered: bool = False) -> Subject:
    """What comes on input 0 is no further than what claimants can still come."""
    config = Judging(tuple(Verdict(number, SCHEMAS, how, outer) for number in numbers), ordered)
    claimants = tuple(range(1, config.inputs, 2))
    return Subject(name, config, judged(outer, len(numbers)), ordered, bounded={0: claimants})


# A chain of bands over one column, a ring of bands, boxes that all have a point in common, and a path whose middle is
# asked by two columns.
_CHAIN = (Link(0, 1, BAND), Link(1, 2, BAND))
_RING = (*_CHAIN, Link(0, 2, replace(BAND, below=0.2)))
_BOXES = tuple(Link(one, two, BOX) for one in range(3) for two in range(one + 1, 3))
_TWO_COLUMNS = (Link(0, 1, BAND), Link(2, 1, BAND, (0, 1)), Link(1, 3, NEAR))

_EVENTS = {"matching": Matching(INTERVAL, timed=False), "validity": False}

SUBJECTS = (
    _join("inner by time", BY_TIME, Matching()),
    _join("inner by time, in small chunks", BY_TIME, Matching(chunk=2)),
    _join("inner by time, outputs in order", BY_TIME, Matching(), emit="ordered"),
    _join("inner by time, inputs in order", BY_TIME, Matching(), emit="ordered", hold="inputs"),
    _join("inner by keys with proof", joined(_tenths(0), groups=3, proof=True), Matching(tests=(KeyTest(),))),
    _join("left by band", BY_BAND, Matching(BAND), how="left"),
    _join("left by band, outputs in order", BY_BAND, Matching(BAND), how="left", emit="ordered"),
    _join("right by band and snapshot", BY_BAND, Matching(BAND), how="right", outer="snapshot"),
    _join("full by place", BY_PLACE, Matching(NEAR), how="full"),
    _join("full by place on Earth", BY_PLACE, Matching(EARTH), how="full"),
    _join("full by box", joined(_boxes), Matching(BOX, (ValueTest(BAND, 2),)), how="full", emit="ordered"),
    _join("full by snapshot, inputs in order", BY_TIME, Matching(), how="full", outer="snapshot", emit="ordered",
          hold="inputs"),
    _join("full by row, inputs in order", MARKED, Matching(BAND), how="full", emit="ordered", hold="inputs"),
    _join("semi by row", MARKED, Matching(BAND), how="semi"),
    _join("semi by row, outputs in order", MARKED, Matching(BAND), how="semi", emit="ordered"),
    _join("semi by snapshot", MARKED, Matching(BAND), how="semi", outer="snapshot"),
    _join("anti by row", MARKED, Matching(BAND), how="anti"),
    _join("anti by snapshot, outputs in order", MARKED, Matching(BAND), how="anti", outer="snapshot", emit="ordered"),
    _join("inner events", events(2, 4), **_EVENTS),
    _join("full events, outputs in order", events(2, 4), **_EVENTS, how="full", emit="ordered"),
    _join("semi events, inputs in order", events(2, 4), **_EVENTS, how="semi", emit="ordered", hold="inputs"),
    _join("left of copies", COPIED, Matching(BAND), how="left", replicated=(True, False)),
    _join("full of copies by snapshot", COPIED, Matching(BAND), how="full", outer="snapshot", replicated=(True, True)),
    _join("semi of copies", COPIED, Matching(BAND), how="semi", replicated=(True, False)),
    _nway("three by time", many(3, _tenths(0), groups=3), 3),
    _nway("three by time, in small chunks", many(3, _tenths(0), groups=3), 3, chunk=2),
    _nway("three by time, outputs in order", many(3, _tenths(0), groups=3), 3, emit="ordered"),
    _nway("three by time, inputs in order", many(3, _tenths(0), groups=3), 3, emit="ordered", hold="inputs"),
    _nway("three by keys with proof", many(3, _tenths(0), groups=3, proof=True), 3, proved=1),
    _nway("three in a chain of bands", many(3, _tenths(1), marked=True), 3, links=_CHAIN),
    _nway("three in a ring of bands, in order", many(3, _tenths(1)), 3, links=_RING, emit="ordered"),
    _nway("three boxes", many(3, _boxes), 3, links=_BOXES, common=(0, 0, 0)),
    _nway("four by two columns", many(4, _tenths(2)), 4, links=_TWO_COLUMNS),
    _tpmj("two in sorted runs by keys", joined(_tenths(0), groups=3), 2, ValueOrder(), merge=Greedy()),
    _tpmj("three boxes in sorted runs", many(3, _boxes), 3, ValueOrder((0, 0, 0), interval=True), merge=MaxFanIn(2)),
    _tpmj("three bands in sorted runs", many(3, _tenths(1), marked=True), 3, ValueOrder((0, 0, 0), bands=_CHAIN),
          merge=Adaptive(2), credit=1.0),
    _pmj("in generations by band", joined(_tenths(1), groups=2), Matching(BAND)),
    _pmj("in generations by box", joined(_boxes), Matching(BOX, (ValueTest(BAND, 2),))),
    _asof("as of, backward", histories(None), AsOf()),
    _asof("as of, backward, in order", histories(4), AsOf(tolerance=4), emit="ordered"),
    _asof("as of, strictly backward, keys with proof", histories(None, proof=True), AsOf(exact=False), how="inner"),
    _asof("as of, forward", histories(0), AsOf("forward")),
    _asof("as of, strictly forward, in order", histories(0), AsOf("forward", 5, False), emit="ordered"),
    _asof("as of, nearest", histories(None), AsOf("nearest", tie_break=("note",))),
    _asof("as of, strictly nearest, in order", histories(3), AsOf("nearest", 3, False), emit="ordered"),
    _best("best match", BestOf()),
    _best("best match, strict and in order", BestOf("strict"), emit="ordered"),
    _best("best match of the right rows, by a function", BestOf(_nearer_first), how="right"),
    _best("best match, full and in order", BestOf(), how="full", emit="ordered"),
    _best("best match at one place", BestOf(), reach=0, how="inner"),
    _boxed("best match over a grid", how="full"),
    _nearest("the nearest", 1),
    _nearest("the two nearest, in order", 2, how="inner", emit="ordered"),
    _verdict(0, "left", "row"),
    _verdict(1, "full", "row"),
    _verdict(0, "semi", "row"),
    _verdict(0, "anti", "row"),
    _verdict(1, "right", "snapshot"),
    _verdict(0, "semi", "snapshot"),
    _verdict(0, "anti", "snapshot"),
    _judging("judging, left by row", "left", "row", 0),
    _judging("judging, full by row, in order", "full", "row", 0, 1, ordered=True),
    _judging("judging, full by snapshot", "full", "snapshot", 1, 0),
    _judging("judging, right by snapshot, in order", "right", "snapshot", 1, ordered=True),
)  # fmt: skip
