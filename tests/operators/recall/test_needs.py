"""The model of recall: by hand, and against an operator that keeps and purges rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.algebra import NEVER
from streamjoin.operators.recall.counts import Counts, counted
from streamjoin.operators.recall.needs import (
    ladder,
    lost_at,
    need_histogram,
    pairs_between,
    predicted_recall,
    tails,
)
from tests.operators.recall.streams import Streams, found_pairs, true_pairs

SINGLE = np.arange(0, 600)


def of(times: Any, keys: Any = None, width: int = 1) -> Counts:
    return counted(np.array([0] * len(times) if keys is None else keys), np.array(times), width=width, bits=16)


def test_the_need_of_a_pair_is_from_the_end_of_the_earlier_row_to_the_time_before_the_later_one() -> None:
    # The other row is [10, 14). Ours comes at 11, when its input had been at 30: 30 - 14.
    bins = need_histogram(of([11]), of([10]), 30, (4, 4), SINGLE)
    assert np.flatnonzero(bins).tolist() == [16]
    assert bins[16] == 1


def test_a_pair_that_slack_0_finds_needs_nothing() -> None:
    assert not need_histogram(of([11]), of([10]), 13, (4, 4), SINGLE).any()
    assert need_histogram(of([11]), of([10]), 14, (4, 4), SINGLE)[0] == 1, "lost with slack 0: need >= slack"


def test_other_keys_and_other_windows_are_no_pairs() -> None:
    assert not need_histogram(of([11], [1]), of([10], [2]), 30, (4, 4), SINGLE).any()
    assert not need_histogram(of([14]), of([10]), 30, (4, 4), SINGLE).any(), "half-open: [10, 14) has ended"
    assert pairs_between(of([13]), of([10]), 4, 4) == 1
    assert pairs_between(of([14]), of([10]), 4, 4) == 0


def test_a_window_may_end_before_it_begins() -> None:
    # right - left between 5 and 8: w_R = 9, w_S = -4
    assert [pairs_between(of([0]), of([at]), 9, -4) for at in (4, 5, 8, 9)] == [0, 1, 1, 0]
    assert [pairs_between(of([at]), of([0]), -4, 9) for at in (4, 5, 8, 9)] == [0, 1, 1, 0]


NOW, YEAR_1, YEAR_1970 = 1_700_000_000_000_000, -62_135_596_800_000_000, 0


@pytest.mark.parametrize("width", [1, 5, 2_500])
@pytest.mark.parametrize("clock", [YEAR_1, YEAR_1970])
def test_a_row_of_another_age_changes_nothing_for_the_others(clock: int, width: int) -> None:
    rng = np.random.default_rng(width)
    (mine, keys), (theirs, others) = (
        (NOW + width * rng.integers(0, 1000, 400), rng.integers(0, 50, 400)) for _ in (0, 1)
    )
    both = of(mine, keys, width), of(theirs, others, width)
    broken = [of(np.append(each, clock), np.append(key, 3), width) for each, key in ((mine, keys), (theirs, others))]
    window, edges = (20 * width, 20 * width), ladder(width, 2000 * width)
    whole = need_histogram(*both, NOW + 1000 * width, window, edges)
    assert whole.any()
    for one, two in ((broken[0], both[1]), (both[0], broken[1])):
        assert need_histogram(one, two, NOW + 1000 * width, window, edges).tolist() == pytest.approx(whole.tolist())
        assert pairs_between(one, two, *window) == pytest.approx(pairs_between(*both, *window))
    found = need_histogram(*broken, NOW + 1000 * width, window, edges) - whole
    assert found[-1] == pytest.approx(1), "and the two are a pair, which needs more than any slack"
    assert found[:-1] == pytest.approx(np.zeros(len(edges) - 1))


def test_a_slack_between_two_steps_loses_a_part_of_the_bin() -> None:
    edges, needs = ladder(10, 40), np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    assert [lost_at(needs, slack, edges) for slack in (0, 5, 10, 39, 40, 99)] == [16, 12, 8, 1.1, 1, 1]
    assert tails(needs).tolist() == [16, 8, 4, 2, 1]


@pytest.mark.parametrize("seed", range(60))
def test_cells_of_one_tick_and_a_class_per_key_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = sorted(int(x) for x in rng.integers(-5, 30, 2))
    windows = (high + 2, -low)
    streams = Streams.drawn(rng, 40, 200, int(rng.integers(0, 90)), int(rng.integers(1, 50)))
    slack = [int(x) for x in rng.integers(0, 40, 2)]
    largest = list(streams.largest())
    progress = [tuple(NEVER if one == NEVER else one - slack[p] for p, one in enumerate(at)) for at in largest[1:]]

    seen: list[list[Counts]] = [[], []]
    lost = pairs = 0.0
    for at, counts in zip(largest, streams.counts(1), strict=False):
        for p, news in enumerate(counts):
            for other in seen[1 - p] if news is not None and at[p] != NEVER else ():
                bins = need_histogram(news, other, at[p], (windows[p], windows[1 - p]), SINGLE)
                lost += tails(bins)[slack[p]]
        for p, news in enumerate(counts):
            if news is not None:
                pairs += sum(pairs_between(news, other, windows[p], windows[1 - p]) for other in seen[1 - p])
                seen[p].append(news)

    assert pairs == true_pairs(streams, windows)
    assert pairs - lost == found_pairs(streams, windows, progress)  # type: ignore[arg-type]


@pytest.mark.compiled
def test_wider_cells_are_near() -> None:
    rng = np.random.default_rng(5)
    windows, width = (400, 400), 20
    streams = Streams.drawn(rng, 3000, 30_000, 2000, 500)
    edges = ladder(width, 4000)
    seen: list[list[Counts]] = [[], []]
    needs, pairs = np.zeros((2, len(edges))), 0.0
    largest = list(streams.largest())
    for at, counts in zip(largest, streams.counts(width), strict=False):
        for p, news in enumerate(counts):
            for other in seen[1 - p] if at[p] != NEVER else ():
                needs[p] += need_histogram(news, other, at[p], windows, edges)  # type: ignore[arg-type]
        for p, news in enumerate(counts):
            if news is not None:
                pairs += sum(pairs_between(news, other, *windows) for other in seen[1 - p])
                seen[p].append(news)
    found = found_pairs(
        streams, windows, [(a - 300, b - 700) if NEVER not in (a, b) else (NEVER, NEVER) for a, b in largest[1:]]
    )
    true = true_pairs(streams, windows)
    at = tuple(int(np.searchsorted(edges, slack)) for slack in (300, 700))
    assert edges[list(at)].tolist() == pytest.approx([300, 700], rel=0.04)
    assert pairs == pytest.approx(true, rel=0.01)
    assert predicted_recall(needs, pairs, at) == pytest.approx(found / true, abs=0.01)  # type: ignore[arg-type]
