"""Batches under budgets so small that every page spills, for every join; `python -m tests.batch_simulator` goes on.

STREAMJOIN_BATCH_RUNS says how many of each family.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests import seeds
from tests.batch_simulator import FAMILIES, simulate

RUNS = int(os.environ.get("STREAMJOIN_BATCH_RUNS", "24"))


@pytest.mark.parametrize("part", seeds.parts(2))
@pytest.mark.parametrize("family", FAMILIES)
def test_oracle_simulator_of_batches_under_a_budget(family: str, part: int, tmp_path: Path) -> None:
    figures: Counter[str] = Counter()

    def run(seed: int) -> None:
        running = simulate(seed, family, tmp_path / str(seed))
        figures.update({name: running.figure(name) for name in ("generations", "merges", "early_results", "results")})

        figures.update({"by areas": not running.by_pmj, "areas spilled": not running.by_pmj and running.spilled > 0})

    seeds.check_all(run, range(part, RUNS * (5 if family == "temporal" else 1), 2))
    assert figures["areas spilled"] > figures["by areas"] // 5 > 0, "areas spilled only when all rows had come, if ever"
    if family == "temporal":
        assert figures["merges"] > RUNS // 10, "hardly anything was merged: the budgets are not small enough"
        assert 0 < figures["early_results"] < figures["results"]
