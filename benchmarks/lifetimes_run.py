"""Both methods on one query and window, in this process: filled first, then measured in steady state.

1. On a prefix both must give equal results (`lifetimes_equality`); a difference ends the benchmark.
2. Each method gets the same micro-batches, made beforehand. Nothing counts until the window has been full once and one
   repetition more has been run.
3. Repetitions alternate, each on the next piece of the stream. One goes at least as far as the window is wide: every
   element that comes in it also goes, and whatever is done once per window is done in it.
4. What leaves is counted, by both in the same way; in steady state as many elements must have appeared.

A micro-batch has 20,000 tuples of each stream. Small ones would measure calls of Python rather than methods (with 5,000
tuples twice the time per tuple), larger ones change little (with 100,000 a tenth). Elements of windows of up to 10,000
rows end within it or the next, those of larger ones many micro-batches later.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from benchmarks.errors import UnequalResultsError
from benchmarks.lifetimes_equality import check_equal, results_of
from benchmarks.lifetimes_memory import memory_of
from benchmarks.lifetimes_plan import Operators, plan_of
from benchmarks.lifetimes_queries import QueryName, Tables, WindowKind, micro_batches, sources, tree_of
from streamjoin.algebra import Method
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Relation

METHODS: Final[tuple[Method, ...]] = get_args(Method)
MicroBatches = Sequence[tuple[Tables, dict[str, int]]]
Build = Callable[[Relation, Method], PhysicalPlan]


@dataclass(frozen=True)
class Effort:
    """How much is run: tuples of each stream in a micro-batch, at least in a repetition, in the comparison."""

    batch: int = 20_000
    tuples: int = 400_000
    compared: int = 60_000
    repetitions: int = 5


QUICK: Final = Effort(batch=500, tuples=2_000, compared=1_500, repetitions=2)


@dataclass
class Lane:
    """Operators that are fed, and what was measured of them."""

    name: str
    operators: Operators
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def feed(self, batches: MicroBatches, *, counted: bool) -> int:
        """Run some micro-batches; how many elements have appeared."""
        if counted:
            gc.collect()
        appeared, start, cpu = 0, time.perf_counter(), time.process_time()
        for rows, progress in batches:
            for results in self.operators.changes(rows, progress):
                if results.sign is None or results.sign[0] > 0:
                    appeared += len(results)
        if counted:
            self.seconds.append(time.perf_counter() - start)
            self.cpu.append(time.process_time() - cpu)
        return appeared


def measure(query: QueryName, kind: WindowKind, size: int, effort: Effort, build: Build = plan_of) -> Any:
    """Both methods, with a window of this size over each input; what was measured, as plain values."""
    tree = tree_of(query, kind, size)
    equal = compare(query, kind, size, effort, build)
    lanes = [Lane(method, Operators(build(tree, method))) for method in METHODS]
    tuples = run(query, size, effort, lanes)
    return {
        "tuples": tuples * len(sources(query)),
        "changes_compared": equal,
        **{lane.name: {"seconds": lane.seconds, "cpu": lane.cpu, **described(lane.operators)} for lane in lanes},
    }


def compare(query: QueryName, kind: WindowKind, size: int, effort: Effort, build: Build = plan_of) -> int:
    """Both methods on a prefix that a small window leaves behind many times; a larger one is made smaller for that."""
    small = min(size, effort.compared // 3)
    tree = tree_of(query, kind, small)
    results = [
        # The two are cut differently: that must not matter either.
        results_of(build(tree, method), query, effort.compared, batch)
        for method, batch in zip(METHODS, (effort.batch, effort.batch // 2 + 1), strict=True)
    ]
    return check_equal(f"{query} over a window of {small} {kind}", *results)


def run(query: QueryName, size: int, effort: Effort, lanes: Sequence[Lane]) -> int:
    """Fill the windows, warm up, and run the lanes in turn; how many tuples of a stream a repetition has."""
    at = (size // effort.batch + 2) * effort.batch
    for piece in micro_batches(query, 0, at, effort.batch):
        for lane in lanes:
            lane.feed([piece], counted=False)
    steps = -(-max(effort.tuples, size) // effort.batch)
    for repetition in range(effort.repetitions + 1):
        pieces = list(micro_batches(query, at, steps * effort.batch, effort.batch))
        at += steps * effort.batch
        in_turn = lanes if repetition % 2 else lanes[::-1]
        appeared = {lane.name: lane.feed(pieces, counted=repetition > 0) for lane in in_turn}
        if len(set(appeared.values())) > 1:
            raise UnequalResultsError(f"{query}, window {size}: elements that appeared in one repetition: {appeared}")
    return steps * effort.batch


def described(operators: Operators) -> dict[str, Any]:
    """What they keep."""
    memory = memory_of(operators)
    return {"nbytes": memory.nbytes, "holder_share": memory.share, "rows": operators.state_rows}
