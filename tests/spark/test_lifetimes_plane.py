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
from streamjoin.plan.identity import identity_of
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import Compute, Mark
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from tests.in_process import Told, Troubled, plan_of
from tests.operators.elements import form, stream_of
from tests.relational_oracle import FOREVER, Element, Row, evaluate, leaves
from tests.relational_simulator import BUCKETS, SCHEMA, Case, Step, compare, draw_case, without_stage

CUTS = (1, 3, 17)
RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "1000")) // 40


def cut(case: Case, pieces: int) -> Case:
    """The same rows in so many micro-batches, each with the progress that its rows make."""
    arrived = {name: [row for step in case.steps for row in step.rows.get(name, [])] for name in case.on_time}
    steps, largest = [], {}
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


def at_work(case: Case, rng: random.Random, trouble: float = 0.3, **leaving: object) -> Troubled:
    """The plan of a case, whose progress follows from its rows."""
    plan = plan_of(case.relation, dict.fromkeys(case.on_time, SCHEMA), case.slack, Leaving(**leaving))
    return Troubled(plan, rng=rng, trouble=trouble)


def played(running: Troubled, case: Case) -> list[pa.Table]:
    """All that leaves."""
    return [table for step in case.steps for table in running.rows(tables(step))] + running.finished()


@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_plane(buckets: int, pieces: int) -> None:
    first = 1000 * buckets + 100 * pieces
    for seed in range(first, first + RUNS // 9):
        case = cut(draw_case(seed), pieces)
        if without_stage(case.relation) and any(case.late.values()):
            continue
        running = at_work(case, random.Random(seed), buckets=buckets)
        try:
            compare(case, played(running, case))
        except AssertionError as error:
            raise AssertionError(f"{buckets} buckets, {pieces} pieces\n{case.describe()}") from error


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_a_batch(buckets: int, method: str) -> None:
    """All rows at once; those with equal time stamps are ordered by content, so here there are none."""
    for seed in range(10):
        case = draw_case(seed)
        rows = {name: _without_ties(some) for name, some in case.on_time.items()}
        case = replace(case, steps=(Step(rows, {}, False),), slack=dict.fromkeys(rows))
        running = at_work(case, random.Random(seed), buckets=buckets, method=method)
        given = {name: running.partitions(table) for name, table in tables(case.steps[0]).items()}
        try:
            compare(case, list(running.batch(given)))
        except AssertionError as error:
            raise AssertionError(f"{buckets} buckets\n{case.describe()}") from error


def _without_ties(rows: Iterable[Row]) -> list[Row]:
    return list({row["ts"]: row for row in rows}.values())


@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.parametrize("kind", ["istream", "dstream", "rstream"])
def test_oracle_streams_of_relations(kind: str, pieces: int) -> None:
    for seed in range(3):
        case = cut(draw_case(seed), pieces)
        if any(case.kinds[name] == "rough" for name in case.relation.columns):
            continue
        rng = random.Random(seed)
        running = at_work(case, rng, buckets=rng.choice(BUCKETS), to_stream=kind)
        events = Counter((tuple(payload), time) for *payload, time in values(played(running, case)))
        expected = stream_of(kind, evaluate(case.relation, case.on_time, case.conditions))
        assert events == expected, f"{kind}, {pieces} pieces\n{case.describe()}"


@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_static_sources_beside_streams(buckets: int) -> None:
    """What is there before the stream begins is never late, and holds nobody back."""
    beside = 0
    for seed in range(100 * buckets, 100 * buckets + 30):
        case, rng = draw_case(seed), random.Random(seed)
        static = {name for name in case.on_time if rng.random() < 0.5}
        case = _with_static(replace(case, buckets=buckets).in_time(), static)
        lateness = {name: None if name in static else Told() for name in case.on_time}
        leaving = Leaving(buckets=buckets, method=rng.choice(["direct", "negative"]))
        plan = plan_of(case.relation, dict.fromkeys(case.on_time, SCHEMA), lateness, leaving)
        assert plan.streaming == (static < set(case.on_time))
        beside += 0 < len(static) < len(case.on_time)
        running = Troubled(plan, rng=rng, trouble=0.3)
        results = [table for step in case.steps for table in running.told(tables(step), step.progress)]
        try:
            compare(case, results + running.finished())
        except AssertionError as error:
            raise AssertionError(f"{buckets} buckets, static {static}\n{case.describe()}") from error
    assert beside > 2


def _with_static(case: Case, static: set[str]) -> Case:
    """The same case; all rows of some sources are there before the first micro-batch."""
    given = {name: _without_ties(case.on_time[name]) for name in static}
    steps = [
        replace(
            step,
            rows={name: rows for name, rows in step.rows.items() if name not in static},
            progress={name: time for name, time in step.progress.items() if name not in static},
        )
        for step in case.steps
    ]
    return replace(case, steps=(Step(given, {}, False), *steps))


def values(results: Iterable[pa.Table]) -> list[tuple]:
    return [row for table in results for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def elements(results: Iterable[pa.Table]) -> list[Element]:
    return [(tuple(payload), ts, FOREVER if te is None else te) for *payload, ts, te in values(results)]


# By hand -------------------------------------------------------------------------------------------------------------


def stream(source: str, *names: str, window: object) -> Stream:
    return Stream(source, tuple((f"{source}.{name}", name) for name in names), "ts", window)


def rows(*some: tuple[int, int | None, float]) -> pa.Table:
    made = [{"ts": ts, "te": ts, "k": k, "v": v, "s": "a"} for ts, k, v in some]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def by_hand(
    relation: Relation, slack: int | None = 0, *, static: tuple[str, ...] = (), late: str = "drop",
    trouble: float = 0.0, buckets: int = 2, **leaving: object,
) -> Troubled:  # fmt: skip
    names = {leaf.source for leaf in leaves(relation)}
    lateness = {name: None if name in static else slack for name in names}
    plan = plan_of(relation, dict.fromkeys(names, SCHEMA), lateness, Leaving(buckets=buckets, **leaving), late=late)
    return Troubled(plan, trouble=trouble)


CHAIN = Aggregation(
    Join(stream("R", "k", "v", window=Rows(2, by=("k",))), stream("S", "k", window=Range(4)), (Equals("R.k", "S.k"),)),
    ("R.k",),
    (Aggregate("sum", "R.v", "total"),),
)
SCATTERED = replace(CHAIN, keys=("R.v",), aggregates=(Aggregate("sum", "R.k", "total"),))


@pytest.mark.parametrize("trouble", [0.0, 1.0])
@pytest.mark.parametrize("relation", [CHAIN, SCATTERED], ids=["one stage", "two stages"])
def test_oracle_what_is_decided_leaves_in_the_micro_batch_that_decides_it(relation: Relation, trouble: float) -> None:
    """Ends and progress travel through all operators at once: what has ended has left, and in one bucket no more."""
    rng, given = random.Random(3), {"R": [], "S": []}
    running, alone, left, once = by_hand(relation, trouble=trouble), by_hand(relation, buckets=1), [], []
    for time in range(30):
        news = {name: rows(*((time, rng.randint(0, 2), 0.5) for _ in range(rng.randint(1, 3)))) for name in "RS"}
        given = {name: given[name] + news[name].to_pylist() for name in given}
        left, once = left + elements(running.rows(news)), once + elements(alone.rows(news))
        assert form(left) == form(once), f"at {time}"
        for payload, (level, *_) in form(evaluate(relation, given)).items():
            decided = [interval for interval in level if interval[1] < time]
            assert decided == form(left).get(payload, [[]])[0][: len(decided)], f"{payload} at {time}"
    assert len(left) > 20
    assert form(left + elements(running.finished())) == form(evaluate(relation, given))


@pytest.mark.parametrize("relation", [Distinct(stream("R", "k", window=Rows(3))), CHAIN], ids=["distinct", "chain"])
def test_ordered_results_of_a_bucket_leave_in_order(relation: Relation) -> None:
    running, rng, left = by_hand(relation, slack=3, emit="ordered", buckets=1, trouble=0.3), random.Random(1), []
    for time in range(0, 60, 2):
        news = {name: [(time + rng.randint(0, 3), rng.randint(0, 4), 0.0) for _ in range(3)] for name in "RS"}
        left += [(ts, te) for _, ts, te in elements(running.rows({name: rows(*some) for name, some in news.items()}))]
    assert len(left) > 20
    left += [(ts, te) for _, ts, te in elements(running.finished())]
    assert left == sorted(left)


def test_late_rows_are_dropped_and_counted_or_fail() -> None:
    relation = Distinct(stream("R", "k", window=Range(5)))
    running = by_hand(relation, slack=2)
    running.rows({"R": rows((10, 1, 0.0))})
    running.rows({"R": rows((8, 2, 0.0), (7, 3, 0.0))})
    assert running.figure("late") == 1
    assert sorted(elements(running.finished())) == [((1,), 10, 15), ((2,), 8, 13)]
    failing = by_hand(relation, slack=2, late="fail")
    failing.rows({"R": rows((10, 1, 0.0))})
    with pytest.raises(LateRowError, match=r"brought 1 row\(s\) behind its progress 8, the first is .*3"):
        failing.rows({"R": rows((7, 3, 0.0))})


SELECTED = Selection(CHAIN, "`total` > 0"), Aggregation(Selection(CHAIN, "`total` > 0"), ("R.k",), CHAIN.aggregates[:0])


@pytest.mark.parametrize(
    "relation", [CHAIN, SCATTERED, *SELECTED], ids=["one stage", "two stages", "then Spark", "Spark between"]
)
def test_late_rows_can_be_shown(relation: Relation) -> None:
    """They leave beside the result, with what the result has of them, whatever they pass on their way."""
    running = by_hand(relation, slack=2, late="output", flagged=True)
    running.rows({"R": rows((10, 1, 0.5)), "S": rows((10, 1, 0.5))})
    (left,) = running.rows({"R": rows((8, 2, 0.5), (7, 3, 0.5))})
    shown = [row for row in left.to_pylist() if row["_late"]]
    assert [row[relation.columns[0]] for row in shown] == [0.5 if relation is SCATTERED else 3]
    assert [(row.get("total"), row["valid_from"], row["valid_to"]) for row in shown] == [(None, None, None)]
    assert not any(row[-1] for row in values(running.finished()))


def test_more_slack_after_a_restart_takes_no_progress_back() -> None:
    relation = Distinct(stream("R", "k", window=Range(5)))
    strict, lenient = (by_hand(relation, slack=slack) for slack in (0, 6))
    strict.rows({"R": rows((10, 1, 0.0))})
    for place, running in strict.running.items():
        again = lenient.running[place] = lenient.plan.stages[place[0]].build(place[1])
        again.restore(running.snapshot())
    lenient.rows({"R": rows((8, 2, 0.0))})
    assert lenient.figure("late") == 1, "results up to 10 may have left"
    assert sorted(elements(lenient.finished())) == [((1,), 10, 15)]


def test_what_a_stage_says_of_itself() -> None:
    relation = Distinct(stream("R", "k", window=Range(5)))
    running = by_hand(relation, slack=2)
    running.rows({"R": rows((10, 1, 0.0))})
    (figures,) = [figures for each in running.running.values() if (figures := each.figures())["state_rows"]]
    assert (figures["progress_0"], figures["lag_0"], figures["state_rows"]) == (8, 2, 1)
    assert [list(each.tick(0)) for each in running.running.values()] == [[], []]
    plan = running.plan
    assert identity_of(plan, plan.stages[0])["emit"] == "eager, holding nothing, settled"
    other = by_hand(relation, slack=2, emit="ordered").plan
    assert identity_of(other, other.stages[0]) != identity_of(plan, plan.stages[0])
    later = by_hand(relation, slack=7).plan
    assert identity_of(later, later.stages[0]) == identity_of(plan, plan.stages[0]), "lateness may change"


def test_a_static_source_below_an_aggregation_of_its_own() -> None:
    counted = Aggregation(stream("S", "k", window=Range(100)), ("S.k",), (Aggregate("count", None, "n"),))
    relation = Join(stream("R", "k", window=Range(3)), counted, (Equals("R.k", "S.k"),))
    running = by_hand(relation, static=("S",), trouble=1.0)
    known = {"R": rows((5, 1, 0.0)), "S": rows((0, 1, 0.0), (7, 1, 0.0), (50, 2, 0.0))}
    left = elements(running.rows(known)) + elements(running.rows({"R": rows((60, 1, 0.0), (60, 2, 0.0), (60, 3, 0.0))}))
    expected = [((1, 1, 1), 5, 7), ((1, 1, 2), 7, 8), ((1, 1, 2), 60, 63), ((2, 2, 1), 60, 63)]
    assert sorted(left + elements(running.finished())) == sorted(expected)


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("buckets", BUCKETS)
def test_oracle_selections_above_a_row_window_are_computed_at_the_source(buckets: int, method: str) -> None:
    """Rows that they drop are marked: they push others out all the same."""
    newest = stream("R", "k", "v", window=Rows(2, by=("s",)))
    selected = Selection(Projection(Selection(newest, "`R.v` > 0.2"), (("n", "`R.k`"),)), "`n` < 3")
    relation = Aggregation(selected, ("n",), (Aggregate("count", None, "many"),))
    conditions = {"`R.v` > 0.2": lambda row: row["R.v"] > 0.2, "`n` < 3": lambda row: row["n"] < 3}
    running = by_hand(relation, buckets=buckets, method=method, trouble=0.3)
    (source,) = running.plan.sources
    assert [type(step) for step in source.steps] == [Mark, Compute, Mark]
    assert running.plan.edges == ()
    rng, given, left = random.Random(5), [], []
    for time in range(40):
        news = rows(*((time, rng.randint(0, 4), rng.choice([0.1, 0.3])) for _ in range(rng.randint(0, 3))))
        given, left = given + news.to_pylist(), left + elements(running.rows({"R": news}))
    assert len(left) > 10
    left += elements(running.finished())
    assert form(left) == form(evaluate(relation, {"R": given}, conditions))


@pytest.mark.parametrize("buckets", BUCKETS)
def test_null_is_where_null_is_whoever_has_placed_it(buckets: int) -> None:
    """A join that matches nothing by it, and EXCEPT, to which it is equal: in one stage, or in none."""
    joined = Join(
        stream("R", "k", window=Range(4)), stream("S", "k", window=Range(4)), (Equals("R.k", "S.k"),), how="anti"
    )
    running = by_hand(Difference(joined, stream("T", "k", window=Range(4))), buckets=buckets)
    assert len(running.plan.stages) == 1
    given = {"R": rows((1, None, 0.0), (1, 2, 0.0), (1, 3, 0.0)), "S": rows((1, 3, 0.0)), "T": rows((1, None, 0.0))}
    assert sorted(elements(running.rows(given) + running.finished())) == [((2,), 1, 5)]


def test_an_idle_channel_is_moved_up_and_its_later_rows_are_late() -> None:
    """By the clock of the micro-batch, in microseconds."""
    relation = Distinct(Union((stream("R", "k", window=Range(2)), stream("S", "k", window=Range(2)))))
    running = by_hand(relation, idle_after=10, trouble=1.0)

    def at(clock: int, **some: pa.Table) -> list[Element]:
        given = {name: [table] for name, table in some.items()}
        return sorted(elements(running.micro_batch(given, clock=clock)))

    assert at(0, R=rows((1, 1, 0.0)), S=rows((1, 2, 0.0))) == []
    assert at(10, R=rows((5, 3, 0.0))) == [], "S may still bring rows from 1 on"
    assert at(11, R=rows((9, 4, 0.0))) == [((1,), 1, 3), ((2,), 1, 3), ((3,), 5, 7)]
    assert at(12, S=rows((8, 5, 0.0), (9, 6, 0.0))) == []
    assert running.figure("late") == 1
    assert sorted(elements(running.finished())) == [((4,), 9, 11), ((6,), 9, 11)]


def test_when_all_are_idle_time_stands_still_until_somebody_looks_at_the_clock() -> None:
    relation = Distinct(Union((stream("R", "k", window=Range(2)), stream("S", "k", window=Range(2)))))
    running = by_hand(relation, idle_after=10)
    some = {"R": [rows((1, 1, 0.0))], "S": [rows((9, 2, 0.0))]}
    assert elements(running.micro_batch(some, clock=0)) == []
    assert elements(running.tick(10)) == []
    assert elements(running.tick(11)) == [((1,), 1, 3)], "R is moved up to 9"


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("static", [(), ("R",)], ids=["stream", "batch"])
def test_a_drained_window_ends_with_the_last_row_in_whichever_bucket_it_is(static: tuple, method: str) -> None:
    relation = stream("R", "k", window=Rows(1, by=("k",), drain=True))
    running = by_hand(relation, static=static, buckets=5, method=method)
    left = running.rows({"R": rows(*((time, time, 0.0) for time in range(9)))})
    assert sorted(elements(left + running.finished())) == [((time,), time, 9) for time in range(9)]
