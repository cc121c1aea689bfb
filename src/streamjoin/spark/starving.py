"""Starvation: urgent rows in such numbers that the others stand still. What a query's last micro-batches say of it.

Urgent rows go first, and say nothing of how far a stream is. So with nothing but them progress stands, state grows, and
whatever waits for order or for a proof waits on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

SHARE: Final = 0.5  # of the rows
BATCHES: Final = 3  # in a row
# So many micro-batches are looked back at for progress that stands.
STANDING_FOR: Final = 100


def told(last: dict[str, Any], history: Sequence[tuple[Mapping[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """The figures of a micro-batch, with what those before it say, see `compared`; and a warning of joins that starve.

    `history` has the micro-batches that ran, the last one too: as Spark tells them, and their figures.
    """
    for name, shares in compared(last, [(_end(each), figures) for each, figures in history]).items():
        if last["joins"][name]["urgent"]["starving"]:
            lately = ", ".join(f"{share:.0%}" for share in shares[-BATCHES:])
            warnings.warn(
                f"more than half of the rows of {name} were urgent in each of its last {BATCHES} micro-batches "
                f"({lately}): the others stand still, and state grows. Hint: give fewer rows a priority",
                stacklevel=4,
            )
    return last


def compared(last: Mapping[str, Any], history: Sequence[tuple[float, Mapping[str, Any]]]) -> dict[str, list[float]]:
    """Add to the figures of a micro-batch what those before it say of each join with urgent rows: for how many seconds
    the progress of each input has been `standing`, and whether the others are `starving`. What it gives are the shares
    of urgent rows that they had.

    `history` has the micro-batches that ran, the last one too: when they were over, in seconds, and their figures.
    """
    found = {}
    for name, figures in last["joins"].items():
        if "urgent" not in figures:
            continue
        known = [(end, before["joins"][name]) for end, before in history if name in before["joins"]]
        found[name] = shares = [before["urgent"]["share"] for _, before in known if "urgent" in before]
        starving = len(shares) >= BATCHES and min(shares[-BATCHES:]) > SHARE
        figures["urgent"] |= {"standing": _standing(known), "starving": starving}
    return found


def _standing(known: Sequence[tuple[float, Mapping[str, Any]]]) -> list[float]:
    """For how many seconds each input's progress has not moved, as far back as is known."""
    ends = [end for end, _ in known]
    found = []
    for number in range(len(known[-1][1]["progress"])):
        times = [figures["progress"][number] for _, figures in known]
        moved = len(times) - 1
        while moved > 0 and times[moved - 1] == times[-1]:
            moved -= 1
        found.append(ends[-1] - ends[moved])
    return found


def _end(progress: Mapping[str, Any]) -> float:
    """When a micro-batch was over, in seconds."""
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    return began + float((progress.get("durationMs") or {}).get("triggerExecution", 0)) / 1000
