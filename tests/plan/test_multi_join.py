"""Chains of inner joins as one join: what becomes of a query's joins, and that they say what the cascade says."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Equals, Overlaps, Range, Within
from streamjoin.api.queries import chains_at_once
from streamjoin.errors import CallError
from streamjoin.language import parse_cql
from streamjoin.operators.probed import figure_names, in_tables
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.multi_join import (
    Between,
    MultiJoin,
    cascade_of,
    for_all,
    has_many,
    joins_at_once,
    left_in_a_chain,
)
from streamjoin.plan.relation import Join, Relation, Stream, operator_of
from streamjoin.plan.rules import optimise
from streamjoin.runtime.stage import probing_figure
from tests.in_process import Troubled, plan_of

NAMES = ("A", "B", "C", "D", "E")
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "j": pa.int64(), "s": pa.string(), "v": pa.float64()})
SCHEMAS = dict.fromkeys(NAMES, SCHEMA)
CHAINS = {
    "three by key": "SELECT A.v AS a, B.v AS b, C.v AS c FROM A [RANGE 4], B [RANGE 3], C [RANGE 5] "
    "WHERE A.k = B.k AND B.k = C.k",
    "three by two keys": "SELECT A.v AS a, B.v AS b, C.v AS c FROM A [RANGE 4] JOIN B [ROWS 3] ON A.s = B.s "
    "JOIN C [NOW] ON B.j = C.j",
    "four by band, and more": "SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d FROM A [RANGE 15], B [RANGE 15], "
    "C [RANGE 15], D [RANGE 15] WHERE A.k = B.k AND abs(B.v - C.v) <= 1 AND C.j = D.j AND A.v < D.v",
    "five by key": "SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d, E.v AS e FROM A [RANGE 15], B [RANGE 15], "
    "C [RANGE 15], D [RANGE 15], E [ROWS 4] WHERE A.k = B.k AND A.k = C.k AND A.k = D.k AND D.k = E.k",
    "three, two of them alike": "SELECT A.v AS a, B.v AS b, C.v AS c FROM A [RANGE 6], B [ROWS 4], C [RANGE 5] "
    "WHERE levenshtein(A.s, B.s) <= 0 AND A.k = C.k",
    "three by a further condition": "SELECT A.v AS a, B.v AS b, C.v AS c FROM A [RANGE 2], B [RANGE 2], C [RANGE 5] "
    "WHERE A.v + 1 < 2 * B.v AND B.k = C.k",
    "grouped": "SELECT A.k AS k, count(*) AS n FROM A [RANGE 4], B [RANGE 3], C [RANGE 5] "
    "WHERE A.k = B.k AND B.k = C.k GROUP BY A.k",
}


# Those that sj.cql joins at once unless it is asked: rows of the others would have to be copied.
BY_ONE_KEY = ("three by key", "five by key", "grouped")


def optimised(text: str) -> Relation:
    return optimise(parse_cql(text, SCHEMAS, times=dict.fromkeys(NAMES, "ts")).relation, SCHEMAS)


def below(relation: Relation, kind: type) -> list:
    own = [relation] if isinstance(relation, kind) else []
    return own + [each for child in relation.children for each in below(child, kind)]


def drawn(rng: random.Random, rows: int) -> list[dict]:
    made = [
        {
            "ts": ts, "k": rng.choice([0, 1, 2, None]), "j": rng.randint(0, 2), "s": rng.choice("ab"),
            "v": rng.randint(0, 9) / 2,
        }
        for ts in rng.sample(range(30), rows)
    ]  # fmt: skip
    return sorted(made, key=lambda row: row["ts"])


def left(relation: Relation, rows: dict[str, list[dict]], buckets: int, seed: int) -> Counter:
    """What leaves when all rows come in four micro-batches."""
    names = dict.fromkeys(rows, SCHEMA)
    plan = plan_of(relation, names, dict.fromkeys(names, 30), Leaving(buckets=buckets))
    running, found = Troubled(plan, rng=random.Random(seed), trouble=0.2), []
    for part in range(4):
        tables = {name: pa.Table.from_pylist(some[part::4], schema=SCHEMA) for name, some in rows.items()}
        found += running.rows(tables)
    found += running.finished()
    return Counter(tuple(row.values()) for some in found for row in some.to_pylist())


@pytest.mark.parametrize("name", CHAINS)
def test_oracle_a_chain_says_what_the_cascade_says(name: str) -> None:
    tree = optimised(CHAINS[name])
    at_once = joins_at_once(tree)
    (join,) = below(at_once, MultiJoin)
    assert not below(at_once, Join)
    assert chains_at_once(tree, SCHEMAS) == (at_once if name in BY_ONE_KEY else tree)
    read = NAMES[: len(join.parts)]
    found = 0
    for seed in range(3):
        rng = random.Random(seed)
        rows = {each: drawn(rng, 12 if len(read) < 5 else 8) for each in read}
        expected = left(tree, rows, 1, seed)
        found += expected.total()
        assert left(at_once, rows, rng.choice([1, 2, 3]), seed) == expected
        assert left(cascade_of(join), rows, 1, seed) == left(join, rows, 2, seed)
    assert found, "the example itself is wrong: nothing leaves"


def test_only_inner_joins_become_one() -> None:
    outer = optimised("SELECT A.v AS a FROM A [RANGE 4] LEFT JOIN B [RANGE 3] ON A.k = B.k JOIN C [NOW] ON A.k = C.k")
    assert joins_at_once(outer) == outer
    similar = optimised(
        "SELECT A.v AS a FROM A [RANGE 4], B [RANGE 3], C [NOW] WHERE levenshtein(A.s, B.s) <= 1 AND A.k = C.k"
    )
    assert joins_at_once(similar, lambda join: True) == similar
    assert isinstance(operator_of(joins_at_once(similar)), MultiJoin)
    two = optimised("SELECT A.v AS a FROM A [RANGE 4], B [RANGE 3] WHERE A.k = B.k")
    assert joins_at_once(two) == two
    assert not has_many(two)
    assert not left_in_a_chain(outer)


def test_a_distance_from_two_streams_to_a_third_is_no_link_and_says_so() -> None:
    far = optimised(
        "SELECT A.v AS a FROM A [RANGE 4], B [RANGE 3], C [NOW] WHERE A.k = B.k AND distance(A.v, B.v, C.v, C.j) <= 2"
    )
    assert joins_at_once(far) == far
    (left,) = left_in_a_chain(far)
    assert isinstance(left.predicates[0], Within)


def test_predicates_go_between_the_streams_whose_columns_they_have() -> None:
    join = operator_of(joins_at_once(optimised(CHAINS["four by band, and more"])))
    assert isinstance(join, MultiJoin)
    kinds = {(each.one, each.two): type(each.predicate) for each in join.between}
    assert kinds == {(0, 1): Equals, (1, 2): Band, (2, 3): Equals}
    assert join.theta is not None
    assert join.unconnected() == [[0, 1, 2, 3]]


def many(*between: Between, cell: float | None = None, timed: bool = True, parts: int = 3) -> MultiJoin:
    reads = [tuple((f"{name}.{column}", column) for column in SCHEMA.names) for name in NAMES[:parts]]
    streams = tuple(Stream(name, read, "ts", Range(4)) for name, read in zip(NAMES, reads, strict=False))
    return MultiJoin(streams, between, None, timed, "auto", cell)


BY_V = [Between(one, two, Overlaps((f"{NAMES[one]}.v",) * 2, (f"{NAMES[two]}.v",) * 2)) for one, two in for_all(3)]
NEAR = [Between(0, 1, Band("A.v", "B.v", 1, 1)), Between(1, 2, Band("B.v", "C.v", 1, 1))]
ALIKE = [Between(0, 1, Equals("A.k", "B.k")), Between(1, 2, Equals("B.k", "C.k"))]


def placing(join: MultiJoin, buckets: int = 4) -> object:
    names = dict.fromkeys(NAMES[: len(join.parts)], SCHEMA)
    plan = plan_of(join, names, dict.fromkeys(names, 30), Leaving(buckets=buckets))
    return plan.stages[-1].inputs[0].partitioning


def test_figures_say_in_which_order_inputs_are_asked_and_the_order_follows_the_data() -> None:
    """Rows of A ask B and C: first the smaller area, then the one where fewer were found, until the data change."""
    near = [Between(0, other, Band("A.v", f"{NAMES[other]}.v", 1, 1)) for other in (1, 2)]
    names = dict.fromkeys(NAMES[:3], SCHEMA)
    running = Troubled(plan_of(many(*near), names, dict.fromkeys(names, 30)), trouble=1.0)  # restored for each

    def probed(**values: list[float]) -> dict:
        rows = {name: [{"ts": 1, "v": each} for each in some] for name, some in values.items()}
        running.rows({name: pa.Table.from_pylist(some, schema=SCHEMA) for name, some in rows.items()})
        return in_tables({name: running.figure(probing_figure(0, name)) for name in figure_names(3)}, 3)

    assert running.plan.stages[-1].joins_of_many == (3,)
    assert probed(B=[0.0] * 20, C=[99.0] * 25)["order"] == [[], [], []]  # there is nobody in A
    first = probed(A=[0.0] * 10)
    assert first["order"] == [[1, 2], [], []]
    assert (first["asked"][0], first["found"][0], first["swept"]) == ([0, 10, 10], [0, 200, 0], 0)
    second = probed(A=[0.0] * 10)
    assert second["order"] == [[2, 1], [], []]
    assert (second["asked"][0], second["found"][0]) == ([0, 0, 10], [0, 0, 0])  # who finds nobody there asks no further
    probed(C=[0.5] * 400)
    assert probed(A=[0.0] * 10)["order"][0] == [2, 1]  # nobody knew
    assert probed(A=[0.0] * 10)["order"][0] == [1, 2]


def test_a_cell_is_taken_where_there_is_a_grid_and_refused_elsewhere() -> None:
    assert placing(many(*BY_V, cell=2.0)).cell == 2.0  # type: ignore[attr-defined]
    assert placing(many(*NEAR, cell=2.0)).cell == 2.0  # type: ignore[attr-defined]
    assert placing(many(cell=2.0)).cell == 2.0  # type: ignore[attr-defined]
    for buckets in (1, 4):
        for between in (ALIKE, [*ALIKE, *BY_V]):
            with pytest.raises(CallError, match="here they meet by key"):
                placing(many(*between, cell=2.0), buckets)
        for between in (BY_V[:2], NEAR[:1], ALIKE[:1]):  # not of all three
            with pytest.raises(CallError, match="no grid lies over what this join compares"):
                placing(many(*between, cell=2.0), buckets)


def test_a_cascade_gives_its_cell_to_those_of_its_joins_that_have_a_grid() -> None:
    whole = cascade_of(many(ALIKE[0], NEAR[1], cell=2.0))
    assert isinstance(whole, Join)
    assert isinstance(whole.left, Join)
    assert (whole.left.cell, whole.cell) == (None, 2.0)
    over_time = cascade_of(many(ALIKE[0], cell=2.0))
    assert isinstance(over_time, Join)
    assert isinstance(over_time.left, Join)
    assert (over_time.left.cell, over_time.cell) == (None, 2.0)
    for refused in (many(*ALIKE, cell=2.0), many(*ALIKE, cell=2.0, timed=False)):
        with pytest.raises(CallError, match="no grid lies over what this cascade compares"):
            cascade_of(refused)
