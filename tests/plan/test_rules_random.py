"""Queries of queries, drawn from a seed: optimised trees give what they gave, under the same names in the same places.

Columns are of several types, known and unknown, and some are numbers; names have dots in them. Where one is divided by
zero depends on the order of conditions: such queries are left out.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from streamjoin.errors import StreamjoinError
from streamjoin.language import parse_cql
from streamjoin.plan.rules import optimise
from streamjoin.plan.rules.expand_functions import expand_functions
from tests.plan.test_rules_meaning import SCHEMAS, TIMES, tables
from tests.relational_sql import sql

HOWS = [",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
SETS = ["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
SCALARS = """
    {c}; {c}; {c}; {c} + 1; {c} % 2; coalesce({c}, {e}); bit_count({c}); {c} * 1.5; 3; -2; {c} + {e}; abs({c} - {e});
    NULL; CASE WHEN {c} > 1 THEN {e} ELSE 0 END
"""
UNKNOWN = "bit_count({c}); coalesce({c}, 1.5); if({c} > 1, {c}, {e})"  # whose types the rules do not know
CONDITIONS = """
    {c} = {e}; {c} = {e}; {s} = {t}; {c} < {e}; {c} > 1; {c} BETWEEN {e} - 1 AND {e} + 2; abs({c} - {e}) <= 1;
    {c} IS NULL; ({c} = 1 OR {e} = 2); CAST({s} AS STRING) = '1'; CAST({c} AS STRING) LIKE '%.%'; NOT ({c} = {e});
    {c} IN (1, 2); 12 % {c} = {e}; overlaps({c}, {e}, {s}, {t}); distance({c}, {e}) <= 1; {c} / {e} > 1; 1 = 0;
    TRUE; NULL
"""


@dataclass
class Draws:
    """Draws queries: each has its text, and its columns as they are named."""

    draw: random.Random
    aliases: int = 0

    def scalar(self, columns: list[str], forms: str = SCALARS) -> str:
        form = self.draw.choice(forms.split(";")).strip()
        return form.format(c=self.draw.choice(columns), e=self.draw.choice(columns))

    def condition(self, columns: list[str], most: int) -> str:
        parts = []
        for _ in range(self.draw.randint(1, most)):
            form = self.draw.choice(CONDITIONS.split(";")).strip()
            c, e = self.draw.choice(columns), self.draw.choice(columns)
            parts.append(form.format(c=c, e=e, s=self.scalar(columns), t=self.scalar(columns)))
        return " AND ".join(parts)

    def source(self, depth: int) -> tuple[str, list[str]]:
        self.aliases += 1
        alias = f"q{self.aliases}"
        if depth == 0 or self.draw.random() < 0.4:
            return f"{self.draw.choice('RST')} [NOW] AS {alias}", [f"{alias}.{name}" for name in "kab"]
        text, names = self.query(depth - 1)
        return f"({text}) AS {alias}", [f"{alias}.{name}" for name in names]

    def query(self, depth: int) -> tuple[str, list[str]]:
        if depth and self.draw.random() < 0.3:
            forms = self.draw.choice([SCALARS, UNKNOWN, UNKNOWN])
            (one, names), (two, _) = self.select(depth - 1, forms), self.select(depth - 1, forms)
            return f"{one} {self.draw.choice(SETS)} {two}", names
        return self.select(depth)

    def select(self, depth: int, forms: str = SCALARS) -> tuple[str, list[str]]:
        chosen = self.draw.random() if forms == SCALARS else 0.5
        text, columns = self.source(depth)
        for _ in range(self.draw.choice([0, 0, 1, 1, 2])):
            other, more = self.source(depth)
            how = self.draw.choice(HOWS[" JOIN " in text :])  # a comma ends what ON can name
            on = "" if how == "," else f" ON {self.condition(columns + more, 3)}"
            text += f"{how} {other}{on}" if how == "," else f" {how} {other}{on}"
            columns = columns if how in HOWS[-2:] else columns + more
        if self.draw.random() < 0.7:
            text += f" WHERE {self.condition(columns, 4)}"
        if chosen < 0.25:
            key = self.draw.choice([*columns, f"{columns[0]} % 2", f"{columns[0]} + {columns[-1]}"])
            having = self.draw.choice(["", " HAVING w > 1", " HAVING v IS NOT NULL", f" HAVING {key} = 1 AND w > 0"])
            of = self.draw.choice([key, f"{key} + 1", f"2 * ({key})"])
            listed = f"{of} AS v, COUNT(*) AS w, MAX({columns[-1]}) AS k"
            return f"SELECT {listed} FROM {text} GROUP BY {key}{having}", [*"vwk"]
        if chosen < 0.45:  # by the names that they have in the tree
            names = [column.replace("`", "") for column in columns[:3]]
            listed = ", ".join(f"{one} AS `{name}`" for one, name in zip(columns, names, strict=False))
            return f"SELECT {listed} FROM {text}", [f"`{name}`" for name in names]
        listed = ", ".join(f"{self.scalar(columns, forms)} AS {name}" for name in "vwk")
        return f"SELECT {'DISTINCT ' if chosen > 0.8 else ''}{listed} FROM {text}", [*"vwk"]


def counted(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(float(value) if isinstance(value, int | Decimal) else value for value in row) for row in rows)


@pytest.mark.parametrize("block", range(10))
def test_differential_queries_of_queries(block: int) -> None:
    compared = 0
    for seed in range(block * 12, block * 12 + 12):
        draw = random.Random(seed)
        query, _ = Draws(draw).query(2)
        try:
            bound = parse_cql(query, SCHEMAS, times=TIMES).relation
        except StreamjoinError:
            continue
        optimised = optimise(bound, SCHEMAS)
        assert optimised.columns == bound.columns, f"seed {seed}: {query}"
        with tables(draw) as connection:
            try:
                expected = connection.execute(sql(expand_functions(bound, SCHEMAS))).fetchall()
                found = connection.execute(sql(optimised)).fetchall()
            except (duckdb.BinderException, duckdb.InvalidInputException):  # types unlike Spark's; divided by zero
                continue
        assert counted(found) == counted(expected), f"seed {seed}: {query}"
        compared += 1
    assert compared > 1
