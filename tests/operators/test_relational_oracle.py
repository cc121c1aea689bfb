"""The oracle of the relational algebra over lifetimes: by hand, and against DuckDB instant by instant."""

from __future__ import annotations

import math
import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Band, Equals, Fixed, Now, Range, Rows, Unbounded, Validity, Window
from streamjoin.plan.expression import Expression
from streamjoin.plan.relation import (
    Aggregation,
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
from tests.relational_oracle import FOREVER, Row, evaluate, leaves, lifetimes, normal_form, snapshot
from tests.relational_plans import Plans
from tests.relational_simulator import SCHEMA, TYPES, Case, draw_case, snapped

# By hand. A stream of (ts, k) in order of arrival; a result as {payload: its maximal intervals by multiplicity}.


def rows(*pairs: tuple) -> list[Row]:
    return [{"ts": ts, "k": k, "v": None if k is None else k / 10, "te": None} for ts, k in pairs]


def keys_of(source: str, window: Window, column: str = "k") -> Stream:
    return Stream(source, ((f"{source}.k", column),), "ts", window)


def form(relation: Relation, **streams: list[Row]) -> dict:
    return normal_form(evaluate(relation, streams))


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        (Range(5), [5, 8, 8, 12]),
        (Range(5, slide=4), [5, 5, 5, 9]),
        (Fixed(3), [3, 6, 6, 9]),
        (Fixed(7), [7, 7, 7, 14]),
        (Now(), [1, 4, 4, 8]),
        (Unbounded(), [FOREVER] * 4),
        (Rows(2), [3, 7, FOREVER, FOREVER]),
        (Rows(2, drain=True), [3, 7, 8, 8]),
        (Rows(1, by=("k",)), [3, 7, FOREVER, FOREVER]),
        (Rows(1, by=("k",), drain=True), [3, 7, 8, 8]),
    ],
)
def test_windows_give_the_ends(window: Window, ends: list[int]) -> None:
    got = lifetimes(keys_of("R", window), rows((0, 1), (3, 1), (3, 2), (7, 1)))
    assert [te for _, _, te in got] == ends


def test_a_row_window_counts_by_time_and_then_by_arrival() -> None:
    got = lifetimes(keys_of("R", Rows(1)), rows((5, 1), (2, 2), (5, 3), (2, 4)))
    assert got == [((3,), 5, FOREVER), ((4,), 2, 5)]  # the first of two at the same time is a ghost


def test_null_is_a_group_of_a_row_window() -> None:
    got = lifetimes(keys_of("R", Rows(1, by=("k",))), rows((1, None), (2, 1), (3, None)))
    assert got == [((None,), 1, 3), ((1,), 2, FOREVER), ((None,), 3, FOREVER)]


def test_a_validity_without_an_end_is_endless_and_an_empty_one_is_no_element() -> None:
    leaf = Stream("R", (("R.k", "k"),), None, Validity("ts", "te"))
    given = [{"ts": 1, "te": 4, "k": 1}, {"ts": 2, "te": 2, "k": 2}, {"ts": 3, "te": None, "k": 3}]
    assert lifetimes(leaf, given) == [((1,), 1, 4), ((3,), 3, FOREVER)]


def test_multiplicities_of_the_set_operators() -> None:
    """R has 1 twice on [0, 4) and once until 6; S has it once on [2, 5). Beside it NULL, which is equal to NULL."""
    left, right = keys_of("R", Validity("ts", "te")), keys_of("S", Validity("ts", "te"))
    streams = {
        "R": [{"ts": 0, "te": 4, "k": 1}, {"ts": 0, "te": 6, "k": 1}, {"ts": 0, "te": 3, "k": None}],
        "S": [{"ts": 2, "te": 5, "k": 1}, {"ts": 1, "te": 2, "k": None}],
    }
    one, null = (1,), (None,)
    assert form(Distinct(left), **streams) == {one: [[(0, 6)]], null: [[(0, 3)]]}
    assert form(Union((left, right)), **streams) == {
        one: [[(0, 6)], [(0, 5)], [(2, 4)]], null: [[(0, 3)], [(1, 2)]],
    }  # fmt: skip
    assert form(Difference(left, right), **streams) == {one: [[(0, 2), (5, 6)]], null: [[(0, 1), (2, 3)]]}
    assert form(Difference(left, right, every=True), **streams) == {
        one: [[(0, 4), (5, 6)], [(0, 2)]], null: [[(0, 1), (2, 3)]],
    }  # fmt: skip
    assert form(Intersection(left, right), **streams) == {one: [[(2, 5)]], null: [[(1, 2)]]}
    assert form(Intersection(left, left, every=True), **streams) == {one: [[(0, 6)], [(0, 4)]], null: [[(0, 3)]]}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", {(1, 1): [[(2, 4)]]}),
        ("left", {(1, 1): [[(2, 4)]], (1, None): [[(0, 2)]], (None, None): [[(1, 5)]]}),
        ("right", {(1, 1): [[(2, 4)]], (None, 1): [[(4, 6)]], (None, None): [[(3, 7)]]}),
        (
            "full",
            # NULL matches nothing, so both NULLs are padded: twice on [3, 5).
            {(1, 1): [[(2, 4)]], (1, None): [[(0, 2)]], (None, 1): [[(4, 6)]], (None, None): [[(1, 7)], [(3, 5)]]},
        ),
        ("semi", {(1,): [[(2, 4)]]}),
        ("anti", {(1,): [[(0, 2)]], (None,): [[(1, 5)]]}),
    ],
)
def test_joins_by_snapshot(how: str, expected: dict) -> None:
    left, right = keys_of("R", Range(4)), keys_of("S", Range(4))
    joined = Join(left, right, (Equals("R.k", "S.k"),), how=how)
    assert form(joined, R=rows((0, 1), (1, None)), S=rows((2, 1), (3, None))) == expected


