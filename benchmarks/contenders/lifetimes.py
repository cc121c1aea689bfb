"""Both methods for lifetimes in one process: a race, a comparison of sorting, or one very large window."""

from __future__ import annotations

import resource
import sys
from typing import Any

import pyarrow as pa

from benchmarks.insertion_sort import with_expiry_lists
from benchmarks.lifetimes_plan import Operators, plan_of
from benchmarks.lifetimes_queries import micro_batches, sources, tree_of
from benchmarks.lifetimes_run import Effort, Lane, described, measure, run
from benchmarks.one_shot import Answer, answer


def do(request: dict[str, Any]) -> Answer:
    """What is asked for, on one thread."""
    pa.set_cpu_count(1)
    effort = Effort(**request["effort"])
    what = {"race": _race, "sorting": _sorting, "large": _large}[request["job"]]
    return what(request, effort)


def _race(request: dict[str, Any], effort: Effort) -> Answer:
    return {"sizes": [measure(request["query"], request["kind"], size, effort) for size in request["sizes"]]}


def _sorting(request: dict[str, Any], effort: Effort) -> Answer:
    """The direct join of time windows, with its areas' lists sorted in these ways."""
    size = request["size"]
    plan = plan_of(tree_of("join", "time", size), "direct")
    lanes = [Lane(name, with_expiry_lists(Operators(plan), name)) for name in request["sortings"]]
    tuples = run("join", size, effort, lanes) * len(sources("join"))
    return {"tuples": tuples, **{lane.name: lane.seconds for lane in lanes}}


def _large(request: dict[str, Any], effort: Effort) -> Answer:
    """One method with one window, filled and then as many tuples more; the most memory that the process ever had."""
    query, size = request["query"], request["size"]
    before = peak_memory()
    operators = Operators(plan_of(tree_of(query, "rows", size), request["method"]))
    lane = Lane(request["method"], operators)
    for piece in micro_batches(query, 0, size + effort.batch, effort.batch):
        lane.feed([piece], counted=False)
    for piece in micro_batches(query, size + effort.batch, effort.tuples, effort.batch):
        lane.feed([piece], counted=True)
    tuples = len(lane.seconds) * effort.batch * len(sources(query))
    return {
        "tuples": tuples,
        "seconds": sum(lane.seconds),
        "peak": peak_memory(),
        "before": before,
        **described(operators),
    }


def peak_memory() -> int:
    """The most memory that this process ever had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


if __name__ == "__main__":
    answer(do)
