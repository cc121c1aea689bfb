"""Expressions: what is refused at the call, what reaches Spark, and that evaluating them here agrees with Spark.

The differential tests evaluate hundreds of expressions in one Spark job, as columns of one select. A failure prints the
expression, or the seed of the random ones; `./sj test -m long tests/plan/test_expression.py` runs many more seeds.
"""

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin import errors
from streamjoin.errors import CallError, EvaluationError, UnknownColumnError, UnsupportedError
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering.joining import ExpressionTest
from streamjoin.state import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CARS = pa.schema({"speed": pa.float64(), "name": pa.string(), "Id": pa.int64(), "pos": pa.struct({"X": pa.int32()})})
ROOMS = pa.schema(
    {"temperature": pa.float64(), "name": pa.string(), "my col": pa.int32(), "tags": pa.list_(pa.string())}
)


def parse(text: str) -> Expression:
    return Expression.parse(text, [CARS, ROOMS])


# Parsing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("l.speed > ", 9, "missing"),
        ("l.speed > > 25", 11, "not expected"),
        ("l.speed = 1 extra", 13, "not expected"),
        ("(l.speed > 1", 12, "closing parenthesis"),
        ("l.speed > 1)", 12, "not expected"),
        ("l.name = 'x", 10, "never closed"),
        ("l.`name = 'x'", 3, "never closed"),
        ("l.speed > 1; true", 12, "not several"),
        ("SELECT 1", 1, "not expected"),
        ("cast(l.speed AS ) > 1", 17, "TYPE"),
        ("CASE WHEN l.speed > 1 THEN true", 28, "END"),
    ],
)
def test_a_syntax_error_has_a_caret_under_its_place(text: str, column: int, reason: str) -> None:
    with pytest.raises(CallError, match=reason) as caught:
        parse(text)
    first, line, caret, *_ = caught.value.message.split("\n")
    assert first == f"The expression is wrong at line 1, column {column}:"
    assert line == "    " + text.strip()
    assert caret == " " * (4 + column - 1) + "^"
    assert caught.value.hint


def test_the_caret_is_under_the_right_line() -> None:
    with pytest.raises(CallError) as caught:
        parse("l.speed > 1\n  AND (r.temperature\t> )")
    assert "line 2, column 24:\n    AND (r.temperature\t> )\n                      \t  ^" in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" -- nothing", "is empty"),
        ("x.speed > 1", "No input is called 'x'.*called l, r"),
        ("in2.speed > 1", "No input is called 'in2'.*2 inputs"),
        ("spede.x > 1", "No input is called 'spede'.*did you mean the column 'speed'"),
        ("name = 'a'", r"'name' is ambiguous.*write l.name or r.name"),
        ("l = 1", "'l' is an input, not a column.*l.speed"),
        ("l.* = 1", "star"),
        ("struct(l.*) IS NULL", "star"),
        ("sum(l.speed) > 1", "an aggregate function"),
        ("l.speed > 1 AND collect_set(r.name) IS NULL", "an aggregate function"),
        ("max(l.speed) OVER (PARTITION BY l.name) > 1", "a window function"),
        ("row_number() OVER (ORDER BY l.name) = 1", "a window function"),
        ("my_function(l.speed) OVER (ORDER BY l.name) = 1", "a window function"),
        ("explode(r.tags) = 'a'", "a generator"),
        ("l.speed IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1 FROM t)", "a subquery"),
        ("l.speed > (SELECT 1)", "a subquery"),
        ("l.name.upper() = 'A'", "not understood"),
        ("l.speed + 1", "must be a condition.*double"),
        ("'true'", "must be a condition.*string"),
    ],
)
def test_what_cannot_be_a_condition_is_refused_at_the_call(text: str, message: str) -> None:
    with pytest.raises(CallError, match=re.compile(message, re.DOTALL)):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l.spede > 1", r"input 0 \('l'\) has no column 'spede'. Hint: did you mean 'speed'\?"),
        ("in1.temp > 1", r"input 1 \('in1'\) has no column 'temp'"),
        ("temperatur > 1", r"the joined row has no column 'temperatur'. Hint: did you mean 'temperature'\?"),
        ("l.pos.y > 1", r"the struct l.pos has no column 'y'"),
    ],
)
def test_an_unknown_column_comes_with_near_names(text: str, message: str) -> None:
    with pytest.raises(UnknownColumnError, match=message):
        parse(text)


def test_only_text_is_an_expression() -> None:
    with pytest.raises(CallError, match="must be Spark SQL text, got int"):
        Expression.parse(3, [CARS])  # type: ignore[arg-type]


def test_names_resolve_without_regard_to_case_but_an_exact_match_wins() -> None:
    both = pa.schema({"a": pa.int64(), "A": pa.int64(), "b": pa.int64()})
    assert Expression.parse("L.A > l.a AND IN0.B > 1", [both]).columns() == (("A", "a", "b"),)
    same = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(CallError, match=r"'a' is ambiguous.*rename one"):
        Expression.parse("l.a > 1", [same])
    twice = pa.schema({"ab": pa.int64(), "AB": pa.int64()})
    with pytest.raises(CallError, match=r"'Ab' is ambiguous.*'ab' and 'AB'"):
        Expression.parse("l.Ab > 1", [twice])


def test_columns_are_per_input_in_the_order_of_first_use() -> None:
    expression = parse("r.`my col` > l.ID AND temperature > speed AND l.id < 3 OR r.NAME = l.pos.x")
    assert expression.columns() == (("Id", "speed", "pos"), ("my col", "temperature", "name"))
    assert expression.inputs == 2


