"""What the lowering refuses, and in which words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import (
    Aggregate,
    Band,
    Equals,
    NearestOf,
    Overlaps,
    Predicate,
    Range,
    Rows,
    Similar,
    Validity,
    Within,
)
from streamjoin.errors import CallError, UnknownColumnError, UnsupportedError
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import Collate
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    IntervalJoin,
    Join,
    NearestJoin,
    Projection,
    Relation,
    Stream,
    Union,
)
from streamjoin.plan.types import Field, Type, plain_type
from streamjoin.runtime.intake import HIDDEN
from streamjoin.state.holders import MOST_PRODUCERS
from tests.interpreter import PlainTyping
from tests.plan.trees import lowered, stream

COUNT = (Aggregate("count", None, "n"),)
COLLATED = Type(pa.string(), "string collate UTF8_LCASE", '"string collate UTF8_LCASE"')
DECIMAL = Type(pa.decimal128(20, 2), "decimal(20,2)", '"decimal(20,2)"')
STRUCT = Type(pa.struct([("x", pa.int64())]), "struct", '{"type":"struct","fields":[]}')
MAP = Type(
    pa.list_(pa.map_(pa.string(), pa.int64())), "array<map<string,bigint>>",
    '{"type":"array","elementType":{"type":"map","keyType":"string","valueType":"long"}}',
)  # fmt: skip
COLLATED_WITHIN = Type(pa.list_(pa.string()), "array<string collate UTF8_LCASE>",
    '{"type":"array","elementType":"string collate UTF8_LCASE"}')  # fmt: skip
TYPES = {
    "ts": plain_type(pa.int64()), "when": plain_type(pa.timestamp("us", "UTC")), "day": plain_type(pa.date32()),
    "k": plain_type(pa.int64()), "s": plain_type(pa.string()), "c": COLLATED, "d": DECIMAL, "o": STRUCT,
    "v": plain_type(pa.float64()), "m": MAP, "l": COLLATED_WITHIN,
}  # fmt: skip


def typed(name: str, window: Any = Range(5), time: str | None = "ts", *columns: str) -> Stream:  # noqa: B008
    reads = tuple((f"{name}.{column}", column) for column in columns or TYPES)
    return Stream(name, reads, time if window is not None else None, window)


def refuse(relation: Relation, error: type[Exception], words: str, **leaving: Any) -> None:
    fields = tuple(Field(name, kind) for name, kind in TYPES.items())
    infos: Mapping[str, SourceInfo] = {
        name: SourceInfo(name, fields, f"stream {name}", prefix=f"{name}.") for name in "RS"
    }
    with pytest.raises(error, match=re.escape(words)):
        lower(relation, infos, PlainTyping(), Leaving(buckets=4, **leaving))


def one(column: str, name: str = "R") -> Relation:
    return Projection(typed(name), (("a", f"`{name}.{column}`"),))


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (Join(typed("R"), typed("S"), (Equals("R.k", "S.s"),)),
         "equality compares 'k' (bigint) and 's' (string), which have no common type"),
        (Union((one("k"), one("s", "S"))), "UNION compares 'a' (bigint) and 'a' (string), which have no common type"),
        (Difference(one("k"), one("s", "S")), "EXCEPT compares 'a' (bigint) and 'a' (string)"),
        (Intersection(one("k"), one("s", "S"), True), "INTERSECT ALL compares 'a' (bigint) and 'a' (string)"),
    ],
)  # fmt: skip
def test_columns_without_a_common_type(relation: Relation, words: str) -> None:
    refuse(relation, CallError, words)


def test_parts_of_a_set_operator_have_as_many_columns() -> None:
    wide = Projection(typed("S"), (("a", "`S.k`"), ("b", "`S.v`")))
    refuse(
        Union((one("k"), wide, one("k"))), CallError, "UNION needs parts with as many columns each, got 1 and 2 and 1"
    )
    refuse(Difference(wide, one("k"), True), CallError, "EXCEPT ALL needs parts with as many columns each, got 2 and 1")


def test_groups_of_collated_text() -> None:
    words = "over 'R.c', which is string collate UTF8_LCASE: rows are told apart by their bytes here"
    refuse(Aggregation(typed("R"), ("R.c",), COUNT), UnsupportedError, f"GROUP BY {words}")
    refuse(Distinct(typed("R", Range(5), "ts", "c")), UnsupportedError, f"DISTINCT {words}")
    refuse(Difference(one("c"), one("c", "S")), UnsupportedError, "EXCEPT over 'a', which is string collate UTF8_LCASE")


@pytest.mark.parametrize("kind", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize(("column", "words"), [("c", "rows are told apart by their bytes here"), ("m", "maps are not")])
def test_streams_of_what_cannot_be_told_apart(kind: str, column: str, words: str) -> None:
    one_column = typed("R", Range(5), "ts", column)
    refuse(one_column, UnsupportedError, f"{kind.upper()} over 'R.{column}', which is", to_stream=kind, validity=None)
    refuse(one_column, UnsupportedError, words, to_stream=kind, validity=None)


def test_the_least_of_collated_text() -> None:
    for function in ("min", "max"):
        words = f"{function} over 'R.c', which is string collate UTF8_LCASE: strings are put in order by their bytes"
        refuse(Aggregation(typed("R"), ("R.k",), (Aggregate(function, "R.c", "x"),)), UnsupportedError, words)
    lowered_as = lower(
        Aggregation(typed("R"), ("R.k",), (Aggregate("count", "R.c", "x"),)),
        {"R": SourceInfo("R", tuple(Field(name, kind) for name, kind in TYPES.items()), "R", prefix="R.")},
        PlainTyping(),
        Leaving(buckets=4),
    )
    assert lowered_as.stages, "how many there are is no matter of their order"


def test_ties_are_not_broken_by_collated_text() -> None:
    words = "tie_break over 'S.c', which is string collate UTF8_LCASE: strings are put in order by their bytes here"
    events = typed("R", None), typed("S", None)
    refuse(AsOfJoin(*events, ("R.ts", "S.ts"), tie_break=("S.c",)), UnsupportedError, words, validity=None)
    within = Within(("R.v",), ("S.v",), 1.0)
    nearest = NearestJoin(*events, within, NearestOf(1, tie_break=("S.c",)))
    refuse(nearest, UnsupportedError, words, validity=None)


def test_groups_of_a_row_window_go_by_the_collation() -> None:
    fields = tuple(Field(name, kind) for name, kind in TYPES.items())
    infos = {"R": SourceInfo("R", fields, "stream R", prefix="R.")}
    plan = lower(typed("R", Rows(2, by=("k", "c")), "ts", "k", "c"), infos, PlainTyping(), Leaving(buckets=4))
    (source,) = plan.sources
    assert source.steps == (Collate(((HIDDEN + "by1", "c"),)),)
    assert {each.name: each.type.arrow for each in source.hidden}[HIDDEN + "by1"] == pa.binary()
    refuse(
        typed("R", Rows(2, by="l")), UnsupportedError, "a row window's groups over 'l', which is array<string collat"
    )
    refuse(typed("R", Rows(2, by="m")), UnsupportedError, "a row window's groups over 'm', which is array<map<")


def test_rows_with_maps_are_not_compared() -> None:
    words = "over 'R.m', which is array<map<string,bigint>>: it asks which rows are the same, and maps are not compared"
    refuse(Distinct(typed("R", Range(5), "ts", "m")), UnsupportedError, f"DISTINCT {words}")
    refuse(Aggregation(typed("R"), ("R.m",), COUNT), UnsupportedError, f"GROUP BY {words}")
    refuse(Difference(one("m"), one("m", "S"), True), UnsupportedError, "EXCEPT ALL over 'a'")
    refuse(Intersection(one("m"), one("m", "S"), False), UnsupportedError, "INTERSECT over 'a'")


def test_columns_that_are_not_there() -> None:
    def without(name: str) -> str:
        return f"'{name}'"

    reads = Stream("R", (("R.q", "q"),), "ts", Range(5))
    refuse(reads, UnknownColumnError, without("q"))
    refuse(typed("R", Range(5), "tz"), UnknownColumnError, without("tz"))
    refuse(typed("R", Validity("ts", "til"), None), UnknownColumnError, without("til"))
    refuse(typed("R", Rows(2, by=("k", "g"))), UnknownColumnError, without("g"))
    refuse(reads, UnknownColumnError, "stream R")


def test_times_of_different_types() -> None:
    words = "the inputs' times have different types: that of stream S is timestamp, and another one's is bigint"
    refuse(Join(typed("R"), typed("S", Range("5 seconds"), "when")), CallError, words)
    refuse(Union((one("k"), Projection(typed("S", Range("5 seconds"), "when"), (("b", "`S.k`"),)))), CallError, words)
    events = IntervalJoin(typed("R", None), typed("S", None), ("R.ts", "S.when"), 0, 1)
    refuse(events, CallError, words, validity=None)


def test_a_validity_of_two_types() -> None:
    words = "the two ends of a validity must have one type, got timestamp and date"
    refuse(typed("R", Validity("when", "day"), None), CallError, words)


def test_a_time_that_is_none() -> None:
    words = "a time column of stream R has type string, which is no time axis"
    refuse(typed("R", Range(5), "s"), CallError, words)
    refuse(AsOfJoin(typed("R", None), typed("S", None), ("R.s", "S.s")), CallError, words, validity=None)


BOX = Overlaps(("R.v", "R.v"), ("S.v", "S.s"))
MIXED = Overlaps(("R.k", "R.k"), ("S.when", "S.when"))


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (Band("R.s", "S.s", 1, 1), "a band needs numbers or times, 's' of stream R is string"),
        (Band("R.v", "S.v", "1 day", 1), "a band's bounds must be numbers on a double column, got '1 day'"),
        (Band("R.k", "S.k", True, 1), "a band's bounds must be numbers on a bigint column, got True"),
        (Band("R.d", "S.d", 1, 1), "a band on decimal(20,2) is wider than the 18 digits that are compared exactly"),
        (BOX, "an overlap needs numbers or times, 's' of stream S is string"),
        (MIXED, "an overlap compares 'k' (bigint) and 'when' (timestamp), which have no common type"),
        (Within(("R.v", "R.s"), ("S.v", "S.s"), 1.0), "a radius needs numbers, 's' of stream R is string"),
        (Similar("R.k", "S.s", "edit", 2), "edit counts changes of a text, 'k' of stream R is bigint"),
        (
            Similar("R.s", "S.s", "jaccard", 0.8),
            "jaccard compares sets, arrays of strings or of integers; 's' of stream R is string",
        ),
        (Equals("R.o", "S.o"), "equality keys must be scalars, 'o' is struct"),
    ],
)
def test_predicates_over_columns_that_cannot_be_compared_so(predicate: Predicate, words: str) -> None:
    refuse(Join(typed("R"), typed("S"), (predicate,)), CallError, words)


def test_a_predicate_that_nobody_knows() -> None:
    class Strange(Predicate):
        def columns(self, number: int) -> tuple:
            return ()

    words = "a predicate of type Strange cannot be joined on"
    refuse(Join(typed("R"), typed("S"), (Strange(),)), UnsupportedError, words)


def test_a_tolerance_that_is_negative_or_no_distance() -> None:
    events = typed("R", None), typed("S", None)
    refuse(AsOfJoin(*events, ("R.ts", "S.ts"), tolerance=-1), CallError, "tolerance must not be negative, got -1")
    refuse(AsOfJoin(*events, ("R.ts", "S.ts"), tolerance="1 day"), CallError, "tolerance")


def test_what_is_left_to_spark_is_said_where_there_is_none() -> None:
    refuse(
        Projection(typed("R"), (("x", "`R.k` + 1"),)),
        UnsupportedError,
        "a computed column '`R.k` + 1' is left to Spark",
    )


def test_what_is_no_relation() -> None:
    class Strange(Relation):
        columns = ()
        children = ()

    refuse(Strange(), UnsupportedError, "Strange is no relation that can be run")


@pytest.mark.parametrize("join", ["as-of", "best match"])
def test_only_streams_and_joins_of_events_stand_below_one(join: str) -> None:
    events = typed("S", None)
    below = Distinct(typed("R"))
    tree = (
        AsOfJoin(below, events, ("R.ts", "S.ts"))
        if join == "as-of"
        else BestMatchJoin(below, events, (("R.ts", "S.ts", 1),))
    )
    refuse(tree, UnsupportedError, "Distinct cannot stand beside a join of events. Hint: give every stream a window")


def test_a_result_with_two_columns_of_a_name() -> None:
    twice = Projection(typed("R"), (("valid_from", "`R.k`"), ("b", "`R.v`")))
    refuse(twice, CallError, "the result would have two columns 'valid_from': the query's, and the one that says when")
    refuse(twice, CallError, "two columns 'B'", validity=("a", "B"))


@pytest.mark.parametrize("name", ["__sj_x", "__SJ_ts"])
def test_names_that_are_not_free(name: str) -> None:
    words = f"column names must not begin with '__sj', got {name!r}"
    renamed = Projection(typed("R"), ((name, "`R.k`"), ("b", "`R.v`")))
    refuse(renamed, CallError, words)
    refuse(Projection(Distinct(renamed), (("b", "`b`"),)), CallError, words)
    refuse(Aggregation(typed("R"), ("R.k",), (Aggregate("count", None, name),)), CallError, words)
    refuse(typed("R", Range(5), "ts", "k"), CallError, words, validity=(name, "b"))


def test_a_query_of_too_many_operators() -> None:
    many = Union(tuple(Distinct(Projection(stream("R"), (("a", "`R.k`"),))) for _ in range(MOST_PRODUCERS + 1)))
    with pytest.raises(UnsupportedError, match=f"a query may have {MOST_PRODUCERS} windows and operators"):
        lowered(many)
