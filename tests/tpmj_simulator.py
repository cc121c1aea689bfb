"""The simulator of joins in sorted runs (TPMJ): any cut, restart, budget and strategy gives what the oracle gives.

    python -m tests.tpmj_simulator --runs 2000             as long as one likes
    python -m tests.tpmj_simulator --replay 4711           one run again, with what it did

Cases are those of `tests.many_simulator`, with two inputs too, and with budgets so small that every page is written;
the tree of the call is lowered, and its plan runs stage by stage and bucket by bucket.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from streamjoin.algebra import Adaptive, Greedy, MaxFanIn, MergeStrategy, Rows
from streamjoin.operators.tpmj import Shares, Tpmj
from streamjoin.plan.multi_join import MultiJoin, for_all
from streamjoin.plan.physical import PhysicalPlan
from tests import seeds
from tests.many_simulator import (
    Between2,
    Case,
    _draw_arrivals,
    _draw_predicate,
    _draw_window,
    _end_of,
    run_case,
)

KINDS = ("k", "s", "band", "band_int", "overlap", "chain", "mixed")


@dataclass
class MergedCase(Case):
    """A case that runs in sorted runs. `budget`: what is changed of the operator before it runs."""

    merge: MergeStrategy = field(default_factory=MaxFanIn)
    budget: tuple[tuple[str, Any], ...] = ()
    scratch: str | None = None
    resumed: int = 0  # times that it went on elsewhere in the middle of a merge

    def relation(self) -> MultiJoin:
        return replace(super().relation(), merge=self.merge)

    def plan(self) -> PhysicalPlan:
        plan = super().plan()
        stages = []
        for stage in plan.stages:
            nodes = [
                replace(node, config=replace(node.config, **dict(self.budget)))
                if isinstance(node.config, Tpmj)
                else node
                for node in stage.nodes
            ]
            stages.append(replace(stage, nodes=tuple(nodes)))
        return replace(plan, stages=tuple(stages))

    def describe(self) -> str:
        return f"{super().describe()} merge={self.merge} budget={self.budget} in files: {self.scratch is not None} " + (
            f"resumed in the middle of a merge: {self.resumed} times"
        )


def _between(rng: random.Random, kind: str, inputs: int) -> list[Between2]:
    if kind == "chain":  # bands from one to the next: what they allow adds up
        ends = [(rng.randrange(number), number) for number in range(1, inputs)]
        ends = [each if rng.random() < 0.5 else each[::-1] for each in ends]
        return [(*each, *_draw_predicate(rng, "band")) for each in ends]
    kinds = [rng.choice(["overlap", "band", "band_int"]), rng.choice(["k", "s", "z"])] if kind == "mixed" else [kind]
    between: list[Between2] = []
    for predicate in [_draw_predicate(rng, each) for each in kinds]:
        between += [(*ends, *predicate) for ends in for_all(inputs)]
    if rng.random() < 0.2:  # what the order does not decide is tested
        between.append((*rng.sample(range(inputs), 2), *_draw_predicate(rng, rng.choice(["within", "k", "overlap"]))))
    return between


def draw_case(seed: int) -> MergedCase:
    """A case from a seed. Budgets are of a few rows, pages of one or a few."""
    rng = random.Random(seed)
    inputs, kind = rng.choice([2, 2, 3, 3, 4, 5]), rng.choice(KINDS)
    between = _between(rng, kind, inputs)
    regime = rng.choice(["within slack", "within slack", "late"])
    windows = [_draw_window(rng) for _ in range(inputs)]
    most = {2: 40, 3: 24, 4: 14, 5: 10}[inputs]
    slack = [rng.randint(0, 6) for _ in range(inputs)]
    arrivals = []
    for number in range(inputs):
        size = rng.randint(2, most) if rng.random() < 0.95 else 0
        rows = _draw_arrivals(
            rng, size, rng.choice([5, 20, 60]), slack[number] + (8 if regime == "late" else 0), windows[number]
        )
        for row in rows:
            row["id"] = rng.randint(0, 200)
            assert not isinstance(windows[number], Rows)
            row["te"] = _end_of(row, 0, windows[number], None)
        arrivals.append(rows)
    fan_in = rng.choice([None, 2, 2, 3])
    merge = rng.choice([
        MaxFanIn(fan_in), MaxFanIn(fan_in, traversal="level order"), Greedy(fan_in),
        Adaptive(fan_in, high=rng.choice([0.5, 2.0])),
    ])  # fmt: skip
    page = rng.choice([1, 1, 3])
    budget = {
        "memory": Shares(rng.randint(1, 25), inputs * page * rng.randint(3, 9), rng.choice([1, 200, 10_000])),
        "page_bytes": page, "row_bytes": (1,) * inputs, "credit": rng.choice([0.5, 3.0, 3.0, 50.0]),
        "leaf_emits": rng.random() < 0.5, "ends_in_memory": rng.random() < 0.5, "merges_lists": rng.random() < 0.3,
    }  # fmt: skip
    late = [rng.choice(["drop", "output"]) for _ in range(inputs)]
    buckets, cell, trouble = rng.choice([1, 1, 2, 3, 4]), rng.choice([None, 1.0, 3.0, 20.0]), rng.choice([0, 0.3, 0.3])
    if (waiting := random.Random(f"{seed} waits")).random() < 0.5:
        # Merges that wait for credit, and buckets that go on elsewhere meanwhile: with usual budgets one case in sixty.
        budget |= {"credit": waiting.choice([0.5, 1.0, 2.0]), "compulsory": None, "merges_lists": False}
        trouble = 0.5
    return MergedCase(
        seed, between, windows, slack, arrivals, "ordered", "auto", late,
        buckets, cell, trouble, regime, kind,
        merge=merge, budget=tuple(budget.items()), scratch="files" if rng.random() < 0.3 else None,
    )  # fmt: skip


@contextmanager
def in_files(case: MergedCase) -> Iterator[None]:
    """Runs lie in files of a folder, where the case says so."""
    if case.scratch is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="streamjoin-tpmj-") as folder:
        case.budget = (*case.budget, ("folder", folder))
        yield
        case.budget = case.budget[:-1]


def simulate(seed: int) -> MergedCase:
    """Draw and run one case; failures name the seed that replays them."""
    case = draw_case(seed)
    try:
        with in_files(case):
            case.resumed = run_case(case).resumed
    except Exception as error:
        raise AssertionError(
            f"{case.describe()}\nreplay: python -m tests.tpmj_simulator --replay {seed}\n{error!r}"
        ) from error
    return case


def main() -> int:
    return seeds.command(seeds.parser(__doc__).parse_args(), simulate, MergedCase.describe)


if __name__ == "__main__":
    sys.exit(main())