def test_three_inputs_are_called_by_number() -> None:
    rows = pa.schema({"x": pa.int64()})
    expression = Expression.parse("l.x < r.x AND in1.x < in2.x", [rows, rows, rows])
    assert expression.columns() == (("x",), ("x",), ("x",))
    tables = [pa.table({"x": values}) for values in ([1, 1], [2, 2], [3, 1])]
    assert expression.evaluate(tables).tolist() == [True, False]


def test_a_column_named_like_a_bare_function_is_not_mistaken() -> None:
    plain, named = pa.schema({"x": pa.date32()}), pa.schema({"current_date": pa.date32(), "user": pa.string()})
    rename = "{1}_{0}".format
    assert Expression.parse("x < current_date", [plain]).spark_sql(rename) == "`x_0` < current_date"
    assert Expression.parse("user = 'a'", [named]).spark_sql(rename) == "`user_0` = 'a'"
    with pytest.raises(CallError, match="is a function of Spark, and a column"):
        Expression.parse("l.x < current_date", [plain, named])


def test_an_expression_is_a_plain_value() -> None:
    expression = parse("l.speed > 25 AND r.temperature > 12")
    assert expression == parse("l.speed > 25 AND r.temperature > 12") != parse("l.speed > 25")
    assert hash(expression) == hash(pickle.loads(pickle.dumps(expression)))
    assert repr(expression) == "Expression('l.speed > 25 AND r.temperature > 12')"


def test_a_worker_does_not_import_sqlglot() -> None:
    # The packages above it are left out: they hold public names, and import much else.
    code = """
import sys, types
for name, path in (("streamjoin", sys.argv[1]), ("streamjoin.plan", sys.argv[1] + "/plan")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
import streamjoin.plan.expression
assert not {"sqlglot", "pyspark", "numba"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(Path(errors.__file__).parent)], check=True)


# Spark SQL -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("l.speed>25", "`0 speed`>25"),
        (" speed > 25 -- fast", "`0 speed` > 25"),
        (
            "l.name = 'l.speed' /* l.name */ AND r . `my col` = 1",
            "`0 name` = 'l.speed' /* l.name */ AND `1 my col` = 1",
        ),
        ("l.pos.X > 1", "`0 pos`.X > 1"),
        ("pos.x > 1", "`0 pos`.x > 1"),
        ("r.tags[0] = 'a'", "`1 tags`[0] = 'a'"),
        ("exists(r.tags, name -> name = l.name)", "exists(`1 tags`, name -> name = `0 name`)"),
        ("aggregate(r.tags, 0, (a, b) -> a + 1) > Id", "aggregate(`1 tags`, 0, (a, b) -> a + 1) > `0 Id`"),
        ("timestampdiff(HOUR, l.Id, r.name) > 1", "timestampdiff(HOUR, `0 Id`, `1 name`) > 1"),
        ("cast(l.pos AS STRUCT<speed: INT>).speed = 1", "cast(`0 pos` AS STRUCT<speed: INT>).speed = 1"),
        ("l.Id BETWEEN 1 AND r.`my col`", "`0 Id` BETWEEN 1 AND `1 my col`"),
        ("l.name LIKE ANY ('a%', 'b\\%')", "`0 name` LIKE ANY ('a%', 'b\\%')"),
    ],
)
def test_the_text_stays_as_it_was_but_for_the_columns(text: str, written: str) -> None:
    assert parse(text).spark_sql(lambda number, column: f"{number} {column}") == written


def test_keywords_and_odd_characters_can_be_names() -> None:
    names = ["date", "timestamp", "left", "end", "order", "key", "values", "interval", "über", "a`b", "first", "user"]
    rows = pa.schema([(name, pa.int64()) for name in names])
    text = "l.date = r.timestamp AND l.left = r.end AND l.order = '😀' AND l.key = r.values"
    text += " AND r.interval > l.`über` AND `in0`.`a``b` = l.first AND r.über > 1"
    expression = Expression.parse(text, [rows, rows])
    assert expression.spark_sql(lambda number, column: f"{number}{column}") == (
        "`0date` = `1timestamp` AND `0left` = `1end` AND `0order` = '😀' AND `0key` = `1values`"
        " AND `1interval` > `0über` AND `0a``b` = `0first` AND `1über` > 1"
    )
    alone = Expression.parse("interval > 1 AND user = date", [rows])
    assert alone.unsupported() is None
    assert alone.columns() == (("interval", "user", "date"),)


def test_a_backquote_in_a_new_name_is_doubled() -> None:
    assert parse("l.speed > 1").spark_sql(lambda number, column: "a`b") == "`a``b` > 1"


# The declared subset -------------------------------------------------------------------------------------------------

# One column of each type, and values that have ever been trouble: the same for both inputs.
SMALL = [None, -7, -3, -2, -1, 0, 0, 1, 2, 3, 5, 12]
VALUES: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "y": (pa.int8(), "tinyint", [None, -5, -1, 0, 1, 3, 5]),
    "h": (pa.int16(), "smallint", [None, -128, -100, -1, 0, 1, 3, 101]),
    "i": (pa.int32(), "int", SMALL),
    "j": (pa.int32(), "int", [None, -(2**31), -16777217, -1, 0, 16777217, 2**31 - 1]),
    "g": (pa.int64(), "bigint", [*SMALL, 3_000_000_000]),
    "k": (pa.int64(), "bigint", [None, -(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1]),
    "f": (pa.float32(), "float", [None, float("nan"), float("-inf"), -0.0, 0.0, 0.1, 1.5, -1.5, 3.0, 16777216.0]),
    "d": (
        pa.float64(),
        "double",
        [None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.1, 1.5, -1.5, 3.0, 2.0**53, 1e300],
    ),
    "m": (
        pa.decimal128(10, 2),
        "decimal(10,2)",
        [None, *map(Decimal, ["-12.34", "-1.50", "0.00", "0.10", "1.00", "1.50", "3.00", "99999999.99"])],
    ),
    "n": (
        pa.decimal128(24, 4),
        "decimal(24,4)",
        [None, *map(Decimal, ["-12345678901234567890.1234", "-1.5000", "0.0000", "0.1000", "1.5000", "3.0000"])],
    ),
    "s": (
        pa.string(),
        "string",
        [None, "", "a", "ab", "abc", "b", "B", "a%b", "a_b", "a\\b", "a\nb", "äb", "😀", "it's", "ab.c", "10"],
    ),
    "b": (pa.bool_(), "boolean", [None, True, False]),
    "t": (pa.date32(), "date", [None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(2024, 3, 31)]),
    "z": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        [
            None,
            datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
            datetime(2024, 2, 29, tzinfo=UTC),
            datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
            datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
            datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
        ],
    ),
    "w": (
        pa.timestamp("us"),
        "timestamp_ntz",
        [
            None,
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2024, 2, 29),
            datetime(2024, 3, 31, 0, 30),
            datetime(2024, 3, 31, 0, 30, 5),
        ],
    ),
    "v": (
        pa.duration("us"),
        "interval day to second",
        [None, timedelta(0), timedelta(seconds=5), timedelta(days=-1, microseconds=1), timedelta(days=400)],
    ),
    "p": (
        pa.struct({"x": pa.int32(), "Inner": pa.struct({"y": pa.float64()})}),
        "struct<x: int, Inner: struct<y: double>>",
        [None, {"x": None, "Inner": None}, {"x": 1, "Inner": {"y": float("nan")}}, {"x": 3, "Inner": {"y": 1.5}}],
    ),
    "e": (pa.list_(pa.int32()), "array<int>", [None, [3], [1, 2]]),
    "c": (pa.map_(pa.string(), pa.int32()), "map<string, int>", [None, [("x", 1)], [("x", None), ("y", 2)]]),
}
SCHEMA = pa.schema({name: kind for name, (kind, _, _) in VALUES.items()})
ROWS = 300


def tables(seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Both inputs, row by row: every column takes all of its values, and rows meet many others."""
    source = random.Random(seed)
    left, right = (
        pa.table(
            {name: pa.array(source.choices(values, k=ROWS), kind) for name, (kind, _, values) in VALUES.items()},
            schema=SCHEMA,
        )
        for _ in range(2)
    )
    return left, right


