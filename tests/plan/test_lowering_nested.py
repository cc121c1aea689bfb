"""Joins of events over joins of events: whatever time of the lower one the upper one goes by.

A result comes to be when its newer row does, and may be read by the time of the other one, or by one that it took. So
its time is read anew, and progress is taken for what it says about that time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, NearestOf, Within
from streamjoin.errors import UnsupportedError
from streamjoin.plan.relation import (
    AsOfJoin,
    BestMatchJoin,
    IntervalJoin,
    NearestJoin,
    Projection,
    Relation,
    Selection,
    Stream,
    streams_of,
)
from tests.in_process import Troubled
from tests.interpreter import InProcess
from tests.plan.trees import SCHEMA, kinds, lowered, stream

Row = dict[str, Any]
R, S, T = (stream(name, None, "id", "ts", "k", "x") for name in "RST")
TIMES, KEYS = ("R.ts", "S.ts"), (("R.k", "S.k"),)
EQUAL = (Equals("R.k", "S.k"),)
LOWER: dict[str, Relation] = {
    "as-of": AsOfJoin(R, S, TIMES, KEYS, tolerance=3, how="inner"),
    "left as-of": AsOfJoin(R, S, TIMES, KEYS, tolerance=3),
    "as-of forward": AsOfJoin(R, S, TIMES, KEYS, "forward", tolerance=3, how="inner"),
    "interval": IntervalJoin(R, S, TIMES, -2, 3, "both", EQUAL),
    "full interval": IntervalJoin(R, S, TIMES, -2, 3, "both", EQUAL, how="full"),
    "interval ahead": IntervalJoin(R, S, TIMES, 1, 4, "both", EQUAL, how="left"),
    "nearest": NearestJoin(R, S, Within(("R.x",), ("S.x",), 2.0), NearestOf(1, 2), TIMES, KEYS),
    "best match": BestMatchJoin(R, S, (("R.ts", "S.ts", 2), ("R.x", "S.x", 2.0)), KEYS),
    "right best match": BestMatchJoin(R, S, (("R.ts", "S.ts", 2), ("R.x", "S.x", 2.0)), KEYS, how="right"),
}


def upper(kind: str, lower: Relation, time: str) -> Relation:
    key = time.replace("ts", "k")
    match kind:
        case "interval":
            return IntervalJoin(lower, T, (time, "T.ts"), -1, 4, "both", (Equals(key, "T.k"),))
        case "left interval":
            return IntervalJoin(lower, T, (time, "T.ts"), -1, 4, "both", (Equals(key, "T.k"),), how="left")
        case "as-of":
            return AsOfJoin(lower, T, (time, "T.ts"), ((key, "T.k"),), tolerance=4)
        case "taken by as-of":
            return AsOfJoin(T, lower, ("T.ts", time), (("T.k", key),), tolerance=4)
    return BestMatchJoin(lower, T, ((time, "T.ts", 3),), ((key, "T.k"),))


UPPER = ["interval", "left interval", "as-of", "taken by as-of", "best match"]


def drawn(rng: random.Random) -> dict[str, list[Row]]:
    data = {}
    for name in "RST":
        times = sorted(rng.randint(0, 20) for _ in range(14))
        data[name] = [
            {"id": number, "ts": ts, "k": rng.randint(0, 1), "x": float(rng.randint(0, 4))}
            for number, ts in enumerate(times)
        ]
    return data


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([{**dict.fromkeys(SCHEMA.names), **row} for row in rows], schema=SCHEMA)


def streamed(relation: Relation, data: dict[str, list[Row]], rng: random.Random, buckets: int) -> list[pa.Table]:
    running = Troubled(lowered(relation, buckets, 0, validity=None), rng=rng, trouble=0.3)
    places, left = {leaf.source: 0 for leaf in streams_of(relation)}, []
    while any(place < len(data[name]) for name, place in places.items()):
        arrived = {}
        for name, place in places.items():
            if rng.random() < 0.6:
                places[name] = min(len(data[name]), place + rng.randint(0, 6))
                arrived[name] = table(data[name][place : places[name]])
        left += running.rows(arrived)
    return [*left, *running.end()]


def at_once(relation: Relation, data: dict[str, list[Row]], buckets: int) -> Iterator[pa.Table]:
    plan = lowered(relation, buckets, validity=None)
    yield from InProcess(plan).batch({leaf.source: [table(data[leaf.source])] for leaf in streams_of(relation)})


def counted(tables: Any) -> Counter[tuple]:
    return Counter(tuple(sorted(row.items())) for each in tables for row in each.to_pylist())


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("kind", UPPER)
@pytest.mark.parametrize("name", LOWER)
def test_differential_a_stream_gives_what_the_batch_gives(name: str, kind: str, time: str) -> None:
    relation = upper(kind, LOWER[name], time)
    for seed in range(2):
        rng = random.Random(seed)
        data, buckets = drawn(rng), 3 if seed % 2 else 1
        assert counted(streamed(relation, data, rng, buckets)) == counted(at_once(relation, data, buckets)), f"{seed=}"


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("kind", ["interval", "as-of", "taken by as-of"])
@pytest.mark.parametrize("name", LOWER)
def test_oracle_of_results_that_are_read_by_a_time(name: str, kind: str, time: str) -> None:
    data = drawn(random.Random(name + kind + time))
    lower = [row for each in at_once(LOWER[name], data, 1) for row in each.to_pylist()]
    others = [{f"T.{column}": value for column, value in row.items()} for row in data["T"]]
    found = [row for each in at_once(upper(kind, LOWER[name], time), data, 3) for row in each.to_pylist()]
    key = time.replace("ts", "k")

    def distance(row: Row, other: Row) -> int | None:
        near = row[time] is not None and row[key] == other["T.k"]
        return other["T.ts"] - row[time] if near else None

    expected = []
    if kind == "interval":
        for row in lower:
            partners = ((other, distance(row, other)) for other in others)
            expected += [(row[time], other["T.ts"]) for other, apart in partners if apart in range(-1, 5)]
    elif kind == "as-of":
        for row in lower:
            apart = [d for d in (distance(row, other) for other in others) if d is not None and -4 <= d <= 0]
            expected.append((row[time], row[time] + max(apart) if apart else None))
    else:
        for other in others:
            apart = [d for d in (distance(row, other) for row in lower) if d is not None and 0 <= d <= 4]
            expected.append((other["T.ts"] - min(apart) if apart else None, other["T.ts"]))
    assert Counter((row[time], row["T.ts"]) for row in found) == Counter(expected)


def test_a_time_that_can_be_any_distance_behind_is_for_batches_only() -> None:
    """Nothing would say when a row of the other input has met all."""
    endless = AsOfJoin(R, S, TIMES, KEYS)
    for kind in UPPER:
        with pytest.raises(UnsupportedError, match=r"S\.ts does not follow the progress of the join"):
            lowered(upper(kind, endless, "S.ts"), 3, 0, validity=None)
        data = drawn(random.Random(1))
        assert counted(at_once(upper(kind, endless, "S.ts"), data, 3))
        lowered(upper(kind, endless, "R.ts"), 3, 0, validity=None)
    with pytest.raises(UnsupportedError, match=r"S\.x does not follow"):
        lowered(BestMatchJoin(LOWER["as-of"], T, (("S.x", "T.x", 1.0),)), 3, 0, validity=None)


def test_renamed_times_and_selections_between_are_followed() -> None:
    named = Projection(LOWER["as-of"], (("when", "`S.ts`"), ("key", "`R.k`"), ("x", "`S.x`")))
    above = AsOfJoin(named, T, ("when", "T.ts"), (("key", "T.k"),), tolerance=4)
    assert kinds(lowered(above, 3, 0, validity=None)) == [["AsofJoin", "AsofJoin"]]
    chosen = AsOfJoin(Selection(named, "`x` > 1"), T, ("when", "T.ts"), (("key", "T.k"),), tolerance=4)
    assert kinds(lowered(chosen, 3, 0, validity=None)) == [["AsofJoin"], ["AsofJoin"]]
    for relation in (above, chosen):
        rng = random.Random(7)
        data = drawn(rng)
        assert counted(streamed(relation, data, rng, 3)) == counted(at_once(relation, data, 3))


def test_how_far_behind_a_time_is_says_where_rows_are_read() -> None:
    fused = lowered(upper("as-of", LOWER["as-of"], "S.ts"), 3, 0, validity=None).stages[0].nodes[1].feeds[0]
    assert (fused.binding.time, fused.behind) == ("S.ts", 3)
    by_hand = AsOfJoin(LOWER["interval"], T, ("R.ts", "T.ts"), (("R.x", "T.x"),), tolerance=4)
    first, second = lowered(by_hand, 3, 0, validity=None).stages
    (channel,) = second.inputs[0].channels
    assert (first.outlet.way.target.binding.time, channel.behind) == ("R.ts", 3)


def test_a_stream_is_read_by_its_own_time() -> None:
    plan = lowered(AsOfJoin(R, Stream("S", S.reads, None, None), TIMES), 1, 0, validity=None)
    assert [source.target.binding.time for source in plan.sources] == [None, None]
