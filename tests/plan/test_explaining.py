"""What plans say of themselves: the exact words, without a JVM."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamjoin import operators
from streamjoin.algebra import Aggregate, Band, Equals, Fixed, Near, NearestOf, Now, Range, Rows, Validity
from streamjoin.plan.describing import DESCRIBERS
from streamjoin.plan.explaining import draw_plan, explain_plan
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    Difference,
    Distinct,
    IntervalJoin,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
    streams_of,
)
from streamjoin.plan.wording import as_written, called
from tests import function_trees as functions
from tests import in_process

TIMES = pa.schema([("k", pa.int32()), ("ts", pa.timestamp("us")), ("until", pa.timestamp("us")), ("x", pa.float64())])


def told(relation: Relation, lateness: Any = None, *, schema: pa.Schema = functions.SCHEMA, **leaving: Any) -> str:
    return "\n".join(explain_plan(functions.plan_of(relation, lateness, schema=schema, **leaving)))


def lines(relation: Relation, lateness: Any = None, **options: Any) -> dict[str, str]:
    """The lines by their headings."""
    return {line[:15].strip(): line[15:] for line in told(relation, lateness, **options).splitlines()}


# -- joins of two frames -----------------------------------------------------------------------------------------------


def test_a_join_by_keys() -> None:
    assert told(functions.tree("keys", how="full"), buckets=4) == (
        "operator       temporal join, how=full, outer by row\n"
        "emission       eager\n"
        "order          runs sorted by (key, ts)\n"
        "matches by     equal k\n"
        "buckets        hash of the equality keys over 4 buckets, no row twice\n"
        "input 0        Range(5): a row is kept until the other input's progress reaches its end\n"
        "input 1        Range(5): a row is kept until the other input's progress reaches its end"
    )


def test_a_batch_with_a_budget_says_what_runs_by_merging_and_why_others_do_not() -> None:
    merged = lines(functions.tree("keys"), memory=64 << 20)
    assert merged["operator"] == "progressive merge join (pmj), how=inner"
    assert merged["order"] == "runs sorted by (key, ts)"
    assert merged["matches by"] == "equal k"
    assert merged["memory"] == "64 MB in each Python process; what does not fit goes to files in Spark's local folders"
    assert "not by pmj" not in merged
    why = lines(functions.tree("keys", how="full"), memory=64 << 20)["not by pmj"]
    assert why == "a full join must know which rows met nobody: rows go through sweep areas, as in a stream"
    ordered = lines(functions.tree("keys"), memory=64 << 20, emit="ordered")
    assert ordered["not by pmj"] == "results leave in order: rows go through sweep areas, as in a stream"
    stream = lines(functions.tree("keys"), {"0": 3, "1": 3}, memory=64 << 20)
    assert stream["operator"] == "temporal join, how=inner"
    assert "not by pmj" not in stream, "nobody expects it of a stream"
    assert lines(functions.tree("keys"))["operator"] == "temporal join, how=inner"


def in_memory(relation: Relation, lateness: Any = None, **options: Any) -> list[str]:
    told_of = told(relation, lateness, **({"memory": 64 << 20} | options)).splitlines()
    return [line[15:] for line in told_of if line.startswith("in memory")]


def test_a_batch_with_a_budget_says_what_stays_in_memory_all_the_same() -> None:
    assert not in_memory(functions.tree("keys"))
    assert not in_memory(functions.tree("keys", how="left"))
    untimed = in_memory(functions.tree("keys", timed=False))
    assert untimed == ["when runs are merged, all rows of a key; without keys, of a bucket"]
    chosen = in_memory(functions.tree("as of"))
    assert chosen == ["rows of input 0, as a whole: they choose when all others are there"]
    ordered = in_memory(functions.tree("keys"), emit="ordered")
    assert ordered == ["the results of a bucket, as a whole: they wait for their turn"]
    judged = in_memory(functions.tree("theta", how="left"), buckets=4)
    assert judged == ["stage 1: rows that wait for their verdict"]
    counted = in_memory(functions.tree("keys", windows=(Rows(3), Rows(3))))
    whole = "the inputs of a bucket, as a whole: not all operators that take them can do with less"
    assert f"stage 0: {whole}" in counted or counted == [whole]
    keys = functions.tree("keys")
    ranked = replace(keys, left=replace(keys.left, priority="`k`"))
    assert in_memory(ranked) == ["the inputs of a bucket, as a whole: urgent rows go first"]
    assert "not by pmj" in lines(ranked, memory=64 << 20)
    assert not in_memory(ranked, {"0": 3, "1": 3}), "a stream keeps no more of them than of others"


def test_a_table_beside_a_stream_with_a_budget_says_what_of_it_stays_in_memory() -> None:
    keys = functions.tree("keys")
    assert not in_memory(keys, {"0": 3}), "it goes to files"
    assert not in_memory(functions.tree("keys", how="full"), {"1": 3}, emit="ordered")
    assert not in_memory(functions.tree("as of"), {"0": 3})
    chooses = in_memory(functions.tree("as of"), {"1": 3})
    assert chooses == ["input 0, as a whole, until its rows have had their turn"]
    held = in_memory(functions.tree("theta"), {"0": 3}, emit="ordered")
    assert held == ["input 1, as a whole, until its rows have had their turn"]
    counted = in_memory(functions.tree("keys", windows=(Range(5), Rows(3))), {"0": 3}, buckets=1)
    why = "when the first micro-batch takes it: not all operators that take it can do with less"
    assert counted == [f"input 0, as a whole, {why}"]
    ranked = in_memory(replace(keys, left=replace(keys.left, priority="`k`")), {"0": 3})
    assert ranked == ["input 1, as a whole, when the first micro-batch takes it: urgent rows go first"]


def test_where_nothing_goes_to_files_a_budget_says_so() -> None:
    said = lines(Distinct(functions.stream(0, Range(5))), {"0": 3}, memory=64 << 20)["memory"]
    assert said == "64 MB in each Python process; nothing here goes to files"


def test_a_stream_beside_a_table() -> None:
    relation = functions.tree("theta", how="left", windows=(Range(5, slide=2), Now()))
    assert told(relation, {"0": 4}, buckets=6, emit="ordered", idle_after=90_000_000) == (
        "operator       temporal join, how=left, outer by row\n"
        "emission       ordered, holding inputs\n"
        "order          runs sorted by (ts)\n"
        "matches by     validity alone\n"
        "then tested    ExpressionTest\n"
        "buckets        matrix of 2 x 3 buckets: input 0 3 times, input 1 2 times\n"
        "verdict        a second stage decides which rows of input 0 met nobody\n"
        "input 0        Range(5, slide=2): a row is kept until the other input's progress reaches its end; rows may be "
        "4 late\n"
        "input 1        Now(): a row is kept until the other input's progress reaches its end; static, in the state "
        "from the start\n"
        "idle           after 90 s, looked at when any input delivers"
    )
    assert lines(relation, {"0": 4}, idle_after=1_000, timers=True)["idle"] == "after 1 ms, timers look for it"
    assert "idle" not in lines(relation, idle_after=1_000), "a batch waits for nobody"


def test_what_is_left_to_spark_is_shown_as_it_was_written() -> None:
    plan = functions.plan_of(functions.tree("keys", theta="sqrt(`0.lo`) < `1.hi`", timed=False), buckets=2)
    assert explain_plan(plan) == [
        "operator       temporal join, how=inner, without validity",
        "emission       eager",
        "order          runs sorted by (key, ts)",
        "matches by     equal k",
        "left to Spark  sqrt(l.lo) < r.hi",
        "buckets        hash of the equality keys over 2 buckets, no row twice",
        "input 0        no time: every row is kept",
        "input 1        no time: every row is kept",
    ]
    assert as_written(plan, "`0.lo` < '`0.lo`' AND `1.odd name`.`0.x` IS NULL") == (
        "l.lo < '`0.lo`' AND r.`odd name`.`0.x` IS NULL"
    )


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (
            functions.tree("band", timed=False, predicates=(functions.band("v", 0.5, 1.0, "left"),)),
            {"matches by": "v - v in [-0.5, 1.0)", "order": "runs sorted by (value)"},
        ),
        (
            functions.tree("overlap", timed=False),
            {"matches by": "[lo, hi) overlaps [lo, hi)", "order": "runs sorted by (lo)"},
        ),
        (
            functions.tree("within", timed=False, how="semi"),
            {"matches by": "euclidean distance over (v, lo) at most 1.5", "order": "runs sorted by (grid row, x)"},
        ),
        (
            functions.tree("interval", predicates=(*functions.KEYS, functions.band("v", 1, 1))),
            {
                "matches by": "equal k and ts - ts in [-2, 3]",
                "then tested": "ValueTest",
                "input 0": "a row is kept until the other input's progress is 4 beyond its time; rows may be 4 late",
                "input 1": "a row is kept until the other input's progress is 3 beyond its time; rows may be 4 late",
            },
        ),
    ],
)
def test_what_pairs_match_by(relation: Relation, expected: dict[str, str]) -> None:
    timed = isinstance(relation, IntervalJoin)
    assert lines(relation, {"0": 4, "1": 4} if timed else None, buckets=3).items() >= expected.items()


def test_joins_in_which_a_row_chooses() -> None:
    asof = functions.tree("as of", tolerance=5, tie_break=("1.v",))
    assert told(asof, {"0": 1, "1": 1}, buckets=2) == (
        "operator       as-of join, how=left\n"
        "emission       when final\n"
        "order          runs sorted by (key, ts)\n"
        "matches by     equal k\n"
        "takes          the newest right row up to its time, at most 5 away; ties: the greatest by v, content\n"
        "buckets        hash of the equality keys over 2 buckets, no row twice\n"
        "input 0        a row waits until the other input's progress proves its answer; rows may be 1 late\n"
        "input 1        a row is kept until the smallest left time that waits or can come has passed the next row of "
        "its key, or is 6 beyond its time; rows may be 1 late"
    )
    nearest = functions.tree("nearest", choice=NearestOf(2, 3, ("1.id",)))
    assert told(nearest, {"0": 1, "1": 1}, emit="ordered") == (
        "operator       nearest join, how=left\n"
        "emission       ordered\n"
        "order          runs sorted by (grid row, x)\n"
        "matches by     a euclidean distance of at most 2\n"
        "takes          the 2 nearest right rows, at most 3 away in time; ties: the greatest by id, content\n"
        "buckets        one bucket\n"
        "input 0        a row waits until the other input's progress is beyond its reach; rows may be 1 late\n"
        "input 1        a row is kept while one that waits or can come may reach it; rows may be 1 late"
    )
    best = functions.tree("best match", how="right")
    assert told(best, {"0": 1, "1": 1}, change=True) == (
        "operator       best-match join, how=right\n"
        "emission       a first answer at once, and corrections\n"
        "order          runs sorted by (key, ts)\n"
        "matches by     equal k and distances of at most ts 3, v 2.0\n"
        "takes          the candidates that no other one dominates (pareto)\n"
        "buckets        one bucket\n"
        "input 0        a row is kept while one that waits or can come may reach it; rows may be 1 late\n"
        "input 1        a row waits until the other input's progress is beyond its reach; rows may be 1 late"
    )


def test_rows_that_look_ahead_and_distances_of_functions() -> None:
    ahead = lines(functions.tree("as of, ahead"))
    assert (
        ahead["takes"] == "the oldest right row from its time on, not at the same time; ties: the greatest by content"
    )
    assert ahead["input 1"] == "a row is kept until the other input's progress is 0 beyond its time"
    assert lines(functions.tree("as of, near, without keys"))["matches by"] == "time alone"
    best = functions.tree("best match without keys", compare=((1, Near("", "", 1, max).compare),))
    assert lines(best)["matches by"] == "distances of at most ts 3, v 1"


def test_durations_have_units_where_time_has() -> None:
    windows = (Range("90 s", slide="1 day"), Fixed("2 hours"))
    timed = lines(functions.tree("time", windows=windows, schema=TIMES), schema=TIMES)
    assert timed["input 0"].startswith("Range(90 s, slide=1 d): ")
    assert timed["input 1"].startswith("Fixed(2 h): ")
    interval = functions.tree("interval", lower=-1000, upper=7_200_000_000, schema=TIMES)
    assert lines(interval, schema=TIMES)["matches by"] == "equal k and ts - ts in [-1 ms, 2 h]"
    valid = lines(functions.tree("keys", windows=(Validity("ts", "until"), Now()), schema=TIMES), schema=TIMES)
    assert valid["input 0"].startswith("Validity(ts, until): ")


def test_columns_of_a_cast_and_of_an_expression_have_their_own_names() -> None:
    band = functions.tree("band", predicates=(functions.band("k", 1, 2),), timed=False, schema=TIMES)
    plan = functions.plan_of(band, schema=TIMES, buckets=2)
    assert plan.stages[0].nodes[0].config.matching.first.left.startswith("__sjh_"), "an int is cast to a long"
    assert "matches by     k - k in [-1, 2]" in explain_plan(plan)
    assert not [line for line in explain_plan(plan) if "Spark computes" in line]
    source = replace(plan.sources[0], reads=(("0.__sjh_c0", "__sjh_c0"),), derived=("Column<'lower(k)'>",))
    plan = replace(plan, sources=(source, plan.sources[1]))
    assert called(plan, {source.channel}, "0.__sjh_c0") == "lower(k)"


# -- queries -----------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("ts", pa.int64())])


def stream(name: str, window: Any, *columns: str) -> Stream:
    reads = tuple((f"{name}.{column}", column) for column in columns or ("k", "x"))
    return Stream(name, reads, None if window is None else "ts", window)


def query(relation: Relation, lateness: Any = None, **leaving: Any) -> PhysicalPlan:
    schemas = {leaf.source: SCHEMA for leaf in streams_of(relation)}
    return in_process.plan_of(relation, schemas, {"R": 4, "S": 0} if lateness is None else lateness, Leaving(**leaving))


R, S, T = stream("R", Range(5)), stream("S", Rows(2, by=("k",))), stream("T", Fixed(10))


def test_operators_that_share_a_stage() -> None:
    join = Join(R, S, (Equals("R.k", "S.k"),))
    counts = (Aggregate("count", None, "n"), Aggregate("max", "S.x", "most"))
    plan = query(Aggregation(join, ("R.k",), counts), buckets=4)
    assert explain_plan(plan) == [
        "stage 0",
        "    input 0        stream S, Rows(2, by k); rows may be 0 late",
        "    input 1        stream R, Range(5); rows may be 4 late",
        "    operator 0     row window of input 0: the newest 2 rows of each k",
        "    kept           the time of a row is kept until it is no longer among them",
        "    operator 1     temporal join, how=inner, of input 1 and operator 0: equal R.k = S.k",
        "    kept           a row is kept until the other input's progress reaches its end",
        "    operator 2     aggregation of operator 1: by R.k, n = count(*), most = max(S.x)",
        "    kept           an element is kept until the progress of all inputs reaches its end",
        "    buckets        hash of k = R.k over 4 buckets, no row twice",
        "    leaves         a result leaves when its end is known",
    ]
    assert draw_plan(plan) == (
        "flowchart BT\n"
        '    result["result<br/>R.k, n, most, valid_from, valid_to"]\n'
        '    source0["stream S, Rows(2, by k)<br/>rows may be 0 late"]\n'
        '    source1["stream R, Range(5)<br/>rows may be 4 late"]\n'
        '    stage0["stage 0<br/>row window: the newest 2 rows of each k<br/>temporal join, how=inner: equal R.k = S.k'
        "<br/>aggregation: by R.k, n = count(*), most = max(S.x)<br/>hash of k = R.k over 4 buckets, no row twice"
        '"]\n'
        "    source0 --> stage0\n"
        "    source1 --> stage0\n"
        "    stage0 --> result"
    )


def test_stages_with_spark_between() -> None:
    sides = Selection(R, "`R.x` > 1.0"), Selection(replace(S, window=Rows(1, drain=True)), "`S.x` < 2.0")
    join = Join(*sides, (Band("R.x", "S.x", 1.0, 2.0),), theta="`R.k` < `S.k`")
    counted = Aggregation(Selection(join, "`S.x` > 0.0"), (), (Aggregate("count", None, "n"),))
    plan = query(counted, {"R": 4}, buckets=4, emit="ordered", idle_after=1_000_000)
    assert explain_plan(plan) == [
        "stage 0",
        "    input 0        stream S, Rows(1, drained); static, in the state from the start",
        "    Spark computes where `S.x` < 2.0; other rows still count in the window",
        "    operator 0     row window of input 0: the newest row, until just after the last one",
        "    kept           the time of a row is kept until it is no longer among them",
        "    buckets        one bucket",
        "    leaves         passed on to stage 1, packed",
        "stage 1",
        "    input 0        stream R, Range(5); rows may be 4 late",
        "    Spark computes where `R.x` > 1.0",
        "    input 1        stage 0",
        "    operator 0     temporal join, how=inner, of input 0 and input 1: S.x - R.x in [-1.0, 2.0]",
        "    kept           a row is kept until the other input's progress reaches its end",
        "    buckets        grid of cell 24 over 4 buckets: input 0 in its home cell, input 1 in every cell that a "
        "partner may be in (about 1.12 copies of a row)",
        "    leaves         passed on to stage 2, as rows through Spark",
        "stage 2",
        "    input 0        stage 1",
        "    Spark computes where `R.k` < `S.k`, then where `S.x` > 0.0",
        "    operator 0     aggregation of input 0: n = count(*)",
        "    kept           an element is kept until the progress of all inputs reaches its end",
        "    buckets        one bucket",
        "    leaves         a result leaves when its end is known, in the order of time",
        "idle           after 1 s, looked at when any input delivers",
    ]
    assert '    stage1 -->|"where `R.k` #lt; `S.k`, then where `S.x` #gt; 0.0"| stage2' in draw_plan(plan).splitlines()


def test_a_verdict_between_stages_and_what_leaves_through_spark() -> None:
    judged = Join(R, T, (), "`R.x` < `T.x`", how="left")
    plan = query(Selection(Distinct(judged), "`R.k` > 1"), {"R": 4, "T": 1}, buckets=4)
    assert explain_plan(plan) == [
        "stage 0",
        "    input 0        stream R, Range(5); rows may be 4 late",
        "    input 1        stream T, Fixed(10); rows may be 1 late",
        "    operator 0     temporal join, how=left, outer by snapshot, of input 0 and input 1: `R.x` < `T.x`",
        "    kept           a row is kept until the other input's progress reaches its end",
        "    buckets        matrix of 2 x 2 buckets: input 0 2 times, input 1 2 times",
        "    leaves         passed on to the same bucket of stage 1, packed, with word of rows that met nobody",
        "stage 1",
        "    input 0        stage 0",
        "    operator 0     verdict of input 0: which rows of input 0 of the join met nobody",
        "    kept           a row waits until every bucket of the join is past its end",
        "    buckets        hash of the rows over 4 buckets, no row twice",
        "    leaves         passed on to stage 2, packed",
        "stage 2",
        "    input 0        stage 1",
        "    operator 0     DISTINCT of input 0",
        "    kept           an element is kept until the progress of all inputs reaches its end",
        "    buckets        hash of (R.k, R.x, T.k, T.x) over 4 buckets, no row twice",
        "    leaves         a result leaves when its end is known, through Spark",
        "    Spark computes where `R.k` > 1",
    ]


def test_changes_and_events() -> None:
    one, two = Projection(R, (("k", "`R.k`"),)), Projection(T, (("j", "`T.k`"),))
    united = Difference(one, Union((two, replace(two, child=replace(T, source="U")))))
    assert explain_plan(query(united, {"R": 4, "T": 1, "U": 2}, buckets=2, to_stream="istream")) == [
        "stage 0",
        "    input 0        stream R, Range(5); rows may be 4 late",
        "    Spark computes k = `R.k`",
        "    input 1        stream T, Fixed(10); rows may be 1 late",
        "    Spark computes j = `T.k`, then k = `j`",
        "    input 1        stream U, Fixed(10); rows may be 2 late",
        "    Spark computes j = `T.k`, then k = `j`",
        "    operator 0     EXCEPT of input 0 and input 1",
        "    kept           an element is kept until the progress of all inputs reaches its end",
        "    operator 1     ISTREAM of operator 0",
        "    kept           an element is kept until the progress of all inputs reaches its end",
        "    buckets        hash of k over 2 buckets, no row twice",
        "    leaves         a result leaves when it is made",
    ]


def test_plus_and_minus_tuples() -> None:
    join = Join(R, S, (Equals("R.k", "S.k"),))
    assert explain_plan(query(join, change=True, method="negative", buckets=2)) == [
        "stage 0",
        "    input 0        stream R, Range(5); rows may be 4 late",
        "    operator 0     window of plus and minus tuples of input 0",
        "    kept           a row is kept until progress reaches its end",
        "    buckets        hash of (R.k, R.x) over 2 buckets, no row twice",
        "    leaves         passed on to stage 1, packed",
        "stage 1",
        "    input 0        stream S, Rows(2, by k); rows may be 0 late",
        "    input 1        stage 0",
        "    operator 0     row window of plus and minus tuples of input 0: the newest 2 rows of each k",
        "    kept           a row is kept until it is no longer among them",
        "    operator 1     join of plus and minus tuples, how=inner, of input 1 and operator 0: equal R.k = S.k",
        "    kept           a row is kept until its minus tuple comes",
        "    buckets        hash of k = R.k over 2 buckets, no row twice",
        "    leaves         a changelog: every change leaves at once",
    ]


def test_joins_of_events_in_one_stage() -> None:
    first = AsOfJoin(
        stream("R", None, "k", "ts"), stream("S", None, "k", "ts"), ("R.ts", "S.ts"), (("R.k", "S.k"),)
    )  # fmt: skip
    both = AsOfJoin(first, stream("T", None, "k", "ts"), ("R.ts", "T.ts"), (("R.k", "T.k"),), tolerance=3)
    shown = explain_plan(query(both, {"R": 4, "S": 4, "T": 4}, buckets=2, validity=None))
    assert shown[6:8] == [
        "    operator 1     as-of join, how=left, of operator 0 and input 2: equal R.k; takes the newest right row up "
        "to its time, at most 3 away; ties: the greatest by content",
        "    kept           of operator 0, a row waits until the other input's progress proves its answer; of input 2, "
        "a row is kept until the smallest left time that waits or can come has passed the next row of its key, or is 4 "
        "beyond its time",
    ]
    assert shown[-2:] == [
        "    buckets        hash of R.k = S.k = T.k over 2 buckets, no row twice",
        "    leaves         a result leaves when it is made",
    ]


def test_a_query_that_keeps_nothing() -> None:
    plan = query(Selection(R, "`R.x` > 1.0"))
    assert explain_plan(plan) == [
        "input          stream R, Range(5); rows may be 4 late",
        "Spark computes where `R.x` > 1.0",
        "leaves         at once: nothing is kept",
    ]
    assert draw_plan(plan) == (
        "flowchart BT\n"
        '    result["result<br/>R.k, R.x, valid_from, valid_to"]\n'
        '    source0["stream R, Range(5)<br/>rows may be 4 late"]\n'
        '    source0 -->|"where `R.x` #gt; 1.0"| result'
    )


def test_one_join_of_a_query_shows_what_spark_computes() -> None:
    join = Join(Selection(R, "`R.x` > 1.0"), T, (Equals("R.k", "T.k"),))
    shown = explain_plan(query(Projection(Selection(join, "`R.x` < `T.x`"), (("a", "`R.k`"),)), {"R": 4, "T": 1}))
    assert shown[4:6] == ["left to Spark  `R.x` < `T.x`", "Spark computes a = `R.k`"]
    assert shown[-3:-1] == [
        "input 0        Range(5): a row is kept until the other input's progress reaches its end; rows may be 4 late",
        "Spark computes where `R.x` > 1.0",
    ]


def test_every_operator_describes_itself() -> None:
    known = (getattr(operators, name) for name in operators.__all__)
    buildable = {each for each in known if dataclasses.is_dataclass(each) and hasattr(each, "build")}
    assert set(DESCRIBERS) == buildable - {operators.Verdict}, "which is part of another"
