"""The streaming data plane without a JVM: every predicate, mode and join type, in any number of micro-batches."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import AsOf, Band, BestOf, Grace, NearestOf, Overlaps, Range, TimeAxis, Within
from streamjoin.errors import LateRowError, SnapshotError
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, IntervalBounds, JoinNode
from streamjoin.plan.planner import JoinPlan, plan_join
from streamjoin.runtime import Arrivals
from streamjoin.spark import bucket
from tests import oracle, simulator
from tests.plane import Map, Plane, batch_result, own_cache

__all__ = ["own_cache"]

pytestmark = pytest.mark.usefixtures("own_cache")

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k", "v", "lo", "hi")])
SLACK = 4

SHAPES: dict[str, dict[str, Any]] = {
    "keys": {"keys": ("k",)},
    "time": {},
    "band": {"predicates": (Band("v", "v", 1, 2),)},
    "overlap": {"predicates": (Overlaps(("lo", "hi"), ("lo", "hi")),)},
    "overlap in cells": {"predicates": (Overlaps(("lo", "hi"), ("lo", "hi")),), "cell": 3.0},
    "within": {"predicates": (Within(("v", "lo"), ("v", "lo"), 1.5),)},
    "theta": {"theta": "l.v < r.v"},
    "interval": {"interval": IntervalBounds(-2, 3), "keys": ("k",)},
    "interval without keys": {"interval": IntervalBounds(0, 2)},
    "as of": {"choice": AsOf(), "keys": ("k",)},
    "as of, ahead": {"choice": AsOf("forward", exact=False), "keys": ("k",)},
    "as of, near, without keys": {"choice": AsOf("nearest", tolerance=2)},
    "best match": {"choice": BestOf(), "predicates": (Band("ts", "ts", 3, 3), Band("v", "v", 2, 2)), "keys": ("k",)},
    "best match without keys": {"choice": BestOf(), "predicates": (Band("ts", "ts", 3, 3), Band("v", "v", 1, 1))},
    "nearest": {"choice": NearestOf(2, 3), "predicates": (Within(("v", "lo"), ("v", "lo"), 2.0),)},
}


def planned(
    shape: str, *, lateness: int = SLACK, ended: tuple[bool, bool] = (False, False), **options: Any
) -> JoinPlan:
    form = SHAPES[shape] | {name: options.pop(name) for name in ("keys",) if name in options}
    keys, theta = form.pop("keys", ()), form.pop("theta", None)
    window = None if "interval" in form or "choice" in form else options.pop("window", Range(5))
    side = InputNode(options.pop("schema", SCHEMA), tuple(SCHEMA.names), keys, "ts", window)
    expression = None if theta is None else Expression.parse(theta, [SCHEMA, SCHEMA])
    idle_after = options.pop("idle_after", None)
    node = JoinNode((side, side), theta=expression, axis=TimeAxis.INTEGER, time_type=pa.int64(), **form, **options)
    slack = tuple(None if static else Grace(lateness) for static in ended)
    return replace(plan_join(node), arrivals=Arrivals(slack, ended, idle_after))


def rows(rng: random.Random, count: int, disorder: int = SLACK) -> list[dict[str, int]]:
    made = []
    for number in range(count):
        lo = rng.randint(0, 6)
        made.append({"id": number, "ts": rng.randint(0, 40), "k": rng.randint(0, 2), "v": rng.randint(0, 5)})
        made[-1] |= {"lo": lo, "hi": lo + rng.randint(0, 3)}
    return sorted(made, key=lambda row: row["ts"] + rng.randint(0, disorder))


def table(some: list[dict[str, int]]) -> pa.Table:
    return pa.Table.from_pylist(some, schema=SCHEMA)


def counted(plan: JoinPlan, tables: Any) -> Counter[tuple]:
    """The rows as a multiset, by the members' ids and the validity; without what is left to Spark."""
    found: Counter[tuple] = Counter()
    for part in tables:
        for row in (part if isinstance(part, pa.Table) else pa.Table.from_batches([part])).to_pylist():
            one, two = row.get("v"), row.get("v_right")
            if plan.residual is None or one < two:
                found[tuple(row.get(name) for name in ("id", "id_right", "valid_from", "valid_to"))] += 1
    return found


