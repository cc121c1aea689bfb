"""The simulator: the same input, cut, interleaved, interrupted and spread at random, must give the oracle's result.

    python -m tests.simulator --runs 100000 --seed 1       as long as one likes
    python -m tests.simulator --replay 4711                one run again, with what it did

A run draws everything from its seed: predicate, windows, join type, emission, disorder and slack, micro-batches, how
the inputs interleave, where the state is saved and restored, and the number of buckets. It goes through the whole path
that needs no JVM: the tree of the call is lowered, and its plan runs stage by stage and bucket by bucket, to the rows
that the user sees.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from streamjoin.algebra import (
    FOREVER,
    NEVER,
    AsOf,
    Band,
    BestOf,
    Fixed,
    Near,
    NearestOf,
    Now,
    Overlaps,
    Predicate,
    Range,
    Similar,
    Steps,
    Unbounded,
    Validity,
    Window,
    Within,
)
from streamjoin.algebra.predicate import haversine
from streamjoin.operators import Output, Results
from streamjoin.runtime.lateness import Slack, Timeless
from streamjoin.runtime.naming import CHANGE, LATE_FLAG
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage, Stage
from tests import oracle, seeds
from tests.in_process import Troubled
from tests.joins import Bounds, JoinCall

SCHEMA = pa.schema([
    ("id", pa.int64()), ("ts", pa.int64()), ("te", pa.int64()), ("k", pa.int32()), ("s", pa.string()),
    ("v", pa.float64()), ("n", pa.int64()), ("lo", pa.float64()), ("hi", pa.float64()),
    ("x", pa.float64()), ("y", pa.float64()), ("z", pa.float64()),
])  # fmt: skip
ALIKE = pa.schema([*SCHEMA, ("words", pa.list_(pa.string())), ("name", pa.string())])  # for similarities
BOXES = pa.schema([
    *SCHEMA, ("lo2", pa.int64()), ("hi2", pa.int64()), ("lo3", pa.float64()), ("hi3", pa.float64()),
])  # fmt: skip
DIMENSIONS = (("lo", "hi"), ("lo2", "hi2"), ("lo3", "hi3"))  # of boxes

HOWS = ("inner", "left", "right", "full", "semi", "anti")


def _known(*values: object) -> bool:
    return all(value is not None and value == value for value in values)


def _same(column: str) -> oracle.Match:
    return lambda left, right: _known(left[column], right[column]) and left[column] == right[column]


def _band(column: str, below: float, above: float, closed: str) -> oracle.Match:
    def match(left: dict, right: dict) -> bool:
        if not _known(left[column], right[column]):
            return False
        gap = right[column] - left[column]
        low = gap >= -below if closed in ("both", "left") else gap > -below
        return low and (gap <= above if closed in ("both", "right") else gap < above)

    return match


def _overlap_of(low: str, high: str) -> oracle.Match:
    def match(left: dict, right: dict) -> bool:
        ends = (left[low], left[high], right[low], right[high])
        return _known(*ends) and max(left[low], right[low]) < min(left[high], right[high])

    return match


_overlap = _overlap_of("lo", "hi")


def _distance(metric: str, axes: tuple[str, ...], radius: float) -> oracle.Match:
    def match(left: dict, right: dict) -> bool:
        a, b = [left[axis] for axis in axes], [right[axis] for axis in axes]
        if not _known(*a, *b):
            return False
        if metric == "haversine":
            phi, psi = math.radians(a[0]), math.radians(b[0])
            h = math.sin((psi - phi) / 2) ** 2
            h += math.cos(phi) * math.cos(psi) * math.sin((math.radians(b[1]) - math.radians(a[1])) / 2) ** 2
            return 2 * 6_371_008.8 * math.asin(math.sqrt(min(1.0, h))) <= radius
        gaps = [abs(q - p) for p, q in zip(a, b, strict=True)]
        if metric == "manhattan":
            return sum(gaps) <= radius
        if metric == "chebyshev":
            return max(gaps) <= radius
        return sum(gap * gap for gap in gaps) <= radius * radius

    return match


def _similar(measure: str, threshold: float) -> oracle.Match:
    def match(left: dict, right: dict) -> bool:
        one, two = left["words"], right["words"]
        if one is None or two is None:
            return False
        first, second = ({word for word in words if word is not None} for words in (one, two))
        common = len(first & second)
        if measure == "overlap" or not common:
            return bool(common) and common >= threshold
        return (
            common / (len(first | second) if measure == "jaccard" else math.sqrt(len(first) * len(second))) >= threshold
        )

    return match


def _near_text(changes: int) -> oracle.Match:
    def match(left: dict, right: dict) -> bool:
        one, two = left["name"], right["name"]
        if one is None or two is None:
            return False
        table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(two) + 1)}
        for i, j in itertools.product(range(1, len(one) + 1), range(1, len(two) + 1)):
            changed = table[i - 1, j - 1] + (one[i - 1] != two[j - 1])
            table[i, j] = min(changed, table[i - 1, j] + 1, table[i, j - 1] + 1)
        return table[len(one), len(two)] <= changes

    return match


def _all(*matches: oracle.Match) -> oracle.Match:
    return lambda left, right: all(match(left, right) for match in matches)


def _always(left: dict, right: dict) -> bool:
    return True


def _theta(left: dict, right: dict) -> bool:
    return (_known(left["n"], right["n"]) and left["n"] < right["n"]) or (left["z"] + right["z"]) % 2 == 1


THETA = "l.n < r.n OR (l.z + r.z) % 2 = 1"


def _draw_predicate(rng: random.Random, kind: str) -> tuple[tuple[Predicate, ...], oracle.Match]:
    below, above = rng.choice([0, 0.5, 1, 2]), rng.choice([0, 0.5, 1, 2])
    closed = rng.choice(["both", "left", "right", "neither"])
    if kind == "band":
        return (Band("v", "v", below, above, closed),), _band("v", below, above, closed)
    if kind == "band_int":
        return (Band("n", "n", int(below), int(above), closed),), _band("n", int(below), int(above), closed)
    if kind == "overlap":
        return (Overlaps(("lo", "hi"), ("lo", "hi")),), _overlap
    if kind == "box":
        sides = DIMENSIONS[: rng.choice([2, 2, 3])]
        boxes: tuple[Predicate, ...] = tuple(Overlaps(side, side) for side in sides)
        match = _all(*(_overlap_of(*side) for side in sides))
        if rng.random() < 0.2:  # then the band finds the pairs, and the box is tested
            return (*boxes, Band("v", "v", below, above, closed)), _all(match, _band("v", below, above, closed))
        return boxes, match
    if kind.startswith("within"):
        metric = rng.choice(["euclidean", "manhattan", "chebyshev"])
        axes = {"within1": ("x",), "within2": ("x", "y"), "within3": ("x", "y", "z")}.get(kind)
        radius = rng.choice([0.0, 0.5, 1.0, 1.5])
        if axes is None:
            metric, axes, radius = "haversine", ("x", "y"), rng.choice([0.0, 60_000.0, 157_500.0, 3e7])
        return (Within(axes, axes, radius, metric),), _distance(metric, axes, radius)
    if kind in ("similar", "edit"):
        measure, threshold = rng.choice(
            [("jaccard", 0.5), ("jaccard", 0.75), ("jaccard", 1.0), ("cosine", 0.8), ("overlap", 2)]
        )
        if kind == "edit":
            measure, threshold = "edit", rng.choice([0, 1, 2])
        column, match = ("name", _near_text(threshold)) if kind == "edit" else ("words", _similar(measure, threshold))
        alike = Similar(column, column, measure, threshold)
        if rng.random() < 0.7:
            return (alike,), match
        if rng.random() < 0.5:
            return (Overlaps(("lo", "hi"), ("lo", "hi")), alike), _all(match, _overlap)
        return (alike, Band("v", "v", below, above, closed)), _all(match, _band("v", below, above, closed))
    return (), _always


KINDS = (
    "time",
    "band",
    "band_int",
    "overlap",
    "box",
    "within1",
    "within2",
    "within3",
    "within_earth",
    "similar",
    "edit",
    "theta",
    "interval",
)


@dataclass
class Case:
    """Everything that a run has drawn from its seed."""

    seed: int
    call: JoinCall
    match: oracle.Match
    slack: tuple[int, int]
    arrivals: tuple[list[dict], list[dict]]
    restore_chance: float
    regime: str
    # What the rows that came in time give, where that is not a join by `match`; as (left id, right id).
    chosen: Callable[[list[dict], list[dict]], list[tuple]] | None = None

    def expected(self, model: oracle.Arrivals, *, times: bool = False) -> list[tuple]:
        """What the rows so far give, by the oracle; of events only with `times` when they are."""
        call = self.call
        if self.chosen is not None:
            return self.chosen(*model.on_time)
        if "join" in call.late:
            results = model.joined
        else:
            results = oracle.join(*model.on_time, self.match, call.how, call.outer, call.windowed)
        return results if call.windowed or times else [row[:2] for row in results]

    def describe(self) -> str:
        call = self.call
        return (
            f"seed {self.seed}: {self.regime}, how={call.how} outer={call.outer} emit={call.emit} hold={call.hold} "
            f"late={call.late} buckets={call.buckets} cell={call.cell} keys={call.keys} "
            f"predicates={call.predicates} theta={call.theta is not None} interval={call.interval} "
            f"choice={call.choice} output={call.output} "
            f"windows={call.windows} rows={[len(rows) for rows in self.arrivals]}"
        )


def draw_case(seed: int) -> Case:
    """A case from a seed. Values come from narrow ranges, to force ties, empties and shared bounds."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    regime = rng.choice(["within slack", "within slack", "late"])
    keys = rng.choice([(), (), ("k",), ("s",), ("s", "k")])
    how = rng.choice(HOWS)
    interval = None
    if kind == "interval":
        lower = rng.randint(-4, 3)
        interval = Bounds(lower, lower + rng.randint(1, 5), rng.choice(["both", "left", "right", "neither"]))
    predicates, match = _draw_predicate(
        rng, kind if kind != "interval" else rng.choice(["time", "band", "within2", "similar"])
    )
    theta = None
    if kind == "theta":
        theta, match = THETA, _all(match, _theta)
    match = _all(match, *(_same(key) for key in keys))
    windows: tuple[Window | None, Window | None] = (None, None)
    if interval is not None:
        match = _all(match, _band("ts", -interval.lower, interval.upper, interval.closed))
    else:
        windows = (_draw_window(rng), _draw_window(rng))
    emit = rng.choice(["eager", "ordered"])
    late = tuple(rng.choice(["drop", "output"]) for _ in range(2))
    if regime == "late" and rng.random() < 0.3:
        how, emit, late = "inner", "eager", ("join", "join")
    sizes = [rng.choice([0, 1, rng.randint(2, 40), rng.randint(2, 40)]) for _ in range(2)]
    if kind == "box":  # of a few rows none would have partners
        sizes = [size if rng.random() < 0.2 else rng.randint(20, 40) for size in sizes]
    horizon = rng.choice([5, 20, 60])
    slack = (rng.randint(0, 6), rng.randint(0, 6))
    arrivals = [
        _draw_arrivals(rng, size, horizon, slack[number] + (8 if regime == "late" else 0), windows[number])
        for number, size in enumerate(sizes)
    ]
    alike = any(isinstance(predicate, Similar) for predicate in predicates)
    for number, rows in enumerate(arrivals):
        for row in rows:
            row["te"] = _end_of(row, number, windows[number], interval)
            if alike:
                row["words"], row["name"] = _draw_words(rng), rng.choice(NAMES)
            if kind == "box":
                row |= _draw_box(rng)
    call = JoinCall(
        (ALIKE, ALIKE) if alike else (BOXES, BOXES) if kind == "box" else (SCHEMA, SCHEMA),
        keys,
        by=keys if rng.random() < 0.5 else (),
        predicates=predicates,
        theta=theta,
        interval=interval,
        windows=windows,
        how=how,
        outer=rng.choice(["row", "snapshot"]) if interval is None else "row",
        emit=emit,
        hold=rng.choice(["outputs", "inputs", "auto"]),
        late=late,
        buckets=rng.choice([1, 1, 2, 3, 4, 6]),
        cell=_without_keys(keys, rng.choice([None, None if alike else 1.0, None if alike else 3.0, 20.0])),
        lateness=(Slack(slack[0]), Slack(slack[1])),
    )
    return Case(seed, _shown(call), match, slack, (arrivals[0], arrivals[1]), rng.choice([0, 0.3]), regime)


