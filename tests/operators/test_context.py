"""Where an operator runs: its bucket, which pairs and rows belong there, and whose holders it gives out."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, Aggregate, AsOf
from streamjoin.algebra.interval import Mask
from streamjoin.operators import (
    Aggregating,
    AsofJoin,
    Context,
    Multiplicity,
    NegativeJoin,
    NegativeWindow,
    RowWindow,
    StreamOf,
    TemporalJoin,
)
from streamjoin.state import Batch, Ends, Matching
from streamjoin.state.batch import Indices
from tests.operators.driving import SCHEMAS, end, progress, put
from tests.operators.elements import SCHEMA, Reader, batch_of, draw_truth, run_step, steps
from tests.operators.test_contract_lifetimes import by_key

BUCKETS = 3


@dataclass(frozen=True)
class BySum:
    """A pair belongs where the sum of its members' starts says."""

    bucket: int

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        return np.asarray((a.ts[i] + b.ts[j]) % BUCKETS == self.bucket, np.bool_)


@pytest.mark.parametrize("config", [
    TemporalJoin(Matching(), (SCHEMA, SCHEMA)), NegativeJoin(Matching(), (SCHEMA, SCHEMA)),
], ids=["direct", "negative"])  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_oracle_a_pair_that_meets_in_every_bucket_leaves_where_it_belongs(config: Any, seed: int) -> None:
    rng = random.Random(seed)
    inputs = [draw_truth(rng, 1000 * number) for number in (0, 1)]
    made = list(steps(rng, inputs, 4, negative=isinstance(config, NegativeJoin)))
    for step in made:
        step.rows = [None if rows is None else by_key(rows) for rows in step.rows]

    def found(context: Context) -> list:
        operator, reader = config.build(context), Reader()
        for step in made:
            reader.read(run_step(operator, step))
        return sorted(reader.elements(), key=repr)

    parts = [found(Context(bucket, owner=BySum(bucket))) for bucket in range(BUCKETS)]
    assert sorted((one for part in parts for one in part), key=repr) == found(Context()), f"seed {seed}"
    assert all(parts), "the example itself is wrong: a bucket has nothing"


def test_who_chooses_must_see_all_candidates() -> None:
    with pytest.raises(AssertionError, match="in one bucket"):
        AsofJoin(AsOf(), SCHEMAS).build(Context(owner=BySum(0)))


HOLDING = {
    "row window": RowWindow(1),
    "distinct": Multiplicity("distinct", SCHEMA),
    "aggregation": Aggregating((), (Aggregate("count", None, "n"),), SCHEMA),
    "negative window": NegativeWindow(SCHEMA),
}


@pytest.mark.parametrize("config", HOLDING.values(), ids=HOLDING)
def test_holders_tell_buckets_and_operators_apart(config: Any) -> None:
    given = set()
    for context in (Context(), Context(bucket=1), Context(producer=1), Context(2, 2)):
        operator = config.build(context)
        truth = draw_truth(random.Random(0), 0)[:1]
        outputs = [*operator.on_batch(0, batch_of(truth)), *operator.on_progress(0, truth[0].ts + 1)]
        (first,) = (output for output in outputs if not isinstance(output, Ends) and len(output))
        given.add(int(first.holder[0]))
    assert len(given) == 4


def test_what_a_configuration_says_of_its_holders_goes_first() -> None:
    one, two = RowWindow(1, producer=3, bucket=5).build(Context(7, 7)), RowWindow(1).build(Context(5, 3))
    assert one.next_holder == two.next_holder


@pytest.mark.parametrize("config", [*HOLDING.values(), TemporalJoin(Matching(), SCHEMAS), StreamOf("istream", SCHEMA)])
def test_a_fingerprint_does_not_know_the_bucket(config: Any) -> None:
    snapshot = config.build(Context(bucket=1)).snapshot()
    config.build(Context(bucket=2)).restore(snapshot)


@pytest.mark.parametrize("config", [RowWindow(5, drain=True), NegativeWindow(SCHEMA, 5, drain=True)])
def test_what_others_have_seen_of_an_input_counts_when_it_ends(config: Any) -> None:
    operator, reader = config.build(), Reader()
    truth = draw_truth(random.Random(0), 0)[:1]
    reader.read(operator.on_batch(0, batch_of(truth)))
    operator.on_seen(0, 1000)
    operator.on_seen(0, 3)
    reader.read(operator.on_end())
    assert [te for _, _, te in reader.elements()] == [1001]


def test_most_operators_go_by_progress_alone() -> None:
    join = TemporalJoin(Matching(), SCHEMAS, how="left").build()
    join.on_seen(0, 1000)
    put(join, 0, (1, 3, 9))
    assert progress(join, 5, 5) == []
    assert (join.progress, join.joined) == (3, 5), "row 1 has met all who start before 5, and may still leave alone"
    distinct = Multiplicity("distinct", SCHEMA).build()
    progress(distinct, 5)
    assert distinct.joined == distinct.progress == 5
    assert end(join) == [(1, None, 3, 9)]
    assert join.joined == FOREVER
