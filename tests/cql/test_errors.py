"""Every refusal: what is said, what is advised, and where the caret stands (before the « of a query here)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import CallError, StreamjoinError, UnknownColumnError, UnsupportedError
from streamjoin.language import parse_cql
from tests.cql import streams

_MAP = pa.map_(pa.string(), pa.int32())
_WITH_MAPS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.int32(),
        "m": _MAP,
        "l": pa.list_(_MAP),
        "s": pa.struct({"inner": pa.struct({"m": _MAP, "z": pa.int32()})}),
        "since": pa.timestamp("us", "UTC"),
        "until": pa.timestamp("us"),
    }
)
SCHEMAS = streams.SCHEMAS | {"W": _WITH_MAPS}
TIMES = streams.TIMES | {"W": "ts"}

WRONG = [
    # What is not there, or can mean several things
    ("SELECT «kk FROM R [NOW]", UnknownColumnError, "no column 'kk'", "did you mean 'k'?"),
    ("SELECT R.«kk FROM R [NOW]", UnknownColumnError, "R has no column 'kk'", "did you mean 'k'?"),
    ("SELECT «Q.k FROM R [NOW]", UnknownColumnError, "No source is called 'Q'", "the sources are R"),
    ("SELECT «R FROM R [NOW]", UnknownColumnError, "'R' is a source, not a column", "R.x"),
    ("SELECT k FROM «RR [NOW]", UnknownColumnError, "no stream called 'RR'", "did you mean 'R'?"),
    ("SELECT «Q.* FROM R [NOW]", UnknownColumnError, "No source is called 'Q'", "the sources are R"),
    ("SELECT k FROM R [PARTITION BY «kk ROWS 3]", UnknownColumnError, "no column 'kk'", "did you mean 'k'?"),
    ("SELECT k FROM V [VALID «from_ TO valid_to]", UnknownColumnError, "no column 'from_'", "the columns are"),
    ("SELECT «k FROM R [NOW], S [NOW]", CallError, "'k' is ambiguous", "write R.k or S.k"),
    ("SELECT R.a FROM R [NOW], «R [NOW]", CallError, "two sources called 'R'", "R AS R2"),
    ("SELECT R.a FROM R [NOW] JOIN «r [NOW] ON 1 = 1", CallError, "two sources called 'r'", "r AS r2"),
    ("SELECT R.k, «S.k FROM R [NOW], S [NOW]", CallError, "are called 'k'", "AS S_k"),
    ("SELECT *, «R.k FROM R [NOW]", CallError, "are called 'k'", "AS R_k"),
    ("SELECT a AS z, x AS «Z FROM R [NOW]", CallError, "are called 'Z'", "another name"),
    ("SELECT a FROM R [NOW] SEMI JOIN S [NOW] ON R.k = S.k WHERE «S.b > 1", UnknownColumnError, "called 'S'", "R"),
    ("SELECT q.a FROM (SELECT «S.b FROM R [NOW]) q, S [NOW]", UnknownColumnError, "called 'S'", "the sources are R"),
    ("WITH q AS (SELECT k FROM R [NOW]), «Q AS (SELECT k FROM S [NOW]) SELECT k FROM q", CallError, "twice", "name"),
    ("WITH p AS (SELECT «kk FROM R [NOW]) SELECT k FROM S [NOW]", UnknownColumnError, "'kk'", "did you mean"),
    # Windows
    ("SELECT k FROM «R", CallError, "has no window", "R [UNBOUNDED]"),
    ("SELECT k FROM R [RANGE «5]", CallError, "5 alone says no time", "[RANGE 5 SECONDS]"),
    ("SELECT k FROM N [RANGE «5 SECONDS]", CallError, "counts numbers", "[RANGE 5]"),
    ("SELECT k FROM N [FIXED «1.5]", CallError, "counts numbers", "whole number"),
    ("SELECT k FROM R «[RANGE 5 PARSECS]", CallError, "'5 parsecs' is not a duration", "5 seconds"),
    ("SELECT k FROM R «[RANGE 1 MONTH]", CallError, "no fixed length", "5 seconds"),
    ("SELECT k FROM R «[RANGE 0 SECONDS]", CallError, "must be positive", "Now()"),
    ("SELECT k FROM R «[ROWS 0]", CallError, "at least 1", "Now()"),
    ("SELECT k FROM R [ROWS «1.5]", CallError, "a number of rows is expected", "[ROWS 100]"),
    ("SELECT k FROM R [ROWS «5L]", CallError, "no number of rows", "[ROWS 100]"),
    ("SELECT k FROM R [RANGE «5L SECONDS]", CallError, "not a plain number", "5 SECONDS"),
    ("SELECT k FROM R [RANGE 5 SECONDS «DRAIN]", CallError, "] is expected", "[RANGE 5 SECONDS]"),
    ("SELECT k FROM R [«SOMETIMES]", CallError, "a window is expected", "[NOW]"),
    ("SELECT k FROM R [RANGE 1 HOUR 30«]", CallError, "a unit is expected", "1 HOUR 30 MINUTES"),
    ("SELECT k FROM R [NOW] «[NOW]", CallError, "this is the second", "leave one out"),
    ("SELECT k FROM V «[RANGE 5 SECONDS]", CallError, "has no time column", "VALID"),
    ("SELECT k FROM V [VALID «k TO valid_to]", CallError, "between two times", "two timestamps"),
    (
        "SELECT k FROM W [VALID «since TO until]",
        CallError,
        "'since' is timestamp and 'until' is timestamp_ntz",
        "both with a zone",
    ),
    (
        "SELECT k FROM W [VALID «until TO since]",
        CallError,
        "timestamp_ntz and 'since' is timestamp",
        "both with a zone",
    ),
    ("SELECT k FROM (SELECT k FROM R [NOW]) «[NOW] q", CallError, "Only a stream has a window", "inside"),
    ("SELECT k FROM (SELECT k FROM R [NOW]) q «[NOW]", CallError, "Only a stream has a window", "inside"),
    ("WITH q AS (SELECT k FROM R [NOW]) SELECT k FROM q «[NOW]", CallError, "is a query", "inside of WITH"),
    # Clauses that are not planned
    ("SELECT k FROM R [NOW] «ORDER BY k", UnsupportedError, "ORDER BY is not planned", "by their time"),
    ("SELECT k FROM R [NOW] «SORT BY k", UnsupportedError, "SORT BY is not planned", "by their time"),
    ("SELECT k FROM R [NOW] WHERE a > 1 «LIMIT 5", UnsupportedError, "LIMIT is not planned", "[ROWS 10]"),
    ("SELECT k FROM R [NOW] «OFFSET 5", UnsupportedError, "OFFSET is not planned", "[ROWS 10]"),
    ("SELECT k FROM R [NOW] «LATERAL VIEW explode(x) t AS y", UnsupportedError, "LATERAL", "on the frame"),
    ("SELECT k FROM R [NOW], «LATERAL (SELECT 1)", UnsupportedError, "LATERAL", "on the frame"),
    ("SELECT k FROM R [NOW] «PIVOT (sum(a) FOR k IN ('x'))", UnsupportedError, "PIVOT", "one aggregate per column"),
    ("SELECT k FROM R [NOW] «TABLESAMPLE (5 ROWS)", UnsupportedError, "TABLESAMPLE", "sample the frame"),
    ("SELECT k FROM R [NOW] «QUALIFY a > 1", UnsupportedError, "QUALIFY", "GROUP BY and HAVING"),
    ("SELECT k FROM R [NOW] «WINDOW w AS (ORDER BY a)", UnsupportedError, "no WINDOW clause", "R [ROWS 10]"),
    ("SELECT a FROM R [NOW] «NATURAL JOIN S [NOW]", UnsupportedError, "NATURAL", "ON R.k = S.k"),
    ("SELECT a FROM R [NOW] JOIN S [NOW] «USING (k)", UnsupportedError, "USING", "ON R.k = S.k"),
    ("SELECT k FROM R [NOW] GROUP BY «ROLLUP(k)", UnsupportedError, "ROLLUP", "UNION ALL"),
    ("SELECT k FROM R [NOW] GROUP BY «CUBE(k)", UnsupportedError, "CUBE", "UNION ALL"),
    ("SELECT k FROM R [NOW] GROUP BY k «WITH ROLLUP", UnsupportedError, "WITH ROLLUP", "UNION ALL"),
    ("SELECT k FROM R [NOW] GROUP BY «GROUPING SETS ((k), ())", UnsupportedError, "GROUPING SETS", "UNION ALL"),
    ("SELECT k FROM R [NOW] GROUP BY «(k, a)", UnsupportedError, "Several keys in parentheses", "GROUP BY a, b"),
    ("SELECT k FROM R [NOW] GROUP BY «ALL", UnsupportedError, "GROUP BY ALL", "name the keys"),
    ("«VALUES (1), (2)", UnsupportedError, "VALUES", "as a stream"),
    ("SELECT a FROM «VALUES (1) AS t", UnsupportedError, "VALUES", "as a stream"),
    ("WITH «RECURSIVE q AS (SELECT k FROM R [NOW]) SELECT k FROM q", UnsupportedError, "recursive", "RECURSIVE"),
    ("WITH q«(a) AS (SELECT k FROM R [NOW]) SELECT a FROM q", UnsupportedError, "Names for the columns", "aliases"),
    ("SELECT a FROM R [NOW] AS r1 «(a, b)", UnsupportedError, "Names for the columns", "alias them"),
    ("«INSERT INTO t SELECT k FROM R [NOW]", UnsupportedError, "Only queries", "writeStream"),
    ("SELECT a FROM «(R [NOW] JOIN S [NOW] ON R.k = S.k)", UnsupportedError, "Parentheses around a join", "SELECT *"),
    ("SELECT a FROM «db.R [NOW]", UnsupportedError, "A qualified name", "plain name"),
    ("SELECT a FROM «range(5)", UnsupportedError, "A table function", "plain name"),
    ("SELECT * «EXCEPT (a) FROM R [NOW]", UnsupportedError, "EXCEPT is not planned", "one by one"),
    # Expressions that are not planned
    ("SELECT k FROM R [NOW] WHERE a IN («SELECT b FROM S [NOW])", UnsupportedError, "A subquery", "SEMI JOIN"),
    (
        "SELECT k FROM R [NOW] WHERE EXISTS («SELECT 1 FROM S [NOW] WHERE S.k = R.k)",
        UnsupportedError,
        "A subquery",
        "SEMI",
    ),
    ("SELECT («SELECT max(b) FROM S [NOW]) FROM R [NOW]", UnsupportedError, "A subquery", "JOIN for a value"),
    ("SELECT sum(a) «OVER (PARTITION BY k) FROM R [NOW]", UnsupportedError, "Window functions", "own window"),
    ("SELECT «row_number() OVER (ORDER BY a) FROM R [NOW]", UnsupportedError, "a window function", "frame"),
    ("SELECT sum(a) «FILTER (WHERE a > 3) FROM R [NOW]", UnsupportedError, "FILTER", "CASE WHEN"),
    ("SELECT count(«DISTINCT a) FROM R [NOW]", UnsupportedError, "DISTINCT inside an aggregate", "SELECT DISTINCT"),
    ("SELECT count(a«, x) FROM R [NOW]", UnsupportedError, "takes one expression", "one aggregate per"),
    ("SELECT «percentile(x, 0.5) FROM R [NOW]", UnsupportedError, "percentile()", "COUNT, SUM, AVG"),
    ("SELECT «collect_list(x) FROM R [NOW]", UnsupportedError, "collect_list()", "COUNT, SUM, AVG"),
    ("SELECT «`sum`(x) FROM R [NOW]", UnsupportedError, "in backquotes", "without them"),
    ("SELECT «localtimestamp() FROM R [NOW]", UnsupportedError, "localtimestamp()", "column before"),
    ("SELECT «explode(x) FROM R [NOW]", UnsupportedError, "a generator of rows", "frame"),
    ("SELECT 1 + «rand() AS z FROM R [NOW]", UnsupportedError, "rand() does not give the same", "column before"),
    ("SELECT «current_timestamp FROM R [NOW]", UnsupportedError, "current_timestamp()", "column before"),
    ("SELECT k FROM R [NOW] WHERE ts > «now()", UnsupportedError, "now()", "column before"),
    ("SELECT «distance(x, y, a) FROM R [NOW]", CallError, "two points of as many axes, got 3", "distance(R.x"),
    ("SELECT «overlaps(a, x) FROM R [NOW]", CallError, "got 2", "overlaps(R.lo"),
    # Groups
    ("SELECT «a, SUM(x) FROM R [NOW]", CallError, "R.a is neither grouped nor", "MAX(R.a)"),
    ("SELECT k, «a FROM R [NOW] GROUP BY k", CallError, "R.a is neither grouped nor", "GROUP BY ..., R.a"),
    ("SELECT k, 2 * «x + y FROM R [NOW] GROUP BY k, x + y", CallError, "R.x is neither grouped nor", "MAX(R.x)"),
    ("SELECT «* FROM R [NOW] GROUP BY k", CallError, "R.ts is neither grouped nor", "MAX"),
    ("SELECT k FROM R [NOW] GROUP BY k HAVING «a > 3", CallError, "R.a is neither grouped nor", "MAX(R.a)"),
    ("SELECT k FROM R [NOW] HAVING «a > 3", CallError, "HAVING is about groups", "WHERE"),
    ("SELECT k FROM R [NOW] WHERE «sum(a) > 3", CallError, "no aggregate in WHERE", "HAVING"),
    ("SELECT k FROM R [NOW] JOIN S [NOW] ON «sum(a) > 3", CallError, "no aggregate in ON", "HAVING"),
    ("SELECT k FROM R [NOW] GROUP BY k, «sum(a)", CallError, "no aggregate in GROUP BY", "HAVING"),
    ("SELECT sum(a) AS s FROM R [NOW] GROUP BY «s", CallError, "before aggregates", "columns of the streams"),
    ("SELECT sum(a) AS s FROM R [NOW] GROUP BY «1", CallError, "Column 1 is an aggregate", "columns of the streams"),
    ("SELECT k FROM R [NOW] GROUP BY «2", CallError, "no column 2", "1 to 1"),
    ("SELECT «sum(max(a)) FROM R [NOW]", CallError, "An aggregate inside an aggregate", "subquery"),
    ("SELECT sum(«*) FROM R [NOW]", CallError, "sum(*) has no meaning", "sum(column)"),
    ("SELECT sum(«) FROM R [NOW]", CallError, "Something is missing at ')'", "a query is"),
    ("SELECT k, 1 + «sum(k) AS z FROM R [NOW] GROUP BY k", CallError, "sum() is of numbers", "CAST(R.k AS DOUBLE)"),
    ("SELECT R.*, «R.* FROM R [NOW]", CallError, "are called 'ts'", "another name"),
    ("SELECT count(«R.*) FROM R [NOW]", CallError, "A star stands for many columns", "one by one"),
    # Conditions, joins and set operators
    ("SELECT k FROM R [NOW] WHERE «a + 1", CallError, "a condition (boolean), but it is int", "compare"),
    ("SELECT a FROM R [NOW] JOIN S [NOW] ON «R.a + S.b", CallError, "a condition (boolean)", "compare"),
    ("SELECT a FROM R [NOW] JOIN S [NOW] ON «NULL", CallError, "a condition (boolean), but it is void", "compare"),
    ("SELECT a FROM R [NOW] ANTI JOIN S [NOW] ON «(NULL)", CallError, "but it is void", "compare"),
    ("SELECT k FROM R [NOW] WHERE «NULL", CallError, "a condition (boolean), but it is void", "compare"),
    ("SELECT a FROM R [NOW] JOIN S [NOW]«", CallError, "ON is expected", "CROSS JOIN"),
    ("SELECT a FROM R [NOW] CROSS JOIN S [NOW] «ON R.k = S.k", CallError, "has no condition", "without CROSS"),
    ("SELECT a FROM R [NOW] LEFT «S [NOW]", CallError, "JOIN is expected", "a query is"),
    ("SELECT k FROM «(SELECT k FROM R [NOW])", CallError, "needs a name", "AS q"),
    ("SELECT k, a FROM R [NOW] «UNION ALL SELECT k FROM S [NOW]", CallError, "2 columns (k, a)", "as many"),
    ("SELECT k FROM R [NOW] «EXCEPT SELECT b FROM S [NOW]", CallError, "'k' is string", "CAST(b AS STRING)"),
    ("SELECT k FROM R [NOW] UNION «BY NAME SELECT k FROM S [NOW]", CallError, "SELECT is expected", "a query is"),
    ("SELECT R.a FROM R [NOW], «N [NOW]", CallError, "that of 'N' is integer", "cast the time column"),
    ("SELECT R.a FROM R [NOW] «JOIN P [NOW] ON R.a = P.k", CallError, "that of 'P' is timestamp_ntz", "of one kind"),
    ("SELECT k FROM N [NOW] «UNION ALL SELECT k FROM V [VALID valid_from TO valid_to]", CallError, "'V'", "cast"),
    # Maps are not compared
    ("SELECT DISTINCT k, «m FROM W [NOW]", UnsupportedError, "DISTINCT asks which rows are the same", "map_entries(m)"),
    ("SELECT DISTINCT «* FROM W [NOW]", UnsupportedError, "column 'm' has a map", "leave it out"),
    ("SELECT DISTINCT k, l AS «z FROM W [NOW]", UnsupportedError, "column 'z' has a map in it", "map_entries(z)"),
    ("SELECT DISTINCT «s.inner.m FROM W [NOW]", UnsupportedError, "column 'm' has a map in it", "map_entries(m)"),
    ("SELECT DISTINCT array(map(k, 1)) AS «z FROM R [NOW]", UnsupportedError, "column 'z' has a map", "map_entries"),
    ("SELECT DISTINCT «q.z FROM (SELECT s AS z FROM W [NOW]) q", UnsupportedError, "column 'z' has a map", "leave it"),
    ("SELECT m FROM W [NOW] «UNION SELECT m FROM W [NOW]", UnsupportedError, "UNION asks which rows", "map_entries"),
    ("SELECT m FROM W [NOW] «EXCEPT SELECT m FROM W [NOW]", UnsupportedError, "EXCEPT asks which rows", "map_entries"),
    ("SELECT m FROM W [NOW] «EXCEPT ALL SELECT m FROM W [NOW]", UnsupportedError, "EXCEPT asks", "map_entries"),
    ("SELECT s FROM W [NOW] «INTERSECT SELECT s FROM W [NOW]", UnsupportedError, "INTERSECT asks", "map_entries"),
    (
        "SELECT if(k > 1, m, m) AS z FROM W [NOW] «INTERSECT ALL SELECT m FROM W [NOW]",
        UnsupportedError,
        "'z'",
        "entries",
    ),
    # Relations to streams
    ("SELECT k FROM (SELECT ISTREAM(k) FROM R [NOW]) q", CallError, "inside", "around everything"),
    ("SELECT k FROM («ISTREAM (SELECT k FROM R [NOW])) q", CallError, "ISTREAM makes", "around everything"),
    ("SELECT k FROM R [NOW] UNION ALL «ISTREAM (SELECT k FROM S [NOW])", CallError, "ISTREAM makes", "around"),
    ("SELECT ISTREAM(k)«, a FROM R [NOW]", CallError, "nothing can stand beside it", "ISTREAM (SELECT"),
    ("SELECT DISTINCT «ISTREAM(k) FROM R [NOW]", CallError, "DISTINCT is decided before", "SELECT DISTINCT"),
    ("ISTREAM («SELECT DSTREAM(k) FROM R [NOW])", CallError, "a stream already", "leave one"),
    ("«ISTREAM (SELECT R.k FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts))", CallError, "already", "ISTREAM out"),
    # Event joins
    ("SELECT a FROM R «[NOW] ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts)", CallError, "event join", "leave the window"),
    ("SELECT a FROM R ASOF JOIN S «ON R.k = S.k", CallError, "MATCH_CONDITION is expected", "R.ts >= S.ts"),
    ("SELECT a FROM R ASOF JOIN S MATCH_CONDITION («R.ts = S.ts)", CallError, "must compare a time", ">=, >"),
    ("SELECT a FROM R ASOF JOIN S MATCH_CONDITION («R.ts >= R.ts)", CallError, "must compare a time", ">=, >"),
    ("SELECT a FROM R ASOF JOIN S MATCH_CONDITION («R.ts >= S.k)", CallError, "no times to compare", "two timestamps"),
    (
        "SELECT a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON «R.a > S.b",
        UnsupportedError,
        "equalities",
        "WHERE",
    ),
    *(
        (
            f"SELECT a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON «{condition}",
            UnsupportedError,
            "equalities",
            "WHERE",
        )
        for condition in ("R.a = 3", "R.a = R.x", "R.a + S.b = 3", "R.a + S.b = S.x", "R.k = S.k AND R.a = 1")
    ),
    ("SELECT a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) «USING (k)", UnsupportedError, "USING", "ON R.k"),
    ("SELECT a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) WITHIN «5", CallError, "says no time", "SECONDS"),
    (
        "SELECT a FROM R «RIGHT ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts)",
        UnsupportedError,
        "right ASOF",
        "other order",
    ),
    ("SELECT a FROM R «LEFT SEMI BEST MATCH JOIN S WITHIN x 1", UnsupportedError, "semi BEST MATCH", "INNER"),
    ("SELECT a FROM R BEST MATCH JOIN S ON R.k = S.k«", CallError, "WITHIN is expected", "WITHIN ra 0.01"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN x«", CallError, "the largest distance is expected", "5 SECONDS"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN «a 1", UnknownColumnError, "no column 'a'", "the columns are"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN k «1", CallError, "which have no distance", "use numbers"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN x «1 SECOND", CallError, "has no meaning", "use numbers"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN ts «1", CallError, "says no time", "SECONDS"),
    ("SELECT a FROM R BEST MATCH JOIN S WITHIN «R.x = R.y 1", CallError, "of the one stream", "R.ra = S.raj"),
    (
        "SELECT R.a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) «JOIN T [NOW] ON T.k = R.k",
        UnsupportedError,
        "no further join",
        "resulting frame",
    ),
    (
        "SELECT R.a FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts), «T [NOW]",
        UnsupportedError,
        "no validity",
        "resulting frame",
    ),
    (
        "«SELECT R.k, COUNT(*) FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) GROUP BY R.k",
        UnsupportedError,
        "Groups and DISTINCT",
        "resulting frame",
    ),
    (
        "SELECT R.k FROM R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) «UNION SELECT k FROM T [NOW]",
        UnsupportedError,
        "UNION of rows without a validity",
        "resulting frame",
    ),
    (
        "SELECT q.k FROM «(SELECT k, MAX(ts) AS ts FROM R GROUP BY k) q ASOF JOIN S MATCH_CONDITION (q.ts >= S.ts)",
        UnsupportedError,
        "",
        "",
    ),
    # What is no query
    ("«", CallError, "The query ends here", "a query is SELECT"),
    ("«DROP TABLE R", CallError, "'DROP' is not expected here", "a query is SELECT"),
    ("«SELECT 1", CallError, "at least one stream", "FROM R"),
    ("SELECT «FROM R [NOW]", CallError, "an expression is expected", "a query is"),
    ("SELECT k FROM R [NOW] WHERE«", CallError, "an expression is expected", "a query is"),
    ("SELECT k FROM R [NOW] WHERE (a > «3", CallError, "A closing parenthesis is missing", "a query is"),
    ("SELECT k FROM R [NOW] WHERE a > > 3", CallError, "", ""),
    ("SELECT k FROM R [NOW] «k2 k3", CallError, "", ""),
    ("SELECT k FROM R [NOW]; «SELECT k FROM S [NOW]", CallError, "'SELECT' is not expected", "a query is"),
    ("SELECT k FROM R [NOW] WHERE k = «'x", CallError, "never closed", "close it"),
    ("SELECT k FROM R [NOW]«*", CallError, "'*' is not expected", "a query is"),
]


@pytest.mark.parametrize(("marked", "kind", "reason", "hint"), WRONG, ids=[query for query, *_ in WRONG])
def test_refused(marked: str, kind: type[StreamjoinError], reason: str, hint: str) -> None:
    query = marked.replace("«", "")
    with pytest.raises(kind) as caught:
        parse_cql(query, SCHEMAS, times=TIMES)
    assert reason in caught.value.message
    assert hint in (caught.value.hint or "")
    if "«" in marked and reason:
        lines = caught.value.message.splitlines()
        assert lines[0].endswith(f"at line 1, column {marked.index('«') + 1}:")
        assert lines[1] == "    " + query
        assert lines[2] == "    " + " " * marked.index("«") + "^"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT m FROM W [NOW] UNION ALL SELECT m FROM W [NOW]",
        "SELECT k, m FROM W [NOW]",
        "SELECT m, COUNT(*) AS n FROM W [NOW] GROUP BY m",
        "SELECT DISTINCT s.inner.z, m['x'] AS x, map_keys(m) AS y FROM W [NOW]",
        "SELECT R.a FROM R [NOW] JOIN S [NOW] ON NULL AND R.k = S.k",
        "SELECT k FROM R [NOW] GROUP BY k HAVING NULL",
    ],
)
def test_taken_as_spark_takes_it(query: str) -> None:
    parse_cql(query, SCHEMAS, times=TIMES)


def test_the_caret_stands_in_its_line() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        parse_cql("SELECT k\n  FROM R [NOW]\n\tWHERE bb > 3", SCHEMAS, times=TIMES)
    assert caught.value.message.splitlines()[:3] == [
        "The query is wrong at line 3, column 8:",
        "    WHERE bb > 3",
        "          ^",
    ]


def test_a_stream_without_a_time_column_needs_validity() -> None:
    with pytest.raises(CallError, match="has no time column 'nowhere'"):
        parse_cql("SELECT k FROM R [NOW]", SCHEMAS, times={"R": "nowhere"})
    with pytest.raises(CallError, match="is string, which is no time axis"):
        parse_cql("SELECT k FROM R [NOW]", SCHEMAS, times={"R": "k"})


def test_a_query_is_text() -> None:
    with pytest.raises(CallError, match="a query is text, got int"):
        parse_cql(3, SCHEMAS, times=TIMES)  # type: ignore[arg-type]