def test_a_band_is_tested_on_the_difference() -> None:
    left, right = keys_of("R", Now(), "v"), keys_of("S", Now(), "v")
    joined = Join(left, right, (Band("R.k", "S.k", below=0.0, above=0.1),))
    # 0.3 - 0.2 is below 0.1, and 0.4 - 0.3 above it, though 0.2 + 0.1 is not 0.3 and 0.3 + 0.1 is 0.4.
    assert 0.3 - 0.2 < 0.1 < 0.4 - 0.3
    assert list(form(joined, R=rows((0, 2), (0, 3)), S=rows((0, 3), (0, 4)))) == [(0.2, 0.3), (0.3, 0.3)]


def test_conditions_that_are_null_select_nothing() -> None:
    selected = Selection(keys_of("R", Now()), "NOT (`R.k` = 1)")
    conditions = {"NOT (`R.k` = 1)": lambda row: None if row["R.k"] is None else row["R.k"] != 1}
    got = evaluate(selected, {"R": rows((0, None), (1, 1), (2, 2))}, conditions)
    assert got == [((2,), 2, 3)]


def test_aggregates_of_groups_that_come_and_go() -> None:
    """Two values of the group on [2, 3); no element on [5, 9), not even a count of zero."""
    relation = Aggregation(
        Projection(keys_of("R", Range(3)), (("k", "`R.k`"), ("again", "`R.k`"))),
        (),
        (Aggregate("count", None, "n"), Aggregate("count", "k", "known"), Aggregate("sum", "again", "total")),
    )
    assert form(relation, R=rows((0, 2), (2, 5), (9, None))) == {
        (1, 1, 2): [[(0, 2)]], (2, 2, 7): [[(2, 3)]], (1, 1, 5): [[(3, 5)]], (1, 0, None): [[(9, 12)]],
    }  # fmt: skip


def test_sums_of_doubles_are_exact() -> None:
    rng = random.Random(1)
    values = [rng.choice([0.1, 0.2, 0.3, 1e16, -1e16, 1e-9]) for _ in range(50)]
    given = [{"ts": 0, "v": value} for value in values]
    leaf = Stream("R", (("v", "v"),), "ts", Now())
    functions = ("sum", "avg", "min", "max", "stddev", "count")
    relation = Aggregation(leaf, (), tuple(Aggregate(function, "v", function) for function in functions))
    ((payload, _, _),) = evaluate(relation, {"R": given})
    total = math.fsum(values)
    assert payload[:4] == (total, total / 50, min(values), max(values))
    deviation = math.sqrt(math.fsum((value - total / 50) ** 2 for value in values) / 49)
    assert math.isclose(payload[4], deviation, rel_tol=1e-9)
    assert payload[5] == 50


# Against DuckDB: the same tree as SQL over the snapshot of the streams at an instant. Windows are SQL, too.


def as_sql(relation: Relation, instant: int) -> str:
    """A SELECT that gives the snapshot of a relation at an instant."""
    children = [f"({as_sql(child, instant)})" for child in relation.children]
    if isinstance(relation, Stream):
        return _stream_as_sql(relation, instant)
    if isinstance(relation, Selection):
        return f"SELECT * FROM {children[0]} WHERE {_quoted(relation.condition)}"
    if isinstance(relation, Projection):
        columns = ", ".join(f'{_quoted(text)} AS "{name}"' for name, text in relation.computed)
        return f"SELECT {columns} FROM {children[0]}"
    if isinstance(relation, Union):
        return " UNION ALL ".join(children)
    if isinstance(relation, Distinct):
        return f"SELECT DISTINCT * FROM {children[0]}"
    if isinstance(relation, Difference | Intersection):
        word = "EXCEPT" if isinstance(relation, Difference) else "INTERSECT"
        return f"{children[0]} {word}{' ALL' if relation.every else ''} {children[1]}"
    if isinstance(relation, Join):
        return _join_as_sql(relation, *children)
    assert isinstance(relation, Aggregation)
    keys = [f'"{key}"' for key in relation.keys]
    columns = ", ".join([*keys, *(_aggregate_as_sql(each) for each in relation.aggregates)])
    groups = f"GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {columns} FROM {children[0]} {groups} HAVING count(*) > 0"


def _quoted(text: str) -> str:
    return text.replace("`", '"')


