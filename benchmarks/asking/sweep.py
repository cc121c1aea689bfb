"""`streamjoin bench sweep`: joins in sorted runs, by a simulated clock."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import sweep
from benchmarks.asking.command import Asked, Command, Question, said, say_plots
from benchmarks.reporting import Outcomes, progress


def _sweep(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from sweep.outcomes(asked.names, asked.quick, say)
    say_plots(asked, sweep.folder_of(asked.quick))


COMMAND: Final = Command(
    "sweep",
    (
        Question("pages", "page accesses, four inputs at once",
                 "a cascade of joins of two; counts of the document and of a sketch",
                 f"the document's count within {sweep.OFF:.0%}, "
                 f"{' and '.join(f'{fewer:g}' for fewer in sweep.FEWER.values())} times fewer than the cascade "
                 f"(Greedy with a fan-in of {sweep.GOAL_FAN_IN}; the document's ratio with {sweep.GREEDY_FAN_IN}), "
                 f"at most {sweep.SPARED:,} when spared", 3, timed=False),
        Question("adaptivity", "sources that alternate between 1 and 10 ms", "MaxFanIn, Greedy",
                 "fewer accesses than Greedy, less delay than MaxFanIn", 3, timed=False),
        Question("traversal", "merges in postorder", "level order",
                 f"{sweep.EARLIER:.0%} of all results more have left, at three points on average", 2, timed=False),
        Question("pmj", "two finite inputs larger than memory", "the join in memory",
                 f"{sweep.PMJ_SPEED:g} of its speed, within its budget of memory", 2),
    ),
    _sweep, said("by a simulated clock; only `pmj` is timed, in seconds of the process"),
)  # fmt: skip
