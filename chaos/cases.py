"""One case: a join or a query over data of its own, killed, restarted, brought to its end, and compared."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamjoin as sj
from chaos import data
from chaos.aims import MOMENTS, Aim, Moment, Pace, draw_aim, wait_for
from chaos.checkpoint import Checkpoint, Where
from chaos.comparison import Difference, compare_query
from chaos.data import Shape
from chaos.errors import ChaosError
from chaos.kinds import Kind
from chaos.lives import Life
from chaos.local_files import run_files
from chaos.processes import Process, kill, processes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVERS_MASTER: Final = "local[2]"
EXECUTORS_MASTER: Final = "local-cluster[2,1,1500]"
EXECUTOR: Final = "CoarseGrainedExecutorBackend"

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What was done to a case, and what came of it."""

    kind: Kind
    seed: int
    asked: int
    hits: Counter[Where] = field(default_factory=Counter)
    restarts: int = 0
    difference: Difference | None = None
    skipped: str | None = None
    failure: str | None = None
    files_unchecked: bool = False  # nobody spilled after the last kill, so whatever was left could still be there

    @property
    def kills(self) -> int:
        """How many there were."""
        return self.hits.total()

    @property
    def good(self) -> bool:
        """Whether nothing speaks against its kind; a case that was skipped says nothing."""
        return self.failure is None and (self.difference is None or self.difference.equal)


@dataclass
class Case:
    """A join or a query, its data and its folder, and how long there is for it (a point in `time.monotonic`)."""

    kind: Kind
    seed: int
    folder: Path
    deadline: float
    shape: Shape = field(default_factory=Shape)
    pace: Pace = field(default_factory=Pace)
    say: Say = lambda _: None

    def __post_init__(self) -> None:
        files = min(self.shape.files, self.kind.most_files)
        self.shape = replace(self.shape, files=files, closing=not self.kind.finished)
        self.checkpoint = Checkpoint(self.folder)
        self.rng = random.Random(f"{self.seed}/{self.kind.name}/kills")
        self.lives: list[Life] = []

    def kill_drivers(self, spark: SparkSession, kills: int) -> Outcome:
        """Kill the driver again and again; each time another one goes on from the checkpoint."""
        return self._carry_out(spark, kills, self._kill_drivers)

    def kill_executors(self, spark: SparkSession, kills: int) -> Outcome:
        """Kill executors of one driver, which has to make do with the others until Spark has started new ones."""
        return self._carry_out(spark, kills, self._kill_executors)

    def _carry_out(self, spark: SparkSession, kills: int, killing: Callable[[Outcome], None]) -> Outcome:
        outcome = Outcome(self.kind, self.seed, kills)
        self.folder.mkdir(parents=True, exist_ok=True)
        seed, kind = f"{self.seed}/{self.kind.name}", self.kind
        data.write(self.folder / "in", seed, self.shape, late=kind.late, distinct=kind.distinct)
        try:
            self.kind.stream(spark, self.folder / "in")
        except sj.UnsupportedError as error:
            outcome.skipped = error.message
            return outcome
        except sj.StreamjoinError as error:  # the case itself is wrong: the others go on
            outcome.failure = str(error)
            return outcome
        try:
            killing(outcome)
            outcome.restarts = len(self.lives) - 1
            if self.kind.spills:
                outcome.files_unchecked = not self._check_files()
            outcome.difference = compare_query(spark, self.kind, self.folder)
        except ChaosError as error:
            outcome.failure = str(error)
            return outcome
        if outcome.difference.rows == 0:
            outcome.failure = "the case itself is wrong: it has no results"
        return outcome

    # -- drivers -------------------------------------------------------------------------------------------------------

    def _kill_drivers(self, outcome: Outcome) -> None:
        for aim in self._aims(outcome, MOMENTS):
            with self._live(DRIVERS_MASTER) as life:
                if not wait_for(aim, life, self.checkpoint, self.pace):
                    life.check_end()
                    self.pace.missed()
                    self.say(f"{self.kind.name}: the query ended before its kill")
                    return
                life.kill()
            left = f", which left {len(run_files(life.scratch))} files of runs" if self.kind.spills else ""
            self._count(outcome, self.checkpoint.where(), f"driver {life.session} killed{left}")
        with self._live(DRIVERS_MASTER) as life:
            life.finish()

    # -- executors -----------------------------------------------------------------------------------------------------

    def _kill_executors(self, outcome: Outcome) -> None:
        with self._live(EXECUTORS_MASTER) as life:
            for aim in self._aims(outcome, ("batch", "state")):
                if not wait_for(aim, life, self.checkpoint, self.pace, cold=outcome.kills == 0):
                    break
                where = self.checkpoint.where()  # now, since the query goes on
                executor = self._choose_executor(life)
                if executor is None:
                    break
                _kill_and_see(executor)
                self._count(outcome, where, f"executor {executor.pid} killed")
            life.finish()

    def _choose_executor(self, life: Life) -> Process | None:
        """One of the executors that this driver has, as soon as there is one; None when the driver has ended."""
        while not life.ended():
            executors = [process for process in processes_of(life.session) if EXECUTOR in process.command]
            if executors:
                return self.rng.choice(executors)
            time.sleep(0.02)
        return None

    # -- both ----------------------------------------------------------------------------------------------------------

    def _aims(self, outcome: Outcome, moments: tuple[Moment, ...]) -> Iterator[Aim]:
        """As many aims as kills were asked for, taking the moments in turn."""
        turn = self.rng.randrange(len(moments))
        for number in range(outcome.asked):
            left = self.shape.batches - self.checkpoint.committed()
            yield draw_aim(self.rng, moments[(turn + number) % len(moments)], left, outcome.asked - number)

    def _live(self, master: str) -> Life:
        life = Life(self.kind.name, self.folder, len(self.lives) + 1, master=master, deadline=self.deadline)
        self.lives.append(life)
        return life

    def _check_files(self) -> bool:
        """State was in files, and neither those who were killed nor those who ended left any of them. Whoever spills
        next removes them: where the last one found nothing left to do, this cannot be checked.
        """
        batches = [[event for event in life.events() if event["event"] == "batch"] for life in self.lives]
        if not any(event["runs"] for events in batches for event in events):
            raise ChaosError("the case itself is wrong: nothing of its state was in files")
        if batches[-1] and (left := run_files(self.lives[-1].scratch)):
            raise ChaosError(f"{len(left)} files of runs are left in the local folders, such as {left[0]}")
        return bool(batches[-1])

    def _count(self, outcome: Outcome, where: Where, what: str) -> None:
        outcome.hits[where] += 1
        batch = self.checkpoint.begun()
        self.say(f"{self.kind.name}: {what}; kill {outcome.kills} of {outcome.asked}, {where}, batch {batch} begun")


def _kill_and_see(executor: Process) -> None:
    """Kill an executor, and make sure of it."""
    kill(executor.pid)
    patience = time.monotonic() + 10
    while any(process.pid == executor.pid for process in processes_of(executor.session)):
        if time.monotonic() > patience:
            raise ChaosError(f"executor {executor.pid} survives SIGKILL")
        time.sleep(0.005)