def side_by_side(spark: SparkSession, left: pa.Table, right: pa.Table) -> DataFrame:
    """One frame with the columns l_x of the left and r_x of the right input."""
    names = [f"{side}_{name}" for side in "lr" for name in VALUES]
    ddl = ", ".join(f"{side}_{name} {kind}" for side in "lr" for name, (_, kind, _) in VALUES.items())
    columns = [*left.columns, *right.columns]
    # Spark keeps the order of a frame made from a table, as long as it stays in one partition.
    return spark.createDataFrame(pa.table(columns, names=names), schema=ddl).coalesce(1)  # type: ignore[arg-type]


def rename(number: int, column: str) -> str:
    return f"{'lr'[number]}_{column}"


def spark_masks(frame: DataFrame, expressions: Sequence[Expression]) -> dict[str, list[bool]]:
    """What Spark says, all expressions in one job."""
    selected = [f"coalesce({one.spark_sql(rename)}, false) AS c{index}" for index, one in enumerate(expressions)]
    result = frame.selectExpr(*selected).toArrow()
    return {one.text: result.column(index).to_pylist() for index, one in enumerate(expressions)}


def in_the_subset(text: str) -> Expression:
    expression = Expression.parse(text, [SCHEMA, SCHEMA])
    assert expression.unsupported() is None, text
    return expression


