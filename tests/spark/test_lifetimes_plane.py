"""The data plane of queries over lifetimes, without a JVM: any buckets, cuts and restarts give the oracle's result.

Random trees and streams are those of the relational simulator; the seed in a failed test's name replays it.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Equals, Range, Rows
from streamjoin.errors import LateRowError
from streamjoin.plan.lifetimes import build_graph
from streamjoin.plan.relation import Aggregation, Distinct, Join, Projection, Relation, Selection, Stream, Union
from tests.lifetimes_plane import Plane
from tests.operators.elements import form, stream_of
from tests.relational_oracle import Element, Row, evaluate, leaves
from tests.relational_simulator import SCHEMA, Case, Step, compare, draw_case

BUCKETS, CUTS = (1, 2, 5), (1, 3, 17)
RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "2000")) // 40


def cut(case: Case, pieces: int) -> Case:
    """The same rows in so many micro-batches, each with the progress that its rows make."""
    arrived = {name: [row for step in case.steps for row in step.rows.get(name, [])] for name in case.on_time}
    steps, largest, _all_rows = [], {}, arrived.items()
    for piece in range(pieces):
        part = {
            name: rows[len(rows) * piece // pieces : len(rows) * (piece + 1) // pieces]
            for name, rows in arrived.items()
        }
        largest |= {name: max(largest.get(name, -100), *(r["ts"] for r in rows)) for name, rows in part.items() if rows}
        steps.append(Step(part, {name: time - case.slack[name] for name, time in largest.items()}, False))
    return replace(case, steps=tuple(steps))


def tables(step: Step) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(rows, schema=SCHEMA) for name, rows in step.rows.items() if rows}


def stateless(relation: Relation) -> bool:
    """Whether a stream reaches the result without a stage, where late rows are not told from others."""
    if isinstance(relation, Stream):
        return not isinstance(relation.window, Rows)
    return isinstance(relation, Selection | Projection | Union) and any(map(stateless, relation.children))


def plane_of(case: Case, buckets: int, rng: random.Random, **options: object) -> Plane:
    return Plane(case.relation, dict.fromkeys(case.on_time, SCHEMA), case.slack, buckets, rng, **options)


@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_plane(buckets: int, pieces: int) -> None:
    first = 1000 * buckets + 100 * pieces
    for seed in range(first, first + RUNS // 9):
        case = cut(draw_case(seed), pieces)
        if stateless(case.relation) and any(case.late.values()):
            continue
        plane = plane_of(case, buckets, random.Random(seed), trouble=0.3)
        results = [table for step in case.steps for table in plane.micro_batch(tables(step))]
        try:
            compare(case, results + plane.end())
        except AssertionError as error:
            raise AssertionError(f"{buckets} buckets, {pieces} pieces\n{case.describe()}") from error


@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_a_batch(buckets: int) -> None:
    """All rows at once; those with equal time stamps are ordered by content, so here there are none."""
    for seed in range(10):
        case = draw_case(seed)
        rows = {name: _without_ties(some) for name, some in case.on_time.items()}
        case = replace(case, steps=(Step(rows, {}, False),))
        plane = plane_of(case, buckets, random.Random(seed), at_once=True)
        try:
            compare(case, plane.end(tables(case.steps[0])))
        except AssertionError as error:
            raise AssertionError(f"{buckets} buckets\n{case.describe()}") from error


def _without_ties(rows: list[Row]) -> list[Row]:
    return list({row["ts"]: row for row in rows}.values())


@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.parametrize("kind", ["istream", "dstream", "rstream"])
def test_oracle_streams_of_relations(kind: str, pieces: int) -> None:
    for seed in range(3):
        case = cut(draw_case(seed), pieces)
        if any(case.kinds[name] == "rough" for name in case.relation.columns):
            continue
        rng = random.Random(seed)
        plane = plane_of(case, rng.choice(BUCKETS), rng, trouble=0.3, stream_of=kind)
        results = [table for step in case.steps for table in plane.micro_batch(tables(step))]
        events = Counter((payload, ts) for payload, ts, _ in elements(results + plane.end()))
        expected = stream_of(kind, evaluate(case.relation, case.on_time, case.conditions))
        assert events == expected, f"{kind}, {pieces} pieces\n{case.describe()}"


def elements(results: Iterable[pa.Table]) -> list[Element]:
    found = []
    for table in results:
        for *payload, ts, te in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found.append((tuple(payload), ts, te))
    return found


# By hand -------------------------------------------------------------------------------------------------------------


def stream(source: str, *names: str, window: object) -> Stream:
    return Stream(source, tuple((f"{source}.{name}", name) for name in names), "ts", window)


def rows(*some: tuple[int, int, float]) -> pa.Table:
    made = [{"ts": ts, "te": ts, "k": k, "v": v, "s": "a"} for ts, k, v in some]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def by_hand(relation: Relation, slack: int = 0, buckets: int = 2, **options: object) -> Plane:
    names = {leaf.source for leaf in leaves(relation)}
    return Plane(
        relation, dict.fromkeys(names, SCHEMA), dict.fromkeys(names, slack), buckets, random.Random(0), **options
    )


CHAIN = Aggregation(
    Join(stream("R", "k", "v", window=Rows(2, by=("k",))), stream("S", "k", window=Range(4)), (Equals("R.k", "S.k"),)),
    ("R.k",),
    (Aggregate("sum", "R.v", "total"),),
)


@pytest.mark.parametrize("trouble", [0.0, 1.0])
def test_differential_what_leaves_when_is_what_the_graph_lets_go(trouble: float) -> None:
    """Ends and progress travel through a chain of three stages in the micro-batch that makes them known."""
    rng = random.Random(3)
    graph, plane = build_graph(CHAIN, {"R": SCHEMA, "S": SCHEMA}), by_hand(CHAIN, trouble=trouble)
    left = 0
    for time in range(30):
        news = {name: rows(*((time, rng.randint(0, 2), 0.5) for _ in range(rng.randint(1, 3)))) for name in "RS"}
        expected = elements(graph.micro_batch(news, {"R": time, "S": time}))
        assert form(elements(plane.micro_batch(news))) == form(expected), f"at {time}"
        left += len(expected)
    assert left > 20
    assert form(elements(plane.end())) == form(elements(graph.end()))


def test_ordered_results_of_a_bucket_leave_in_order() -> None:
    relation = Distinct(stream("R", "k", window=Rows(3)))
    plane, rng, left = by_hand(relation, slack=3, ordered=True, buckets=1), random.Random(1), []
    for time in range(0, 60, 2):
        news = [(time + rng.randint(0, 3), rng.randint(0, 4), 0.0) for _ in range(3)]
        left += [(ts, te) for _, ts, te in elements(plane.micro_batch({"R": rows(*news)}))]
    assert len(left) > 20
    left += [(ts, te) for _, ts, te in elements(plane.end())]
    assert left == sorted(left)


def test_late_rows_are_dropped_and_counted_or_fail() -> None:
    relation = Distinct(stream("R", "k", window=Range(5)))
    plane = by_hand(relation, slack=2)
    plane.micro_batch({"R": rows((10, 1, 0.0))})
    plane.micro_batch({"R": rows((8, 2, 0.0), (7, 3, 0.0))})
    assert plane.figures["late"] == 1
    assert sorted(elements(plane.end())) == [((1,), 10, 15), ((2,), 8, 13)]
    failing = by_hand(relation, slack=2, late="fail")
    failing.micro_batch({"R": rows((10, 1, 0.0))})
    with pytest.raises(LateRowError, match=r"came behind the progress of their stream, the first is .*3"):
        failing.micro_batch({"R": rows((7, 3, 0.0))})


def test_more_slack_after_a_restart_takes_no_progress_back() -> None:
    relation = Distinct(stream("R", "k", window=Range(5)))
    strict, lenient = (by_hand(relation, slack=slack) for slack in (0, 6))
    strict.micro_batch({"R": rows((10, 1, 0.0))})
    for bucket, running in strict.root.work.running.items():
        again = lenient.root.work.stage.build(running.bucket)
        again.restore(running.snapshot())
        lenient.root.work.running[bucket] = again
    lenient.micro_batch({"R": rows((8, 2, 0.0))})
    assert lenient.figures["late"] == 1, "results up to 10 may have left"
    assert sorted(elements(lenient.end())) == [((1,), 10, 15)]


def test_what_a_stage_says_of_itself() -> None:
    plane = by_hand(Distinct(stream("R", "k", window=Range(5))), slack=2)
    plane.micro_batch({"R": rows((10, 1, 0.0))})
    staged = plane.root.work
    (bucket,) = [one for one in staged.running.values() if one.operator.state_rows]
    figures = bucket.figures()
    assert (figures["progress_0"], figures["lag_0"], figures["state_rows"]) == (8, 2, 1)
    assert list(bucket.tick(0)) == []
    assert staged.stage.identity["emit"] == "eager, settled"
    other = by_hand(Distinct(stream("R", "k", window=Range(5))), slack=2, ordered=True).root.work.stage
    assert other.identity != staged.stage.identity
