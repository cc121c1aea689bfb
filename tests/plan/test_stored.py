"""A join as JSON: written and read, it is the same join."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from streamjoin.algebra import Grace
from streamjoin.errors import SnapshotError
from streamjoin.plan.planner import plan_join
from streamjoin.plan.stored import from_stored, to_stored
from streamjoin.runtime import Arrivals
from tests import simulator


def test_differential_every_join_of_the_simulator_comes_back_as_it_was() -> None:
    thetas = 0
    for seed in range(300):
        node = simulator.draw_case(seed).node
        again = from_stored(json.loads(json.dumps(to_stored(node))))
        assert again == node
        assert plan_join(again).identity == plan_join(node).identity
        thetas += node.theta is not None
    assert thetas > 5


def test_types_and_arrivals_come_back() -> None:
    arrivals = Arrivals((Grace(5), None), (False, True), 30)
    assert from_stored(json.loads(json.dumps(to_stored(arrivals)))) == arrivals
    for kind in (pa.timestamp("us", tz="UTC"), pa.date32(), pa.int64(), None):
        assert from_stored(to_stored(kind)) == kind
    schema = pa.schema([("a", pa.decimal128(10, 2)), ("b", pa.struct([("c", pa.list_(pa.string()))]))])
    assert from_stored(to_stored(schema)) == schema


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(TypeError, match="set is no value of a call"):
        to_stored({1})
    with pytest.raises(SnapshotError, match="'RowWindow', which this version does not know"):
        from_stored({"@": "RowWindow", "rows": 5})
