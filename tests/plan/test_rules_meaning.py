"""Optimised trees mean what they meant: at one instant a tree is an ordinary relational query, and DuckDB answers it.

Streams are tables here, with few distinct values and many NULLs: what windows do is above and below of all rules.
"""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from streamjoin.language import parse_cql
from streamjoin.plan.rules import optimise
from streamjoin.plan.rules.expand_functions import expand_functions
from tests.relational_sql import sql

COLUMNS = {"t": pa.int64(), "k": pa.int32(), "a": pa.int32(), "b": pa.int64(), "at": pa.timestamp("us")}
SCHEMAS = {name: pa.schema(COLUMNS) for name in "RST"}
TIMES = dict.fromkeys("RST", "t")
ROUNDS = 150


CONDITIONS = [
    "R.k = S.k",
    "S.k = T.k",
    "R.k = T.k",
    "R.a > 1",
    "S.a < 3",
    "T.a = 2",
    "R.a + 1 = S.b",
    "R.a % 2 = T.a",
    "abs(R.a - S.b) <= 1",
    "abs(T.b - S.b) < 2",
    "R.a BETWEEN S.a - 1 AND S.a + 2",
    "R.b - T.a <= 2",
    "R.b - T.a >= -1",
    "S.b < T.a + 1",
    "R.a < R.b",
    "S.b > S.a",
    "R.a < S.b",
    "S.a < R.b",
    "(R.k = 1 OR S.k = 2)",
    "R.a IS NULL",
    "S.a IS NOT NULL",
    "overlaps(R.a, R.b, T.a, T.b)",
    "distance(R.a, R.b, S.a, S.b) <= 2",
    "R.at BETWEEN S.at AND S.at + INTERVAL 2 SECONDS",
    "R.at - T.at < INTERVAL 2 SECONDS",
    "T.at - R.at <= INTERVAL 1 SECOND",
    "NOT (R.a = S.a)",
    "coalesce(R.a, 1) = S.k",
    "TRUE",
]
OF_TWO = [condition for condition in CONDITIONS if "T." not in condition]


def some(draw: random.Random, conditions: list[str], most: int) -> str:
    return " AND ".join(draw.sample(conditions, draw.randint(1, most)))


def random_query(draw: random.Random) -> str:
    kind = draw.randrange(9)
    if kind == 0:
        return f"SELECT R.a, S.b, T.k FROM R [NOW], S [NOW], T [NOW] WHERE {some(draw, CONDITIONS, 6)}"
    if kind == 1:
        how = draw.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        return f"SELECT R.a, S.b FROM R [NOW] {how} S [NOW] ON {some(draw, OF_TWO, 3)} WHERE {some(draw, OF_TWO, 2)}"
    if kind == 2:
        how = draw.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        return f"SELECT a, k FROM R [NOW] {how} S [NOW] ON {some(draw, OF_TWO, 3)} WHERE R.a > 1 AND k < 3"
    if kind == 3:
        operator = draw.choice(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
        return (
            f"SELECT q.v FROM (SELECT k, a AS v FROM R [NOW] {operator} SELECT k, a + 1 FROM S [NOW]) q "
            f"WHERE q.k = {draw.randint(1, 3)} AND v < 3"
        )
    if kind == 4:
        return (
            "SELECT q.g, n + 1 AS m FROM (SELECT a % 2 AS g, COUNT(*) AS n, SUM(b) AS s FROM R [NOW] GROUP BY 1) q "
            f"WHERE {some(draw, ['g = 1', 'n > 1', 's IS NOT NULL', 'g IS NULL', 'g < n'], 3)}"
        )
    if kind == 5:
        above = draw.choice(["q.a > 1", "S.b > 1", "q.a < S.b"])
        distinct = "(SELECT DISTINCT k, a FROM R [NOW]) q"
        return f"SELECT q.a, S.b FROM {distinct} LEFT JOIN S [NOW] ON q.k = S.k WHERE {above}"
    if kind == 6:
        first, second = draw.choice(["JOIN", "LEFT JOIN", "FULL JOIN"]), draw.choice(["JOIN", "LEFT JOIN"])
        return (
            f"SELECT R.a, S.b, T.k FROM R [NOW] {first} S [NOW] ON {some(draw, OF_TWO, 2)} "
            f"{second} T [NOW] ON {some(draw, CONDITIONS, 2)} WHERE {some(draw, CONDITIONS, 2)}"
        )
    if kind == 7:
        operator = draw.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        sides = draw.sample(["bit_count(a) AS v", "coalesce(a, 1.5) AS v", "if(a > 1, a, k) AS v"], 2)
        return (
            f"SELECT q.v FROM (SELECT k, {sides[0]} FROM R [NOW] {operator} SELECT k, {sides[1]} FROM S [NOW]) q "
            f"WHERE CAST(q.v AS STRING) {draw.choice(['LIKE', 'NOT LIKE'])} '%.%' AND {draw.choice(['k > 1', 'v < 4'])}"
        )
    return (
        f"SELECT R.k, COUNT(*) AS n, MAX(S.b) AS m FROM R [NOW], S [NOW] WHERE {some(draw, OF_TWO, 4)} "
        "GROUP BY R.k HAVING R.k > 1 AND COUNT(*) > 1"
    )


def tables(draw: random.Random) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in "RST":
        rows = [[draw.choice([1, 2, 3, 4, None]) for _ in COLUMNS] for _ in range(draw.choice([0, 5, 8]))]
        columns = {
            column: pa.array(
                [row[place] if row[place] is None or column != "at" else row[place] * 10**6 for row in rows], kind
            )
            for place, (column, kind) in enumerate(COLUMNS.items())
        }
        connection.register(table, pa.table(columns))
    return connection


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_differential_optimised_and_bound(seed: int) -> None:
    draw = random.Random(seed)
    query = random_query(draw)
    bound = parse_cql(query, SCHEMAS, times=TIMES).relation
    optimised = optimise(bound, SCHEMAS)
    connection = tables(draw)
    expected = connection.execute(sql(expand_functions(bound, SCHEMAS))).fetchall()
    found = connection.execute(sql(optimised)).fetchall()
    assert Counter(found) == Counter(expected), f"seed {seed}: {query}"
    assert optimised.columns == bound.columns
