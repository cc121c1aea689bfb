"""The simulators with so little memory that state spills: every case as it is drawn without, and the same results.

    python -m tests.spilled_simulator --runs 1000 --seed 1              so many of each family
    python -m tests.spilled_simulator --family "many" --replay 4711     one run again

After each micro-batch buckets may be moved, as ever; then files are found again, or made anew from what is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests import many_simulator, priority_simulator, relational_simulator, seeds, simulator
from tests.in_process import SCRATCH

FAMILIES: dict[str, Callable[[int], Any]] = {
    **{family: partial(simulator.simulate, family=family) for family in simulator.FAMILIES},
    "many": many_simulator.simulate,
    "urgent": priority_simulator.simulate,
    "query": partial(relational_simulator.simulate, methods=("direct", "negative")),
}


def simulate(seed: int, family: str, folder: str | Path) -> None:
    """One case under a budget; failures name the seed that replays them."""
    before = SCRATCH.set(str(folder))
    try:
        FAMILIES[family](seed)
    except AssertionError as error:
        raise AssertionError(
            f"{error}\nwith a budget: python -m tests.spilled_simulator --family '{family}' --replay {seed}"
        ) from error
    finally:
        SCRATCH.reset(before)


def main() -> int:
    return seeds.in_folders(__doc__, FAMILIES, simulate, runs=200)


if __name__ == "__main__":
    sys.exit(main())
