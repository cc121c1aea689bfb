"""The simulator of batches under a budget: rows come to a bucket in pieces, and spill. What leaves is the oracle's.

    python -m tests.batch_simulator --runs 2000            so many of each family
    python -m tests.batch_simulator --family asof --replay 4711

Cases are those of `tests.simulator`, over inputs that have ended, some of them without time. Inner joins run by PMJ,
with lists of a few rows and pages of one or a few; others in sweep areas. Nothing may be left in files.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Similar
from streamjoin.operators import Pmj
from streamjoin.operators.pmj import Budget
from streamjoin.runtime.lateness import Complete
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage, Stage
from tests import oracle, seeds
from tests.in_process import _travelled
from tests.interpreter import InProcess
from tests.joins import JoinCall
from tests.simulator import FAMILIES, Case, Left, check_left, table


@dataclass
class InPieces(InProcess):
    """A plan at work under a budget, in a folder."""

    rng: random.Random = field(default_factory=lambda: random.Random(0))
    folder: str = ""
    spilled: int = 0  # bytes that were in files while rows still came, at most

    def _stage(self, number: int, bucket: int) -> RunningStage:
        self.running[number, bucket] = budgeted(self.plan.stages[number], self.rng).build(
            bucket, f"{self.folder}/{number}-{bucket}"
        )
        return self.running[number, bucket]

    def travelled(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        """They come in any order, the inputs mixed."""
        come = list(packets)
        self.rng.shuffle(come)
        for packet in come:
            self.spilled = max(self.spilled, *(each.fragment.footprint.spilled for each in self.running.values()), 0)
            yield packet

    @property
    def by_pmj(self) -> bool:
        """Whether the join runs by merging sorted runs."""
        return isinstance(self.plan.stages[0].nodes[0].config, Pmj)

    def figure(self, name: str) -> int:
        """A figure, summed over all operators."""
        return sum(running.fragment.figure(name) for running in self.running.values())


def budgeted(stage: Stage, rng: random.Random) -> Stage:
    """A stage that has hardly any memory."""

    def small(config: Any) -> Any:
        page = rng.choice((1, 1, 3))
        budget = Budget(rng.randint(1, 25), page * rng.choice((1, 8, 40)), page, rng.choice((1, 200, 10_000)))
        return replace(config, budget=budget, row_bytes=1) if isinstance(config, Pmj) else config

    nodes = tuple(replace(node, config=small(node.config)) for node in stage.nodes)
    return replace(_travelled(stage), nodes=nodes, memory=rng.choice((1, 1_000)))


def draw_case(seed: int, family: str) -> Case:
    """A case of a family, over inputs that have ended."""
    case, rng = FAMILIES[family](seed), random.Random(seed + 7)
    call = replace(case.call, late=("drop", "drop"), lateness=(Complete(), Complete()))
    if case.chosen is None and rng.random() < 0.6:  # what PMJ is for
        call = replace(call, how="inner", emit="eager")
    restricted = bool(call.keys or call.predicates)
    if call.windowed and call.outer == "row" and restricted and rng.random() < 0.3:
        over_values = any(not isinstance(predicate, Similar) for predicate in call.predicates)
        call = replace(call, windows=(None, None), cell=call.cell if over_values else None)
    return replace(case, call=call, slack=(10**9, 10**9), regime="within slack")


def run_case(case: Case, folder: str | Path) -> InPieces:
    """Run a case; an AssertionError says how it differs from the oracle."""
    rng, call = random.Random(case.seed + 1), case.call
    running, left = InPieces(replace(call, memory=1).plan(), rng=rng, folder=str(folder)), Left(call)
    model = oracle.Arrivals(case.match, call.windowed, case.slack)
    model.micro_batch(dict(enumerate(case.arrivals)))
    tables = {str(number): table(rows, call.schemas[number]) for number, rows in enumerate(case.arrivals)}
    left.add(running.batch({name: cut(rng, whole) for name, whole in tables.items()}))
    check_left(case, model, left)
    assert running.by_pmj == runs_by_pmj(call), "not the operator that was expected"
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert not running.by_pmj or not files, f"files are left behind: {files}"
    return running


def runs_by_pmj(call: JoinCall) -> bool:
    """Which joins do, said once more."""
    return call.choice is None and call.how == "inner" and call.emit == "eager"


def cut(rng: random.Random, whole: pa.Table) -> list[pa.Table]:
    """Rows as tasks bring them: in any number of pieces."""
    at = sorted(rng.randint(0, whole.num_rows) for _ in range(rng.choice((0, 2, 9))))
    return [whole.slice(start, stop - start) for start, stop in zip([0, *at], [*at, whole.num_rows], strict=True)]


def simulate(seed: int, family: str, folder: str | Path) -> InPieces:
    """Draw and run one case; failures name the seed that replays them."""
    case = draw_case(seed, family)
    try:
        return run_case(case, folder)
    except Exception as error:
        raise AssertionError(
            f"{case.describe()}\nreplay: python -m tests.batch_simulator --family '{family}' --replay {seed}\n{error!r}"
        ) from error


def main() -> int:
    return seeds.in_folders(__doc__, FAMILIES, simulate)


if __name__ == "__main__":
    sys.exit(main())
