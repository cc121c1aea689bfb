"""Chains of inner joins as one join: what becomes of a query's joins, and that they say what the cascade says."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Equals
from streamjoin.language import parse_cql
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.multi_join import MultiJoin, cascade_of, joins_at_once
from streamjoin.plan.relation import Join, Relation, operator_of
from streamjoin.plan.rules import optimise
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
    "grouped": "SELECT A.k AS k, count(*) AS n FROM A [RANGE 4], B [RANGE 3], C [RANGE 5] "
    "WHERE A.k = B.k AND B.k = C.k GROUP BY A.k",
}


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
    assert joins_at_once(similar) == similar
    two = optimised("SELECT A.v AS a FROM A [RANGE 4], B [RANGE 3] WHERE A.k = B.k")
    assert joins_at_once(two) == two


def test_predicates_go_between_the_streams_whose_columns_they_have() -> None:
    join = operator_of(joins_at_once(optimised(CHAINS["four by band, and more"])))
    assert isinstance(join, MultiJoin)
    kinds = {(each.one, each.two): type(each.predicate) for each in join.between}
    assert kinds == {(0, 1): Equals, (1, 2): Band, (2, 3): Equals}
    assert join.theta is not None
    assert join.unconnected() == [[0, 1, 2, 3]]