AGREE = r"""
l.i = r.i
l.i == r.i
l.i <> r.i
l.i != r.i AND l.i <=> r.g
l.i <=> r.i
l.i < r.g OR l.y >= r.h
l.j = r.f
l.j > r.d
l.k < r.d
l.k = r.g
l.f = r.f
l.f < r.f
l.f <=> r.f
l.f >= r.d
l.f = 0.1
l.f = 0.1D
l.d = r.d
l.d < r.d
l.d <= r.d
l.d > r.d
l.d >= r.d
l.d <> r.d
l.d <=> r.d
l.d = 0
l.d = -0.0D
l.d > 1.5
l.d IN (1.5, 3)
l.d IN (0D, NULL)
l.d BETWEEN r.d AND 1e10
NOT l.d < r.d
l.d + r.i > 1 AND l.d * r.f <= 3 OR l.d - r.g = 0
l.d / 3 > r.d
l.d % 2 = 1 OR l.d % -0.7D < 0
l.f + r.f > 0 AND l.f * r.f < 1
l.f / 3 = r.d / 3
l.f % 1.5 = 0
-l.d < r.d AND abs(l.d) = abs(r.d)
-l.y = r.y OR abs(l.h) > 100
l.i / 2 = 1.5
l.i / 2 > r.i / 3
l.i % 3 = -1
l.i % -3 = r.i % 3
l.k % 10 = 7
l.j % -1 = 0
-l.i + -1 * +r.i - -3 > 0
l.i + r.i * 2 - l.i % 2 = 3
l.y + r.y > 3 AND l.y * 3Y < 7S
l.i + 2147483648 > r.k
l.m = 1.5
l.m > r.m
l.m <=> r.n
l.m < r.i
l.m >= r.k
l.n = r.f
l.m < r.d
l.m + r.m > 3
l.m - r.n <= 0.5
l.m * r.m = 2.25
l.m * 2 = r.i
l.m * r.k > 0
l.m / 3 = 0.5
l.m / 7 > r.m / 6.5
l.i / 1.5 > 1
l.m % 1 = 0.5 OR r.j <> 0 AND l.m % r.j = l.m
l.n % 0.7 < 0
-l.m = r.m AND abs(l.n) >= 1.5
l.k > 1.5 AND l.k <> 9223372036854775808 AND l.k < 9223372036854775807.0
.5 < l.m AND l.m < 1. OR l.m = 100BD
l.d > -2 AND l.d < 10 AND CAST(l.d AS INT) = 1
l.m::int = r.i
CAST(l.m AS DOUBLE) = r.d
CAST(l.n AS DOUBLE) = CAST(l.n AS DECIMAL(38, 6)) + 0D
CAST(l.m AS DECIMAL(10, 1)) = l.m
CAST(l.i AS DECIMAL(5,2)) + 0.5 > r.m
CAST(l.h AS FLOAT) = r.f AND l.d::float = r.f
CAST(l.i AS TINYINT) = r.y
CAST(NULL AS INT) = l.i OR CAST(NULL AS DECIMAL(5,2)) IS NULL
l.s = r.s
l.s < r.s
l.s >= 'ab' AND r.s <> ''
l.s <=> r.s
l.s IN ('a', 'b', NULL) OR r.s NOT IN ('a', 'ab')
l.s BETWEEN 'a' AND 'b'
l.s LIKE 'a%'
l.s LIKE '%b' OR r.s NOT LIKE '%b%'
l.s LIKE '_b'
l.s LIKE '_'
l.s LIKE 'a\%b'
l.s LIKE 'a\\_b'
l.s LIKE 'a\\\\b'
l.s LIKE 'a!%b' ESCAPE '!'
l.s LIKE 'ab.c' OR l.s LIKE ''
l.s LIKE '%' AND r.s LIKE r'a\_b'
l.s = 'it''s' OR l.s = "it's" OR l.s = 'it\'s'
l.s = 'a\nb' OR l.s = 'a\\b' OR l.s = '😀'
'a' < 'b' AND l.b
l.b
NOT l.b
!l.b OR ! r.b
l.b AND r.b
l.b OR r.b
NOT (l.b AND r.b) OR NOT (l.b OR r.b)
l.b = r.b
l.b > r.b
l.b <=> NULL
l.b IS TRUE AND r.b IS NOT TRUE
l.b IS FALSE OR r.b IS NOT FALSE AND l.b IS UNKNOWN
l.b AND NULL OR NOT NULL
NULL
true
l.i = NULL
NULL <=> NULL AND l.i <=> NULL
NULL IN (1, 2) OR l.i IN (NULL) OR NOT (NULL IN (NULL))
l.i IS NULL AND r.i IS NOT NULL
l.e IS NULL OR r.c IS NOT NULL
l.i IS DISTINCT FROM r.i AND l.d IS NOT DISTINCT FROM r.d
l.i < 2 IS NULL
l.i = 1 = r.b
l.b = (l.i < 3)
(l.i < r.i) IS NOT TRUE
l.i IN (1, 2, 3)
l.i NOT IN (1, 2, NULL)
l.i IN (r.i, r.g, 1.5)
l.i IN (-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
l.d IN (-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0)
l.i BETWEEN -1 AND r.i
l.i NOT BETWEEN r.i AND r.g
l.i BETWEEN 1 AND 2 OR l.i BETWEEN NULL AND 0
NOT l.i BETWEEN 1 AND 5 AND l.i > 0
l.t = r.t
l.t < DATE '2024-02-29'
l.t <= r.w
l.t IN (DATE'1970-01-01', date "2024-03-31")
l.z < r.z
l.z >= TIMESTAMP '2024-03-31 02:30:00+02:00'
l.z = TIMESTAMP '1969-12-31T23:59:59.999999Z' OR l.z > TIMESTAMP_LTZ '2024-03-31 00:00:00Z'
l.z BETWEEN r.z - INTERVAL 1 HOUR AND r.z + INTERVAL '90' MINUTES
l.z > r.z - INTERVAL '23 hours 59 minutes' AND INTERVAL 1.5 SECONDS + l.z > r.z
l.w < r.w
l.w > TIMESTAMP_NTZ '2024-03-31 00:30:00' OR l.w = TIMESTAMP_NTZ '2024-02-29'
l.w + INTERVAL 30 DAYS < r.w + INTERVAL 1 WEEK
l.w - r.w < INTERVAL 5 SECONDS
l.w - r.w BETWEEN INTERVAL '-5' SECONDS AND - INTERVAL 1 MILLISECOND
l.w + r.v > r.w
l.v > r.v
-l.v < INTERVAL 1 DAY 2 HOURS 3 MINUTES 4 SECONDS 5 MILLISECONDS 6 MICROSECONDS
l.p.x = r.i
l.p.inner.y > r.d OR L.P.INNER IS NULL
l.p IS NULL AND r.p.x IS NULL
l.i <> 0 AND 12 / l.i > 2
l.i = 0 OR 12 % l.i = 0
l.i IS NULL OR l.i = 0 OR l.m / l.i > 1
""".strip().split("\n")


