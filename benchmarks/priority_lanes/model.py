"""Lanes in virtual time: a micro-batch takes a + b * rows seconds, and begins as soon as the one before has ended.

Micro-batches of equal size differ: each takes that much times a factor drawn around 1 (SPREAD, a declared tenth, not
fitted to a run), and the model runs several times. What it leaves out: that a source is looked at a little before its
micro-batch begins. It says which gain is there to be had, for the a and b of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

SPREAD: Final = 0.1  # the standard deviation of the factor's logarithm
DRAWS: Final = 8  # runs of the model


@dataclass(frozen=True)
class Load:
    """What arrives: a step each `step` seconds, with so many urgent and other rows."""

    steps: int
    step: float
    urgent: int
    normal: int


@dataclass(frozen=True)
class Policy:
    """How much a micro-batch takes: `limit` steps of the normal rows, None for all; of the urgent ones all if they have
    a lane, else those that belong to the same steps.
    """

    lanes: bool
    limit: int | None


@dataclass(frozen=True)
class Modelled:
    """How long the urgent and the normal rows of each step wait, how long micro-batches took, and how long the backlog
    lasts once nothing arrives any more.
    """

    urgent: npt.NDArray[np.float64]
    normal: npt.NDArray[np.float64]
    batches: npt.NDArray[np.float64]
    drain: float


def drawn(a: float, b: float, load: Load, policy: Policy) -> Modelled:
    """All runs of the model together; the drain is their mean."""
    runs = [modelled(a, b, load, policy, spread=SPREAD, seed=seed) for seed in range(DRAWS)]
    urgent, normal, batches = (
        np.concatenate([getattr(run, name) for run in runs]) for name in ("urgent", "normal", "batches")
    )
    return Modelled(urgent, normal, batches, float(np.mean([run.drain for run in runs])))


def modelled(a: float, b: float, load: Load, policy: Policy, *, spread: float = 0.0, seed: int = 0) -> Modelled:
    """Run until all rows have left.

    >>> steady = modelled(0.0, 0.001, Load(3, 1.0, 0, 100), Policy(False, None))
    >>> [round(float(wait), 3) for wait in steady.normal]
    [0.1, 0.1, 0.1]
    """
    arrival, rng = np.arange(load.steps) * load.step, np.random.default_rng(seed)
    urgent, normal = np.zeros(load.steps), np.zeros(load.steps)
    now, urgent_done, normal_done, batches = 0.0, 0, 0, []
    while normal_done < load.steps:
        there = int(np.searchsorted(arrival, now + 1e-9, side="right"))
        if there == normal_done:
            now = float(arrival[normal_done])
            continue
        last = there if policy.limit is None else min(there, normal_done + policy.limit)
        last_urgent = there if policy.lanes else last
        rows = (last - normal_done) * load.normal + (last_urgent - urgent_done) * load.urgent
        batches.append((a + b * rows) * float(np.exp(rng.normal(0.0, spread))))
        now += batches[-1]
        urgent[urgent_done:last_urgent] = now
        normal[normal_done:last] = now
        urgent_done, normal_done = last_urgent, last
    drain = max(0.0, now - load.steps * load.step)
    return Modelled(urgent - arrival, normal - arrival, np.array(batches), drain)
