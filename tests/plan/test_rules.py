"""Each rule for itself: what it does, and above all what it must not do."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Band, Equals, How, Now, Overlaps, Rows, Similar, Within
from streamjoin.plan.column_types import column_types
from streamjoin.plan.condition import conjuncts
from streamjoin.plan.picture import explain_relation
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.plan.rules import below_window, optimise
from streamjoin.plan.rules.join_predicates import join_predicates
from streamjoin.plan.rules.merging import merge_projections
from streamjoin.plan.rules.order_joins import order_joins
from streamjoin.plan.rules.prune_columns import prune_columns
from streamjoin.plan.rules.pushing import push_join_conditions, push_selections

COLUMNS = {
    "k": pa.string(),
    "a": pa.int32(),
    "b": pa.int64(),
    "x": pa.float64(),
    "y": pa.float64(),
    "f": pa.float32(),
    "d": pa.date32(),
    "at": pa.timestamp("us"),
    "ts": pa.timestamp("us", "UTC"),
    "p": pa.decimal128(10, 2),
    "wide": pa.decimal128(30, 2),
}
SCHEMAS = {name: pa.schema(COLUMNS) for name in "RST"}
R, S, T = (Stream(name, tuple((f"{name}.{column}", column) for column in COLUMNS), "ts", Now()) for name in "RST")


def q(text: str) -> str:
    """`R.a > 3` with its columns in backquotes."""
    return re.sub(r"(?<!`)\b[RST]\.\w+", lambda match: f"`{match[0]}`", text)


def joined(condition: str, how: How = "inner") -> Relation:
    found = join_predicates(Join(R, S, (), q(condition), how), SCHEMAS)
    return found.child if isinstance(found, Projection) else found


# Selections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "left", "right", "above"),
    [
        ("inner", True, True, False),
        ("left", True, False, True),
        ("right", False, True, True),
        ("full", False, False, True),
    ],
)
def test_a_selection_goes_to_the_side_that_keeps_its_rows(how: How, left: bool, right: bool, above: bool) -> None:
    found = push_selections(Selection(Join(R, S, (), None, how), q("R.a > 1 AND S.a > 2")), {})
    assert isinstance(found, Selection) == above
    join = found.child if isinstance(found, Selection) else found
    assert isinstance(join, Join)
    assert isinstance(join.left, Selection) == left
    assert isinstance(join.right, Selection) == right


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        ("inner", True, True),
        ("semi", True, True),
        ("left", False, True),
        ("anti", False, True),
        ("right", True, False),
        ("full", False, False),
    ],
)
def test_a_condition_of_on_goes_to_the_side_whose_rows_it_can_lose(how: How, left: bool, right: bool) -> None:
    join = push_join_conditions(Join(R, S, (), q("R.a > 1 AND S.a > 2 AND R.a < S.a"), how), {})
    assert isinstance(join, Join)
    assert isinstance(join.left, Selection) == left
    assert isinstance(join.right, Selection) == right
    assert join.theta is not None
    assert len(conjuncts(join.theta)) == 3 - left - right


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_selection_goes_below_semi_and_anti_joins(how: How) -> None:
    found = push_selections(Selection(Join(R, S, (), None, how), q("R.a > 1")), {})
    assert isinstance(found, Join)
    assert isinstance(found.left, Selection)


def test_a_condition_on_both_sides_of_an_outer_join_stays_above() -> None:
    found = push_selections(Selection(Join(R, S, (), None, "left"), q("R.a < S.a")), {})
    assert found == Selection(Join(R, S, (), None, "left"), q("R.a < S.a"))


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("kind", [Difference, Intersection])
def test_a_selection_goes_into_both_sides_of_set_operators(kind: type[Difference], every: bool) -> None:
    left, right = Projection(R, (("v", "`R.a`"),)), Projection(S, (("w", "`S.a`"),))
    found = push_selections(Selection(kind(left, right, every), "`v` > 1"), SCHEMAS)
    assert isinstance(found, kind)
    assert found.left == Selection(left, "`v` > 1")
    assert found.right == Selection(right, "`w` > 1")


def test_a_selection_goes_below_distinct_and_union() -> None:
    left, right = Projection(R, (("v", "`R.a`"),)), Projection(S, (("w", "`S.a`"),))
    query = Selection(Distinct(Union((left, right))), "`v` > 1")
    found = push_selections(push_selections(query, SCHEMAS), SCHEMAS)
    assert found == Distinct(Union((Selection(left, "`v` > 1"), Selection(right, "`w` > 1"))))


@pytest.mark.parametrize("other", ["bit_count(`S.a`)", "`S.x`"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", [Union, Difference, Intersection])
def test_a_selection_stays_above_what_casts_its_columns(kind: type, other: str, swapped: bool) -> None:
    sides = [Projection(R, (("v", "`R.a`"), ("k", "`R.k`"))), Projection(S, (("v", other), ("k", "`S.k`")))]
    sides = sides[::-1] if swapped else sides
    union = Union(tuple(sides)) if kind is Union else kind(*sides)
    found = push_selections(Selection(union, "CAST(`v` AS STRING) = '1.0' AND `k` = 'x'"), SCHEMAS)
    assert isinstance(found, Selection)
    assert found.condition == "CAST(`v` AS STRING) = '1.0'"
    assert found.child.children == tuple(Selection(side, "`k` = 'x'") for side in sides)


def test_the_type_of_a_union_is_not_that_of_its_first_part() -> None:
    union = Union((Projection(R, (("v", "`R.a`"),)), Projection(S, (("v", "unheard_of(`S.a`)"),))))
    assert column_types(union, SCHEMAS) == {"v": None}
    join = Join(union, T, (), "`v` = `T.a`")
    assert join_predicates(join, SCHEMAS) == join


def test_only_conditions_on_keys_go_below_an_aggregation() -> None:
    groups = Aggregation(R, ("R.k",), (Aggregate("count", None, "n"),))
    found = push_selections(Selection(groups, "`R.k` = 'x' AND `n` > 1 AND `R.k` = `n`"), {})
    assert isinstance(found, Selection)
    assert found.condition == "`n` > 1 AND `R.k` = `n`"
    assert found.child.children[0] == Selection(R, "`R.k` = 'x'")


@pytest.mark.parametrize(("how", "below"), [("left", 0), ("inner", 0), ("right", 1), ("full", None)])
def test_only_the_side_that_finds_partners_is_filtered_below_a_best_match(how: How, below: int | None) -> None:
    join = BestMatchJoin(R, S, (("R.x", "S.x", 1.0),), (), how)
    found = push_selections(Selection(join, q("R.a > 1 AND S.a > 1")), {})
    assert isinstance(found, Selection)
    sides = [isinstance(child, Selection) for child in found.child.children]
    assert sides == [number == below for number in (0, 1)]


def test_the_partners_of_an_as_of_join_are_never_filtered() -> None:
    join = AsOfJoin(R, S, ("R.ts", "S.ts"), how="inner")
    assert push_selections(Selection(join, q("S.a > 1")), {}) == Selection(join, q("S.a > 1"))


def test_a_selection_stays_above_its_stream() -> None:
    rows = Stream("R", R.reads, "ts", Rows(5))
    for stream in (R, rows):
        assert push_selections(Selection(stream, q("R.a > 1")), {}) == Selection(stream, q("R.a > 1"))
    assert below_window(R)
    assert not below_window(rows)


# Predicates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "predicate"),
    [
        ("R.k = S.k", Equals("R.k", "S.k")),
        ("S.b == R.a", Equals("R.a", "S.b")),
        ("R.a + 1 = S.b", Equals("R.a + 1", "S.b")),
        ("lower(R.k) = upper(S.k)", Equals("lower(R.k)", "upper(S.k)")),
        ("abs(R.a - S.b) <= 5", Band("R.a", "S.b", 5, 5)),
        ("ABS(S.b - R.a) < 5", Band("R.a", "S.b", 5, 5, "neither")),
        ("5 >= abs(R.a - S.b)", Band("R.a", "S.b", 5, 5)),
        ("abs(R.x - S.x) <= 0.5", Band("R.x", "S.x", 0.5, 0.5)),
        ("abs(R.x - S.x) <= 0.5D", Band("R.x", "S.x", 0.5, 0.5)),
        ("abs(R.p - S.p) <= 0.50", Band("R.p", "S.p", Decimal("0.50"), Decimal("0.50"))),
        ("R.a BETWEEN S.b - 1 AND S.b + 2", Band("R.a", "S.b", 2, 1)),
        ("R.a - 1 BETWEEN S.b AND S.b + 2", Band("R.a", "S.b", 3, -1)),
        ("R.a - S.b <= 3 AND R.a - S.b >= -2", Band("R.a", "S.b", 3, 2)),
        ("R.a - S.b < 3 AND S.b - R.a <= 2", Band("R.a", "S.b", 3, 2, "right")),
        ("R.a <= S.b + 3 AND S.b < 2 + R.a", Band("R.a", "S.b", 3, 2, "left")),
        ("R.a >= S.b AND R.a <= S.b", Band("R.a", "S.b", 0, 0)),
        ("(R.a * 2) - S.b <= 3 AND R.a * 2 - S.b >= 0", Band("R.a * 2", "S.b", 3, 0)),
        ("-R.a + S.b <= 3 AND S.b - R.a >= 0", Band("R.a", "S.b", 0, 3)),
        ("R.ts >= S.ts - INTERVAL 5 SECONDS AND R.ts <= S.ts", Band("R.ts", "S.ts", "0 seconds", "5 seconds")),
        ("R.at - S.at BETWEEN INTERVAL '1' HOUR AND INTERVAL 2 DAYS", Band("R.at", "S.at", "2 days", "-1 hours")),
        (
            "abs(R.at - S.at) <= INTERVAL 1500 MILLISECONDS",
            Band("R.at", "S.at", "1500 milliseconds", "1500 milliseconds"),
        ),
        ("R.d BETWEEN S.d - 1 AND S.d + 2", Band("R.d", "S.d", "2 days", "1 days")),
        ("distance(R.x, R.y, S.x, S.y) <= 5", Within(("R.x", "R.y"), ("S.x", "S.y"), 5)),
        ("distance(S.a, R.b) <= 0.5", Within(("R.b",), ("S.a",), 0.5)),
        ("overlaps(R.a, R.b, S.a, S.b)", Overlaps(("R.a", "R.b"), ("S.a", "S.b"))),
        ("overlaps(S.d, S.d, R.d, R.d)", Overlaps(("R.d", "R.d"), ("S.d", "S.d"))),
        ("levenshtein(R.k, S.k) <= 2", Similar("R.k", "S.k", "edit", 2)),
        ("levenshtein(S.k, R.k) < 3", Similar("R.k", "S.k", "edit", 2)),
        ("2.5 >= LEVENSHTEIN(R.k, lower(S.k))", Similar("R.k", "lower(S.k)", "edit", 2)),
        ("similar(split(R.k, 'b'), S.k) >= 0.8", Similar("split(R.k, 'b')", "S.k", "jaccard", 0.8)),
        ("0.5 <= similar(S.k, R.k)", Similar("R.k", "S.k", "jaccard", 0.5)),
        ("similar(R.k, S.k) > 0.8", Similar("R.k", "S.k", "jaccard", math.nextafter(0.8, 1))),
    ],
)
@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
def test_recognised(condition: str, predicate: object, how: How) -> None:
    found = joined(condition, how)
    assert isinstance(found, Join)
    assert found.predicates == (predicate,)
    assert [type(bound) for bound in vars(found.predicates[0]).values()] == [type(b) for b in vars(predicate).values()]
    assert found.theta is None
    assert found.how == how


@pytest.mark.parametrize(
    "condition",
    [
        "R.k = S.a",  # Spark casts the string
        "R.ts = S.at",  # depends on the session time zone
        "R.a <> S.b",
        "levenshtein(R.k, S.k, 2) <= 2",  # another question: -1 where the texts are further apart
        "levenshtein(R.k, S.k) >= 2",
        "levenshtein(R.k, S.k) <= -1",
        "levenshtein(R.k, S.k) <= R.a",
        "levenshtein(R.a, S.k) <= 2",  # Spark casts the number
        "R.a <=> S.b",  # NULL equals NULL
        "R.a = S.b OR R.k = S.k",
        "NOT R.a = S.b",
        "R.a + S.a = S.b",  # both sides in one operand
        "unheard_of(R.k) = S.k",
        "R.a - S.b <= 3",  # one bound only
        "R.a - S.b >= 5 AND R.a - S.b <= 3",  # nothing matches, but that is no band
        "R.a + S.b <= 3 AND R.a + S.b >= -2",
        "abs(R.a - S.b) >= 5",
        "abs(R.a - S.b) <= -5",
        "abs(R.a - S.b) <= R.b",
        "abs(R.f - S.f) <= 1",  # Spark rounds the difference to a float
        "abs(R.wide - S.wide) <= 1",  # more digits than are compared exactly
        "abs(R.k - S.k) <= 1",
        "R.a NOT BETWEEN S.b - 1 AND S.b + 2",
        "R.ts - S.ts <= INTERVAL 5 SECONDS AND R.ts - S.ts >= INTERVAL 0 SECONDS",  # the session time zone
        "R.ts BETWEEN S.ts AND S.ts + INTERVAL 2 DAYS",  # a day may have 23 hours
        "R.at BETWEEN S.at AND S.at + INTERVAL 1 MONTH",
        "R.d BETWEEN S.d AND S.d + INTERVAL 1 HOUR",
        "distance(R.x, R.y, S.x, S.y) < 5",
        "distance(R.x, S.y, S.x, R.y) <= 5",
        "distance(R.x, R.y, S.x, S.y) <= R.a",
        "distance(R.k, S.k) <= 5",
        "overlaps(R.a, S.a, R.b, S.b)",
        "overlaps(R.k, R.k, S.k, S.k)",
        "R.a < S.b AND S.a < R.b",  # not known whether they are intervals
        "R.x < S.x AND S.y < R.y",
    ],
)
def test_left_to_spark(condition: str) -> None:
    found = joined(condition)
    assert isinstance(found, Join)
    assert found.predicates == ()
    assert found.theta == q(condition)


def test_an_overlap_is_recognised_where_intervals_are_not_empty() -> None:
    intervals = Join(
        Selection(R, q("R.a < R.b")), Selection(S, q("S.b > S.a AND S.x > 1")), (), q("R.a < S.b AND S.a < R.b")
    )
    found = join_predicates(intervals, SCHEMAS)
    assert isinstance(found, Join)
    assert found.predicates == (Overlaps(("R.a", "R.b"), ("S.a", "S.b")),)


def test_half_of_a_between_is_used_and_half_stays() -> None:
    found = joined("R.a BETWEEN S.b - 1 AND S.a AND R.a <= S.b + 5")
    assert isinstance(found, Join)
    assert found.predicates == (Band("R.a", "S.b", 5, 1),)
    assert found.theta == "`R.a` <= `S.a`"


def test_computed_columns_are_made_once_and_not_shown() -> None:
    found = join_predicates(Join(R, S, (), q("R.a + 1 = S.a AND R.a + 1 = S.b")), SCHEMAS)
    assert found.columns == R.columns + S.columns
    assert isinstance(found, Projection)
    join = found.child
    assert isinstance(join, Join)
    assert join.left.columns == (*R.columns, "R.a + 1")


# Order, projections, columns -----------------------------------------------------------------------------------------


def test_sources_without_a_condition_come_last() -> None:
    cross = Join(Join(Join(R, S), T), Projection(R, (("U.k", "`R.k`"),)))
    found = order_joins(Selection(cross, q("R.k = T.k AND S.k = `U.k`")), {})
    assert [column for column in found.children[0].columns if column.endswith(".k")] == ["R.k", "T.k", "S.k", "U.k"]
    assert found.columns == cross.columns


def test_the_order_of_connected_sources_is_as_written() -> None:
    query = Selection(Join(Join(R, S), T), q("R.k = S.k AND R.k = T.k"))
    assert order_joins(query, {}) == query


def test_what_is_used_twice_is_computed_once() -> None:
    inner = Projection(R, (("v", "`R.a` * 2"),))
    assert merge_projections(Projection(inner, (("w", "`v` + `v`"),)), {}) == Projection(inner, (("w", "`v` + `v`"),))
    assert merge_projections(Projection(inner, (("w", "`v` + 1"),)), {}) == Projection(R, (("w", "(`R.a` * 2) + 1"),))


def test_distinct_keeps_all_columns() -> None:
    rows = Distinct(Projection(R, (("v", "`R.a`"), ("w", "`R.b`"))))
    found = prune_columns(Projection(rows, (("v", "`v`"),)), {})
    assert found.children[0].columns == ("v", "w")


def test_unused_aggregates_go_and_keys_stay() -> None:
    groups = Aggregation(R, ("R.k",), (Aggregate("sum", "R.a", "s"), Aggregate("sum", "R.b", "t")))
    found = prune_columns(Projection(groups, (("t", "`t`"),)), {}).children[0]
    assert found.columns == ("R.k", "t")
    assert found.children[0].columns == ("R.k", "R.b")


def test_partition_by_columns_need_not_be_read() -> None:
    rows = Stream("R", R.reads, "ts", Rows(5, by=("k",)))
    assert prune_columns(Projection(rows, (("a", "`R.a`"),)), {}).children[0].columns == ("R.a",)


def test_an_as_of_join_chooses_by_all_columns_of_its_right_side() -> None:
    join = AsOfJoin(R, S, ("R.ts", "S.ts"))
    found = prune_columns(Projection(join, (("a", "`R.a`"),)), {}).children[0]
    assert found.children[0].columns == ("R.a", "R.ts")
    assert found.children[1].columns == S.columns


def test_joins_stand_directly_above_joins() -> None:
    condition = q("R.a + 1 = S.a AND S.k = T.k AND R.x > 1")
    query = Projection(Selection(Join(Join(R, S), T), condition), (("z", "`T.x`"),))
    found = optimise(query, SCHEMAS)
    assert isinstance(found.children[0], Join)
    assert isinstance(found.children[0].children[0], Join)


# Pictures ------------------------------------------------------------------------------------------------------------


def test_every_node_has_a_line() -> None:
    query = Distinct(Difference(Projection(Join(R, S), (("v", "`R.a`"),)), Projection(T, (("w", "`T.a`"),)), True))
    assert len(explain_relation(query).splitlines()) == 8
