"""The relational algebra over lifetimes against its oracle, over many seeds.

`python -m tests.relational_simulator --replay SEED` runs one again. STREAMJOIN_SIMULATOR_RUNS says how many;
`python -m tests.relational_simulator --runs 100000 --seed 1` goes on without pytest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest

from streamjoin.algebra import Rows
from streamjoin.plan.relation import Aggregation, Join, Relation
from tests import seeds
from tests.relational_oracle import FOREVER, Row, evaluate, leaves
from tests.relational_simulator import TYPES, Case, draw_case, late_rows, run_case, shrunk, simulate

RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "1000"))
PARTS = 20


@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_relational_simulator(part: int) -> None:
    """Seeds are dealt out like cards."""
    seeds.check_all(simulate, range(part, RUNS, PARTS))


class Remembering:
    """A system that keeps all rows that come in time, and asks the oracle at the end."""

    def __init__(self, case: Case, keeps_late: bool = False) -> None:
        self.case, self.keeps_late = case, keeps_late
        self.rows: dict[str, list[Row]] = {name: [] for name in case.on_time}
        self.late = late_rows(case)
        self.progress = dict.fromkeys(case.on_time, -FOREVER)
        self.state_rows = 0

    def micro_batch(self, tables: dict[str, pa.Table], progress: dict[str, int]) -> list[pa.Table]:
        for name, table in tables.items():
            for row in table.to_pylist():
                if row["ts"] >= self.progress[name] or self.keeps_late:
                    self.rows[name].append(row)
        self.progress |= progress
        return []

    def end(self) -> list[pa.Table]:
        results = evaluate(self.case.relation, self.rows, self.case.conditions)
        names = (*self.case.relation.columns, "valid_from", "valid_to")
        types = [*(TYPES[self.case.kinds[name]] for name in self.case.relation.columns), pa.int64(), pa.int64()]
        values = list(zip(*((*payload, ts, te) for payload, ts, te in results), strict=True)) or [[]] * len(names)
        columns = [pa.array(each, kind) for each, kind in zip(values, types, strict=True)]
        return [pa.table(columns, list(names))]

    def move(self) -> None:
        self.rows = {name: list(rows) for name, rows in self.rows.items()}


@pytest.mark.parametrize("seed", range(100))
def test_the_simulator_accepts_what_is_right(seed: int) -> None:
    run_case(draw_case(seed), Remembering)


def test_the_simulator_notices_what_is_wrong() -> None:
    """Late rows in the result, late rows that are not counted, a part of the result missing, and state that stays."""
    noticed = Counter()
    for seed in range(60):
        case = draw_case(seed)
        for wrong in ("late", "uncounted", "missing", "state"):
            try:
                run_case(case, lambda case, wrong=wrong: _broken(case, wrong))
            except AssertionError:
                noticed[wrong] += 1
    assert noticed["late"] > 4
    assert noticed["uncounted"] > 4
    assert noticed["missing"] > 30
    assert noticed["state"] == 60


def _broken(case: Case, wrong: str) -> object:
    system = Remembering(case, keeps_late=wrong == "late")
    return SimpleNamespace(
        micro_batch=system.micro_batch,
        end=lambda: [table.slice(1) if wrong == "missing" else table for table in system.end()],
        move=system.move,
        late=0 if wrong == "uncounted" else system.late,
        state_rows=1 if wrong == "state" else 0,
    )


def nodes(relation: Relation) -> Iterator[Relation]:
    yield relation
    for child in relation.children:
        yield from nodes(child)


def features(case: Case) -> Iterator[tuple[str, object]]:
    """What a case exercises."""
    inner = list(nodes(case.relation))
    for node in inner:
        yield "node", type(node).__name__ + (" ALL" if getattr(node, "every", False) else "")
        for child in node.children:
            yield "over", (type(node).__name__, type(child).__name__)
        if isinstance(node, Join):
            yield "how", node.how
            yield from (("predicate", type(one).__name__) for one in node.predicates)
            yield "theta", node.theta is not None
        if isinstance(node, Aggregation):
            yield "keys", len(node.keys)
            yield from (("function", (one.function, case.kinds.get(one.column or ""))) for one in node.aggregates)
    windows = [leaf.window for leaf in leaves(case.relation)]
    yield from (("window", type(window).__name__) for window in windows)
    yield from (("rows", (window.by is not None, window.drain)) for window in windows if isinstance(window, Rows))
    sources = [leaf.source for leaf in leaves(case.relation)]
    yield "sources", len(set(sources))
    yield "a stream twice", len(sources) > len(set(sources))
    yield "method", case.method
    yield "buckets", case.buckets
    yield "late rows", any(case.late.values())
    yield "restored", any(step.restored for step in case.steps)
    yield "time goes on", case.time_went_on
    yield "endless", case.endless
    yield "operators", min(len(inner) - len(windows), 5)


NUMBERS = ("sum", "avg", "min", "max", "stddev")
SET_OPERATORS = ("Union", "Difference", "Intersection")
INNER = ("Selection", "Projection", "Distinct", *SET_OPERATORS, "Join", "Aggregation")
EXPECTED: dict[str, list] = {
    "node": ["Stream", *INNER, "Difference ALL", "Intersection ALL"],
    "over": [(above, below) for above in INNER for below in (*INNER, "Stream")],
    "how": ["inner", "left", "right", "full", "semi", "anti"],
    "predicate": ["Equals", "Band"],
    "theta": [True, False],
    "keys": [0, 1, 2],
    "function": [("count", None), ("count", "string"), *((one, kind) for one in NUMBERS for kind in ("int", "float"))],
    "window": ["Range", "Fixed", "Now", "Unbounded", "Rows", "Validity"],
    "rows": [(by, drain) for by in (True, False) for drain in (True, False)],
    "sources": [1, 2, 3],
    "a stream twice": [True, False],
    "method": ["direct", "negative"],
    "buckets": [1, 2, 5],
    "late rows": [True, False],
    "restored": [True, False],
    "time goes on": [True, False],
    "endless": [True, False],
    "operators": [0, 1, 2, 3, 4, 5],
}


def test_the_drawn_cases_cover_everything() -> None:
    """Over the first 2000 seeds each value occurs at least 20 times; each pair of operators at least 5 times."""
    counts = Counter(feature for seed in range(2000) for feature in set(features(draw_case(seed))))
    for name, values in EXPECTED.items():
        least = 5 if name == "over" else 20
        seldom = {value: counts[name, value] for value in values if counts[name, value] < least}
        assert not seldom, f"{name}: {seldom}"


def test_a_seed_always_draws_the_same_case() -> None:
    assert draw_case(7).describe() == draw_case(7).describe()


def test_a_failure_shows_the_case_and_its_replay() -> None:
    with pytest.raises(AssertionError, match=r"python -m tests\.relational_simulator --replay 5\b"):
        simulate(5, lambda case: SimpleNamespace())


def test_a_failing_case_is_shrunk_to_what_fails() -> None:
    """A system that fails at a certain row: nothing but the row stays, under one leaf."""

    class Choking(Remembering):
        def micro_batch(self, tables: dict[str, pa.Table], progress: dict[str, int]) -> list[pa.Table]:
            assert all(value != 0.7 for table in tables.values() for value in table["v"].to_pylist()), "choked"
            return super().micro_batch(tables, progress)

    case = next(case for case in map(draw_case, range(100)) if len(list(nodes(case.relation))) > 5)
    assert any(row["v"] == 0.7 for rows in case.on_time.values() for row in rows)
    small = shrunk(case, Choking)
    assert [type(node).__name__ for node in nodes(small.relation)] == ["Stream"]
    assert [row["v"] for step in small.steps for rows in step.rows.values() for row in rows] == [0.7]
    assert len(small.steps) == 1
