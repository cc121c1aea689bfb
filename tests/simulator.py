"""The simulator: the same input, cut, interleaved, interrupted and spread at random, must give the oracle's result.

    python -m tests.simulator --runs 100000 --seed 1       as long as one likes
    python -m tests.simulator --replay 4711                one run again, with what it did

A run draws everything from its seed: predicate, windows, join type, emission, disorder and slack, micro-batches, how
the inputs interleave, where the state is saved and restored, and the number of buckets. It goes through the whole path
that needs no JVM: binding, partitioning, one operator per bucket, the verdict stage, naming.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import (
    FOREVER,
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
    Steps,
    TimeAxis,
    Unbounded,
    Validity,
    Window,
    Within,
)
from streamjoin.algebra.predicate import haversine
from streamjoin.operators import Operator, Output, Results, Rows
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, IntervalBounds, JoinNode
from streamjoin.plan.planner import JoinPlan, plan_join
from streamjoin.runtime import finish, run_micro_batch
from streamjoin.state import Batch
from tests import oracle

SCHEMA = pa.schema([
    ("id", pa.int64()), ("ts", pa.int64()), ("te", pa.int64()), ("k", pa.int32()), ("s", pa.string()),
    ("v", pa.float64()), ("n", pa.int64()), ("lo", pa.float64()), ("hi", pa.float64()),
    ("x", pa.float64()), ("y", pa.float64()), ("z", pa.float64()),
])  # fmt: skip

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


def _overlap(left: dict, right: dict) -> bool:
    ends = (left["lo"], left["hi"], right["lo"], right["hi"])
    return _known(*ends) and max(left["lo"], right["lo"]) < min(left["hi"], right["hi"])


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
        boxes = (Overlaps(("lo", "hi"), ("lo", "hi")), Band("v", "v", below, above, closed))
        return boxes, _all(_overlap, _band("v", below, above, closed))
    if kind.startswith("within"):
        metric = rng.choice(["euclidean", "manhattan", "chebyshev"])
        axes = {"within1": ("x",), "within2": ("x", "y"), "within3": ("x", "y", "z")}.get(kind)
        radius = rng.choice([0.0, 0.5, 1.0, 1.5])
        if axes is None:
            metric, axes, radius = "haversine", ("x", "y"), rng.choice([0.0, 60_000.0, 157_500.0, 3e7])
        return (Within(axes, axes, radius, metric),), _distance(metric, axes, radius)
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
    "theta",
    "interval",
)


@dataclass
class Case:
    """Everything that a run has drawn from its seed."""

    seed: int
    node: JoinNode
    match: oracle.Match
    slack: tuple[int, int]
    arrivals: tuple[list[dict], list[dict]]
    restore_chance: float
    regime: str
    # What the rows that came in time give, where that is not a join by `match`; as (left id, right id).
    chosen: Callable[[list[dict], list[dict]], list[tuple]] | None = None

    def describe(self) -> str:
        node = self.node
        return (
            f"seed {self.seed}: {self.regime}, how={node.how} outer={node.outer} emit={node.emit} hold={node.hold} "
            f"late={node.late} buckets={node.buckets} cell={node.cell} keys={node.inputs[0].keys} "
            f"predicates={node.predicates} theta={node.theta is not None} interval={node.interval} "
            f"choice={node.choice} "
            f"windows={[part.window for part in node.inputs]} rows={[len(rows) for rows in self.arrivals]}"
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
        interval = IntervalBounds(lower, lower + rng.randint(1, 5), rng.choice(["both", "left", "right", "neither"]))
    predicates, match = _draw_predicate(rng, kind if kind != "interval" else rng.choice(["time", "band", "within2"]))
    theta = None
    if kind == "theta":
        theta, match = Expression.parse(THETA, [SCHEMA, SCHEMA]), _all(match, _theta)
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
    horizon = rng.choice([5, 20, 60])
    slack = (rng.randint(0, 6), rng.randint(0, 6))
    arrivals = [
        _draw_arrivals(rng, size, horizon, slack[number] + (8 if regime == "late" else 0), windows[number])
        for number, size in enumerate(sizes)
    ]
    for number, rows in enumerate(arrivals):
        for row in rows:
            row["te"] = _end_of(row, number, windows[number], interval)
    node = JoinNode(
        inputs=tuple(InputNode(SCHEMA, tuple(SCHEMA.names), keys, "ts", window) for window in windows),
        by=keys if rng.random() < 0.5 else (),
        predicates=predicates,
        theta=theta,
        interval=interval,
        axis=TimeAxis.INTEGER,
        time_type=pa.int64(),
        how=how,
        outer=rng.choice(["row", "snapshot"]) if interval is None else "row",
        emit=emit,
        hold=rng.choice(["outputs", "inputs", "auto"]),
        late=late,
        validity=("valid_from", "valid_to"),
        buckets=rng.choice([1, 1, 2, 3, 4, 6]),
        cell=rng.choice([None, 1.0, 3.0, 20.0]),
    )
    return Case(seed, node, match, slack, (arrivals[0], arrivals[1]), rng.choice([0, 0.3]), regime)


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
    node = JoinNode(
        inputs=tuple(InputNode(SCHEMA, tuple(SCHEMA.names), keys, "ts") for _ in range(2)),
        by=keys if rng.random() < 0.5 else (),
        choice=AsOf(direction, tolerance, exact, tie_break),
        axis=TimeAxis.INTEGER,
        time_type=pa.int64(),
        how=how,
        emit=rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=rng.choice([None, 1.0, 3.0, 20.0]),
    )

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.asof(left, right, keys, direction, tolerance, exact, tie_break, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, node, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


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
    node = JoinNode(
        inputs=tuple(InputNode(SCHEMA, tuple(SCHEMA.names), keys, "ts" if progresses else None) for _ in range(2)),
        by=keys if rng.random() < 0.5 else (),
        predicates=tuple(
            # Twice the distance, at most twice the epsilon: the same candidates by a function.
            Near(name, name, 2 * epsilon, _twice_apart) if name in compared else Band(name, name, epsilon, epsilon)
            for name, epsilon in dimensions
        ),
        choice=BestOf(dominates, None if steps is None else steps.count(dimensions[0][1])),
        axis=TimeAxis.INTEGER if progresses else None,
        time_type=pa.int64() if progresses else None,
        how=how,
        emit="eager" if in_steps else rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=rng.choice([None, 1.0, 3.0]),
    )

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.best_match(left, right, keys, dimensions, dominance, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, node, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


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
    node = JoinNode(
        inputs=tuple(InputNode(SCHEMA, tuple(SCHEMA.names), keys, "ts" if timed else None) for _ in range(2)),
        by=keys if rng.random() < 0.5 else (),
        predicates=(Within(axes, axes, radius, metric),),
        choice=NearestOf(k, tolerance, tie_break),
        axis=TimeAxis.INTEGER if timed else None,
        time_type=pa.int64() if timed else None,
        how=how,
        emit=rng.choice(["eager", "ordered"]),
        late=tuple(rng.choice(["drop", "output"]) for _ in range(2)),
        buckets=rng.choice([1, 1, 2, 3, 4]),
        cell=rng.choice([None, 1.0, 3.0]),
    )
    near = _distance(metric, axes, radius)

    def measure(row: dict, other: dict) -> float | None:
        if timed and (not _known(row["ts"], other["ts"]) or abs(row["ts"] - other["ts"]) > tolerance):
            return None
        return _far(metric, axes, row, other) if near(row, other) else None

    def chosen(left: list[dict], right: list[dict]) -> list[tuple]:
        return oracle.nearest(left, right, keys, measure, k, tie_break, how)

    sides = (arrivals[0], arrivals[1])
    return Case(seed, node, lambda *_: False, slack, sides, rng.choice([0, 0.3]), regime, chosen)


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
    return replace(case, node=replace(case.node, output="changelog"))


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


def _end_of(row: dict, number: int, window: Window | None, interval: IntervalBounds | None) -> int:
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


def _table(rows: list[dict], window: Window | None) -> pa.Table:
    # Only Validity reads the column `te`; the others find what it held before their own end was worked out.
    named = [{**row, "te": None if row["te"] == FOREVER else row["te"]} for row in rows]
    return pa.Table.from_pylist(named, schema=SCHEMA)


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


class Buckets:
    """All operators of a plan side by side, as Spark would run them."""

    def __init__(self, plan: JoinPlan, restore_chance: float, rng: random.Random) -> None:
        self.plan, self.restore_chance, self.rng = plan, restore_chance, rng
        self.joins: list[Operator] = [plan.join_in(bucket).build() for bucket in range(plan.partitioning.buckets)]
        self.verdicts: dict[int, list[Operator]] = {
            verdict.number: [verdict.build() for _ in self.joins] for verdict in plan.verdicts()
        }
        self.late: list[list[int]] = [[], []]
        self.counted: Counter[tuple] = Counter()
        self.last: list[tuple[int, int]] = [(-(2**63), -(2**63))] * len(self.joins)
        self.promised: list[int] = [-(2**63)] * len(self.joins)

    def micro_batch(self, rows: dict[int, list[dict]], progress: dict[int, int]) -> None:
        self._maybe_restore()
        sent: list[dict[int, list[Batch]]] = [{} for _ in self.joins]
        for number, some in rows.items():
            bound = self.plan.bindings[number].bind(_table(some, None))
            assert bound.invalid.num_rows == 0
            for bucket, part in self.plan.distribute(number, bound.batch):
                # Through bytes, as between two tasks.
                sent[bucket].setdefault(number, []).append(Batch.from_table(part.to_table()))
        for bucket, operator in enumerate(self.joins):
            batches = {number: _concat(parts) for number, parts in sent[bucket].items()}
            self._collect(bucket, run_micro_batch(operator, batches, progress))
            assert operator.progress >= self.promised[bucket], "progress of the output went back"
            self.promised[bucket] = operator.progress
        # Every bucket has spoken: the verdict stage may decide what all of them have passed.
        least = min((operator.progress for operator in self.joins), default=FOREVER)
        for operators in self.verdicts.values():
            for operator in operators:
                self._collect(None, run_micro_batch(operator, {}, {0: least, 1: least}))

    def finish(self) -> None:
        self._maybe_restore()
        for bucket, operator in enumerate(self.joins):
            self._collect(bucket, finish(operator))
            assert operator.state_rows == 0, "state is left after the end"
        for operators in self.verdicts.values():
            for operator in operators:
                self._collect(None, finish(operator))
                assert operator.state_rows == 0, "state is left after the end"

    def _collect(self, bucket: int | None, outputs: Iterator[Output]) -> None:
        for output in outputs:
            if isinstance(output, Results):
                self._results(bucket, output)
            elif output.name == "late":
                self.late[output.input] += output.batch.payload["id"].to_pylist()
            else:
                self._to_verdict(output)

    def _results(self, bucket: int | None, results: Results) -> None:
        if self.plan.residual is not None:  # what an inner join leaves to Spark
            sides = [
                pa.table({name: results.payload[f"{number}.{name}"] for name in SCHEMA.names}) for number in (0, 1)
            ]
            results = results.take(self.plan.residual.evaluate(sides))
        columns = results.payload.column_names
        none = [None] * len(results)
        left = results.payload["0.id"].to_pylist() if "0.id" in columns else none
        right = results.payload["1.id"].to_pylist() if "1.id" in columns else none
        times = list(zip(results.ts.tolist(), results.te.tolist(), strict=True))
        rows = Counter((one, two, *time) for one, two, time in zip(left, right, times, strict=True))
        if results.retracted:
            assert rows <= self.counted, "what was never said is retracted"
            self.counted -= rows
        else:
            self.counted += rows
        if bucket is not None and times and "join" not in self.plan.join.late:
            assert all(ts >= self.promised[bucket] for ts, _ in times), "a result behind the promised progress"
            if self.plan.join.emit == "ordered":
                in_order = [self.last[bucket], *times]
                assert all(a <= b for a, b in itertools.pairwise(in_order)), "not in order"
                self.last[bucket] = times[-1]
        naming = self.plan.naming
        assembled = naming.assemble(results.payload, results.ts, results.te, retracted=results.retracted)
        assert assembled.num_rows == len(results)

    @property
    def rows(self) -> list[tuple]:
        """All results, without those that were retracted."""
        return list(self.counted.elements())

    def _to_verdict(self, rows: Rows) -> None:
        operators = self.verdicts[rows.input]
        assert rows.batch.origin is not None
        for bucket, operator in enumerate(operators):
            mine = rows.batch.take(rows.batch.origin % len(operators) == bucket)
            list(operator.on_batch(0 if rows.name == "candidate" else 1, Batch.from_table(mine.to_table())))

    def _maybe_restore(self) -> None:
        for operators in [self.joins, *self.verdicts.values()]:
            for bucket, operator in enumerate(operators):
                if self.rng.random() < self.restore_chance:
                    fresh = operator.config.build()  # type: ignore[attr-defined]
                    fresh.restore(operator.snapshot())
                    operators[bucket] = fresh


def _concat(parts: list[Batch]) -> Batch:
    return Batch.concat(parts)


def run_case(case: Case) -> None:
    """Run a case; an AssertionError says how it differs from the oracle."""
    rng = random.Random(case.seed + 1)
    plan = plan_join(case.node)
    validity = case.node.windowed
    buckets = Buckets(plan, case.restore_chance, rng)
    model = oracle.Arrivals(case.match, validity, case.slack)
    for batch in cut(rng, case.arrivals):
        model.micro_batch(batch)
        news = {number: model.progress[number] for number in (0, 1) if model.largest[number] is not None}
        news = {} if case.node.axis is None else news
        buckets.micro_batch(batch, news)
        if case.node.output == "changelog":
            # At any time a changelog says what the rows so far would give.
            got, expected = [row[:2] for row in buckets.rows], case.chosen(*model.on_time)
            assert Counter(got) == Counter(expected), f"after a micro-batch: {_difference(got, expected)}"
    buckets.finish()
    got = buckets.rows
    if case.chosen is not None:
        got, expected = [row[:2] for row in got], case.chosen(*model.on_time)
    elif case.node.late[0] == "join":
        expected = model.joined
    else:
        expected = oracle.join(*model.on_time, case.match, case.node.how, case.node.outer, validity)
    if validity:
        assert oracle.normal_form(got) == oracle.normal_form(expected), _difference(got, expected)
    assert Counter(got) == Counter(expected), _difference(got, expected)
    for number in (0, 1):
        wanted = [row["id"] for row in model.late[number]] if case.node.late[number] == "output" else []
        assert Counter(buckets.late[number]) == Counter(wanted), f"late rows of input {number} differ"
    if case.regime == "within slack":
        assert not any(model.late), "the case itself is wrong: rows are late"


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
    if seed % 3 == 0 and case.chosen is not None and case.node.how != "full" and case.node.emit == "eager":
        case = as_changelog(case)
    try:
        run_case(case)
    except Exception as error:
        raise AssertionError(
            f"{case.describe()}\nreplay: python -m tests.simulator --family {family} --replay {seed}\n{error!r}"
        ) from error
    return case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=int)
    parser.add_argument("--family", choices=FAMILIES, default="temporal")
    options = parser.parse_args()
    if options.replay is not None:
        print(simulate(options.replay, options.family).describe())
        return 0
    started, failures = time.monotonic(), 0
    for run in range(options.runs):
        try:
            simulate(options.seed + run, options.family)
        except AssertionError as error:
            failures += 1
            print(error, file=sys.stderr)
            if failures >= 10:
                break
    print(f"{run + 1} runs, {failures} mismatches, {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