def test_differential_a_fixed_list_agrees_with_spark(spark: SparkSession) -> None:
    left, right = tables()
    expressions = [in_the_subset(text) for text in AGREE]
    expected = spark_masks(side_by_side(spark, left, right), expressions)
    different = []
    for one in expressions:
        mask = one.evaluate([left, right])
        assert mask.dtype == np.bool_
        rows = np.flatnonzero(mask != np.array(expected[one.text]))
        if len(rows):
            used = [
                {name: table[name][int(rows[0])].as_py() for name in names}
                for table, names in zip((left, right), one.columns(), strict=True)
            ]
            different.append((one.text, len(rows), used, bool(mask[rows[0]])))
    assert not different


def test_differential_zoned_time_agrees_with_spark_in_a_zone_with_summer_time(spark: SparkSession) -> None:
    left, right = tables(seed=1)
    expressions = [in_the_subset(text) for text in AGREE if ".z" in text or ".w" in text]
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        expected = spark_masks(side_by_side(spark, left, right), expressions)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for one in expressions:
        assert one.evaluate([left, right]).tolist() == expected[one.text], one.text


def generated(seed: int) -> Iterator[str]:
    """Random expressions of the subset, endlessly: small enough to be read, deep enough to mix precedences."""
    source = random.Random(seed)
    pick = source.choice
    numbers = ["y", "h", "i", "i", "g", "f", "d", "d", "m", "n", "p.x", "p.Inner.y"]
    constants = ["0", "1", "3", "-1", "-7", "12L", "2S", "3Y", "1.5", "0.1", "-0.10", "100.", "0D", "1.5D", "-2e0"]
    others = {
        "s": ["'a'", "'ab'", "''", "'a%b'"],
        "b": ["true", "false", "NULL"],
        "t": ["DATE '2024-02-29'", "DATE '1970-01-01'"],
        "z": ["TIMESTAMP '2024-03-31 00:30:00Z'", "TIMESTAMP '2024-02-29 01:00:00+01:00'"],
        "w": ["TIMESTAMP_NTZ '2024-03-31 00:30:00'", "TIMESTAMP_NTZ '2024-02-29'"],
        "v": ["INTERVAL 5 SECONDS", "INTERVAL '1' DAY"],
    }
    patterns = ["a%", "%b", "_b", "a_b", r"a\%b", r"a\\_%", "%", "", "%.%", "_", r"%\\\\%"]

    def column(name: str) -> str:
        return f"{pick(['l', 'r', 'in0', 'IN1'])}.{name}"

    def number(depth: int) -> str:
        roll = source.random()
        if depth == 0 or roll < 0.35:
            return column(pick(numbers)) if source.random() < 0.7 else pick(constants)
        if roll < 0.75:
            return f"{number(depth - 1)} {pick('+-*')} {number(depth - 1)}"
        if roll < 0.85:  # a divisor that is no zero
            return f"{number(depth - 1)} {pick('/%')} {pick([c for c in constants if c not in ('0', '0D')])}"
        if roll < 0.9:
            return f"({number(depth - 1)})"
        if roll < 0.95:
            return f"{pick(['-', 'abs'])}({number(depth - 1)})"
        kind = pick(["BIGINT", "DOUBLE", "FLOAT", "DECIMAL(20,3)", "DECIMAL(12,1)"])
        return f"CAST({number(depth - 1)} AS {kind})"

    def operand(name: str) -> str:
        if name == "w" and source.random() < 0.3:
            return f"{column('w')} {pick('+-')} {pick(others['v'])}"
        if name == "z" and source.random() < 0.3:
            return f"{column('z')} {pick('+-')} INTERVAL {source.randint(1, 80_000)} SECONDS"
        if name == "v" and source.random() < 0.3:
            return f"({column('w')} - {column('w')})"
        return column(name) if source.random() < 0.75 else pick(others[name])

    def edge() -> str:
        edges = [
            "9007199254740992D",
            "16777217D",
            "9223372036854775807",
            "9223372036854775808",
            "2147483647.5",
            "2147483648",
        ]
        return column(pick("jkfd")) if source.random() < 0.6 else pick(edges)

    def comparable() -> tuple[str, str, str]:
        roll = source.random()
        if roll < 0.5:
            return number(2), number(2), number(1)
        if roll < 0.6:
            return edge(), edge(), edge()
        name = pick(list(others))
        return operand(name), operand(name), operand(name)

    def condition(depth: int) -> str:
        roll = source.random()
        if depth == 0 or roll < 0.4:
            one, two, three = comparable()
            kind = source.random()
            if kind < 0.55:
                return f"{one} {pick(['=', '==', '<=>', '<>', '!=', '<', '<=', '>', '>='])} {two}"
            if kind < 0.65:
                return f"{one} {pick(['', 'NOT '])}BETWEEN {two} AND {three}"
            if kind < 0.75:
                return f"{one} {pick(['', 'NOT '])}IN ({two}, {three}{pick(['', ', NULL'])})"
            if kind < 0.83:
                return f"{one} IS {pick(['', 'NOT '])}{pick(['NULL', 'DISTINCT FROM ' + two])}"
            if kind < 0.93:
                return f"{column('s')} {pick(['', 'NOT '])}LIKE '{pick(patterns)}'"
            return column("b")
        if roll < 0.8:
            return f"{condition(depth - 1)} {pick(['AND', 'OR'])} {condition(depth - 1)}"
        if roll < 0.88:
            return f"NOT {condition(depth - 1)}"
        if roll < 0.95:
            return f"({condition(depth - 1)})"
        return f"({condition(depth - 1)}) IS {pick(['', 'NOT '])}{pick(['TRUE', 'FALSE', 'NULL'])}"

    while True:
        yield condition(2)


