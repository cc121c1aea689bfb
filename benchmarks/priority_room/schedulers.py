"""Schedulers: functions that pick the buffer whose turn it is, and say at how many buffers they looked.

    round robin             the buffers in a fixed order, those with nothing in them are passed
    min-cost                the same, from the bottom of the plan up (Aurora)
    min-latency             the same, whole paths to the sink, cheapest path first (Aurora)
    biggest queue           the one in which most elements wait
    highest priority        the one in which the highest priority waits; of several the lowest in the plan
    priority, min-latency   that one if a prioritised element waits anywhere, else min-latency (the document's proposal)

As a train (`+`) a turn takes up to `TRAIN` elements of the buffer instead of one: no matter of the scheduler.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks.priority_room.buffers import Waiting, compiled
from benchmarks.priority_room.plan import NO_BUFFER, Buffers, Plan

SCHEDULERS: Final = (
    "round robin",
    "min-cost",
    "min-latency",
    "biggest queue",
    "highest priority",
    "priority, min-latency",
)
ROUND_ROBIN, MIN_COST, MIN_LATENCY, BIGGEST_QUEUE, HIGHEST_PRIORITY, PROPOSAL = range(6)
TRAIN: Final = 100


@compiled
def pick(scheduler: int, waiting: Waiting, order: Any, turn: Any) -> tuple[int, int]:
    """The next buffer by the scheduler of that number; somewhere an element waits."""
    if scheduler == BIGGEST_QUEUE:
        return biggest_queue(waiting)
    if scheduler == HIGHEST_PRIORITY:
        return highest_priority(waiting)
    if scheduler == PROPOSAL:
        return priority_then_order(waiting, order, turn)
    return next_in_order(waiting, order, turn)


@compiled
def next_in_order(waiting: Waiting, order: Any, turn: Any) -> tuple[int, int]:
    """The next one of a fixed order that is not empty. `turn[0]` is where the order stands."""
    looked = 0
    while True:
        buffer = order[turn[0]]
        turn[0] = (turn[0] + 1) % len(order)
        looked += 1
        if waiting.size[buffer] > 0:
            return buffer, looked


@compiled
def biggest_queue(waiting: Waiting) -> tuple[int, int]:
    """The fullest one; of several the lowest in the plan."""
    chosen = 0
    for buffer in range(len(waiting.size)):
        if waiting.size[buffer] > waiting.size[chosen]:
            chosen = buffer
    return chosen, len(waiting.size)


@compiled
def highest_priority(waiting: Waiting) -> tuple[int, int]:
    """The one in which the highest priority waits; of several the lowest in the plan."""
    chosen = 0
    for buffer in range(len(waiting.top)):
        if waiting.top[buffer] > waiting.top[chosen]:
            chosen = buffer
    return chosen, len(waiting.top)


@compiled
def priority_then_order(waiting: Waiting, order: Any, turn: Any) -> tuple[int, int]:
    """The highest priority if there is one, else the next in order."""
    chosen, looked = highest_priority(waiting)
    if waiting.top[chosen] > 0:
        return chosen, looked
    chosen, further = next_in_order(waiting, order, turn)
    return chosen, looked + further


def order_of(scheduler: int, plan: Plan, buffers: Buffers, seed: int = 3) -> Any:
    """The fixed order of a scheduler that has one. Round robin's is drawn: as operators happen to stand in a plan."""
    if scheduler in (MIN_LATENCY, PROPOSAL):
        cheapest = sorted(range(len(buffers)), key=lambda buffer: _cost_to_sink(plan, buffers, buffer))
        return np.array([step for buffer in cheapest for step in path_of_buffers(plan, buffers, buffer)])
    if scheduler == MIN_COST:
        return np.arange(len(buffers))
    return np.random.default_rng(seed).permutation(len(buffers))


def path_of_buffers(plan: Plan, buffers: Buffers, buffer: int) -> list[int]:
    """A buffer and all that its elements will come to."""
    above = (buffers.above_operator[operator] for operator in plan.path(buffers.feeds[buffer]))
    return [buffer, *(int(each) for each in above if each != NO_BUFFER)]


def _cost_to_sink(plan: Plan, buffers: Buffers, buffer: int) -> float:
    return sum(plan.operators[operator].cost for operator in plan.path(buffers.feeds[buffer]))
