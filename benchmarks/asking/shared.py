"""What questions of several commands have in common: the peers of arrays, and words for goals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import growth
from benchmarks.environments import requirements_of

PEERS_FILE: Final = Path(__file__).parents[1] / "peers.txt"
FRAMES: Final = "Spark's own plan"
GROWTH_GOAL: Final = f"at most {growth.ALLOWED:g} times n log n + results"


def peers() -> Sequence[str]:
    """Systems that run in an environment of their own."""
    return requirements_of(PEERS_FILE.read_text())
