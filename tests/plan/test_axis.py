"""The time axis of a plan: that of the columns by which its progress is counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.algebra import Band, BestOf, TimeAxis
from streamjoin.runtime.lateness import Slack
from tests.joins import JoinCall


@pytest.mark.parametrize(
    ("kind", "epsilon", "axis"),
    [
        (pa.timestamp("us", "UTC"), "5 seconds", TimeAxis.TIMESTAMP),
        (pa.date32(), "2 days", TimeAxis.DATE),
        (pa.int32(), 5, TimeAxis.INTEGER),
        (pa.float64(), 0.5, None),
    ],
)
def test_a_best_match_is_on_the_axis_of_what_it_is_ordered_by(
    kind: pa.DataType, epsilon: object, axis: TimeAxis | None
) -> None:
    schema = pa.schema([("id", pa.int64()), ("t", kind)])
    call = JoinCall(
        (schema, schema), choice=BestOf(), predicates=(Band("t", "t", epsilon, epsilon),), time=None,
        how="left", lateness=(Slack(1), Slack(1)),
    )  # fmt: skip
    assert call.plan().axis is axis