def check_generated(spark: SparkSession, seed: int, wanted: int) -> None:
    left, right = tables(seed)
    masks: dict[Expression, list[bool]] = {}
    refused = failing = 0
    texts = generated(seed)
    while len(masks) < wanted:
        one = Expression.parse(next(texts), [SCHEMA, SCHEMA])
        if one.unsupported() is not None:
            refused += 1
            continue
        try:
            masks[one] = one.evaluate([left, right]).tolist()
        except EvaluationError:  # overflow: looked at in another test
            failing += 1
    assert refused + failing < wanted  # otherwise the generator has lost its way
    expected = spark_masks(side_by_side(spark, left, right), list(masks))
    for one, mask in masks.items():
        assert mask == expected[one.text], f"seed {seed}: {one.text}"


@pytest.mark.parametrize("seed", [1, 2])
def test_differential_random_expressions_agree_with_spark(spark: SparkSession, seed: int) -> None:
    check_generated(spark, seed, wanted=200)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_differential_many_random_expressions_agree_with_spark(spark: SparkSession, seed: int) -> None:
    check_generated(spark, seed, wanted=200)


FAIL = [
    ("12 / l.i > 1", "division by zero"),
    ("12 % l.i > 1", "division by zero"),
    ("1.5D / l.d > 1", "division by zero"),
    ("l.d % 0 > 1", "division by zero"),
    ("l.m / l.i > 1", "division by zero"),
    ("12 / l.i > 1 AND l.i <> 0", "division by zero"),
    ("NULL AND 12 / l.i > 1", "division by zero"),
    ("l.j + 1 > 0", "overflow"),
    ("l.k - 1 > 0", "overflow"),
    ("l.k * 2 > 0", "overflow"),
    ("-l.k > 0", "overflow"),
    ("abs(l.j) > 0", "overflow"),
    ("l.h * 1000S > 0", "overflow"),
    ("CAST(l.j AS SMALLINT) = 1", "does not fit"),
    ("CAST(l.d AS BIGINT) = 1", "does not fit"),
    ("CAST(l.m AS DECIMAL(4,2)) = 1", "does not fit"),
    ("CAST(l.n AS INT) = 1", "does not fit"),
]


@pytest.mark.parametrize(("text", "reason"), FAIL)
def test_overflow_and_division_by_zero_fail(text: str, reason: str) -> None:
    with pytest.raises(EvaluationError, match=reason):
        in_the_subset(text).evaluate(tables())


def test_what_fails_while_joining_is_called_as_it_was_written() -> None:
    one, two = (pa.schema([(f"{number}.k", pa.int64()), (f"{number}.a b", pa.int64())]) for number in (0, 1))
    test = ExpressionTest("1 / (`0.k` - `0.k`) > `1.k` + `1.a b`", (one, two))
    rows = [np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64)]
    a, b = (Batch(pa.table([[1], [1]], schema=schema), *rows) for schema in (one, two))
    with pytest.raises(EvaluationError, match=r"the expression '1 / \(l.k - l.k\) > r.k \+ r.`a b`' has no value"):
        test.holds(a, np.array([0]), b, np.array([0]))


