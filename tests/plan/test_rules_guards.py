"""When conditions are asked, which shows where something can fail: those of one side before anything that is computed
of that side for the join, in every kind of join and in whatever order they are written.
"""

from __future__ import annotations

import pytest

from streamjoin.algebra import Band, Equals, How
from streamjoin.plan.condition import conjuncts
from streamjoin.plan.relation import Join, Projection, Selection
from streamjoin.plan.rules import optimise
from tests.plan.test_rules import SCHEMAS, R, S, joined, q


@pytest.mark.parametrize("condition", ["R.a <> 0 AND 10 % R.a = S.b", "10 % R.a = S.b AND R.a <> 0"])
@pytest.mark.parametrize("how", ["inner", "right", "semi"])
def test_what_can_fail_is_computed_above_the_conditions_of_its_side(how: How, condition: str) -> None:
    query = Projection(Join(R, S, (), q(condition), how), (("a", "`R.a`"),))
    join = optimise(query, SCHEMAS).children[0]
    assert isinstance(join, Join)
    assert join.predicates == (Equals("10 % R.a", "S.b"),)
    assert isinstance(join.left, Projection)
    assert isinstance(join.left.child, Selection)
    assert join.left.child.condition == "`R.a` <> 0"


@pytest.mark.parametrize("condition", ["R.a <> 0 AND R.k = 'x' AND 10 % R.a = S.b", "10 % R.a = S.b AND R.a <> 0"])
@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_what_can_fail_is_null_where_the_conditions_of_its_side_are_not_true(how: How, condition: str) -> None:
    query = Projection(Join(R, S, (), q(condition), how), (("a", "`R.a`"),))
    join = optimise(query, SCHEMAS).children[0]
    assert isinstance(join, Join)
    guard = " AND ".join(part for part in conjuncts(q(condition)) if "S." not in part)
    assert join.theta == guard  # a row for which it is not true has no partner
    assert [type(predicate) for predicate in join.predicates] == [Equals]
    assert isinstance(join.left, Projection)
    assert dict(join.left.computed)[join.predicates[0].left] == f"CASE WHEN {guard} THEN 10 % `R.a` END"  # type: ignore[attr-defined]


@pytest.mark.parametrize("condition", ["R.a <> S.a AND 10 % R.a = S.b", "S.a > 0 AND 10 % R.a = S.b"])
@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
def test_conditions_of_both_sides_or_of_the_other_guard_nothing(how: How, condition: str) -> None:
    found = joined(condition, how)
    assert isinstance(found, Join)
    assert found.predicates == (Equals("10 % R.a", "S.b"),)
    assert isinstance(found.left, Projection)
    assert dict(found.left.computed)["10 % R.a"] == "10 % `R.a`"


def test_bands_are_computed_like_equalities() -> None:
    found = joined("R.a <> 0 AND abs(10 / R.a - S.b) <= 1", "left")
    assert isinstance(found, Join)
    assert found.predicates == (Band("CASE WHEN R.a <> 0 THEN 10 / R.a END", "S.b", 1.0, 1.0),)


def test_what_cannot_fail_needs_no_guard() -> None:
    found = joined("R.a <> 0 AND upper(R.k) = S.k", "left")
    assert isinstance(found, Join)
    assert found.predicates == (Equals("upper(R.k)", "S.k"),)
