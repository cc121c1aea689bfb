"""The join by plus and minus tuples, against the join of the snapshots."""

from __future__ import annotations

import itertools
import random

import pytest

from streamjoin.algebra import FOREVER, Equals, Rows
from streamjoin.operators import NegativeJoin, Results
from streamjoin.plan.relation import Join, Stream
from streamjoin.state import Matching
from tests.operators.elements import SCHEMA, Reader, Truth, batch_of, draw_truth, form, run_step, steps
from tests.operators.test_contract_lifetimes import HOWS, by_key
from tests.relational_oracle import Element, at_an_instant
from tests.state.storing import Store, moved


def expected(how: str, inputs: list[list[Truth]]) -> list[Element]:
    leaf = [Stream(name, tuple((f"{name}.{c}", c) for c in SCHEMA.names), "ts", Rows(1)) for name in "RS"]
    join = Join(leaf[0], leaf[1], (Equals("R.k", "S.k"),), None, how)
    cuts = sorted({time for rows in inputs for one in rows for time in (one.ts, one.te)})
    found: list[Element] = []
    for start, end in itertools.pairwise(cuts):
        there = [[one.payload for one in rows if one.ts <= start < one.te] for rows in inputs]
        found += [(p, start, end) for p in at_an_instant(join, dict(zip(leaf, there, strict=True)), {})]
    return found


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("seed", range(5))
def test_oracle_negative_join(how: str, seed: int) -> None:
    rng = random.Random(seed)
    inputs = [draw_truth(rng, 1000 * number) for number in (0, 1)]
    config, reader, store = NegativeJoin(Matching(), (SCHEMA, SCHEMA), how), Reader(), Store()
    join = config.build()
    for step in steps(rng, inputs, rng.choice([1, 4, 100]), negative=True):
        step.rows = [None if rows is None else by_key(rows) for rows in step.rows]
        reader.read(run_step(join, step))
        join = moved(join, config.build(), store, None) if rng.random() < 0.3 else join
    assert form(reader.elements()) == form(expected(how, inputs)), f"{how}, seed {seed}"
    assert join.state_rows == 0


def test_a_pair_is_said_when_it_appears_and_when_its_first_member_goes() -> None:
    join = NegativeJoin(Matching(), (SCHEMA, SCHEMA)).build()
    one, two = Truth((1, "a"), 1, 9, 10, False), Truth((1, "b"), 3, 7, 20, False)
    for number, each in enumerate((one, two)):
        assert list(join.on_batch(number, by_key(batch_of([each, each], [1, -1])))) == []
        assert join.progress < 0
    said = []
    for time in (2, 4, 8, FOREVER):
        outputs = [*join.on_progress(0, time), *join.on_progress(1, time)]
        assert all(isinstance(output, Results) for output in outputs)
        said.append([(int(output.ts[0]), int(output.sign[0])) for output in outputs if len(output)])
    assert said == [[], [(3, 1)], [(7, -1)], []]
