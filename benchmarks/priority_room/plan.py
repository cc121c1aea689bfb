"""Plans of operators that only take time, as in the document's experiment, and its rule for where buffers stand.

    source -B- priority -B- unary -B- join - unary -B- join - unary -B- join - unary -B- join - sink
    source -B- priority -B- unary -B-/             -B-/            -B-/            -B-/          (B: a buffer)

An element comes in at a source and goes up until an operator drops it or a sink has it. Costs are declared, and scaled
together so that all operators' work takes the declared share of the time: the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

SINK: Final = -1
NO_BUFFER: Final = -1

Kind = Literal["priority", "unary", "binary"]


@dataclass(frozen=True)
class Operator:
    """One operator: who is above it, its cost beside the others', and the share of elements that it lets pass."""

    kind: Kind
    above: int
    cost: float
    selectivity: float = 1.0


@dataclass(frozen=True)
class Plan:
    """Operators, and for each source the one above it."""

    operators: tuple[Operator, ...]
    sources: tuple[int, ...]

    def path(self, operator: int) -> list[int]:
        """An operator and all above it.

        >>> Plan((Operator("unary", 1, 1.0), Operator("unary", SINK, 1.0)), (0,)).path(0)
        [0, 1]
        """
        steps = []
        while operator != SINK:
            steps.append(operator)
            operator = self.operators[operator].above
        return steps

    def height(self, operator: int) -> int:
        """How many operators are above: no two on a path have the same."""
        return len(self.path(operator)) - 1

    @property
    def work(self) -> float:
        """What an element costs on average, in the unit of the declared costs."""
        total = 0.0
        for source in self.sources:
            alive = 1.0
            for number in self.path(source):
                total += alive * self.operators[number].cost
                alive *= self.operators[number].selectivity
        return total / len(self.sources)


@dataclass(frozen=True)
class Buffers:
    """Where buffers stand. They are numbered from the bottom up: a smaller number is lower in the plan, or as low."""

    of_source: Any  # by source: its buffer
    above_operator: Any  # by operator: the buffer on the way to the next one, or NO_BUFFER
    feeds: Any  # by buffer: the operator that takes its elements

    def __len__(self) -> int:
        return len(self.feeds)


def needs_buffer(below: Operator | None, above: Operator) -> bool:
    """The document's rule: above each source, above the priority operator, and below each binary operator.

    >>> needs_buffer(None, Operator("unary", SINK, 1.0))
    True
    >>> needs_buffer(Operator("binary", 1, 1.0), Operator("unary", SINK, 1.0))
    False
    """
    return below is None or below.kind == "priority" or above.kind == "binary"


def place_buffers(plan: Plan) -> Buffers:
    """All buffers of a plan by that rule."""
    edges: list[tuple[int, int | None, int]] = [
        (-plan.height(first) - 1, None, source) for source, first in enumerate(plan.sources)
    ]
    for number, operator in enumerate(plan.operators):
        if operator.above != SINK and needs_buffer(operator, plan.operators[operator.above]):
            edges.append((-plan.height(number), number, number))
    edges.sort(key=lambda edge: edge[0])
    of_source = np.full(len(plan.sources), NO_BUFFER)
    above_operator = np.full(len(plan.operators), NO_BUFFER)
    feeds = np.empty(len(edges), np.int64)
    for buffer, (_, below, number) in enumerate(edges):
        if below is None:
            of_source[number], feeds[buffer] = buffer, plan.sources[number]
        else:
            above_operator[number], feeds[buffer] = buffer, plan.operators[number].above
    return Buffers(of_source, above_operator, feeds)


def document_plan(sources: int = 16, seed: int = 1, priority_cost: float = 0.1) -> Plan:
    """The plan of the experiment: 61 operators of depth 9 over 16 sources, joined two by two.

    Costs are drawn: 0.5 to 1.5 for a unary operator, twice as much for a binary one, little for setting priorities.
    Every second unary one, drawn too, lets nine of ten elements pass, the others all.
    """
    random = np.random.default_rng(seed)
    operators: list[Operator] = []

    def add(kind: Kind, cost: float, selectivity: float = 1.0, inputs: Sequence[int] = ()) -> int:
        operators.append(Operator(kind, SINK, cost, selectivity))
        above = len(operators) - 1
        for below in inputs:
            done = operators[below]
            operators[below] = Operator(done.kind, above, done.cost, done.selectivity)
        return above

    def unary(below: int) -> int:
        return add("unary", float(random.uniform(0.5, 1.5)), float(random.choice([1.0, 0.9])), [below])

    first = tuple(add("priority", priority_cost) for _ in range(sources))
    tops = [unary(below) for below in first]
    while len(tops) > 1:
        joins = [
            add("binary", float(random.uniform(1.0, 3.0)), 1.0, [left, right])
            for left, right in zip(tops[::2], tops[1::2], strict=True)
        ]
        tops = [unary(join) for join in joins] if len(joins) > 1 else joins  # the last join is the top
    return Plan(tuple(operators), first)