def _stream_as_sql(leaf: Stream, instant: int) -> str:
    window = leaf.window
    if isinstance(window, Rows):
        groups = f"PARTITION BY {', '.join(window.by)} " if window.by else ""
        later = f"lead(ts, {window.size}) OVER ({groups}ORDER BY ts, arrival)"
        unknown = f"(SELECT max(ts) + 1 FROM {leaf.source})" if window.drain else FOREVER
        end = f"coalesce({later}, {unknown})"
    elif isinstance(window, Range):
        start = "ts" if window.slide is None else f"CAST(floor(ts / {window.slide}.0) AS BIGINT) * {window.slide}"
        end = f"{start} + {window.size}"
    elif isinstance(window, Fixed):
        end = f"(CAST(floor(ts / {window.size}.0) AS BIGINT) + 1) * {window.size}"
    elif isinstance(window, Now):
        end = "ts + 1"
    else:
        end = f"coalesce(te, {FOREVER})" if isinstance(window, Validity) else str(FOREVER)
    columns = ", ".join(f'{source} AS "{name}"' for name, source in leaf.reads)
    valid = f"ts <= {instant} AND {instant} < until"
    return f"SELECT {columns} FROM (SELECT *, {end} AS until FROM {leaf.source}) WHERE {valid}"


def _join_as_sql(node: Join, left: str, right: str) -> str:
    tests = ["TRUE"] if node.theta is None else [f"({_quoted(node.theta)})"]
    for one in node.predicates:
        if isinstance(one, Equals):
            tests.append(f'"{one.left}" = "{one.right}"')
        else:
            low, high = (
                ">=" if one.closed in ("both", "left") else ">",
                "<=" if one.closed in ("both", "right") else "<",
            )
            gap = f'("{one.right}" - "{one.left}")'
            tests.append(f"{gap} {low} {-one.below} AND {gap} {high} {one.above}")
    condition = " AND ".join(tests)
    if node.how in ("semi", "anti"):
        word = "EXISTS" if node.how == "semi" else "NOT EXISTS"
        return f"SELECT * FROM {left} WHERE {word} (SELECT 1 FROM {right} WHERE {condition})"
    return f"SELECT * FROM {left} {node.how.upper()} JOIN {right} ON {condition}"


def _aggregate_as_sql(node: Aggregate) -> str:
    column = "*" if node.column is None else f'"{node.column}"'
    function = {"stddev": "stddev_samp"}.get(node.function, node.function)
    return f'{function}({column}) AS "{node.name}"'


def load(connection: duckdb.DuckDBPyConnection, case: Case) -> None:
    """The streams as tables. Values become eighths, which add up exactly in any order: DuckDB's sums are not exact."""
    for name, given in case.on_time.items():
        for row in given:
            row["v"] = None if row["v"] is None else round(row["v"] * 10) / 8
        table = pa.Table.from_pylist(given, schema=SCHEMA)
        table = table.append_column("arrival", pa.array(range(len(given)), pa.int64()))
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")


@pytest.mark.parametrize("part", range(20))
def test_differential_snapshots_of_duckdb(part: int) -> None:
    compared = 0
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for seed in range(part, 300, 20):
            case = draw_case(seed)
            load(connection, case)
            elements = evaluate(case.relation, case.on_time, case.conditions)
            rough = [place for place, name in enumerate(case.relation.columns) if case.kinds[name] == "rough"]
            # Instants of which the oracle knows nothing: it could cut time in the wrong places.
            rng = random.Random(seed)
            for instant in (*rng.sample(range(-8, 16), 5), rng.randint(16, 50), 10**9):
                found = connection.execute(as_sql(case.relation, instant)).fetchall()
                expected = snapped([(payload, instant, instant + 1) for payload in found], elements, rough)
                got = Counter(snapshot(elements, instant))
                assert got == Counter(snapshot(expected, instant)), f"at {instant}:\n{case.describe()}"
                compared += bool(found)
    assert compared > 10, "too few snapshots with anything in them"


def test_conditions_mean_what_the_sql_means() -> None:
    """The functions beside the conditions, against the library's own evaluation of Spark SQL."""
    values = {"int": [None, 0, 1, 2], "float": [None, 0.1, 0.2, 0.3], "string": [None, "", "a", "b"]}
    for seed in range(300):
        rng = random.Random(seed)
        plans = Plans(rng, ("R",))
        kinds = {f"c{number}": rng.choice(list(values)) for number in range(3)}
        plans.kinds.update(kinds)
        text = plans.condition(list(kinds), pairs=rng.random() < 0.3)
        given = [{name: rng.choice(values[kind]) for name, kind in kinds.items()} for _ in range(30)]
        schema = pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()])
        expression = Expression.parse(text.replace("`c", "in0.`c"), [schema])
        wanted = expression.evaluate([pa.Table.from_pylist(given, schema=schema)]).tolist()
        assert [plans.conditions[text](row) is True for row in given] == wanted, text


def test_a_leaf_is_named_once() -> None:
    """Names are unique in a whole drawn tree, so that the children of a join never share one."""
    for seed in range(300):
        names = [name for leaf in leaves(draw_case(seed).relation) for name in leaf.columns]
        assert len(names) == len(set(names))
