"""How fast are four inputs joined at once, on one thread, beside what users would pick instead?

4 x about 1M rows in arrays (see `nway_data`), with 1 to 1,000 intermediate results that come to nothing for every
result, whatever order of joins of two is chosen.

overlap    value intervals that share a point, against DuckDB, Polars and a cascade of our own kernel
equality   equal keys and validities that overlap, likewise
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.kernel_tables import kernel_table
from benchmarks.kernels import KernelOutcome
from benchmarks.nway_data import INPUTS, make, write
from benchmarks.race import Contender, Verdict, check_one_core, race, ratio
from benchmarks.worker import ONE_THREAD, WARM_MEMORY, Worker

QUESTIONS: Final = ("overlap", "equality")
DANGLING: Final = (1, 10, 100, 1000)
ROWS: Final = 1_000_000
QUICK_ROWS: Final = 20_000
CASCADE: Final = "our own cascade"
PEERS: Final = {"DuckDB": "nway_duckdb", "Polars": "nway_polars"}
TAKE_MINUTES: Final = {("overlap", "Polars")}  # its join by inequalities; shown, and not judged

Say = Callable[[str], None]


def outcomes(
    progress: AbstractContextManager[Say],
    asked: Sequence[str],
    quick: bool,
    repetitions: int,
    folder: Path,
    peers_python: Path,
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave with so many dangling, as soon as it is there."""
    rows = QUICK_ROWS if quick else ROWS
    with progress as say:
        for question in asked:
            for dangling in DANGLING:
                say(f"{question}, {dangling:,} intermediate results for each result ...")
                there = folder / question / str(dangling)
                raced, verdicts = measure(question, dangling, rows, repetitions, there, peers_python)
                yield raced.question, verdicts, raced, kernel_table(raced)


def measure(
    question: str,
    dangling: int,
    rows: int,
    repetitions: int,
    folder: Path,
    peers_python: Path,
    peers: Mapping[str, str] = PEERS,
) -> tuple[KernelOutcome, list[Verdict]]:
    """Race the join at once against the cascade and the peers."""
    write(question, make(question, rows, dangling), folder)
    contenders: list[Contender] = []
    entered = [("streamjoin", sys.executable, "nway_ours"), (CASCADE, sys.executable, "nway_cascade")]
    entered += [(label, str(peers_python), module) for label, module in peers.items()]
    with ExitStack() as stack:
        for label, python, module in entered:
            worker = Worker(python, f"benchmarks.contenders.{module}", ROOT, **ONE_THREAD, **WARM_MEMORY)
            stack.enter_context(worker)
            worker.load(question, folder)
            run = lambda worker=worker: worker.run(question, "pairs")  # noqa: E731
            contenders.append(Contender(label, run, at_most=1 if (question, label) in TAKE_MINUTES else None))
        race(contenders, repetitions)
    check_one_core(contenders)
    name = f"{question}, {dangling:,} dangling"
    judged = [peer for peer in (*peers, CASCADE) if peer in ("DuckDB", CASCADE)]  # Polars is shown, and has no target
    verdicts = [_against(name, contenders, peer, question, dangling) for peer in judged]
    return KernelOutcome(name, rows, contenders, verdicts[0], inputs=INPUTS), verdicts


def target(question: str, peer: str, dangling: int) -> float:
    """How many times as fast as a peer the join at once is to be."""
    if peer == CASCADE:
        return 2.5 if question == "overlap" else 5.0
    if question == "overlap":
        return 8.0
    return 0.9 if dangling < DANGLING[1] else 1.3


def _against(name: str, contenders: list[Contender], peer: str, question: str, dangling: int) -> Verdict:
    other = next(each for each in contenders if each.label == peer)
    measured = ratio(contenders[0], other)
    text = f"{measured:.2f} times as fast as {peer} ({contenders[0].median:.3f} s against {other.median:.3f} s)"
    return Verdict(f"{name}, {peer}", measured, target(question, peer, dangling), text)
