"""What `streamjoin chaos` runs: deals the kills out to the joins and queries, and shows what came of them."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

from chaos.aims import Pace
from chaos.cases import Case, Outcome, Say
from chaos.catalog import kinds_of
from chaos.checkpoint import Where
from chaos.data import Shape
from chaos.kinds import Kind
from streamjoin.cli.local_spark import local_spark
from streamjoin.kernels.warm import load_kernels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HITS: Final[dict[Where, str]] = {
    "between": "between batches",
    "inside": "inside a batch",
    "state": "state written",
    "sink": "sink written",
}
LONGEST_CASE_SECONDS: Final = 600


@dataclass
class Chaos:
    """All that was asked for, and what has been done of it."""

    kills: int
    seed: int
    kinds: Sequence[Kind]
    executors: bool = False
    minutes: float | None = None
    shape: Shape = field(default_factory=Shape)

    def __post_init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.pace = Pace()
        self._end = time.monotonic() + 60 * self.minutes if self.minutes is not None else float("inf")

    @property
    def killed(self) -> int:
        """How many kills there were so far."""
        return sum(outcome.kills for outcome in self.outcomes)

    @property
    def good(self) -> bool:
        """Whether there were kills and no case speaks against its kind."""
        return self.killed > 0 and all(outcome.good for outcome in self.outcomes)

    def run(self, spark: SparkSession, folder: Path, say: Say) -> Iterator[Outcome]:
        """Case by case, in rounds with new data until all kills are done or time is up.

        Queries may end before their kills, and some may not be there yet, so a round may not be enough. A round
        without any kill is the last.
        """
        seed, kinds = self.seed, list(self.kinds)
        while self.killed < self.kills and kinds:
            before = self.killed
            for kind, share in deal(self.kills - before, kinds, seed):
                if time.monotonic() > self._end:
                    return
                case = Case(
                    kind,
                    seed,
                    folder / f"{kind.name}-{seed}",
                    deadline=time.monotonic() + LONGEST_CASE_SECONDS,
                    shape=self.shape,
                    pace=self.pace,
                    say=say,
                )
                outcome = (case.kill_executors if self.executors else case.kill_drivers)(spark, share)
                self.outcomes.append(outcome)
                if outcome.good:
                    shutil.rmtree(case.folder, ignore_errors=True)
                if outcome.skipped is not None:
                    kinds.remove(kind)
                yield outcome
            if self.killed == before:
                return
            seed += 1


def run_chaos(
    console: Console, *, kills: int, seed: int | None, joins: Sequence[str], minutes: float | None, executors: bool
) -> Chaos:
    """`streamjoin chaos`: kill, say where it hit, and print the table and the sum at the end."""
    kinds = kinds_of(joins)
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    chaos = Chaos(kills, seed, kinds, executors, minutes)
    victims = "executors" if executors else "drivers"
    say = partial(console.print, highlight=False, soft_wrap=True)
    say(f"{kills} kills of {victims} over {len(kinds)} joins and queries, seed {seed}")
    # Whoever is asked to end, ends its drivers too: as for ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="streamjoin-chaos-"))
    try:
        load_kernels()  # otherwise every driver would begin to compile them, and be killed while it does
        spark = local_spark()
        for outcome in chaos.run(spark, folder, partial(say, style="dim")):
            if not outcome.good:
                for line in failure_lines(outcome, folder, executors):
                    say(line, style="red", markup=False)
    finally:
        say(outcome_table(chaos))  # also of what was done until somebody stopped it
        say(summary(chaos), style="green" if chaos.good else "red")
        if all(outcome.good for outcome in chaos.outcomes):
            shutil.rmtree(folder, ignore_errors=True)
    return chaos


def deal(kills: int, kinds: Sequence[Kind], seed: int) -> list[tuple[Kind, int]]:
    """The kinds that get kills and how many each; where there are too few for all, the seed says who gets one.

    >>> kinds = kinds_of(["window-anti", "window-semi"])
    >>> [(kind.name, share) for kind, share in deal(5, kinds, seed=1)]
    [('window-anti', 3), ('window-semi', 2)]
    """
    each, more = divmod(kills, len(kinds))
    lucky = set(random.Random(seed).sample(range(len(kinds)), more)) if not each else set(range(more))
    shares = [(kind, each + (number in lucky)) for number, kind in enumerate(kinds)]
    return [(kind, share) for kind, share in shares if share]


def outcome_table(chaos: Chaos) -> Table:
    """A line per case."""
    table = Table(title="Killed, restarted, and compared with the batch", title_justify="left")
    table.add_column("join or query")
    for name in ("kills", *HITS.values(), "restarts", "rows compared"):
        table.add_column(name, justify="right")
    table.add_column("result")
    for outcome in chaos.outcomes:
        numbers = [outcome.kills, *(outcome.hits[where] for where in HITS), outcome.restarts]
        compared = "" if outcome.difference is None else f"{outcome.difference.rows:,}"
        table.add_row(outcome.kind.name, *map(str, numbers), compared, result_of(outcome))
    return table


def result_of(outcome: Outcome) -> str:
    """In a word or a few."""
    if outcome.skipped is not None:
        return "[yellow]skipped: not supported yet[/]"
    if outcome.failure is not None:
        return "[red]failed[/]"
    difference = outcome.difference
    assert difference is not None
    if difference.equal:
        return "[green]equal[/]"
    counts = {"lost": difference.lost, "repeated": difference.repeated, "invented": difference.invented}
    return "[red]" + ", ".join(f"{rows.total()} {name}" for name, rows in counts.items() if rows) + "[/]"


def failure_lines(outcome: Outcome, folder: Path, executors: bool) -> list[str]:
    """What went wrong, how to see it again, and where everything lies."""
    lines = [f"{outcome.kind.name}, seed {outcome.seed}: the output is not the batch's"]
    if outcome.failure is not None:
        lines = [f"{outcome.kind.name}, seed {outcome.seed}: {outcome.failure}"]
    elif outcome.difference is not None:
        lines += outcome.difference.describe()
    more = " --executors" if executors else ""
    lines.append(f"again: ./sj chaos --kills {outcome.asked} --seed {outcome.seed} --joins {outcome.kind.name}{more}")
    lines.append(f"kept: {folder / f'{outcome.kind.name}-{outcome.seed}'}")
    return lines


def summary(chaos: Chaos) -> str:
    """All of it in a line."""
    compared = [outcome.difference for outcome in chaos.outcomes if outcome.difference is not None]
    bad = sum(not outcome.good for outcome in chaos.outcomes)
    skipped = sum(outcome.skipped is not None for outcome in chaos.outcomes)
    victims = "executors" if chaos.executors else "drivers"
    parts = [
        f"{chaos.killed} of {chaos.kills} kills of {victims}",
        f"{len(compared)} queries compared",
        f"{sum(difference.rows for difference in compared):,} rows",
        f"{sum(difference.lost.total() for difference in compared)} lost",
        f"{sum(difference.repeated.total() + difference.invented.total() for difference in compared)} too many",
        f"{bad} failed",
    ]
    if skipped:
        parts.append(f"{skipped} skipped")
    unchecked = sum(outcome.files_unchecked for outcome in chaos.outcomes)
    if unchecked:
        parts.append(f"left files of {unchecked} not checked")
    return ", ".join(parts) + f"; seed {chaos.seed}"
