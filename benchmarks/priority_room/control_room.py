"""Alarms among status messages: how long each wait while an overload lasts, for the plot of the guide.

The plan of the document at load 1.2, but alarms are rare (1%), as they are in a control room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.priority_room.claims import figure
from benchmarks.priority_room.elements import DELIVERED
from benchmarks.priority_room.experiment import Room, Variant, check_delivered, document_room
from benchmarks.priority_room.schedulers import TRAIN
from benchmarks.tables import new_table
from streamjoin.reporting.charts import Line, Plot

PLOT: Final = ROOT / "docs" / "guides" / "alarms.svg"
ALARMS: Final = 0.01
PIECES: Final = 10  # of the time of arrival: points of a line
UNPRIORITISED: Final = Variant(1.2, "min-latency", "normal", TRAIN)
PRIORITISED: Final = Variant(1.2, "priority, min-latency", "direct", TRAIN, known_at_source=True)
LINES: Final = (
    ("all messages, without priorities", UNPRIORITISED, None, "#888888"),
    ("status messages, alarms first", PRIORITISED, 0, "#1f4e9c"),
    ("alarms, alarms first", PRIORITISED, 1, "#c0392b"),
)


@dataclass(frozen=True)
class Waits:
    """One line: mean latencies by time of arrival, and over all."""

    label: str
    colour: str
    points: Sequence[tuple[float, float]]
    mean: float
    p99: float


@dataclass(frozen=True)
class ControlRoom:
    """All lines."""

    lines: Sequence[Waits]

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {line.label: {"points": line.points, "mean": line.mean, "p99": line.p99} for line in self.lines}


def measure(per_source: int) -> ControlRoom:
    """Run both variants on the same elements."""
    room = document_room(per_source, priorities=1, share=ALARMS)
    left = {variant: room.leave(variant)[0] for variant in (UNPRIORITISED, PRIORITISED)}
    for variant, times in left.items():
        check_delivered(variant, times >= 0, room.elements.ends_at == DELIVERED)
    return ControlRoom([_waits(room, left[variant], label, rank, colour) for label, variant, rank, colour in LINES])


def plot_of(room: ControlRoom) -> Plot:
    """Latencies while the backlog grows."""
    lines = [Line(each.label, each.points, each.colour) for each in room.lines]
    words = [
        "Load 1.2 in virtual time, 160,000 messages per second of which 1% are alarms, one thread, 61 operators "
        "(./sj bench priority --only alarms)."
    ]
    return Plot("How long messages wait in an overload", "seconds since it began", "seconds", lines, words)


def table_of(room: ControlRoom) -> Table:
    """Means and 99th percentiles."""
    table = new_table("alarms among status messages, load 1.2: latency, ms", "", "mean", "p99")
    for each in room.lines:
        table.add_row(each.label, figure(each.mean * 1e3), figure(each.p99 * 1e3))
    return table


def write_plot(room: ControlRoom, path: Path = PLOT) -> None:
    """The plot of the guide."""
    path.write_text(plot_of(room).svg())


def _waits(room: Room, left: Any, label: str, rank: int | None, colour: str) -> Waits:
    """The line of some elements: all, or those of a rank."""
    some = (left >= 0) & (True if rank is None else room.elements.rank == rank)
    arrival, latency = room.elements.arrival[some], (left - room.elements.arrival)[some]
    length = room.elements.arrival[-1] / PIECES
    piece = np.minimum((arrival / length).astype(np.int64), PIECES - 1)
    points = [(float((n + 0.5) * length), float(latency[piece == n].mean())) for n in np.unique(piece)]
    return Waits(label, colour, points, float(latency.mean()), float(np.percentile(latency, 99)))
