"""One thread and a virtual clock: pick a buffer, take elements up to the next buffers, again and again.

Time passes in an operator (its declared cost), in a turn (`dispatch`, and `look` for every buffer that was looked at)
and in a buffer (`insert`, and `step` for every element that was walked past). Sources never wait: what has arrived is
in its buffer when a turn ends.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from benchmarks.priority_room.buffers import DIRECT, NORMAL, Waiting, compiled, put, take
from benchmarks.priority_room.plan import NO_BUFFER, SINK
from benchmarks.priority_room.schedulers import pick


class Overhead(NamedTuple):
    """What everything beside operators takes, in seconds; for scale: an element's operators take 6.25e-6 at load 1."""

    dispatch: float = 0.05e-6
    look: float = 0.01e-6
    insert: float = 0.02e-6
    step: float = 0.005e-6


OVERHEAD: Final = Overhead()


class Work(NamedTuple):
    """Elements and operators as arrays; see `Elements`, `Plan` and `Buffers`."""

    arrival: Any
    source_buffer: Any  # by element
    rank: Any
    ends_at: Any
    cost: Any  # by operator, seconds
    above: Any
    height: Any
    sets_priority: Any
    above_operator: Any
    feeds: Any


class Way(NamedTuple):
    """How it is scheduled and buffered."""

    scheduler: int
    kind: int
    train: int
    order: Any
    known_at_source: bool  # or else behind the priority operator only


@compiled
def run(work: Work, way: Way, overhead: Overhead, waiting: Waiting, shown: Any, turn: Any, left_at: Any) -> float:
    """All elements through the plan; `left_at` gets the time at which each reached the sink. When the last was done."""
    arrived, inside, clock = 0, 0, 0.0
    everyone = len(work.arrival)
    while True:
        while arrived < everyone and work.arrival[arrived] <= clock:
            if way.known_at_source:
                shown[arrived] = work.rank[arrived]
            kind = NORMAL if way.kind == DIRECT else way.kind
            put(waiting, kind, work.source_buffer[arrived], arrived, shown[arrived])
            arrived += 1
            inside += 1
        if inside == 0:
            if arrived == everyone:
                return clock
            clock = work.arrival[arrived]
            continue
        buffer, looked = pick(way.scheduler, waiting, way.order, turn)
        clock += overhead.dispatch + overhead.look * looked
        for _ in range(min(way.train, waiting.size[buffer])):
            element = take(waiting, buffer, shown)
            inside -= 1
            operator = work.feeds[buffer]
            while True:
                clock += work.cost[operator]
                if work.sets_priority[operator]:
                    shown[element] = work.rank[element]
                if work.ends_at[element] == work.height[operator]:
                    break
                if work.above[operator] == SINK:
                    left_at[element] = clock
                    break
                between = work.above_operator[operator]
                if between == NO_BUFFER or (way.kind == DIRECT and shown[element] > 0):
                    operator = work.above[operator]
                    continue
                walked = put(waiting, way.kind, between, element, shown[element])
                clock += overhead.insert + overhead.step * walked
                inside += 1
                break
