"""Who can still be met when rows come by in order: nobody who would match is left out, and most others are."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.algebra import Band, Overlaps, Within
from streamjoin.operators.pmj.runs import columns_of, not_behind
from streamjoin.state import Batch, Matching
from streamjoin.state.reaching import still_met
from tests.state.making import drawn

LARGE = np.array([-(2**63) + 1, -(2**62), -3, 0, 1, 2, 2**62, 2**63 - 1])
ENDLESS = np.array([-np.inf, -1.5, 0.0, 0.1, 0.3, 1.0, np.inf])
PLACES = np.array([-2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 80.0])
BOX = Overlaps(("lo", "hi"), ("lo", "hi"))
MATCHINGS = {
    "validity": (Matching(), ()),
    "keys": (Matching(timed=False), ()),
    "whole numbers": (Matching(Band("v", "v", 2, 1), timed=False), (LARGE,)),
    "far": (Matching(Band("v", "v", 2**63 - 1, 0), timed=False), (LARGE,)),
    "doubles": (Matching(Band("v", "v", 0.2, 1.0, "left")), (ENDLESS,)),
    "above only": (Matching(Band("v", "v", -0.2, 1.0)), (ENDLESS,)),
    "overlap": (Matching(BOX), (PLACES[:4], PLACES[2:])),
    "line": (Matching(Within(("x",), ("x",), 0.5)), (PLACES,)),
    "plane": (Matching(Within(("x", "y"), ("x", "y"), 1.0)), (PLACES, PLACES)),
    "Earth": (Matching(Within(("x", "y"), ("x", "y"), 80_000.0, "haversine")), (PLACES, PLACES)),
}


@pytest.mark.parametrize("name", MATCHINGS)
def test_brute_force_nobody_who_matches_behind_a_key_is_left_out(name: str) -> None:
    matching, pools = MATCHINGS[name]
    left_out = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        runs = [matching.sorted_run(drawn(rng, 40, values=pools, groups=2)) for _ in range(2)]
        pairs = [pair for i, j in matching.pairs(*runs) for pair in zip(i.tolist(), j.tolist(), strict=True)]
        whole = matching.sorted_run(Batch.concat([run.rows for run in runs]))
        at = int(rng.integers(0, len(whole)))
        group, cell, value = (column[at] for column in columns_of(whole))
        key = group, cell, value
        for side in (0, 1):
            mine, other = runs[side], runs[1 - side]
            before, first = not_behind(columns_of(mine), key), not_behind(columns_of(other), key)
            alive = still_met(matching, side, mine.part(0, before), key)
            for pair in pairs:
                if pair[side] < before and pair[1 - side] >= first:
                    assert alive[pair[side]], f"seed {seed}, input {side}: {pair} matches"
            left_out += int((~alive).sum())
    assert left_out > 100, "hardly anybody is ever left out"
