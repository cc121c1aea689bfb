"""Calibration, then three runs at 1.5 times the throughput that it found.

lanes           urgent rows in a lane of their own, the others in one with a limit
one lane        all rows in one lane, with the same limit
no limit        all rows in one lane, and a micro-batch takes whatever is there

The model is asked with the a and b of the micro-batches that were measured in the three runs: without a limit nearly
all of a second's work is b, so an error of a tenth in it is one of several times in how long the backlog becomes. What
it says with those of the calibration is told beside it; and that rows came nearly 1.5 times as fast as micro-batches of
a million rows took them in these runs is a line of its own, or a calibration that says too little would make an
overload that is none, and a model that asks for nothing.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.environments import ROOT
from benchmarks.one_shot import ask
from benchmarks.priority_lanes.arrivals import LIMITS_EVERY, STEP, overload_rows, steps_of, write_files
from benchmarks.priority_lanes.model import Load, Modelled, Policy, drawn
from benchmarks.priority_lanes.waits import LaneBatch, LaneRun, check_same, percentile
from benchmarks.race import Verdict

OVERLOAD: Final = 1.5
AT_LEAST: Final = 1.4  # of the throughput in the runs
BATCH_SECONDS: Final = 2.0  # of the median micro-batch, at most
# What waits in a lane without a limit waits for two micro-batches at most: shorter ones are the better for it, at the
# price of throughput, 1 - a / T of it. With 2 s as the aim half of them would be longer.
AIM: Final = 0.6 * BATCH_SECONDS
LANES_RUN, LIMITED_RUN, FREE_RUN = "lanes, limit", "one lane, limit", "one lane, no limit"
GAIN: Final = 20.0
SHARE_OF_MODEL: Final = 0.8
TIMES_A_BATCH: Final = 2.0
CONTENDER: Final = "benchmarks.contenders.stream_lanes"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much is done: seconds of overload; rows of a large micro-batch; the sizes of those of the calibration that
    count, as shares of it, behind `cold` large ones; and how many micro-batches each run has to warm up, too.
    """

    seconds: float
    large: int = 1_000_000
    cold: int = 80  # a Java machine becomes faster for minutes: too low a throughput would be no overload
    # Without a limit micro-batches have up to twenty million rows, so some must be as large for b to be theirs, too.
    sizes: tuple[float, ...] = (
        1.0, 0.1, 1.0, 0.5, 4.0, 0.2, 1.0, 0.3, 1.0, 12.0, 0.1, 1.0, 0.6, 1.0, 4.0, 1.0, 0.2, 1.0, 12.0, 1.0,
    )  # fmt: skip
    warm: int = 24


FULL: Final = Effort(seconds=120.0)
QUICK: Final = Effort(seconds=6.0, large=200_000, cold=3, sizes=(1.0, 0.1, 1.0, 0.1), warm=2)


