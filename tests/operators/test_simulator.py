"""The simulator against the oracle, over many seeds; `python -m tests.simulator --replay SEED` runs one again.

STREAMJOIN_SIMULATOR_RUNS says how many; `python -m tests.simulator --runs 100000 --seed 1` goes on without pytest.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from streamjoin.algebra import Band, Overlaps, Similar, Within
from streamjoin.operators import Judging
from streamjoin.state import matching
from tests import seeds
from tests.simulator import HOWS, KINDS, Case, draw_case, run_case, simulate

RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "1000"))
PARTS = 20


@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_simulator(part: int) -> None:
    """Seeds are dealt out like cards."""
    seeds.check_all(simulate, range(part, RUNS, PARTS))


@pytest.mark.parametrize("family", ["asof", "best match", "nearest"])
@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_simulator_of_joins_with_a_choice(part: int, family: str) -> None:
    seeds.check_all(partial(simulate, family=family), range(part, RUNS // 5, PARTS))


def kind_of(case: Case) -> str:
    """The kind that the case was drawn as."""
    call = case.call
    if call.interval is not None:
        return "interval"
    if call.theta is not None:
        return "theta"
    if not call.predicates:
        return "time"
    first = call.predicates[0]
    alike = next((each for each in call.predicates if isinstance(each, Similar)), None)
    if alike is not None:
        return "edit" if alike.measure == "edit" else "similar"
    if isinstance(first, Within):
        return "within_earth" if first.metric == "haversine" else f"within{len(first.left)}"
    if isinstance(first, Overlaps):
        return "box" if len(call.predicates) > 1 else "overlap"
    assert isinstance(first, Band)
    return "band_int" if first.left == "n" else "band"


def features(case: Case) -> Iterator[tuple[str, object]]:
    """What a case exercises."""
    call, stages = case.call, case.call.plan().stages
    judging = stages[-1].nodes[-1].config
    yield "kind", kind_of(case)
    yield "how", call.how
    yield "emit", call.emit
    yield "hold", (call.emit, stages[0].nodes[-1].config.hold)
    yield "outer", call.outer
    yield from (("late", policy) for policy in call.late)
    yield "regime", case.regime
    yield "buckets", call.buckets
    yield "keys", call.keys
    yield "partitioning", type(stages[0].inputs[0].partitioning).__name__
    yield "verdicts", len(judging.verdicts) if isinstance(judging, Judging) else 0
    yield "restarts", case.restore_chance > 0
    yield from (("window", type(window).__name__) for window in call.windows)
    yield from (("rows", min(len(rows), 2)) for rows in case.arrivals)
    yield "kind and how", (kind_of(case), call.how)
    yield "how, outer and emit", (call.how, call.outer, call.emit)
    yield "outer and verdict", (call.outer, len(stages) > 1)


EXPECTED: dict[str, list] = {
    "kind": list(KINDS),
    "how": list(HOWS),
    "emit": ["eager", "ordered"],
    "hold": [("ordered", "outputs"), ("ordered", "inputs")],
    "outer": ["row", "snapshot"],
    "late": ["drop", "output", "join"],
    "regime": ["within slack", "late"],
    "buckets": [1, 2, 3, 4, 6],
    "keys": [(), ("k",), ("s",), ("s", "k")],
    "partitioning": [
        "Partitioning",
        "HomePartitioning",
        "ReferencePartitioning",
        "MatrixPartitioning",
        "TokenPartitioning",
    ],
    "verdicts": [0, 1, 2],
    "restarts": [True, False],
    "window": ["Range", "Fixed", "Now", "Unbounded", "Validity", "NoneType"],
    "rows": [0, 1, 2],
    "outer and verdict": [("row", True), ("snapshot", True)],
}


def test_boxes_of_two_and_three_dimensions_reach_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every type of join, and in every type with restarts."""
    met: set[tuple[str, object]] = set()
    find = matching.box_overlap_pairs

    def counted(one: tuple, two: tuple, **options: object) -> object:
        met.update(
            [(case.call.how, 2 + one[5].shape[1] // 2), (case.call.how, "restarts" if case.restore_chance else "")]
        )
        return find(one, two, **options)

    monkeypatch.setattr(matching, "box_overlap_pairs", counted)
    wanted = {(how, each) for how in HOWS for each in (2, 3, "restarts")}
    boxes = (seed for seed in range(1000) if random.Random(seed).choice(KINDS) == "box")  # what a case draws first
    for case in map(draw_case, boxes):
        shows = {(case.call.how, len(case.call.predicates)), (case.call.how, "restarts" if case.restore_chance else "")}
        if shows & wanted - met and not any(isinstance(each, Band) for each in case.call.predicates):
            run_case(case)
    assert met >= wanted, wanted - met


def test_the_drawn_cases_cover_everything() -> None:
    """Over the seeds that are always run each value occurs at least 5 times, and each combination that matters."""
    usual = (seed for seed in range(1000) if 2 * (seed % PARTS) < PARTS)
    counts = Counter(feature for seed in usual for feature in features(draw_case(seed)))
    for name, values in EXPECTED.items():
        seldom = {value: counts[name, value] for value in values if counts[name, value] < 5}
        assert not seldom, f"{name}: {seldom}"
    for kind in KINDS:
        for how in HOWS:
            assert counts["kind and how", (kind, how)], (kind, how)
    for how in HOWS:
        for outer in ("row", "snapshot"):
            for emit in ("eager", "ordered"):
                assert counts["how, outer and emit", (how, outer, emit)], (how, outer, emit)
