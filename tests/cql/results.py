"""Results of queries: how golden files show them, and what DuckDB says they must be.

DuckDB answers a query as it is written, before any rule, at one instant: its tables are the streams' elements that are
valid then, by the windows of the oracle. From the answers at all instants at which something changes come the elements
of the result, or what appears and disappears.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from streamjoin.algebra import TimeAxis, Validity
from streamjoin.language import parse_cql
from streamjoin.plan.relation import Relation, Stream
from streamjoin.plan.rules.rebuild import bottom_up
from tests.cql.streams import SCHEMAS, TIMES
from tests.cql.tables import START, TABLES
from tests.relational_oracle import FOREVER, Element, leaves, lifetimes, normal_form
from tests.relational_sql import sql

# Where DuckDB writes Spark's words differently.
_DIALECT = [
    (r'"X"', "'X'"),  # a text in Spark, a name in SQL
    (r"\b(\d+(?:\.\d+)?)D\b", r"CAST(\1 AS DOUBLE)"),
    (r"\b(\d+)L\b", r"CAST(\1 AS BIGINT)"),
    (r"\br'", "'"),
    (r"\btransform\(array\((.*?)\), (\w+) -> ", r"list_transform([\1], lambda \2: "),
    (r"\baggregate\(array\((.*?)\), 0, \((\w+), (\w+)\) -> ", r"list_reduce([0, \1], lambda \2, \3: "),
    (r"\bconcat\((.*?), (.*?)\)", r"(\1 || \2)"),  # DuckDB's concat takes NULL for nothing
    (r"\babs\((\S+\.at\") - (\S+\.at\")\)", r"greatest(\1 - \2, \2 - \1)"),  # no abs of intervals
    (r"\boverlaps\(", "overlap("),  # a word of its grammar
    (r"\bsimilar\(", "jaccard_of("),  # another one
]
_MACROS = """
    CREATE MACRO overlap(a, b, c, d) AS a < b AND c < d AND a < d AND c < b;
    CREATE MACRO jaccard_of(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN
        len(list_intersect(list_distinct(a), b)) / nullif(len(list_distinct(list_concat(a, b))), 0) END;
    CREATE MACRO distance(a, b) AS abs(b - a), (a, b, c, d) AS sqrt((c - a) ** 2 + (d - b) ** 2);
"""


# -- as golden files show them -----------------------------------------------------------------------------------------


def shown(table: pa.Table) -> str:
    """The names of the columns, then the rows in the order of their times: those are the last columns."""
    times = sum(column in ("valid_from", "valid_to", "_time") for column in table.column_names)
    rows = [list(row.values()) for row in table.to_pylist()]
    rows.sort(key=lambda row: ([(value is None, value) for value in row[len(row) - times :]], [*map(_value, row)]))
    return "\n".join([" | ".join(table.column_names), *(" | ".join(map(_value, row)) for row in rows)])


def _value(value: Any) -> str:
    if isinstance(value, datetime):
        assert value.date() == START.date(), "times are shown without their day"
        return value.time().isoformat()
    return "NULL" if value is None else str(value)


# -- what they must be -------------------------------------------------------------------------------------------------


def check_with_duckdb(text: str, table: pa.Table) -> None:
    """The result of a query is what DuckDB says of it, instant by instant."""
    query = parse_cql(text, SCHEMAS, times=TIMES)
    if query.to_stream is None:
        assert normal_form(_elements(table)) == normal_form(_expected(query.relation))
        return
    got = Counter((_payload(list(row.values())[:-1]), _ticks(row["_time"])) for row in table.to_pylist())
    assert got == Counter(_changes(query.to_stream, list(_expected(query.relation))))


def _elements(table: pa.Table) -> Iterator[Element]:
    for row in table.to_pylist():
        *values, start, end = row.values()
        yield _payload(values), _ticks(start), FOREVER if end is None else _ticks(end)


def _expected(relation: Relation) -> Iterator[Element]:
    elements = {leaf: _of_stream(leaf) for leaf in leaves(relation)}
    cuts = sorted({time for leaf in elements.values() for row in leaf.to_pylist() for time in (row["_ts"], row["_te"])})
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'UTC';" + _MACROS)
        tables: dict[Relation, Stream] = {}
        for number, (leaf, table) in enumerate(elements.items()):
            connection.register(f"all{number}", table)
            valid = f"SELECT * FROM all{number} WHERE _ts <= getvariable('now') AND getvariable('now') < _te"
            connection.execute(f"CREATE VIEW valid{number} AS {valid}")
            reads = tuple((column, column) for column in leaf.columns)
            tables[leaf] = replace(leaf, source=f"valid{number}", reads=reads)
        select = sql(bottom_up(relation, lambda node: tables.get(node, node)))
        for spark, duck in _DIALECT:
            select = re.sub(spark, duck, select, flags=re.IGNORECASE if spark[2] != "X" else 0)
        for start, end in pairwise(cuts):
            connection.execute(f"SET VARIABLE now = {start}")
            answer = connection.sql(select).to_arrow_table()
            for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
                yield _payload(row), start, end


def _of_stream(leaf: Stream) -> pa.Table:
    """The elements of a stream through its window, as a table."""
    given = TABLES[leaf.source]
    rows = given.to_pylist()
    integer = SCHEMAS[leaf.source].field(leaf.time).type == pa.int64() if leaf.time else False
    assert leaf.window is not None
    window = leaf.window.resolve(TimeAxis.INTEGER if integer else TimeAxis.TIMESTAMP)
    for number, row in enumerate(rows):
        start, end = (window.start, window.end) if isinstance(window, Validity) else (leaf.time, leaf.time)
        ends = None if row[end] is None else _ticks(row[end])
        row |= {"_number": number, "_ts": _ticks(row[start]), "_te": ends}
    timed = replace(leaf, reads=(("number", "_number"),), time="_ts", window=window)
    if isinstance(window, Validity):
        timed = replace(timed, time=None, window=Validity("_ts", "_te"))
    elements = lifetimes(timed, rows)
    valid = given.take([number for (number,), _, _ in elements])
    columns = {here: valid[column] for here, column in leaf.reads}
    return pa.table(columns | {"_ts": [ts for _, ts, _ in elements], "_te": [te for _, _, te in elements]})


def _changes(kind: str, elements: list[Element]) -> Iterator[tuple[tuple, int]]:
    """What appears, disappears, or is there, at each instant at which something does."""
    before: Counter[tuple] = Counter()
    for now in sorted({time for _, ts, te in elements for time in (ts, te)} - {FOREVER}):
        after = Counter(payload for payload, ts, te in elements if ts <= now < te)
        if after != before:
            changes = {"istream": after - before, "dstream": before - after, "rstream": after}[kind]
            yield from ((payload, now) for payload in changes.elements())
        before = after


def _payload(values: Any) -> tuple:
    return tuple(map(_comparable, values))


def _comparable(value: Any) -> Any:
    """A value that can be compared and hashed. Doubles of two systems may differ in the last digit."""
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, pa.MonthDayNano):
        return timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
    return round(value, 9) if isinstance(value, float) else value


def _ticks(time: Any) -> int:
    if not isinstance(time, datetime):
        return time
    since = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    gap = since - datetime(1970, 1, 1)
    return (gap.days * 86_400 + gap.seconds) * 10**6 + gap.microseconds


# -- by hand: joins of events have no instants -------------------------------------------------------------------------

BY_HAND = {
    # Of the two rows of S at the start that are as near, the greater one; S.b > 2 is asked of what was found.
    "asof": ["00:00:00 | x | 3", "00:00:01 | x | 3", "00:00:05 | x | 3", "00:00:05 | x | 3", "00:01:00 | y | 6"],
    # An even one meets the last odd one, X as x; of y that is the one of the start, because the one at 60 s is even.
    "asof_by_expressions": [
        "00:00:00 | x | 4 | 3", "00:00:02.500000 | X | 12 | 3", "00:00:05 | x | 2 | 3", *["00:00:05 | x | 4 | 3"] * 2,
        "00:01:00 | y | 6 | 1",
    ],
    # 2.5 s is followed by the rows at 5 s, of which z's is the greatest; 5 s by nothing within 5 seconds.
    "asof_left_forward": [
        *["00:00:00 | 1"] * 2, "00:00:01 | 1", *["00:00:02.500000 | 11"] * 2, *["00:00:05 | NULL"] * 5,
        "00:01:00 | NULL",
    ],
    # Only earlier rows count, so X, b and the first x meet nobody; a key that is NULL never does.
    "asof_of_subqueries": ["NULL | NULL", "X | NULL", "b | NULL", "x | 3", "x | 3", "x | 3", "x | NULL", "y | 1"],
    # Two rows of S are near x, each nearer in one dimension: neither dominates.
    "best_match": ["x | 3", "x | 5", "y | 6"],
    # z meets one row 1 away in both and one 10 and 0 away; M's [6, 8) is near nobody.
    "best_match_full": [
        "NULL | 6", "NULL | NULL", "x | 2", "x | 3", "x | NULL", "y | 3", "y | NULL", "z | 1", "z | 3",
    ],
    # DuckDB's levenshtein counts bytes, Spark's code points: ä and a are one change apart, or two.
    "similar_code_points": ["Jürgen Krämer | Jürgen Kramer | 00:00:00 | 00:00:05"],
    # DuckDB knows of no urgent rows. A row is as urgent as R's is: where x > 2 by a, which nobody else reads.
    "priority_by": [
        "x | 3 | 00:00:00 | 00:00:00.000001 | 0", "x | 5 | 00:00:00 | 00:00:00.000001 | 0",
        "X | 1 | 00:00:02.500000 | 00:00:02.500001 | 12", "x | 3 | 00:00:05 | 00:00:05.000001 | 0",
        "x | 3 | 00:00:05 | 00:00:05.000001 | 2", "b | NULL | 00:00:05 | 00:00:05.000001 | 9",
        "y | 6 | 00:01:00 | 00:01:00.000001 | 0",
    ],
    "best_match_times": [
        "00:00:00 | 1 | 2024-02-28 | 1.5 | 00:00:04 | 2 | 2024-02-29 | 1.75",
        "00:00:00 | 2 | 2024-03-07 | 2.5 | 00:00:00 | 1 | 2024-03-02 | 2.5",
    ],
}  # fmt: skip
