"""Urgent rows change when a result leaves, never which; and whoever breaks a rule of theirs is caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Equals, Range, Rows, Validity
from streamjoin.errors import CallError, EvaluationError, UnsupportedError
from streamjoin.language import parse_cql
from streamjoin.operators import Results, TemporalJoin, temporal_join
from streamjoin.operators.ordering import HeldResults
from streamjoin.operators.urgency import WAITS, priority_of
from streamjoin.plan.explaining import explain_plan
from streamjoin.plan.identity import identity_of
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.lowering.priorities import PriorityExpression, checked_priority
from streamjoin.plan.relation import Aggregation, Join, Relation, Stream, streams_of
from streamjoin.plan.stored import to_stored
from streamjoin.plan.tasks import SourceTask, Urgency
from streamjoin.runtime import fragment
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage
from streamjoin.state import Batch, Matching, SweepArea
from streamjoin.state.view import View
from tests.in_process import Troubled, plan_of
from tests.interpreter import InProcess
from tests.operators.document_join import Element, Result, by_loops, document_join
from tests.priority_simulator import SCHEMA, check_weak_order, counted, draw, simulate, table

IDS = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("first", range(0, 240, 20))
def test_simulator_urgent_rows_change_no_result_and_keep_weak_order(first: int) -> None:
    for seed in range(first, first + 20):
        simulate(seed)


def test_simulator_urgent_results_that_go_straight_on_change_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment, "URGENT_BYTES", 1)  # none waits for the end of its operator's turn
    nested = [seed for seed in range(240) if draw(seed).kind == "nested"]
    assert len(nested) > 20
    for seed in nested[:30]:
        simulate(seed)


def test_in_the_simulator_timers_let_results_go_and_few_rows_meet_urgent_ones_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Counter[str] = Counter()

    def tick(self: RunningStage, *args: Any, **options: Any) -> Iterator[Packet]:
        for packet in real_tick(self, *args, **options):
            seen["let go by a timer"] += packet.kind == "final"
            yield packet

    def may_meet(self: View, rows: Batch) -> Batch | None:
        few = real_may_meet(self, rows)
        seen["few rows first"] += few is not None
        return few

    real_tick, real_may_meet = RunningStage.tick, View.may_meet_urgent
    monkeypatch.setattr(RunningStage, "tick", tick)
    monkeypatch.setattr(View, "may_meet_urgent", may_meet)
    for seed in range(1, 60, 3):
        simulate(seed)
    assert seen["let go by a timer"] > 10
    assert seen["few rows first"] > 10


def test_the_simulator_draws_what_it_is_about() -> None:
    cases = [draw(seed) for seed in range(240)]
    assert sum(case.timer and case.emit == "ordered" for case in cases) > 30
    others = {"chosen", "no join", "row windows"}
    assert {case.kind for case in cases} == {"join", "interval", "as of", "many", "nested"} | others
    assert sum(case.emit == "ordered" for case in cases) > 100
    assert sum((row["p"] or 0) > 0 for case in cases for rows in case.rows.values() for row in rows) > 1000


def test_the_simulator_catches_it_when_any_row_moves_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Urgency, "others", lambda self, batch, keep: (batch, keep))
    broken = 0
    for seed in range(40):
        try:
            simulate(seed)
        except AssertionError:
            broken += 1
    assert broken > 5


# -- the document's errors ---------------------------------------------------------------------------------------------

# Input 0 shows an urgent element at 5 before its one at 2. As printed that moves input 0's time to 5.
OVERTAKEN: list[Element] = [
    (0, "a", 1, 4, 0), (0, "u", 5, 13, 8), (1, "x", 2, 5, 0), (1, "y", 3, 11, 0), (1, "z", 6, 12, 0),
    (0, "b", 2, 6, 0),
]  # fmt: skip
# Two results begin at 3. As printed they leave as they were made, [3, 5) before [3, 4).
EQUAL_STARTS: list[Element] = [
    (1, "x", 1, 8, 0), (0, "a", 3, 5, 0), (0, "b", 6, 9, 0), (1, "y", 1, 4, 0), (1, "z", 5, 11, 0)
]  # fmt: skip


def left_of(results: list[Result]) -> list[tuple[int, int, int]]:
    return [(ts, te, priority) for _, ts, te, priority in results]


@pytest.mark.parametrize(
    ("arrivals", "error", "said"),
    [
        (OVERTAKEN, {"any_moves": True}, "after one with priority 0"),
        (EQUAL_STARTS, {"by_end": True}, "not in order"),
    ],
    ids=["algorithm 1, line 15", "algorithm 2, line 4"],
)
def test_the_checker_catches_the_documents_algorithms_as_printed(
    arrivals: list[Element], error: dict[str, bool], said: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        check_weak_order(left_of(document_join(arrivals, **error)))
    mended = document_join(arrivals)
    check_weak_order(left_of(mended))
    assert Counter((pair, ts, te) for pair, ts, te, _ in mended) == by_loops(arrivals)


def test_purging_by_urgent_elements_loses_results() -> None:
    arrivals: list[Element] = [(1, "x", 1, 4, 0), (0, "u", 9, 12, 8), (0, "a", 2, 3, 0)]
    lost = document_join(arrivals, any_purges=True)
    assert not lost
    assert by_loops(arrivals) == {(("a", "x"), 2, 3): 1}
    assert [pair for pair, *_ in document_join(arrivals)] == [("a", "x")]


def test_our_join_keeps_weak_order_where_the_document_does_not() -> None:
    for arrivals in (OVERTAKEN, EQUAL_STARTS):
        left = one_by_one(arrivals)
        check_weak_order(left)
        assert sorted((ts, te) for ts, te, _ in left) == sorted((ts, te) for _, ts, te in by_loops(arrivals).elements())


def one_by_one(arrivals: list[Element]) -> list[tuple[int, int, int]]:
    """The same through a plan, an element at a time: what leaves, as (ts, te, priority)."""
    left, right = (Stream(name, ((f"{name}.id", "id"),), None, Validity("ts", "te"), "`p`") for name in "RS")
    leaving = Leaving(validity=("from", "to"), emit="ordered")
    running = InProcess(plan_of(Join(left, right), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0}, leaving))
    tables: list[pa.Table] = []
    for number, (side, _, ts, te, priority) in enumerate(arrivals):
        element = {"id": number, "ts": ts, "te": te, "k": 0, "v": 0, "p": priority}
        tables += running.micro_batch({"RS"[side]: [table([element])]})
    tables += running.end()
    return [(each["from"], each["to"], each["priority"]) for part in tables for each in part.to_pylist()]


# -- operators ---------------------------------------------------------------------------------------------------------


def batch(rows: list[tuple[int, int, int, int]]) -> Batch:
    """Rows of (id, ts, te, priority)."""
    ids, ts, te, priority = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    own = priority if priority.any() else None
    return Batch(pa.table({"id": ids}), ts, te, np.zeros(len(ids), np.int64), priority=own)


def ids_of(outputs: Any) -> list[list[int]]:
    return [each.payload["0.id"].to_pylist() for each in outputs if isinstance(each, Results)]


def test_urgent_pairs_are_made_before_the_others_and_leave_at_once_though_others_wait() -> None:
    join = TemporalJoin(Matching(None, ()), (IDS, IDS), emit="ordered").build()
    assert not ids_of(join.on_batch(0, batch([(1, 1, 9, 0), (2, 2, 9, 7), (3, 3, 9, 0)])))
    (urgent,) = join.on_batch(1, batch([(4, 4, 9, 0)]))
    assert isinstance(urgent, Results)
    assert urgent.priority is not None
    assert (urgent.payload["0.id"].to_pylist(), urgent.priority.tolist()) == ([2], [7])
    for number in (0, 1):
        last = list(join.on_progress(number, 5))
    assert ids_of(last) == [[1, 3]]
    eager = TemporalJoin(Matching(None, ()), (IDS, IDS)).build()
    list(eager.on_batch(0, batch([(1, 1, 9, 0), (2, 2, 9, 7), (3, 3, 9, 0)])))
    assert ids_of(eager.on_batch(1, batch([(4, 4, 9, 0)]))) == [[2], [1, 3]]


def test_nothing_of_the_other_rows_is_copied_before_urgent_results_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    real = temporal_join.side_by_side

    def counting(tables: Any) -> pa.Table:
        copied.append(len(tables[0]))
        return real(tables)

    monkeypatch.setattr(temporal_join, "side_by_side", counting)
    join = TemporalJoin(Matching(None, ()), (IDS, IDS)).build()
    list(join.on_batch(0, batch([(1, 0, 10, 0), (2, 1, 10, 5), (3, 2, 10, 0)])))
    results = join.on_batch(1, batch([(7, 3, 10, 0)]))
    assert ids_of([next(results)]) == [[2]]
    assert copied == [1], "of three pairs"
    assert ids_of(results) == [[1, 3]]
    assert copied == [1, 2]


@pytest.mark.parametrize("how", ["inner", "left", "right"])
def test_few_of_many_rows_meet_urgent_ones_before_the_others_meet_anybody(how: Any) -> None:
    groups = np.arange(60) % 20
    kept = Batch(pa.table({"id": np.arange(60)}), np.zeros(60, np.int64), np.full(60, 9), groups)
    urgent = replace(kept.take(groups == 7), priority=np.full(3, 5))
    join = TemporalJoin(Matching(None, ()), (IDS, IDS), how=how).build()
    for rows in (urgent, kept.take(groups != 7)):
        list(join.on_batch(1, rows))
    outputs = [each for each in join.on_batch(0, kept) if isinstance(each, Results)]
    hurried = [each.priority is not None and bool((each.priority > 0).all()) for each in outputs]
    assert hurried == sorted(hurried, reverse=True), "urgent ones first"
    found = Counter((one, two) for each in outputs for one, two in zip(*_ids(each), strict=True))
    assert found == Counter((one, two) for one in range(60) for two in range(60) if one % 20 == two % 20)
    assert sum(len(each) for each, urgent in zip(outputs, hurried, strict=True) if urgent) == 9
    assert len(join.areas[0].kept) == 1, "all of them are one run"


def _ids(results: Results) -> list[list[int]]:
    return [results.payload[name].to_pylist() for name in ("0.id", "1.id")]


def test_whoever_may_meet_urgent_rows_is_found_by_groups_alone_and_only_where_they_are_few() -> None:
    matching = Matching(None, ())
    area, groups = SweepArea(matching), np.arange(40)
    rows = Batch(pa.table({"id": groups}), groups, groups + 9, groups)
    assert area.view().may_meet_urgent(rows) is None, "nobody is there"
    area.insert(matching.sorted_run(rows))
    assert area.view().may_meet_urgent(rows) is None, "nobody is urgent"
    area.insert(matching.sorted_run(replace(rows.take(groups < 3), priority=np.full(3, 1))))
    few = area.view().may_meet_urgent(rows)
    assert few is not None
    assert few.group.tolist() == [0, 1, 2]
    assert area.view().may_meet_urgent(rows.take(groups < 4)) is None, "most of them"
    run = matching.sorted_run(rows)
    parts = [sum(len(each.mine) for each in area.view().probe(run, urgent=which)) for which in (True, False, None)]
    assert parts == [3, 40, 43]


def test_rows_without_priorities_have_no_column_of_them() -> None:
    join = TemporalJoin(Matching(None, ()), (IDS, IDS)).build()
    list(join.on_batch(0, batch([(1, 1, 9, 0)])))
    (found,) = join.on_batch(1, batch([(4, 4, 9, 0)]))
    assert isinstance(found, Results)
    assert found.priority is None
    assert not any("priority" in name for name in found.to_table().column_names)


def test_padded_rows_and_semi_joins_have_the_priority_of_their_row() -> None:
    left = TemporalJoin(Matching(None, ()), (IDS, IDS), how="left").build()
    assert not list(left.on_batch(0, batch([(1, 1, 3, 5), (2, 1, 3, 0)]))), "that nobody comes is not known yet"
    (padded,) = left.on_progress(1, 9)
    assert isinstance(padded, Results)
    assert padded.priority is not None
    assert padded.priority.tolist() == [5, 0]
    semi = TemporalJoin(Matching(None, ()), (IDS, IDS), how="semi", emit="ordered").build()
    list(semi.on_batch(0, batch([(1, 1, 9, 5), (2, 1, 9, 0)])))
    assert ids_of(semi.on_batch(1, batch([(4, 4, 9, 9)]))) == [[1]], "urgent is the row that leaves, not its partner"


def test_results_that_are_held_let_urgent_ones_go() -> None:
    held = HeldResults()
    results = Results(pa.table({"0.id": [1, 2]}), np.array([4, 9]), np.array([5, 10]), priority=np.array([0, 3]))
    assert held.kept_back(results).payload["0.id"].to_pylist() == [2]
    assert held.first == 4


def test_priorities_of_results() -> None:
    five, none = np.array([5, 0]), None
    assert priority_of([five, none], 2) is five
    assert priority_of([none, none], 2) is None
    found = priority_of([np.array([0, 0]), none], 2, PriorityExpression("p0 - 5 * (p1 + 1)", 2))
    assert found is None, "negative is none"
    found = priority_of([five, none], 2, PriorityExpression("p0 - 5 * (p1 + 1)", 2))
    assert found is not None
    assert found.tolist() == [WAITS, 0], "nor is 0, but what has an urgent member waits"
    for text, wanted in (("least(p0, p1)", [3, 4]), ("p0 + p1", [8, 12]), ("greatest(p1, 4)", [4, 8])):
        expression = PriorityExpression(text, 2)
        assert expression.of([np.array([5, 4]), np.array([3, 8])]).tolist() == wanted
    for text, error in (
        ("p0 > 1", CallError),
        ("p0 / 2", CallError),
        ("p2", CallError),
        ("upper('a')", UnsupportedError),
    ):
        with pytest.raises(error):
            PriorityExpression(text, 2)


def test_a_priority_of_results_has_a_value_where_nobody_is_urgent() -> None:
    for text in ("p0 % p1", "p0 % (p0 + p1)", "5 % least(p0, p1)", "cast(p0 / p1 AS INT)", "p0 % 0"):
        with pytest.raises(CallError, match="no value where all priorities are 0: division by zero") as refused:
            checked_priority(text, 2)
        assert refused.value.hint is not None
        assert "p0 % greatest(p1, 1)" in refused.value.hint
    members = [np.array([5, 0, 7]), np.array([0, 0, 4])]
    assert checked_priority("p0 % greatest(p1, 1)", 2).of(members).tolist() == [0, 0, 3], "as the hint says"
    assert checked_priority("p0 % 4", 2).of(members).tolist() == [1, 0, 3]
    with pytest.raises(EvaluationError, match=r"no value in row 2: division by zero.* keep divisors from 0"):
        checked_priority("p0 % (p1 - 4)", 2).of(members)
    with pytest.raises(UnsupportedError) as unknown:
        PriorityExpression("nullif(p0, p1)", 2)
    assert "%" not in str(unknown.value), "what is offered works for priority 0"


# -- in a plan ---------------------------------------------------------------------------------------------------------


def tree(*, prioritised: bool = True, window: Any = None) -> Relation:
    streams = (
        Stream(
            name, ((f"{name}.id", "id"), (f"{name}.k", "k")), "ts", window or Range(5), "`p`" if prioritised else None
        )
        for name in "RS"
    )
    return Join(*streams, (Equals("R.k", "S.k"),))


def row(number: int, ts: int, priority: int | None = 0) -> dict[str, Any]:
    return {"id": number, "ts": ts, "te": ts + 5, "k": 0, "v": 0, "p": priority}


def stream_of(*, idle_after: int | None = None, window: Any = None) -> InProcess:
    leaving = Leaving(validity=("from", "to"), emit="ordered", idle_after=idle_after)
    plan = plan_of(tree(window=window), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0}, leaving)
    return InProcess(plan)


def test_urgent_rows_say_nothing_of_progress_but_how_new_they_are() -> None:
    running = stream_of()
    list(running.micro_batch({"R": [table([row(1, 3), row(2, 50, 9)])], "S": [table([row(3, 4)])]}))
    progress, lag = ({name: each[name] for each in running.figures for name in each if name.startswith(start)}
                     for start in ("progress", "lag"))  # fmt: skip
    assert progress == {"progress_0": 3, "progress_1": 4}
    assert lag == {"lag_0": 47, "lag_1": 46}, "so far are the others behind the newest row"
    assert sum(each.get("urgent", 0) for each in running.figures) == 1


def test_how_far_others_are_behind_an_urgent_row_is_known_after_a_restart() -> None:
    first = {"R": table([row(1, 3), row(2, 50, 9)]), "S": table([row(3, 4)])}
    second = {"R": table([row(4, 5)]), "S": table([row(5, 6)])}
    for trouble in (0.0, 1.0):
        running = Troubled(stream_of().plan, trouble=trouble)
        running.rows(first)
        running.rows(second)
        assert [running.figure("lag_0"), running.figure("lag_1")] == [45, 44], "the row at 50 is the newest"


def test_an_input_with_nothing_but_urgent_rows_is_idle() -> None:
    running = stream_of(idle_after=10)
    list(running.micro_batch({"R": [table([row(1, 3)])], "S": [table([row(2, 3)])]}, clock=0))
    later = {"R": [table([row(3, 9, 5)])], "S": [table([row(4, 30)])]}
    left = [each for part in running.micro_batch(later, clock=100) for each in part.to_pylist()]
    assert [each["R.id"] for each in left] == [1], "R no longer holds back what is older than S"


def _behind_a_stage(which: str) -> tuple[Relation, str]:
    """A tree with a stage that reads only the streams that are named, which bring nothing but urgent rows."""
    r, s, t = (Stream(name, ((f"{name}.id", "id"), (f"{name}.k", "k")), "ts", Range(5), "`p`") for name in "RST")
    if which == "a join":
        return Join(Join(r, s, (Equals("R.k", "S.k"),)), t, (Equals("S.id", "T.id"),)), "RS"
    if which == "groups":
        groups = Aggregation(r, ("R.k",), (Aggregate("count", None, "n"),))
        return Join(groups, s, (Equals("n", "S.id"),), None, "right"), "R"
    return Join(replace(r, window=Rows(2)), s, (Equals("R.k", "S.k"),)), "R"


@pytest.mark.parametrize("timers", [False, True])
@pytest.mark.parametrize("which", ["a join", "groups", "a row window"])
def test_a_stage_to_which_nothing_but_urgent_rows_come_is_idle_like_a_silent_one(which: str, timers: bool) -> None:
    relation, urgent = _behind_a_stage(which)
    names = [leaf.source for leaf in streams_of(relation)]
    leaving = Leaving(validity=("from", "to"), emit="ordered", idle_after=10, buckets=2)
    plan = plan_of(relation, dict.fromkeys(names, SCHEMA), dict.fromkeys(names, 0), leaving)
    assert len(plan.stages) == 2

    def left(*, silent: bool) -> tuple[list[list[Any]], int]:
        """What leaves with priority 0, by micro-batch; and how far the last stage takes its first input to be."""
        running = InProcess(plan)
        list(running.micro_batch({name: [table([row(1, 3)])] for name in names}, clock=0))
        steps = []
        for step in range(1, 5):
            rows = {name: [table([row(1, 30 * step, 5 * (name in urgent))])] for name in names}
            rows = {name: rows[name] for name in names if not (silent and name in urgent)}
            tables = list(running.micro_batch(rows, clock=100 * step))
            if timers:  # they find nothing, and must not wake anybody
                tables += running.tick(100 * step + 95)
            steps.append([each for part in tables for each in part.to_pylist() if each["priority"] == 0])
        return steps, running.running[1, 0].figures()["progress_0"]

    assert left(silent=False) == left(silent=True)
    assert left(silent=True)[1] == 120
    if which != "a row window":  # whose ends stay unknown without further rows
        assert any(left(silent=False)[0])


def test_urgent_rows_have_packets_of_their_own_and_others_no_column() -> None:
    plan = plan_of(tree(), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0})
    read = pa.table({
        "R.id": [1, 2, 3], "R.k": [0, 0, 0], "__sjh_t0": [5, 6, 7], "__sjh_priority": [0, 4, None],
    })  # fmt: skip
    task = SourceTask(plan.sources[0])
    read = read.select(task.schema.names).cast(task.schema)
    packets = [packet for packet in task.packets([read]) if packet.kind == "rows"]
    assert [Batch.from_table(packet.table).payload["R.id"].to_pylist() for packet in packets] == [[2], [1, 3]]
    assert ["__sj_priority" in packet.table.column_names for packet in packets] == [True, False]


def test_without_priorities_a_plan_knows_nothing_of_them() -> None:
    plain = plan_of(tree(prioritised=False), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0})
    assert "priorit" not in str(to_stored(plain)), "so a query of the version before goes on"
    ranked = plan_of(tree(), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0})
    assert "priorit" in str(to_stored(ranked))


def test_ties_of_a_row_window_are_broken_by_content_whoever_came_first() -> None:
    """The row with the larger id is the later one of its time, though it overtakes."""
    rows = [row(1, 5), row(2, 5, 9), row(3, 8)]
    found = []
    for batches in ([[rows[0]], [rows[1]], [rows[2]]], [[rows[1]], [rows[0]], [rows[2]]], [rows]):
        running = stream_of(window=Rows(1))
        left = []
        for part in batches:
            left += running.micro_batch({"R": [table(part)], "S": [table(part)]})
        found.append(counted([*left, *running.end()]))
    assert found[0] == found[1] == found[2]
    plain = tree(prioritised=False, window=Rows(1))
    batch_plan = plan_of(plain, dict.fromkeys("RS", SCHEMA), leaving=Leaving(validity=("from", "to")))
    assert counted(InProcess(batch_plan).batch({key: [table(rows)] for key in "RS"})) == found[0]


def test_a_query_says_what_is_urgent() -> None:
    text = """SELECT x.k FROM R [RANGE 5] AS x PRIORITY BY CASE WHEN x.v > 3 THEN 10 ELSE `p` END
              JOIN S [RANGE 5] ON x.k = S.k"""
    relation = parse_cql(text, dict.fromkeys("RS", SCHEMA), times=dict.fromkeys("RS", "ts")).relation
    assert [leaf.priority for leaf in streams_of(relation)] == ["CASE WHEN `v` > 3 THEN 10 ELSE `p` END", None]
    named = parse_cql("SELECT k priority FROM R [NOW] priority", {"R": SCHEMA}, times={"R": "ts"}).relation
    assert named.columns == ("priority",), "alone the word may be anybody's name"
    with pytest.raises(CallError, match="in PRIORITY BY"):
        parse_cql("SELECT k FROM R [NOW] PRIORITY BY max(k)", {"R": SCHEMA}, times={"R": "ts"})


def test_a_plan_tells_of_urgent_rows() -> None:
    plan = plan_of(tree(), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0})
    assert explain_plan(plan)[-2:] == [
        "urgent         rows of stream R by p: their results leave first",
        "urgent         rows of stream S by p: their results leave first",
    ]
    assert identity_of(plan, plan.stages[0])["priority"] == "R: p; S: p"
    plain = plan_of(tree(prioritised=False), dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0})
    assert "priority" not in identity_of(plain, plain.stages[0])


def test_what_is_refused_beside_priorities() -> None:
    def asked(relation: Relation, lateness: Any = 0, **leaving: Any) -> None:
        plan_of(relation, dict.fromkeys("RS", SCHEMA), {"R": lateness, "S": lateness}, Leaving(**leaving))

    with pytest.raises(CallError, match='hold="inputs" beside priorities'):
        asked(replace(tree(), hold="inputs"), emit="ordered")  # type: ignore[type-var]
    with pytest.raises(UnsupportedError, match="by plus and minus tuples"):
        asked(tree(), method="negative")
    doubles = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.float64())])
    stream = Stream("R", (("R.id", "id"),), "ts", Range(5), "`v`")
    with pytest.raises(CallError, match="a priority is an integer, and v of stream R is double"):
        plan_of(stream, {"R": doubles}, {"R": 0})
