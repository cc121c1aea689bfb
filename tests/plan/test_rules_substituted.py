"""Expressions that are written in the place of columns mean what the columns meant."""

from __future__ import annotations

import pytest

from streamjoin.algebra import Now
from streamjoin.plan.column_types import column_types
from streamjoin.plan.condition import columns, substituted
from streamjoin.plan.relation import Distinct, Join, Projection, Selection, Stream
from streamjoin.plan.rules import optimise
from streamjoin.plan.rules.bounds import bounds
from streamjoin.plan.rules.merging import merge_projections
from streamjoin.plan.rules.operands import Operands
from tests.plan.test_rules import SCHEMAS, R, S


def test_a_number_keeps_the_type_that_it_has_as_a_column() -> None:
    # To Spark 3 beside a decimal has one digit, and a column of it ten: quotients have other digits.
    three = Projection(R, (("p", "`R.p`"), ("three", "3")))
    found = optimise(Projection(Selection(three, "`p` / `three` > 1"), (("v", "`p` / `three`"),)), SCHEMAS)
    assert isinstance(found, Projection)
    assert found.computed == (("v", "`R.p` / CAST(3 AS INT)"),)
    assert found.children[0] == Selection(Stream("R", (("R.p", "p"),), "ts", Now()), "`R.p` / CAST(3 AS INT) > 1")
    assert column_types(found, SCHEMAS) == column_types(Projection(three, (("v", "`p` / `three`"),)), SCHEMAS)
    assert merge_projections(Projection(three, (("v", "`three`"),)), {}) == Projection(R, (("v", "3"),))


def test_a_number_of_a_query_below_is_a_bound() -> None:
    below = substituted("`R.a` <= `S.b` + `q.two`", {"q.two": "2"})
    assert below == "`R.a` <= `S.b` + CAST(2 AS INT)"
    assert bounds(below, Operands(Join(R, S), SCHEMAS))[0].value == -2


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("transform(array(1), k -> k + `q.k`)", "transform(array(1), k_ -> k_ + `k`)"),
        ("transform(array(1), `K` -> `k` + `q.k`)", "transform(array(1), k_ -> k_ + `k`)"),
        ("aggregate(array(1), 0, (s, k) -> s + k * `q.k`)", "aggregate(array(1), 0, (s, k_) -> s + k_ * `k`)"),
        ("f(`q.k`, k -> k + 1)", "f(`k`, k -> k + 1)"),
        ("f(k -> struct(k AS k).k + `q.k`)", "f(k_ -> struct(k_ AS k).k + `k`)"),
    ],
)
def test_no_variable_hides_a_column(text: str, merged: str) -> None:
    rows = Projection(Distinct(Projection(R, (("k", "`R.a`"),))), (("q.k", "`k`"),))
    found = merge_projections(Projection(rows, (("v", text),)), {})
    assert found == Projection(rows.child, (("v", merged),))


def test_a_variable_in_backquotes_is_no_column() -> None:
    assert columns("transform(`R.s`, `k` -> `k` + `R.a`)") == ("R.s", "R.a")
