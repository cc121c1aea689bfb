"""DISTINCT, EXCEPT and INTERSECT over lifetimes, against the multiplicities at every instant."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Multiplicity, Results
from streamjoin.state import Batch, Ends
from tests.operators.elements import SCHEMA, Reader, Truth, batch_of, draw_truth, form, run_step, steps
from tests.relational_oracle import Element

AT_AN_INSTANT = {
    "distinct": lambda m, n: Counter(set(m)),
    "except": lambda m, n: Counter(set(m) - set(n)),
    "intersect": lambda m, n: Counter(set(m) & set(n)),
    "except all": lambda m, n: m - n,
    "intersect all": lambda m, n: m & n,
}


def expected(operator: str, inputs: list[list[Truth]]) -> list[Element]:
    """From cut to cut."""
    cuts = sorted({time for rows in inputs for one in rows for time in (one.ts, one.te)})
    found: list[Element] = []
    for start, end in itertools.pairwise(cuts):
        there = [Counter(one.payload for one in rows if one.ts <= start < one.te) for rows in (*inputs, [])]
        found += [(payload, start, end) for payload in AT_AN_INSTANT[operator](there[0], there[1]).elements()]
    return found


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("operator", AT_AN_INSTANT)
@pytest.mark.parametrize("seed", range(5))
def test_oracle_set_operators(operator: str, method: str, seed: int) -> None:
    rng = random.Random(seed)
    inputs = [draw_truth(rng, 1000 * number) for number in range(1 + (operator != "distinct"))]
    running, reader = Multiplicity(operator, SCHEMA, method=method).build(), Reader()
    for step in steps(rng, inputs, rng.choice([1, 4, 100]), negative=method == "negative"):
        reader.read(run_step(running, step))
    assert form(reader.elements()) == form(expected(operator, inputs)), f"{operator}, {method}, seed {seed}"
    assert running.footprint.rows == 0


def put(running: object, *elements: tuple[int, int, int]) -> None:
    rows = [Truth((value, "a"), ts, te, number, False) for number, (value, ts, te) in enumerate(elements)]
    list(running.on_batch(0, batch_of(rows)))


def test_a_piece_leaves_when_it_opens_and_its_end_follows() -> None:
    distinct = Multiplicity("distinct", SCHEMA).build()
    put(distinct, (1, 2, 9), (1, 4, 12), (2, 3, 4))
    (results,) = distinct.on_progress(0, 5)
    assert isinstance(results, Results)
    assert list(zip(results.ts.tolist(), results.te.tolist(), strict=True)) == [(2, FOREVER), (3, 4)]
    assert list(distinct.on_progress(0, 12)) == []
    (ends,) = distinct.on_progress(0, 13)
    assert isinstance(ends, Ends)
    assert ends.holder.tolist() == [int(results.holder[0])]
    assert ends.te.tolist() == [12]


def test_ghosts_leave_no_trace() -> None:
    distinct = Multiplicity("distinct", SCHEMA).build()
    put(distinct, (1, 2, 2), (2, 3, 3))
    assert list(distinct.on_progress(0, 9)) == []
    assert (distinct.figures["never_valid"], distinct.state_rows, len(distinct.catalogue)) == (2, 0, 0)


def test_an_end_that_comes_before_the_start_is_due() -> None:
    """Another input holds the start back: the end is learned meanwhile, and may make a ghost of the element."""
    minus = Multiplicity("except all", SCHEMA).build()
    rows = [Truth((1, "a"), 5, FOREVER, 7, True), Truth((2, "a"), 5, FOREVER, 8, True)]
    list(minus.on_batch(0, batch_of(rows)))
    list(minus.on_progress(0, 6))
    list(minus.on_ends(0, Ends(np.array([7, 8]), np.array([5, 9]))))
    list(minus.on_progress(0, 10))
    (results,) = minus.on_progress(1, 10)
    assert isinstance(results, Results)
    assert (results.ts.tolist(), results.te.tolist(), minus.figures["never_valid"]) == ([5], [9], 1)


def test_rows_without_columns_are_all_alike() -> None:
    running = Multiplicity("distinct", pa.schema([])).build()
    times = np.array([1, 3]), np.array([5, 8])
    list(running.on_batch(0, Batch(pa.table({}), *times, np.zeros(2, np.int64))))
    (results,) = running.on_end()
    assert isinstance(results, Results)
    assert (results.ts.tolist(), results.te.tolist()) == ([1], [8])
