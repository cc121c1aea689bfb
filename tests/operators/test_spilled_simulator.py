"""The simulators under budgets so small that state spills, for every join; `python -m tests.spilled_simulator` goes on.

STREAMJOIN_SPILLED_RUNS says how many of each family.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamjoin.state.stores import FileStore
from tests import seeds
from tests.spilled_simulator import FAMILIES, simulate

RUNS = int(os.environ.get("STREAMJOIN_SPILLED_RUNS", "36"))
PARTS = 4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_simulator_with_state_in_files(
    part: int, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    monkeypatch.setattr(
        FileStore, "writer", lambda self, *given, make=FileStore.writer: written.append(given) or make(self, *given)
    )
    seeds.check_all(lambda seed: simulate(seed, family, tmp_path / str(seed)), range(part, RUNS, PARTS))
    assert len(written) >= RUNS // PARTS // 4, "hardly anything was spilled: the budgets are not small enough"