def test_differential_what_fails_here_fails_in_spark(spark: SparkSession) -> None:
    from pyspark.errors import ArithmeticException

    frame = side_by_side(spark, *tables())
    for text, _ in FAIL:
        with pytest.raises(ArithmeticException):
            spark_masks(frame, [in_the_subset(text)])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("upper(l.s) = 'A'", r"the function upper\(\) \(line 1, column 1\)"),
        ("l.i = 1 AND l.s RLIKE 'a'", r"RLIKE \(line 1, column 17\)"),
        ("l.s ILIKE 'a'", "ILIKE"),
        ("l.s LIKE ANY ('a', 'b')", r"any\(\)"),
        ("l.s LIKE r.s", "pattern that is not a string literal"),
        ("l.s LIKE 'a\\\\b'", "the LIKE pattern"),
        ("l.s = 1", "comparing string with int, for which Spark casts the string"),
        ("l.t > '2024-01-01'", "comparing date with string, for which Spark casts the string"),
        ("l.s IN ('a', 1)", "comparing string with int"),
        ("l.k < 9223372036854775808", "a number that no bigint reaches"),
        ("-9223372036854775808.5 <= l.i", "a number that no bigint reaches"),
        ("l.b = 1", "comparing boolean with int"),
        ("l.i AND l.b", "AND of int"),
        ("l.z < r.w", "comparing timestamp with timestamp_ntz, which depends on the session time zone"),
        ("l.t < r.z", "comparing date with timestamp, which depends on the session time zone"),
        ("l.z < TIMESTAMP '2024-01-01 00:00:00'", "depends on the session time zone .write its offset"),
        ("l.w < TIMESTAMP_NTZ '2024-01-01 00:00:00Z'", "without time zone that has one"),
        ("l.z - r.z < INTERVAL 5 SECONDS", "timestamp - timestamp, which depends on the session time zone"),
        ("l.z + INTERVAL 1 DAY < r.z", "an interval of a day or more"),
        ("l.z + INTERVAL 24 HOURS < r.z", "an interval of a day or more"),
        ("l.z + r.v < r.z", "an interval of a day or more"),
        ("l.w + INTERVAL 1 MONTH < r.w", "an INTERVAL that is not"),
        (
            "l.w + INTERVAL '1 02:03:04' DAY TO SECOND < r.w",
            r"an INTERVAL that is not plainly written in weeks.* \(line 1, column 7\)",
        ),
        ("l.t + 1 < r.t", r"date \+ int"),
        ("l.t < DATE '2024'", "must be written as yyyy-mm-dd"),
        ("l.t < DATE '2023-02-29'", "does not exist"),
        ("NULL + 1 = 1", r"void \+ int"),
        ("l.n * r.n > 0", "more than 38 digits"),
        ("l.k * l.n / 3 > r.n", "more than 38 digits"),
        ("CAST(l.d AS DECIMAL(10, 2)) > 1", r"the cast from double to decimal\(10,2\)"),
        ("CAST(l.m AS FLOAT) > 1", r"the cast from decimal\(10,2\) to float"),
        ("CAST(l.j AS FLOAT) > 1", "the cast from int to float"),
        ("CAST(l.s AS INT) > 1", "the cast from string to int"),
        ("CAST(l.i AS STRING) = '1'", "a cast to string"),
        ("l.f = 1.5F", "the number 1.5F"),
        ("l.s = '\\u0041'", "the escape"),
        ("l.s = 'a' 'b'", "several pieces"),
        ("l.e = r.e", "comparing values of type list<"),
        ("l.e[0] = 1", r"\["),
        ("l.c.x = 1", "a field taken from what is not a struct"),
        ("l.p = r.p", "comparing values of type struct<"),
        ("(l.i, l.g) = (r.i, r.g)", ","),
        ("CASE WHEN l.b THEN true END", "CASE"),
        ("l.i & 1 = 1", "&"),
        ("l.i DIV 2 = 1", "DIV"),
        ("l.s || 'a' = r.s", r"\|\|"),
        ("l.t < current_date", "CURRENT_DATE"),
    ],
)
def test_what_lies_outside_the_subset_is_named(text: str, what: str) -> None:
    expression = Expression.parse(text, [SCHEMA, SCHEMA])
    assert expression.unsupported() is not None
    assert re.search(what, expression.unsupported() or "")
    assert expression.spark_sql(rename)
    with pytest.raises(UnsupportedError, match="inner join"):
        expression.evaluate(tables())


# Any Spark SQL, whether we can evaluate it or not.
SURVIVE = r"""
upper(l.s) = r.s AND length(concat_ws('-', l.s, r.s)) > 3
l.s RLIKE '^a.*' OR r.s ILIKE 'A%' OR l.s LIKE ANY ('a%', '%b') OR r.s NOT LIKE ALL ('a', 'b')
exists(l.e, x -> x > r.i) OR forall(r.e, i -> i < l.i)
aggregate(l.e, 0, (acc, x) -> acc + x, acc -> acc * 10) > r.i
transform(l.e, (x, i) -> x + i)[0] > 1
size(filter(l.e, x -> x > 1)) = 1 AND l.e IS NOT NULL
timestampdiff(HOUR, l.z, r.z) > 1 AND dateadd(DAY, 1, l.t) > r.t AND datediff(l.t, r.t) > 1
extract(HOUR FROM l.z) = 0 OR date_part('DAY', r.z) = 29 OR date_trunc('HOUR', l.z) = r.z
trim(BOTH 'a' FROM l.s) = 'b' OR position('b' IN r.s) = 2 OR substring(l.s FROM 1 FOR 1) = 'a'
overlay(l.s PLACING 'x' FROM 1) = 'x' OR mask(l.s, upperChar => 'Q') = 'x'
CASE l.i WHEN 1 THEN true WHEN r.i THEN false ELSE l.b END
CASE WHEN l.b THEN r.b ELSE l.i > 1 END
if(l.b, r.i, l.i) > 1 AND nvl2(l.i, r.i, 1) = 1 AND coalesce(l.i, r.i, 0) = 1
l.i DIV 2 = 1 OR l.i & 3 = 1 OR l.i | 4 = 5 OR l.i ^ 1 = 0 OR ~l.i = -1 OR shiftleft(l.i, 2) = 4 OR l.i << 1 = 2
(l.i, l.g) = (r.i, r.g) OR (l.i, r.i) IN ((1, 2), (3, 1))
struct(l.i, r.i) = struct(1, 1) OR named_struct('a', l.i).a = 1
CAST(l.p AS STRUCT<x: BIGINT, i: STRUCT<y: DOUBLE>>).i.y > 1
l.c['x'] = 1 OR l.c.x = 1 OR r.e[0] = 1 OR element_at(l.e, 1) = 1
map('a', l.i)['a'] = r.i
l.s COLLATE UTF8_LCASE = 'B'
from_json('{"a": 1}', 'a INT').a = l.i
l.z - INTERVAL '1 02:03:04' DAY TO SECOND < r.z OR l.z + INTERVAL 1 MONTH < r.z OR l.t + INTERVAL 1 YEAR > r.t
make_interval(0, 0, 0, 1) IS NOT NULL AND l.t > current_date AND l.z < current_timestamp() AND l.z < now()
l.s = X'61' OR l.s = 'a' 'b' OR l.s = r'\d' OR l.s = 'A'
l.s || r.s = 'ab' AND l.s = concat('a', /* l.x */ 'b') -- and r.y
try_cast(l.s AS INT) = 10 OR try_divide(l.i, r.i) = 1 OR int(l.m) = 1 OR l.m::string = '1.50'
l.i IN (1, 2, 3) AND l.i NOT BETWEEN 2 AND 3 OR l.i IS DISTINCT FROM r.i OR isnull(l.i)
array_contains(array(1, 2, l.i), r.i) OR arrays_overlap(l.e, r.e) OR sequence(1, 3)[0] = l.i
l.d = double('NaN') OR isnan(r.d) OR l.d > float('inf')
rand() >= 0 AND hash(l.i, r.i) <> 0 AND xxhash64(l.s) <> 0
greatest(l.i, r.i) = 3 OR least(l.i, r.i) = 1 OR pmod(l.i, 3) = 2 OR round(l.m, 1) = 1.5 OR ceil(l.m) = 2
l.i = 1F OR l.i = 1e0BD OR l.i = 1S
decode(l.i, 1, 'a', 2, 'b', 'c') = 'c' OR string(l.i) = '1' OR date(l.z) = l.t
try_variant_get(parse_json('{"a": 1}'), '$.a', 'int') = l.i
l.e[size(l.e) - 1] = 2 AND size(l.e) > 0
""".strip().split("\n")