@dataclass(frozen=True)
class Calibration:
    """Rows of a large micro-batch, and per second in those; a and b of a + b * rows; the limit in rows that
    `sj.lane_limit` gave.
    """

    large: int
    throughput: float
    a: float
    b: float
    limit_rows: int

    @property
    def rate(self) -> float:
        return OVERLOAD * self.throughput

    @property
    def limit(self) -> int:
        """Steps of normal rows in a micro-batch, rounded down. The urgent rows that arrive meanwhile are part of it."""
        (step,) = steps_of(overload_rows(self.rate, STEP, 0))
        beside = step.urgent * AIM / STEP
        return max(1, int((self.limit_rows - beside) // step.normal))


@dataclass(frozen=True)
class Outcome:
    """The three runs, lanes first, a and b of their micro-batches; the model's runs with these, and how many times
    shorter urgent rows would wait by its runs with the calibration's.
    """

    calibration: Calibration
    a: float
    b: float
    seconds: float
    runs: dict[str, LaneRun]
    models: dict[str, Modelled]
    calibrated: dict[str, Modelled]

    def p99(self, name: str) -> float:
        """Of the latency of urgent results."""
        return percentile(self.runs[name].latencies("urgent"), 99)

    def gain(self, other: str) -> float:
        """How many times longer urgent results wait in another run; only where the results are equal."""
        check_same(list(self.runs.values()))
        return self.p99(other) / self.p99(LANES_RUN)

    def model_gain(self, other: str) -> float:
        """The same in the model."""
        return _gain(self.models, other)

    @property
    def overload(self) -> float:
        """How many times as many rows came as large micro-batches take, by the runs' a and b."""
        large = self.calibration.large
        return self.calibration.rate * (self.a + self.b * large) / large

    @property
    def verdicts(self) -> list[Verdict]:
        """What must come out."""
        batches, urgent = self.runs[LANES_RUN].seconds, self.p99(LANES_RUN)
        median, longest = statistics.median(batches), percentile(batches, 99)
        times = urgent / longest
        made = [
            Verdict("lanes: overload", self.overload, AT_LEAST, f"{self.overload:.2f} times what micro-batches do"),
            Verdict("lanes: seconds of a micro-batch", median, BATCH_SECONDS, f"median {median:.2f} s", at_most=True),
            Verdict(
                "lanes: p99 of urgent latency over p99 of a micro-batch", times, TIMES_A_BATCH,
                f"{times:.2f} times ({urgent:.2f} s against {longest:.2f} s)", at_most=True,
            ),
        ]  # fmt: skip
        for other in (LIMITED_RUN, FREE_RUN):
            model, gain = self.model_gain(other), self.gain(other)
            waits = f"{urgent:.2f} s against {self.p99(other):.2f} s"
            says = f"{model:.1f}, and {_gain(self.calibrated, other):.1f} with the calibration's a and b"
            text = f"{gain:.1f} times ({waits}; the model says {says})"
            target = min(GAIN, SHARE_OF_MODEL * model)
            made.append(Verdict(f"lanes: p99 of urgent latency below {other}", gain, target, text))
        return made

    def to_json(self) -> dict[str, Any]:
        return {
            "calibration": {**asdict(self.calibration), "limit_steps": self.calibration.limit},
            "a": self.a,
            "b": self.b,
            "overload": self.overload,
            "seconds": self.seconds,
            "runs": {
                name: {
                    "urgent": run.latencies("urgent").tolist(),
                    "normal": run.latencies("normal").tolist(),
                    "batches": [[batch.rows, batch.seconds] for batch in run.counted],
                    "drain": run.drain,
                    "lag": run.lag,
                    "results": run.digest[0],
                    "checksum": f"{run.digest[1]:016x}",
                }
                for name, run in self.runs.items()
            },
            "model": {
                name: {"p99": percentile(model.urgent, 99), "drain": model.drain} for name, model in self.models.items()
            },
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure(effort: Effort, folder: Path, say: Say) -> Outcome:
    """Calibrate, then the three runs over the same files, and the model with their a and b."""
    most = round(effort.large * max(effort.sizes))
    say(f"calibration: {effort.cold + len(effort.sizes)} micro-batches of up to {most:,} rows ...")
    found = calibrate(effort, folder / "calibration")
    warm = 1 + effort.warm * found.limit
    rows = overload_rows(found.rate, effort.seconds, warm)
    steps, prepared = steps_of(rows), folder / "prepared"
    say(f"writing {sum(rows):,} rows, {found.rate:,.0f} a second ...")
    write_files(steps, prepared)
    load = Load(len(rows) - warm, STEP, steps[-1].urgent, steps[-1].normal)
    policies = {
        LANES_RUN: Policy(lanes=True, limit=found.limit),
        LIMITED_RUN: Policy(lanes=False, limit=found.limit),
        FREE_RUN: Policy(lanes=False, limit=None),
    }
    runs = {}
    for name, policy in policies.items():
        drain = drawn(found.a, found.b, load, policy).drain
        say(f"{name}: {effort.seconds:.0f} s of overload, and the backlog (by the calibration: {drain:.0f} s) ...")
        # In one lane a step has two files, so the limit is twice as many.
        files = policy.limit and policy.limit * (1 if policy.lanes else 2)
        patience = 60 + 10 * effort.seconds
        asked = {"do": "overload", "lanes": policy.lanes, "files": files, "rows": rows, "warm": warm}
        asked |= {"piece": found.limit, "patience": patience, "prepared": str(prepared)}
        told = _ask(asked, folder / "run")
        batches = [LaneBatch.of(batch) for batch in told["batches"]]
        runs[name] = LaneRun(name, batches, np.array(told["arrived"]), steps, warm, told["lag"])
    check_same(list(runs.values()))
    a, b = straight(list(runs.values()))
    by_runs, calibrated = (
        {name: drawn(*line, load, policy) for name, policy in policies.items()} for line in ((a, b), (found.a, found.b))
    )
    return Outcome(found, a, b, effort.seconds, runs, by_runs, calibrated)


def _gain(models: dict[str, Modelled], other: str) -> float:
    return percentile(models[other].urgent, 99) / percentile(models[LANES_RUN].urgent, 99)


def straight(runs: Sequence[LaneRun]) -> tuple[float, float]:
    """a and b of the straight line nearest to the micro-batches of runs."""
    batches = [batch for run in runs for batch in run.counted]
    rows, seconds = (np.array([getattr(batch, name) for batch in batches]) for name in ("rows", "seconds"))
    b, a = map(float, np.polyfit(rows, seconds, 1))
    return (a, b) if a >= 0 else (0.0, float(rows @ seconds / (rows @ rows)))


def calibrate(effort: Effort, folder: Path) -> Calibration:
    """The throughput in large micro-batches, and what a micro-batch takes by its rows."""
    sizes = [1.0] * effort.cold + list(effort.sizes)
    # As many steps a micro-batch as there is one file of limits for.
    rows = [round(effort.large * size / LIMITS_EVERY) for size in sizes for _ in range(LIMITS_EVERY)]
    write_files(steps_of(rows), folder / "prepared")
    asked = {"do": "calibrate", "cold": effort.cold, "batch_seconds": AIM}
    told = _ask({**asked, "prepared": str(folder / "prepared")}, folder / "run")
    ran = [LaneBatch.of(batch) for batch in told["batches"]][effort.cold :]
    large = [batch.seconds for batch, size in zip(ran, effort.sizes, strict=True) if size == 1.0]
    shutil.rmtree(folder)
    limit = told["limit"]
    return Calibration(effort.large, effort.large / statistics.median(large), limit["a"], limit["b"], limit["rows"])


def _ask(request: dict[str, Any], place: Path) -> dict[str, Any]:
    try:
        request |= {"checkpoint": str(place / "checkpoint"), "scratch": str(place / "scratch")}
        told, _ = ask(sys.executable, CONTENDER, ROOT, request, place / "tmp")
        return told
    finally:
        shutil.rmtree(place, ignore_errors=True)
