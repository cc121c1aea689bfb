"""The simulator of priorities catches it when priorities are lost on the way, or do not do what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from streamjoin.operators import Results
from streamjoin.operators.ordering import HeldResults
from streamjoin.operators.urgency import at_least_0
from streamjoin.operators.verdict import RunningVerdict
from streamjoin.runtime.outlet import ToCourt, ToFrame, ToStage
from tests.priority_simulator import simulate

Break = Callable[[pytest.MonkeyPatch], None]


def forgotten_by(way: Any) -> Break:
    results = way.results

    def broken(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(way, "results", lambda self, bucket, some: results(self, bucket, replace(some, priority=None)))

    return broken


def forgotten_by_verdicts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunningVerdict, "_priority", lambda self, rows: None)


def nothing_waits(patch: pytest.MonkeyPatch) -> None:
    """With eager emission all results leave at once, as if none could be ahead of progress."""
    kept_back = HeldResults.kept_back

    def broken(self: HeldResults, some: Results, *, ordered: bool = True) -> Results:
        if ordered:
            return kept_back(self, some)
        return replace(some, priority=None if some.priority is None else at_least_0(some.priority))

    patch.setattr(HeldResults, "kept_back", broken)


def urgent_ones_wait(patch: pytest.MonkeyPatch) -> None:
    """With ordered emission urgent results wait like the others."""
    kept_back = HeldResults.kept_back

    def broken(self: HeldResults, some: Results, *, ordered: bool = True) -> Results:
        if not ordered:
            return kept_back(self, some, ordered=False)
        self.add(some)
        return some.empty()

    patch.setattr(HeldResults, "kept_back", broken)


@pytest.mark.parametrize(
    ("broken", "seeds", "said"),
    [
        (forgotten_by(ToStage), (29, 81, 307), r'\("priority \d'),
        (forgotten_by(ToFrame), (141, 643), r'\("priority \d'),
        (forgotten_by(ToCourt), (405, 769), r'\("priority 0'),
        (forgotten_by_verdicts, (370, 769), r'\("priority 0'),
        (nothing_waits, (258, 651), "ahead of all such rows"),
        (urgent_ones_wait, (6, 24, 38), "urgent since"),
    ],
    ids=["between stages", "in rows of elements", "on the way to a court", "in a verdict", "nothing waits", "all wait"],
)
def test_the_simulator_catches_it(
    broken: Break, seeds: tuple[int, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        simulate(seed)
    broken(monkeypatch)
    for seed in seeds:
        with pytest.raises(AssertionError, match=said):
            simulate(seed)
