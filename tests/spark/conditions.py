"""Conditions as Columns, and what they must mean: what Spark itself computes of the Column.

`l` and `r` are structs of one frame here, so that Spark can evaluate the Column and its text side by side.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.plan.expression import Expression
from streamjoin.spark.calls.column_text import column_text
from streamjoin.spark.typing import fields_of

ROW = (
    "v int, n string, d double, price decimal(9,3), at timestamp, day date, ok boolean, s struct<x: int>, "
    "m map<string, int>, items array<int>, `odd name` int"
)
AT = datetime(2024, 1, 1, 12)


def _row(v: int | None, n: str | None, d: float) -> tuple[Any, ...]:
    at = AT + timedelta(hours=v or 0)
    return (v, n, d, Decimal("1.500"), at, at.date(), v == 1, (v,), {"a": 1, "b'": 2}, [1, 2, 3], v)


def pairs(spark: SparkSession) -> DataFrame:
    """Every row beside every row."""
    rows = [
        _row(1, "a", 1.5),
        _row(2, "it's", float("nan")),
        _row(None, None, -0.25),
        _row(-3, "a%\\b\n", float("inf")),
    ]
    return spark.createDataFrame([(one, two) for one in rows for two in rows], f"l struct<{ROW}>, r struct<{ROW}>")


def columns() -> list[Column]:
    """Conditions of every kind that has a text."""
    v, w, n, d, price = (F.col(name) for name in ("l.v", "r.v", "l.n", "l.d", "l.price"))
    at, day, ok = F.col("r.at"), F.col("r.day"), F.col("r.ok")
    return [
        v < w, v <= w, v > w, v >= w, v == w, v != w, v.eqNullSafe(w), F.equal_null(v, w),
        (v < w) & ok, (v < w) | ok, ~(v < w), ~(ok & (v < w)) | (v == 1),
        v + w > 0, v - w - 1 > 0, v - (w - 1) > 0, 1 - v > w, v * w + 1 < 3, v / 2 > w, v % 2 == 1, -v > w, v - -1 > w,
        v.bitwiseAND(1) == 1, v**2 > 3,
        v.isNull() | w.isNotNull(), v.isin(1, 2), w.between(1, 2), n.like("a%"), n.ilike("A%"), n.rlike("^a"),
        n.startswith("a"), n.contains("'"), n == "it's", n == "a%\\b\n", n.substr(1, 2) == "it", F.upper(n) == "A",
        F.concat(n, F.lit("!")) == "a!", F.coalesce(v, w, F.lit(0)) == 0, F.greatest(v, w) > 1, F.isnan(d),
        d == float("nan"), d < float("inf"), d > -0.5, d == 1.5, price == Decimal("1.50"), price > Decimal("-1"),
        v > 2**40, v > F.lit(7).cast("long"), v.cast("string") == "1", n.try_cast("int").isNull(),
        at > F.lit(AT), at - F.lit(timedelta(hours=2, microseconds=5)) > AT, day == date(2024, 1, 1),
        F.lit(timedelta(days=-1, microseconds=1)) < at - F.lit(AT), F.lit(None).isNull(), F.lit(True) & ok,
        F.lit(b"ab") == F.lit(b"ab"), F.when(v > 1, w).when(v == 1, 5).otherwise(0) > 1, F.when(v > 1, ok),
        F.col("l.s").getField("x") == 1, F.col("l.s.x") == w, F.col("l.m")["b'"] == 2, F.col("l.items")[0] == v,
        F.expr("l.v < r.v OR l.v = 1") & ok, (v < w).alias("called something"), F.col("l.`odd name`") == 1,
    ]  # fmt: skip


def differing(spark: SparkSession) -> list[str]:
    """The conditions of which Spark computes something else than of their texts, which can all be read."""
    frame = pairs(spark)
    halves = [frame.select(f"{side}.*") for side in "lr"]
    given = columns()
    texts = [column_text(column, halves, [half.columns for half in halves]) for column in given]
    schemas = [pa.schema([(each.name, each.type.arrow) for each in fields_of(half.schema, "")]) for half in halves]
    for text in texts:
        assert Expression.parse(text, schemas).text == text
    both = [each for pair in zip(given, map(F.expr, texts), strict=True) for each in pair]
    found = frame.select(*(each.alias(f"c{number}") for number, each in enumerate(both))).collect()
    assert len({bool(row[0]) for row in found}) == 2, "some pairs match and some do not"
    return [text for number, text in enumerate(texts) if any(row[2 * number] != row[2 * number + 1] for row in found)]