def _shown(call: JoinCall) -> JoinCall:
    """A call that is not refused: a semi or anti join has no columns in which late rows of input 1 could be shown."""
    if call.how in ("semi", "anti") and call.late[1] == "output":
        return replace(call, late=(call.late[0], "drop"))
    return call


def _without_keys(keys: tuple[str, ...], cell: float | None) -> float | None:
    """The size of cells, which beside keys is refused."""
    return None if keys else cell


def draw_asof_case(seed: int) -> Case:
    """An as-of join from a seed: few keys and times, so that ties, shadows and rows on the bounds are many."""
    rng = random.Random(seed)
    regime = rng.choice(["within slack", "within slack", "late"])
    keys = rng.choice([(), ("k",), ("s",), ("s", "k")])
    direction = rng.choice(["backward", "forward", "nearest"])
    tolerance, exact = rng.choice([None, None, 0, 1, 3, 10]), rng.random() < 0.6
    tie_break = rng.choice([(), (), ("v",), ("s", "n")])
    how = rng.choice(["left", "inner"])
    horizon = rng.choice([2, 8, 30])
    slack = (rng.randint(0, 6), rng.randint(0, 6))
    arrivals = []
    for number in (0, 1):
        size = rng.choice([0, 1, rng.randint(2, 40), rng.randint(2, 40)])
        rows = _draw_arrivals(rng, size, horizon, slack[number] + (8 if regime == "late" else 0), None)
        for row in rows:
            row["te"] = row["ts"]
            if rng.random() < 0.05:
                row["ts"] = None
        arrivals.append(rows)
    call = JoinCall(
        (SCHEMA, SCHEMA),
        keys,
        by=keys if rng.random() < 0.5 else (),
        choice=AsOf(direction, tolerance, exact, tie_break),
        how=how,
        emit=rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=rng.choice([None, 1.0, 3.0, 20.0]),
        lateness=(Slack(slack[0]), Slack(slack[1])),
    )

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.asof(left, right, keys, direction, tolerance, exact, tie_break, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, call, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


def draw_best_match_case(seed: int) -> Case:
    """A best-match join from a seed, ordered by time, by a double in steps, or by a double that makes no progress."""
    rng = random.Random(seed)
    keys = rng.choice([(), (), ("k",), ("s", "k")])
    ordered, in_steps = rng.choice([("ts", False), ("ts", False), ("v", False), ("v", True)])
    progresses = ordered == "ts" or in_steps
    regime = rng.choice(["within slack", "within slack", "late"]) if progresses else "within slack"
    epsilons = {"ts": [0, 1, 3, 8], "v": [0.0, 0.2, 1.0, 2.6], "n": [0, 1, 4], "x": [0.0, 0.5, 3.0], "z": [0.5, 1.5]}
    others = rng.sample([name for name in ("v", "n", "x", "z") if name != ordered], rng.randint(0, 2))
    dimensions = [(name, rng.choice(epsilons[name])) for name in (ordered, *others)]
    dominance, how = rng.choice(["pareto", "pareto", "strict"]), rng.choice(["left", "inner", "right", "full"])
    slack = (rng.randint(0, 6), rng.randint(0, 6)) if progresses else (10**6, 10**6)
    steps = Steps.of(dimensions[0][1], [each / 10 for each in slack]) if in_steps else None
    arrivals = []
    for number in (0, 1):
        size = rng.choice([0, 1, rng.randint(2, 40), rng.randint(2, 40)])
        disorder = min(slack[number], 20) + (8 if regime == "late" else 0)
        rows = _draw_arrivals(rng, size, rng.choice([5, 20]), disorder, None)
        for row in rows:
            if steps is not None:
                _number(row, steps)
            row["te"] = row["ts"]
            if progresses and rng.random() < 0.05:
                row["ts"] = None
                row["v"] = None if in_steps else row["v"]
        arrivals.append(rows)
    if steps is not None:
        slack = (steps.count(slack[0] / 10), steps.count(slack[1] / 10))
    compared = [name for name in others if name in ("v", "x", "z") and rng.random() < 0.4]
    dominates = dominance if rng.random() < 0.7 else DOMINATES[dominance]
    call = JoinCall(
        (SCHEMA, SCHEMA),
        keys,
        by=keys if rng.random() < 0.5 else (),
        predicates=tuple(
            # Twice the distance, at most twice the epsilon: the same candidates by a function.
            Near(name, name, 2 * epsilon, _twice_apart) if name in compared else Band(name, name, epsilon, epsilon)
            for name, epsilon in dimensions
        ),
        choice=BestOf(dominates, None if steps is None else steps.count(dimensions[0][1])),
        time="ts" if progresses else None,
        how=how,
        emit="eager" if in_steps else rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=_without_keys(keys, rng.choice([None, 1.0, 3.0])),
        lateness=(Slack(slack[0]), Slack(slack[1])) if progresses else (Timeless(), Timeless()),
    )

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.best_match(left, right, keys, dimensions, dominance, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, call, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


def _twice_apart(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return 2 * np.abs(one - two)


def _number(row: dict, steps: Steps) -> None:
    """A value that grows with the row's time, in tenths, and the number of its step as its time."""
    row["v"] = row["ts"] / 10
    row["ts"] = math.floor(row["v"] / steps.width)


def draw_nearest_case(seed: int) -> Case:
    """A nearest join from a seed: few places, so that many rows are equally far; with time, or without."""
    rng = random.Random(seed)
    keys = rng.choice([(), (), ("k",), ("s", "k")])
    timed = rng.random() < 0.7
    regime = rng.choice(["within slack", "within slack", "late"]) if timed else "within slack"
    tolerance = rng.choice([0, 1, 3, 8]) if timed else None
    axes = rng.choice([("x",), ("x", "y"), ("x", "y", "z"), ("n", "z")])
    metric, radius = rng.choice(["euclidean", "manhattan", "chebyshev"]), rng.choice([0.0, 0.5, 1.5, 3.0, 200.0])
    if axes == ("x", "y") and rng.random() < 0.3:
        metric, radius = "haversine", rng.choice([0.0, 6e4, 2e5, 1e7])
    k, tie_break, how = rng.randint(1, 3), rng.choice([(), (), ("v",), ("s", "n")]), rng.choice(["left", "inner"])
    slack = (rng.randint(0, 6), rng.randint(0, 6)) if timed else (10**6, 10**6)
    arrivals = []
    for number in (0, 1):
        size = rng.choice([0, 1, rng.randint(2, 40), rng.randint(2, 40)])
        disorder = min(slack[number], 20) + (8 if regime == "late" else 0)
        rows = _draw_arrivals(rng, size, rng.choice([5, 20]), disorder, None)
        for row in rows:
            row["te"] = row["ts"]
            if timed and rng.random() < 0.05:
                row["ts"] = None
        arrivals.append(rows)
    call = JoinCall(
        (SCHEMA, SCHEMA),
        keys,
        by=keys if rng.random() < 0.5 else (),
        predicates=(Within(axes, axes, radius, metric),),
        choice=NearestOf(k, tolerance, tie_break),
        time="ts" if timed else None,
        how=how,
        emit=rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=_without_keys(keys, rng.choice([None, 1.0, 3.0])),
        lateness=(Slack(slack[0]), Slack(slack[1])) if timed else (Timeless(), Timeless()),
    )
    near = _distance(metric, axes, radius)

    def measure(row: dict, other: dict) -> float | None:
        if timed and (not _known(row["ts"], other["ts"]) or abs(row["ts"] - other["ts"]) > tolerance):
            return None
        return _far(metric, axes, row, other) if near(row, other) else None

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.nearest(left, right, keys, measure, k, tie_break, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, call, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


def _far(metric: str, axes: tuple[str, ...], row: dict, other: dict) -> float:
    """How far apart two rows are; the square for the Euclidean metric, so that equal distances are equal."""
    a, b = [row[axis] for axis in axes], [other[axis] for axis in axes]
    gaps = [abs(q - p) for p, q in zip(a, b, strict=True)]
    if metric == "haversine":
        near = haversine(*(np.array([value], float) for value in (*a, *b)))
        return float(near[0])
    return {"manhattan": sum(gaps), "chebyshev": max(gaps), "euclidean": sum(gap * gap for gap in gaps)}[metric]


def as_changelog(case: Case) -> Case:
    """The same case, with first answers and corrections."""
    return replace(case, call=replace(case.call, output="changelog"))


def _pareto(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return (one <= two).all(axis=1) & (one < two).any(axis=1)


def _strict(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return (one < two).all(axis=1)


DOMINATES = {"pareto": _pareto, "strict": _strict}


def _draw_window(rng: random.Random) -> Window:
    size = rng.randint(1, 8)
    return rng.choice(
        [Range(size), Range(size, slide=rng.randint(1, 4)), Fixed(size), Now(), Unbounded(), Validity("ts", "te")]
    )


def _draw_arrivals(rng: random.Random, size: int, horizon: int, disorder: int, window: Window | None) -> list[dict]:
    rows = []
    for _ in range(size):
        ts = rng.randint(-horizon // 3, horizon)
        lo = rng.choice([0.0, 1.0, 1.5, 3.0, -2.0])
        rows.append({
            "id": rng.randint(0, 60),
            "ts": ts,
            "te": rng.choice([ts, ts + 1, ts + rng.randint(1, 9), None]),
            "k": rng.choice([None, 0, 1, 2, -5]),
            "s": rng.choice([None, "", "a", "b", "ab"]),
            "v": rng.choice([None, math.nan, 0.0, -0.0, 0.1, 0.3, 1.0, 2.5, -1.5, math.inf, -math.inf]),
            "n": rng.choice([None, 0, 1, 2, 3, -3, 2**62, -(2**62), 2**63 - 1]) if rng.random() < 0.3 else
            rng.randint(-3, 3), "lo": rng.choice([None, lo, lo, lo, lo]),
            "hi": lo + rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 4.0]),
            "x": rng.choice([None, math.nan]) if rng.random() < 0.1 else rng.choice([0.0, 0.5, 1.0, 1.5, -2.0, 80.0]),
            "y": rng.choice([0.0, 0.5, 1.0, -1.5, 179.9, -179.9]),
            "z": rng.choice([0.0, 1.0, 1.5]),
        })  # fmt: skip
    # In order of ts, then delayed: an element comes at most `disorder` behind the largest time stamp before it.
    return sorted(rows, key=lambda row: row["ts"] + rng.randint(0, disorder))


NAMES = (None, "", "a", "ab", "ba", "äb", "a\u0308b", "👩b", "abcdefgh", "abcdxfgh", "bcdefghi", "bcdefgh", "漢字漢字")


def _draw_box(rng: random.Random) -> dict:
    """The sides of a box beyond the first; some are empty, or not known, or reach to the end of all numbers."""
    low, third = rng.choice([0, 1, 2, 2, 5, -(2**63)]), rng.choice([0.0, 0.5, 1.0, -math.inf])
    high = low + rng.choice([1, 2, 4, 4]) if low > -10 else rng.choice([3, 2**63 - 1])
    box = {"lo2": low, "hi2": high, "lo3": third, "hi3": rng.choice([math.inf, 1.0, 1.5, 2.0, 2.0])}
    if rng.random() < 0.2:
        box |= rng.choice([{"lo2": None}, {"hi2": low}, {"hi2": low - (low > -10)}, {"lo3": math.nan}, {"hi3": None}])
    return box


def _draw_words(rng: random.Random) -> list | None:
    if rng.random() < 0.05:
        return None
    return rng.choices(["a", "b", "c", "ä", None], k=rng.choice([0, 1, 2, 3, 4, 6]))


def _end_of(row: dict, number: int, window: Window | None, interval: Bounds | None) -> int:
    ts = row["ts"]
    if interval is not None:
        if number == 0:
            return ts + interval.upper + (interval.closed in ("both", "right"))
        return ts - interval.lower + (interval.closed in ("both", "left"))
    if isinstance(window, Range):
        return (ts if window.slide is None else math.floor(ts / window.slide) * window.slide) + window.size
    if isinstance(window, Fixed):
        return (math.floor(ts / window.size) + 1) * window.size
    if isinstance(window, Now):
        return ts + 1
    return FOREVER if isinstance(window, Unbounded) or row["te"] is None else row["te"]


def table(rows: list[dict], schema: pa.Schema) -> pa.Table:
    # Only Validity reads the column `te`; the others find what it held before their own end was worked out.
    named = [{**row, "te": None if row["te"] == FOREVER else row["te"]} for row in rows]
    return pa.Table.from_pylist(named, schema=schema)


def cut(rng: random.Random, arrivals: tuple[list[dict], list[dict]]) -> Iterator[dict[int, list[dict]]]:
    """Micro-batches: each takes a random piece of either input, or of none; the order within an input stays."""
    positions = [0, 0]
    longest = rng.choice([1, 3, 10, 100])
    while any(position < len(rows) for position, rows in zip(positions, arrivals, strict=True)):
        batch = {}
        for number, rows in enumerate(arrivals):
            if rng.random() < 0.7:
                take = rng.randint(0, longest)
                batch[number] = rows[positions[number] : positions[number] + take]
                positions[number] += take
        yield batch


@dataclass
class Watched(Troubled):
    """A plan at work, whose stages must keep what they promise: to have passed a time, and to send in order."""

    said: Counter[tuple] = field(default_factory=Counter)  # what has left the last stage, as the oracle counts it
    last: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    promised: dict[tuple[int, int], int] = field(default_factory=dict)

    def _stage(self, number: int, bucket: int) -> RunningStage:
        running = super()._stage(number, bucket)
        if "send" not in vars(running.outlet):
            send = running.outlet.send

            def watched(output: Output) -> Iterator[Packet]:
                if isinstance(output, Results):
                    self._see(running.config, bucket, output)
                yield from send(output)

            running.outlet.send = watched  # type: ignore[method-assign]
        return running

    def ran(self, number: int, bucket: int, running: RunningStage, *, end: bool) -> None:
        super().ran(number, bucket, running, end=end)
        progress = running.fragment.progress
        assert progress >= self.promised.get((number, bucket), NEVER), "progress of the output went back"
        self.promised[number, bucket] = progress

    def _see(self, stage: Stage, bucket: int, results: Results) -> None:
        where = stage.number, bucket
        times = list(zip(results.ts.tolist(), results.te.tolist(), strict=True))
        if stage.number == len(self.plan.stages) - 1 and not results.retracted:
            self.said.update((*ids, *time) for ids, time in zip(_ids(results.payload), times, strict=True))
        if any(channel.late == "join" for source in self.plan.stages[0].inputs for channel in source.channels):
            return
        assert all(ts >= self.promised.get(where, NEVER) for ts, _ in times), "a result behind the promised progress"
        if is_ordered(stage):
            in_order = [self.last.get(where, (NEVER, NEVER)), *times]
            assert all(a <= b for a, b in itertools.pairwise(in_order)), "not in order"
            self.last[where] = in_order[-1]


def is_ordered(stage: Stage) -> bool:
    """Whether an operator's results leave in order."""
    config = stage.nodes[-1].config
    return getattr(config, "emit", "eager") == "ordered" or getattr(config, "ordered", False)


def _ids(payload: pa.Table) -> list[tuple]:
    none = [None] * payload.num_rows
    sides = [payload[name].to_pylist() if name in payload.column_names else none for name in ("0.id", "1.id")]
    return list(zip(*sides, strict=True))


@dataclass
class Left:
    """The rows that have left a plan, as the oracle counts them."""

    call: JoinCall
    counted: Counter[tuple] = field(default_factory=Counter)
    late: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(self, tables: Iterable[pa.Table]) -> None:
        """More rows leave."""
        for row in (row for part in tables for row in part.to_pylist()):
            ids = row["id"], row.get(f"id{self.call.suffix}")
            if row.get(LATE_FLAG):
                assert (ids[0] is None) != (ids[1] is None), "a late row is a row of one input"
                number = int(ids[0] is None)
                self.late[number].append(ids[number])
                continue
            times: tuple[int, ...] = ()
            if self.call.windowed:
                end = row[self.call.validity[1]]
                times = (row[self.call.validity[0]], FOREVER if end is None else end)
            if row.get(CHANGE) == "retract":
                assert self.counted[*ids, *times] > 0, "what was never said is retracted"
                self.counted[*ids, *times] -= 1
            else:
                self.counted[*ids, *times] += 1

    @property
    def rows(self) -> list[tuple]:
        """All results, without those that were retracted."""
        return list(self.counted.elements())


def run_case(case: Case) -> None:
    """Run a case; an AssertionError says how it differs from the oracle."""
    rng, call = random.Random(case.seed + 1), case.call
    running, left, late = Watched(call.plan(), rng=rng, trouble=case.restore_chance), Left(call), 0
    model = oracle.Arrivals(case.match, call.windowed, case.slack)
    for batch in cut(rng, case.arrivals):
        model.micro_batch(batch)
        left.add(running.rows({str(number): table(some, case.call.schemas[number]) for number, some in batch.items()}))
        late += running.figure("late")
        if call.output == "changelog":
            # At any time a changelog says what the rows so far would give.
            check_rows(left.rows, case.expected(model), "after a micro-batch: ")
    left.add(running.end())
    check_left(case, model, left)
    if call.interval is not None:  # which has times, though the user does not see them
        expected = case.expected(model, times=True)
        check_rows(list(running.said.elements()), expected)
    assert late == sum(map(len, model.late)), "late rows are miscounted"


def check_left(case: Case, model: oracle.Arrivals, left: Left) -> None:
    """What has left in the end is what the oracle says."""
    got, expected = left.rows, case.expected(model)
    if case.call.windowed:
        assert oracle.normal_form(got) == oracle.normal_form(expected), _difference(got, expected)
    check_rows(got, expected)
    for number in (0, 1):
        wanted = [row["id"] for row in model.late[number]] if case.call.late[number] == "output" else []
        assert Counter(left.late[number]) == Counter(wanted), f"late rows of input {number} differ"
    if case.regime == "within slack":
        assert not any(model.late), "the case itself is wrong: rows are late"


def check_rows(got: list[tuple], expected: list[tuple], when: str = "") -> None:
    """As many of each."""
    assert Counter(got) == Counter(expected), when + _difference(got, expected)


def _difference(got: list[tuple], expected: list[tuple]) -> str:
    missing, extra = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
    return f"missing {list(missing.items())[:5]}, extra {list(extra.items())[:5]}"


FAMILIES: dict[str, Callable[[int], Case]] = {
    "temporal": draw_case,
    "asof": draw_asof_case,
    "best match": draw_best_match_case,
    "nearest": draw_nearest_case,
}


def simulate(seed: int, family: str = "temporal") -> Case:
    """Draw and run one case; failures name the seed that replays them."""
    case = FAMILIES[family](seed)
    if seed % 3 == 0 and case.chosen is not None and case.call.how != "full" and case.call.emit == "eager":
        case = as_changelog(case)
    try:
        run_case(case)
    except Exception as error:
        raise AssertionError(
            f"{case.describe()}\nreplay: python -m tests.simulator --family {family} --replay {seed}\n{error!r}"
        ) from error
    return case


def main() -> int:
    parser = seeds.parser(__doc__)
    parser.add_argument("--family", choices=FAMILIES, default="temporal")
    options = parser.parse_args()
    return seeds.command(options, partial(simulate, family=options.family), Case.describe)


if __name__ == "__main__":
    sys.exit(main())
