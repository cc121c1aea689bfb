"""Parameters of a query: it is the query with their values written as literals, and every value must have its place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from streamjoin.errors import CallError, StreamjoinError
from streamjoin.language import parse_cql
from streamjoin.language.parameters import with_values
from tests.cql.streams import SCHEMAS, TIMES

EAST = timezone(timedelta(hours=2))
LITERALS: list[tuple[Any, str]] = [
    (5, "5"),
    (-5, "(-5)"),
    (3_000_000_000, "3000000000"),
    (1.5, "1.5D"),
    (-1e300, "(-1e+300D)"),
    (float("inf"), "CAST('inf' AS DOUBLE)"),
    (True, "TRUE"),
    (None, "NULL"),
    (Decimal("1.50"), "1.50BD"),
    (Decimal("1E+2"), "100BD"),
    ("plain", "'plain'"),
    ("it's", "'it\\'s'"),
    ("a\\b\n'; --", "'a\\\\b\\n\\'; --'"),
    (b"ab", "X'6162'"),
    (date(2024, 2, 29), "DATE '2024-02-29'"),
    (datetime(2024, 1, 1, 12, tzinfo=EAST), "TIMESTAMP '2024-01-01 10:00:00.000000+00:00'"),
    (timedelta(days=1, seconds=2, microseconds=3), "INTERVAL '1' DAY '2.000003' SECOND"),
    (timedelta(seconds=-1), "INTERVAL '-1' DAY '86399.000000' SECOND"),
]


@pytest.mark.parametrize(("value", "literal"), LITERALS)
def test_a_value_is_written_as_the_literal_of_its_type(value: Any, literal: str) -> None:
    query = "SELECT k FROM R [NOW] WHERE coalesce({}, a) IS NULL"
    named, positional = with_values(query.format(":v"), {"v": value})[0], with_values(query.format("?"), [value])[0]
    assert named == positional == query.format(literal)
    assert parse_cql(query.format(":v"), SCHEMAS, times=TIMES, args={"v": value}) == parse_cql(
        query.format(literal), SCHEMAS, times=TIMES
    )


def test_a_time_without_zone_is_local_as_in_pyspark() -> None:
    here = datetime(2024, 1, 1, 12)
    assert with_values(":t", {"t": here}) == (
        with_values(":t", {"t": here.astimezone(UTC)})[0],
        with_values(":t", {"t": here})[1],
    )


SAME: dict[str, tuple[str, Mapping[str, Any] | list[Any], str]] = {
    "in all clauses": (
        "SELECT x + :more AS y FROM R [NOW] WHERE a>:low AND k IN (:one,:two) GROUP BY x + :more HAVING COUNT(*) > :n",
        {"more": 1, "low": 2, "one": "p", "two": "q", "n": 3},
        "SELECT x + 1 AS y FROM R [NOW] WHERE a>2 AND k IN ('p','q') GROUP BY x + 1 HAVING COUNT(*) > 3",
    ),
    "by place": (
        "SELECT k FROM R [ROWS ?] WHERE a > ? AND a < ?",
        [7, 1, 9],
        "SELECT k FROM R [ROWS 7] WHERE a > 1 AND a < 9",
    ),
    "a minus before it": ("SELECT a -:n AS d FROM R [NOW]", {"n": -5}, "SELECT a -(-5) AS d FROM R [NOW]"),
    "a size as text": ("SELECT k FROM R [RANGE :size]", {"size": "5 seconds"}, "SELECT k FROM R [RANGE 5 SECONDS]"),
    "a size alone": ("SELECT k FROM R [:size]", {"size": "5 seconds"}, "SELECT k FROM R [5 SECONDS]"),
    "a number and a unit": (
        "SELECT k FROM R [RANGE :n MINUTES SLIDE :s SECONDS]",
        {"n": 5, "s": 1},
        "SELECT k FROM R [RANGE 5 MINUTES SLIDE 1 SECONDS]",
    ),
    "a slide": (
        "SELECT k FROM R [RANGE :n SLIDE :s]",
        {"n": "1 hour 30 minutes", "s": "1 minute"},
        "SELECT k FROM R [RANGE 1 HOUR 30 MINUTES SLIDE 1 MINUTE]",
    ),
    "ticks": ("SELECT k FROM N [RANGE :n]", {"n": 10}, "SELECT k FROM N [RANGE 10]"),
    "fixed": ("SELECT k FROM N [FIXED :n]", {"n": 10}, "SELECT k FROM N [FIXED 10]"),
    "rows first": ("SELECT k FROM N [:n ROWS]", {"n": 10}, "SELECT k FROM N [10 ROWS]"),
    "groups of rows": (
        "SELECT k FROM N [PARTITION BY k ROWS :n DRAIN]",
        {"n": 1},
        "SELECT k FROM N [PARTITION BY k ROWS 1 DRAIN]",
    ),
    "a tolerance": (
        "SELECT R.k FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON R.k = S.k WITHIN :far",
        {"far": "2 seconds"},
        "SELECT R.k FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON R.k = S.k WITHIN 2 SECONDS",
    ),
    "distances": (
        "SELECT R.k FROM R BEST MATCH JOIN S WITHIN x :e, y :f",
        {"e": 0.00001, "f": Decimal("0.5")},
        "SELECT R.k FROM R BEST MATCH JOIN S WITHIN x 0.00001, y 0.5",
    ),
    "none in text and comments": (
        "SELECT ':x ?' AS y FROM R [NOW] /* :x ? */ WHERE a > :x -- :y",
        {"x": 1},
        "SELECT ':x ?' AS y FROM R [NOW] WHERE a > 1",
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_a_query_with_parameters_is_the_query_with_literals(what: str) -> None:
    text, args, plain = SAME[what]
    assert parse_cql(text, SCHEMAS, times=TIMES, args=args) == parse_cql(plain, SCHEMAS, times=TIMES)


def test_a_size_is_a_timedelta() -> None:
    sized = parse_cql("SELECT k FROM R [RANGE :size]", SCHEMAS, times=TIMES, args={"size": timedelta(minutes=10)})
    assert sized == parse_cql("SELECT k FROM R [RANGE 600000000 MICROSECONDS]", SCHEMAS, times=TIMES)


WRONG: dict[str, tuple[str, Any, str, str]] = {
    "no args": (
        "SELECT k FROM R [NOW] WHERE a > «:limit",
        None,
        "The parameter :limit has no value",
        'args={"limit": ...}',
    ),
    "a missing one": (
        "SELECT k FROM R [NOW] WHERE a > «:limit",
        {"limt": 1},
        "The parameter :limit has no value",
        "did you mean 'limt'?",
    ),
    "too few": (
        "SELECT k FROM R [NOW] WHERE a > ? AND a < «?",
        [1],
        "The parameter ? has no value",
        "give a list with a value for each ?: args=[...]",
    ),
    "names for places": (
        "SELECT k FROM R [NOW] WHERE a > «?",
        {"limit": 1},
        "The parameter ? has no value",
        "give a list",
    ),
    "places for names": (
        "SELECT k FROM R [NOW] WHERE a > «:limit",
        [1],
        "The parameter :limit has no value",
        'args={"limit": ...}',
    ),
    "an unused one": (
        "SELECT k FROM R [NOW] WHERE a > :limit",
        {"limit": 1, "limits": 2},
        "the query has no parameter :limits",
        "did you mean 'limit'?",
    ),
    "nothing to fill": ("SELECT k FROM R [NOW]", {"limit": 1}, "the query has no parameter :limit", "leave args out"),
    "too many": (
        "SELECT k FROM R [NOW] WHERE a > ?",
        [1, 2],
        "args has 2 values, and the query has 1 ?",
        "write a ? for each",
    ),
    "no values": (
        "SELECT k FROM R [NOW]",
        "limit",
        "args are the values of parameters, got 'limit'",
        "for one ? after the other",
    ),
    "no literal": (
        "SELECT k FROM R [NOW] WHERE a > :x",
        {"x": [1]},
        "the parameter :x is a list, which has no literal",
        "str, int",
    ),
    "half a row": ("SELECT k FROM R [ROWS «:n]", {"n": 1.5}, ":n is 1.5, which is no number of rows", "from 1 on"),
    "a size that is none": ("SELECT k FROM R [RANGE «:n]", {"n": True}, "'True' is not a plain number", "5 SECONDS"),
    "a number of what": (
        "SELECT k FROM R [RANGE «:n]",
        {"n": 5},
        "the number 5 alone says no time",
        "[RANGE 5 SECONDS]",
    ),
    "seconds of a number": (
        "SELECT k FROM N [RANGE «:n]",
        {"n": "5 seconds"},
        "'5 seconds' has no meaning",
        "[RANGE 5]",
    ),
    "no duration": ("SELECT k FROM R «[RANGE :n]", {"n": "soon"}, "'soon' is not a duration", "5 seconds"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_parameter_without_value_or_place_is_refused(what: str) -> None:
    marked, args, message, hint = WRONG[what]
    text = marked.replace("«", "")
    with pytest.raises(StreamjoinError) as refused:
        parse_cql(text, SCHEMAS, times=TIMES, args=args)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
    if "«" in marked:
        assert f"line 1, column {marked.index('«') + 1}:" in refused.value.message


def test_a_path_into_a_column_is_no_parameter() -> None:
    assert with_values("a:b + c::int", None) == ("a:b + c::int", {})
    with pytest.raises(CallError):
        with_values("a + :b", None)