def hows(shape: str) -> list[dict[str, str]]:
    if shape.startswith(("as of", "nearest")):
        return [{"how": "left"}, {"how": "inner"}]
    if shape.startswith("best match"):
        return [{"how": "left"}, {"how": "inner"}, {"how": "right"}, {"how": "full"}]
    outers = ["row"] if shape.startswith("interval") else ["row", "snapshot"]
    return [{"how": how, "outer": outer} for how, outer in itertools.product(simulator.HOWS, outers)]


CUTS = list(itertools.product((1, 3, 17), (1, 2, 5)))  # micro-batches, buckets


def check(shape: str, emit: str, options: dict[str, str], pieces: int, buckets: int) -> None:
    case = f"{shape} {emit} {options} {pieces} micro-batches, {buckets} buckets"
    rng = random.Random(case)
    plan = planned(shape, emit=emit, buckets=buckets, **options)
    sides = [rows(rng, 30), rows(rng, 30)]
    expected = counted(plan, batch_result(plan, (table(sides[0]), table(sides[1]))))
    plane = Plane(plan, rng, trouble=0.2)
    left: list[pa.Table] = []
    for piece in range(pieces):
        cut = {n: table(side[30 * piece // pieces : 30 * (piece + 1) // pieces]) for n, side in enumerate(sides)}
        left += plane.micro_batch(cut)
    left += plane.end()
    assert counted(plan, left) == expected, case
    assert sum(expected.values()) > 0 or options["how"] in ("anti", "left"), f"nothing is tested: {case}"
    if emit == "ordered" and buckets == 1 and plan.naming.validity is not None:
        ends = [(row["valid_from"], row["valid_to"]) for part in left for row in part.to_pylist()]
        assert ends == sorted(ends), case


@pytest.mark.parametrize("emit", ["eager", "ordered"])
@pytest.mark.parametrize("shape", SHAPES)
def test_differential_a_stream_gives_what_the_batch_gives(shape: str, emit: str) -> None:
    """Every shape, mode and join type, each cut in one of the nine ways; the ways take turns."""
    turns = itertools.cycle(random.Random(f"{shape} {emit}").sample(CUTS, len(CUTS)))
    for options in hows(shape):
        check(shape, emit, options, *next(turns))


@pytest.mark.long
@pytest.mark.parametrize("emit", ["eager", "ordered"])
@pytest.mark.parametrize("shape", SHAPES)
def test_differential_cut_in_every_way(shape: str, emit: str) -> None:
    for options, cut in itertools.product(hows(shape), CUTS):
        check(shape, emit, options, *cut)


@pytest.mark.parametrize(("family", "cases"), [("temporal", 100), ("asof", 40), ("best match", 40), ("nearest", 30)])
def test_oracle_cases_of_the_simulator_through_the_plane(family: str, cases: int) -> None:
    """Whatever the simulator can draw, late rows too, through packing, state, restarts and failed attempts."""
    for seed in range(cases):
        case = simulator.FAMILIES[family](1_000_000 + seed)
        if case.chosen is not None and case.node.how != "full" and case.node.emit == "eager" and seed % 2:
            case = simulator.as_changelog(case)
        if case.node.axis is None:  # no time, no stream
            continue
        if case.node.interval is not None and "output" in case.node.late:
            continue
        rng = random.Random(seed)
        plan = plan_join(case.node)
        plan = replace(plan, arrivals=Arrivals((Grace(case.slack[0]), Grace(case.slack[1])), (False, False)))
        plane, model = Plane(plan, rng, trouble=0.15), oracle.Arrivals(case.match, case.node.windowed, case.slack)
        left: list[pa.Table] = []
        for batch in simulator.cut(rng, case.arrivals):
            model.micro_batch(batch)
            left += plane.micro_batch({number: simulator._table(some, None) for number, some in batch.items() if some})
        left += plane.end()
        got, late = simulated(plan, left)
        expected = model.joined
        if case.chosen is not None:
            expected = case.chosen(*model.on_time)
        elif case.node.late[0] != "join":
            expected = oracle.join(*model.on_time, case.match, case.node.how, case.node.outer, case.node.windowed)
        wanted: Counter[Any] = Counter(expected)
        if not case.node.windowed:
            wanted = Counter((one, two) for one, two, *_ in expected)
        assert got == wanted, (
            f"{case.describe()}\n{simulator._difference(list(got.elements()), list(wanted.elements()))}"
        )
        shown = [row["id"] for n in (0, 1) if case.node.late[n] == "output" for row in model.late[n]]
        if case.node.how not in ("semi", "anti"):
            assert late == Counter(shown), case.describe()


def simulated(plan: JoinPlan, tables: list[pa.Table]) -> tuple[Counter[Any], Counter[Any]]:
    """What left, as the oracle counts it, and the late rows' ids."""
    results: Counter[Any] = Counter()
    late: Counter[Any] = Counter()
    for row in (row for part in tables for row in part.to_pylist()):
        ids = (row.get("id"), row.get("id_right"))
        if row.get("_late"):
            late[ids[0] if ids[0] is not None else ids[1]] += 1
            continue
        if plan.residual is not None and not _theta_holds(row):
            continue
        times = ()
        if plan.naming.validity is not None:
            end = row["valid_to"]
            times = (row["valid_from"], simulator.FOREVER if end is None else end)
        results[(*ids, *times)] += -1 if row.get("_change") == "retract" else 1
    return Counter({row: count for row, count in results.items() if count}), late


def _theta_holds(row: dict[str, Any]) -> bool:
    sides = [{name: row[name + suffix] for name in ("n", "z")} for suffix in ("", "_right")]
    return simulator._theta(*sides)


@pytest.mark.parametrize("shape", ["keys", "band", "theta", "interval", "overlap in cells"])
@pytest.mark.parametrize("how", simulator.HOWS)
def test_a_static_input_is_there_from_the_start(shape: str, how: str) -> None:
    rng = random.Random(f"static {shape} {how}")
    for static, buckets in itertools.product((0, 1), (1, 3)):
        ended = (static == 0, static == 1)
        plan = planned(shape, ended=ended, how=how, buckets=buckets, invalid="output" if how == "inner" else "fail")
        sides = [rows(rng, 25), rows(rng, 25)]
        expected = counted(plan, batch_result(plan, (table(sides[0]), table(sides[1]))))
        plane = Plane(plan, rng, trouble=0.2)
        plane.put(static, table(sides[static]))
        stream = sides[1 - static]
        left = [part for n in range(5) for part in plane.micro_batch({1 - static: table(stream[5 * n : 5 * n + 5])})]
        assert counted(plan, [*left, *plane.end()]) == expected


def test_a_restart_that_differs_is_refused_and_says_in_what() -> None:
    rng = random.Random(3)
    plane = Plane(planned("keys"), rng)
    list(plane.micro_batch({0: table(rows(rng, 5))}))
    changes = {
        "keys": planned("time"),
        "how": planned("keys", how="left"),
        "emit": planned("keys", emit="ordered"),
        "predicates": planned("band", keys=("k",)),
        "window": planned("keys", window=Range(6)),
        "schema": planned("keys", schema=SCHEMA.set(3, pa.field("v", pa.int32()))),
        "buckets": planned("keys", buckets=2),
        "late": planned("keys", late=("output", "drop")),
        "static": planned("keys", ended=(False, True)),
    }
    for what, plan in changes.items():
        other = Plane(plan, rng)
        other.stores = plane.stores
        with pytest.raises(SnapshotError, match=f"another join: {what} was"):
            list(other.micro_batch({0: table(rows(rng, 20)).cast(plan.node.inputs[0].schema)}))


def test_a_restart_with_another_lateness_is_believed_by_a_worker_that_has_the_old_one() -> None:
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    plane = Plane(planned("keys", lateness=100, how="left"), random.Random(0))
    assert not list(plane.micro_batch({0: table([row]), 1: table([row | {"k": 1}])}))
    again = Plane(planned("keys", lateness=0, how="left"), random.Random(0))
    again.stores = plane.stores
    both = table([row | {"id": 2, "ts": 50}])
    (left,) = again.micro_batch({0: both, 1: both})
    assert set(left["id"].to_pylist()) == {1, 2}, "row 1 met nobody, and nothing as old can come any more"


def test_a_query_that_goes_on_stores_its_call_anew() -> None:
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    plane = Plane(planned("keys"), random.Random(0))
    for name in ("first", "first", "second"):
        plane.call = {"name": name}
        plane.processors = {}  # another start
        list(plane.micro_batch({0: table([row])}))
        (stored,) = (store.cells["call"] for store in plane.stores[0].values())
        assert json.loads(stored[0]) == {"stage": "join", "name": name}


def test_a_warm_worker_reads_nothing_of_the_state_and_a_cold_one_all_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = random.Random(4)
    plane, some = Plane(planned("keys", buckets=2), rng), rows(rng, 40)
    list(plane.micro_batch({0: table(some[:20]), 1: table(some[:20])}))
    before = Map.read
    list(plane.micro_batch({0: table(some[20:30])}))
    assert Map.read == before, "the worker has it"
    bucket._remembered.clear()
    list(plane.micro_batch({0: table(some[30:35])}))
    assert Map.read == before, "the host has it"
    bucket._remembered.clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "another host"))
    list(plane.micro_batch({0: table(some[35:])}))
    assert Map.read > before


def test_a_worker_keeps_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    plane, some = Plane(planned("keys", buckets=5), rng), table([row | {"k": row["id"]} for row in rows(rng, 60)])
    bucket._remembered.clear()
    list(plane.micro_batch({0: some}))
    assert len(bucket._remembered) == 5
    monkeypatch.setattr(bucket, "BYTES_KEPT", 0)
    list(plane.micro_batch({1: some}))
    assert len(bucket._remembered) == 1, "that which has run last"


def test_a_static_input_with_rows_of_very_different_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.spark.packing.BLOB_BYTES", 1000)
    schema = SCHEMA.append(pa.field("text", pa.string()))
    plan = planned("keys", ended=(False, True), schema=schema)
    texts = ["short"] * 20 + ["long" * 200] * 20
    some = rows(random.Random(9), 40)
    long = pa.Table.from_pylist([row | {"text": text} for row, text in zip(some, texts, strict=True)], schema=schema)
    plane = Plane(plan, random.Random(0))
    plane.put(1, long)
    left = list(plane.micro_batch({0: long}))
    expected = counted(plan, batch_result(plan, (long, long)))
    assert expected
    assert counted(plan, [*left, *plane.end()]) == expected


@pytest.mark.parametrize("shape", ["band", "theta", "overlap in cells", "within", "best match without keys"])
def test_a_late_row_counts_once_wherever_it_goes(shape: str) -> None:
    for buckets in (1, 4):
        plane = Plane(planned(shape, lateness=0, buckets=buckets), random.Random(0))
        row = {"id": 1, "ts": 50, "k": 0, "v": 0, "lo": 0, "hi": 3}
        both = table([row])
        list(plane.micro_batch({0: both, 1: both}))
        late = table([row | {"id": n, "ts": n, "v": n, "lo": n, "hi": n + 4} for n in range(2, 12)])
        list(plane.micro_batch({0: late, 1: late}))
        assert total(plane, "late") == 20, f"{buckets} buckets"


@pytest.mark.parametrize("shape", ["keys", "theta", "overlap", "interval"])
def test_differential_results_in_small_portions(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.operators.temporal_join.RESULT_BYTES", 500)
    for options in hows(shape):
        check(shape, "eager", options, 3, 2)


def test_late_rows_can_stop_the_query() -> None:
    plane = Plane(planned("keys", lateness=0, late=("fail", "fail")), random.Random(0))
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    list(plane.micro_batch({0: table([row])}))
    with pytest.raises(LateRowError, match="'ts': 9"):
        list(plane.micro_batch({0: table([row | {"ts": 9}])}))


def test_an_idle_input_no_longer_holds_results_back() -> None:
    plan = planned("keys", lateness=0, how="left", idle_after=30_000)
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    plane = Plane(plan, random.Random(0))
    assert not list(plane.micro_batch({0: table([row]), 1: table([row | {"k": 1}])}, clock=0))
    held = list(plane.micro_batch({0: table([row | {"id": 2, "ts": 50}])}, clock=30_000))
    assert not held, "input 1 may still bring a partner"
    (left,) = plane.micro_batch({0: table([row | {"id": 3, "ts": 51}])}, clock=30_001)
    assert left["id"].to_pylist() == [1]
    assert [figures["progress_1"] for figures in plane.figures if "progress_1" in figures] == [51]
    assert not list(plane.micro_batch({1: table([row | {"id": 4}])}, clock=30_002)), "it was late"
    assert total(plane, "late") == 1


def test_timers_find_idle_inputs_when_nothing_comes() -> None:
    plan = planned("theta", lateness=0, how="left", idle_after=30_000, buckets=2)
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    plane = Plane(plan, random.Random(0))
    list(plane.micro_batch({0: table([row, row | {"id": 2, "ts": 50}])}, clock=0))
    assert not list(plane.tick(30)), "not idle yet"
    left = [number for part in plane.tick(31) for number in part["id"].to_pylist()]
    assert left == [1], "both are idle: the one that is behind moves up to the other"


def test_a_timer_in_a_micro_batch_with_rows_says_nothing_more() -> None:
    plane = Plane(planned("keys", lateness=0, idle_after=30_000), random.Random(0))
    row = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    list(plane.micro_batch({0: table([row])}, clock=31_000))
    assert not list(plane.tick(31))
    assert not plane.figures, "what is kept was counted with the rows"
    list(plane.tick(32))
    assert total(plane, "state_rows") == 1


def total(plane: Plane, figure: str) -> int:
    return sum(figures.get(figure, 0) for figures in plane.figures)


def test_figures_count_every_row_once() -> None:
    rng = random.Random(5)
    for shape, buckets in itertools.product(("keys", "band", "theta"), (1, 3)):
        plan = planned(shape, how="left", buckets=buckets)
        plane, sides = Plane(plan, rng), [rows(rng, 30), rows(rng, 30)]
        rows_in = rows_out = left = 0
        for n in range(3):
            cut = {number: table(side[10 * n : 10 * n + 10]) for number, side in enumerate(sides)}
            left += sum(part.num_rows for part in plane.micro_batch(cut))
            rows_in += total(plane, "rows_in")
            rows_out += total(plane, "rows_out")
            assert total(plane, "state_rows") > 0
        assert (rows_in, rows_out) == (60, left)


def test_state_is_flat_and_empties() -> None:
    rng = random.Random(6)
    plan = planned("keys", how="full", buckets=2)
    plane, sizes = Plane(plan, rng), []
    for step in range(60):
        some = [row | {"ts": row["ts"] + 40 * step} for row in rows(rng, 60)]
        list(plane.micro_batch({0: table(some), 1: table(some)}))
        sizes.append(total(plane, "state_rows"))
    assert max(sizes[10:]) <= 2 * max(sizes[:10]), sizes
    closing = {"id": 0, "ts": 10**6, "k": 0, "v": 0, "lo": 0, "hi": 1}
    list(plane.micro_batch({0: table([closing]), 1: table([closing])}))
    assert total(plane, "state_rows") == 2, "the closing rows themselves"
    assert sum(len(store.cells["blobs"]) for store in plane.stores[0].values()) == 4, "two runs, two marks"