def test_differential_any_spark_sql_survives(spark: SparkSession) -> None:
    left, right = tables()
    flat = side_by_side(spark, left, right)
    # The same rows under the names the user knows: l and r as structs have the same syntax as two aliases.
    nested = flat.selectExpr(
        *(f"struct({', '.join(f'{side}_{name} AS {name}' for name in VALUES)}) AS {side}" for side in "lr")
    )
    usable = [text for text in SURVIVE if "rand()" not in text]
    for text in SURVIVE:
        if text not in usable:
            assert flat.filter(Expression.parse(text, [SCHEMA, SCHEMA]).spark_sql(rename)).schema
    ours = flat.selectExpr(
        *(f"({Expression.parse(text, [SCHEMA, SCHEMA]).spark_sql(rename)}) AS c{n}" for n, text in enumerate(usable))
    )
    users = nested.selectExpr(*(f"({text}\n) AS c{n}" for n, text in enumerate(usable)))
    assert ours.toArrow().equals(users.toArrow())


# Tables --------------------------------------------------------------------------------------------------------------


def test_cutting_the_tables_does_not_change_the_result() -> None:
    left, right = tables(seed=5)
    chunked = pa.concat_tables([left.slice(0, 7), left.slice(7, 0), left.slice(7)])
    for text in AGREE:
        one = in_the_subset(text)
        whole = one.evaluate([left, right])
        assert one.evaluate([chunked, right]).tolist() == whole.tolist()
        parts = [one.evaluate([left.slice(at, 13), right.slice(at, 13)]) for at in range(0, ROWS, 13)]
        assert np.concatenate(parts).tolist() == whole.tolist(), text
        assert one.evaluate([left.slice(0, 0), right.slice(0, 0)]).tolist() == []


def test_tables_must_fit() -> None:
    rows = pa.schema({"a": pa.int64()})
    expression = Expression.parse("l.a < r.a", [rows, rows])
    one, two = pa.table({"a": [1]}), pa.table({"a": [1, 2]})
    with pytest.raises(CallError, match="2 tables of equal length"):
        expression.evaluate([one, two])
    with pytest.raises(CallError, match="2 tables of equal length"):
        expression.evaluate([one])
    with pytest.raises(CallError, match="must be bigint as when it was parsed, got double"):
        expression.evaluate([pa.table({"a": [1.5]}), one])
    with pytest.raises(CallError, match="for 3 rows, got tables with"):
        expression.evaluate([two, two], rows=3)


def test_a_table_without_columns_is_as_long_as_the_others() -> None:
    rows, nothing = pa.schema({"a": pa.int64()}), pa.schema([])
    some, none = pa.table({"a": [1, 2, None]}), pa.table({})
    assert Expression.parse("l.a > 1", [rows, nothing]).evaluate([some, none]).tolist() == [False, True, False]
    assert Expression.parse("r.a > 1", [nothing, rows]).evaluate([none, some], rows=3).tolist() == [False, True, False]
    constant = Expression.parse("1 = 0 OR NULL IS NULL", [nothing, nothing])
    assert constant.evaluate([none, none], rows=2).tolist() == [True, True]
    assert constant.evaluate([none, none]).tolist() == []


def test_a_failure_that_depends_on_no_column_is_found_without_any() -> None:
    expression = Expression.parse("1 / 0 = 1", [pa.schema([])])
    assert expression.evaluate([pa.table({})], rows=0).tolist() == []
    with pytest.raises(EvaluationError, match="division by zero"):
        expression.evaluate([pa.table({})], rows=1)


def test_a_number_that_is_cast_to_its_own_type_is_no_literal() -> None:
    rows = pa.schema({"p": pa.decimal128(10, 2)})
    ten = pa.table({"p": pa.array([Decimal(10)], pa.decimal128(10, 2))})
    assert Expression.parse("p / 3 = 3.333333", [rows]).evaluate([ten]).tolist() == [True]
    assert Expression.parse("p / CAST(3 AS INT) = 3.3333333333333", [rows]).evaluate([ten]).tolist() == [True]
    assert Expression.parse("CAST(NULL AS BOOLEAN) IS NULL", [rows]).evaluate([ten]).tolist() == [True]


def test_long_chains_are_no_deep_trees() -> None:
    rows = pa.schema({"a": pa.int64()})
    text = " OR ".join(f"l.a = {number}" for number in range(500))
    expression = pickle.loads(pickle.dumps(Expression.parse(text, [rows])))
    assert expression.evaluate([pa.table({"a": [3, 499, 500]})]).tolist() == [True, True, False]
