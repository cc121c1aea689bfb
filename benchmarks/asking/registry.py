"""All commands of `streamjoin bench` and their questions, in one place.

One of them is asked without the others (`benchmarks.commands`): its answer shall not depend on their code.
"""

from __future__ import annotations

from typing import Final

from benchmarks.asking import (
    asof,
    enough,
    house,
    kernels,
    lanes,
    lifetimes,
    nway,
    priority,
    recall,
    replay,
    similar,
    spill,
    streaming,
    sweep,
)
from benchmarks.asking.command import Command

COMMANDS: Final[dict[str, Command]] = {
    module.COMMAND.name: module.COMMAND
    for module in (
        kernels, asof, nway, similar, streaming, spill, lifetimes, recall, replay, enough, sweep, priority, lanes, house
    )
}  # fmt: skip
