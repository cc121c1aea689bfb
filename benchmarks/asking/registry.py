"""All commands of `streamjoin bench` and their questions, in one place."""

from __future__ import annotations

from typing import Final

from benchmarks.asking.arrays import ASOF, KERNELS, NWAY, SIMILAR
from benchmarks.asking.command import Command
from benchmarks.asking.documents import ENOUGH, LIFETIMES, PRIORITY, RECALL, SWEEP
from benchmarks.asking.streams import HOUSE, LANES, REPLAY, SPILL, STREAMING

COMMANDS: Final[dict[str, Command]] = {
    command.name: command
    for command in (
        KERNELS, ASOF, NWAY, SIMILAR, STREAMING, SPILL, LIFETIMES, RECALL, REPLAY, ENOUGH, SWEEP, PRIORITY, LANES,
        HOUSE,
    )
}  # fmt: skip
