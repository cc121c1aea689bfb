"""What the document leaves open: other numbers of priorities, costs, shares and trains, one changed at a time.

A fifth of the experiment's elements, at load 1.2. Under overload a latency grows with the length of a run, so gains are
smaller here than there; who is ahead of whom is what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.priority_room.experiment import Measured, Room, Variant, document_room
from benchmarks.priority_room.schedulers import TRAIN

Say = Callable[[str], None]
PER_SOURCE: Final = 20_000
QUICK_PER_SOURCE: Final = 500
OVERLOAD: Final = 1.2
SOURCES: Final = 16
UNPRIORITISED: Final = "min-latency+, normal"  # the best of those at load 1.2
PRIORITIES: Final = (1, 2, 3, 6, 9)
SHARES: Final = (
    0.03,
    0.09,
    0.3,
    0.45,
    0.6,
    0.7,
    0.75,
    0.8,
    0.85,
    0.9,
    0.95,
    1.0,
)  # of all elements, in three priorities
RATES: Final = (40_000, 10_000, 1_000, 100, 10)  # elements per second and source: the fewer, the dearer each
TRAINS: Final = (1, 3, 10, 30, 100, 300, 1_000, 10_000)


@dataclass(frozen=True)
class Sweep:
    """Measurements over one changed thing: by line (a kind of buffer, or scheduler and kind) in order of `values`."""

    name: str
    title: str
    x: str
    values: tuple[float, ...]
    lines: Mapping[str, Sequence[Measured]]

    def latencies(self, line: str) -> list[float]:
        """Mean latencies of prioritised elements."""
        return [run.prioritised.mean for run in self.lines[line]]

    def behind(self, line: str, other: str) -> list[float]:
        """The values at which a line is behind another, by more than 1%."""
        both = zip(self.values, self.latencies(line), self.latencies(other), strict=True)
        return [value for value, mine, others in both if mine > 1.01 * others]

    def collapses_from(self, line: str) -> float | None:
        """The first value at which prioritised elements wait ten times as long as at the best one before it."""
        best = float("inf")
        for value, latency in zip(self.values, self.latencies(line), strict=True):
            best = min(best, latency)
            if latency > 10 * best:
                return value
        return None

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        runs = {line: [run.to_json() for run in runs] for line, runs in self.lines.items()}
        return {"over": self.x, "values": self.values, "lines": runs}


def priorities(quick: bool, say: Say) -> Sweep:
    """1 to 9 priorities of 10% each, round robin+: sorted buffers against lists."""

    def room(number: float) -> Room:
        return document_room(elements_of(quick), priorities=int(number))

    lines = {
        kind: Variant(OVERLOAD, "round robin", kind, TRAIN)
        for kind in ("normal", "direct", "weak", "strong", "single", "lists")
    }
    title = "number of priorities, 10% of the elements each (round robin+)"
    return _sweep("priorities", title, "priorities", PRIORITIES, room, lambda _: lines, say)


def share(quick: bool, say: Say) -> Sweep:
    """More and more prioritised elements, known at the source: where they are the overload themselves."""

    def room(all_three: float) -> Room:
        return document_room(elements_of(quick), share=all_three / 3)

    lines = {
        f"{name}, {kind}": Variant(OVERLOAD, scheduler, kind, train, known_at_source=True)
        for name, scheduler, train in (
            ("highest priority", "highest priority", 1),
            ("proposal+", "priority, min-latency", TRAIN),
        )
        for kind in ("direct", "weak", "lists")
    } | {UNPRIORITISED: Variant(OVERLOAD, "min-latency", "normal", TRAIN)}
    title = "share of prioritised elements, known at the source"
    return _sweep("share", title, "share of prioritised elements", SHARES, room, lambda _: lines, say)


def cost(quick: bool, say: Say) -> Sweep:
    """Dearer operators at lower rates: the load is the same, and overhead matters less and less."""
    values = tuple(1e6 / (rate * SOURCES) for rate in RATES)

    def room(microseconds: float) -> Room:
        return document_room(elements_of(quick), 1e6 / (SOURCES * microseconds))

    lines = {
        f"{name}, {kind}": Variant(OVERLOAD, scheduler, kind, train)
        for name, scheduler, train in (
            ("highest priority", "highest priority", 1),
            ("highest priority+", "highest priority", TRAIN),
            ("round robin+", "round robin", TRAIN),
        )
        for kind in ("direct", "weak")
    } | {UNPRIORITISED: Variant(OVERLOAD, "min-latency", "normal", TRAIN)}
    title = "cost of all operators of an element at load 1"
    return _sweep("cost", title, "microseconds per element", values, room, lambda _: lines, say)


def trains(quick: bool, say: Say) -> Sweep:
    """Longer trains, priorities known at the source: less overhead, but a prioritised element waits for a train."""
    whole = document_room(elements_of(quick))

    def lines(length: float) -> dict[str, Variant]:
        return {
            f"{name}, {kind}": Variant(OVERLOAD, scheduler, kind, int(length), known_at_source=True)
            for name, scheduler in (("highest priority", "highest priority"), ("proposal", "priority, min-latency"))
            for kind in ("direct", "weak")
        }

    title = "length of trains, priorities known at the source"
    return _sweep("trains", title, "elements of a turn at most", TRAINS, lambda _: whole, lines, say)


SWEEPS: Final = {"priorities": priorities, "share": share, "cost": cost, "trains": trains}


def _sweep(
    name: str,
    title: str,
    x: str,
    values: tuple[float, ...],
    room: Callable[[float], Room],
    lines: Callable[[float], Mapping[str, Variant]],
    say: Say,
) -> Sweep:
    found: dict[str, list[Measured]] = {}
    for value in values:
        say(f"{name}: {x} = {value:g} ...")
        made = room(value)
        for line, variant in lines(value).items():
            found.setdefault(line, []).append(made.run(variant))
    return Sweep(name, title, x, values, found)


def elements_of(quick: bool) -> int:
    """Elements of each source."""
    return QUICK_PER_SOURCE if quick else PER_SOURCE
