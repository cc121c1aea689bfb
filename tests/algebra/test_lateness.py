"""Policies of lateness as values: what they refuse, and what they are in ticks."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.algebra import MaxDelay, Recall, TimeAxis
from streamjoin.errors import CallError


@pytest.mark.parametrize("target", [-0.1, 1.01, "0.9", None, True])
def test_a_target_is_a_share(target: Any) -> None:
    with pytest.raises(CallError, match="a share between 0 and 1"):
        Recall(target)


def test_a_target_of_1_needs_a_largest_delay() -> None:
    with pytest.raises(CallError, match="needs max_delay="):
        Recall(1.0)
    assert Recall(1, max_delay="1 minute").resolve(TimeAxis.TIMESTAMP).max_delay == 60_000_000


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"period": "0 s"}, "period of a recall target must be positive"),
        ({"interval": "-1 s"}, "interval of a recall target must be positive"),
        ({"granularity": "0 s"}, "granularity of a recall target must be positive"),
        ({"max_delay": "-1 s"}, "max_delay of a recall target must not be negative"),
        ({"interval": "2 minutes"}, "more often than once a period"),
        ({"max_delay": "1 s", "initial": "2 s"}, "cannot be above the largest one"),
        ({"period": 60}, "must say its unit"),
    ],
)
def test_sizes_that_mean_nothing(sizes: dict[str, Any], reason: str) -> None:
    with pytest.raises(CallError, match=reason):
        Recall(0.9, **sizes).resolve(TimeAxis.TIMESTAMP)


def test_numbers_on_an_integer_axis() -> None:
    assert Recall(0.9, period=100, interval=5, initial=7).resolve(TimeAxis.INTEGER).initial == 7
    with pytest.raises(CallError, match="period of a recall target must be an integer on an integer time axis"):
        Recall(0.9).resolve(TimeAxis.INTEGER)
    assert MaxDelay().resolve(TimeAxis.INTEGER) == MaxDelay()
