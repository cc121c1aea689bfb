"""Streams out of order, seeded and declared: two inputs with arrival, time stamp and key, in microseconds.

| name | delay of a row |
|---|---|
| exp | exponential, mean 1 s |
| pareto | 50 ms / U^(1/1.2), at most 300 s |
| bimodal | 15% uniform in 5 to 30 s, others exponential, mean 50 ms |
| regime | in the middle third 30% exponential, mean 10 s; others exponential, mean 100 ms |
| hot | one key has 30% of the rows, and their delay is exponential, mean 5 s; that of others 50 ms |
| bursts | every 300 s half of the rows of 20 s wait for the end of these; exponential, mean 200 ms, beside |
| mobile | phones lose the network: up exponential, mean 240 s, down lognormal, median 45 s, at most 600 s; rows
|        | queue and leave in order, 50/s, on reconnecting; exponential, mean 80 ms, beside. Even ones are R |
| phone | the same, but every phone feeds both inputs and is the key |
| D1, D2 | the document's Table 1, at 4% of its rates: exponential body of 10.4 / 14.2 ms; with probability 0.00134 /
|        | 0.00089 log-uniform between 100 ms and 142 / 171 s |
| d-1 to d-3 | phones over UMTS (JR-DIGITAL/ooo-dataset, CC BY-SA 4.0), where the files are; even devices are R |
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.environments import ROOT

MS: Final = 1_000
SECOND: Final = 1_000_000
Times = npt.NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Arriving:
    """One input, in order of arrival."""

    arrival: Times
    ts: Times
    key: Times

    @staticmethod
    def of(arrival: Any, ts: Any, key: Any) -> Arriving:
        """Sorted by arrival; rows that arrive together by time stamp."""
        order = np.lexsort((ts, arrival))
        return Arriving(*(np.asarray(each)[order].astype(np.int64) for each in (arrival, ts, key)))


Both = tuple[Arriving, Arriving]


def _poisson(rng: Rng, rate: float, seconds: float) -> Any:
    return np.sort(rng.random(rng.poisson(rate * seconds)) * seconds)


def _exp(rng: Rng, t: Any, key: Any) -> Any:
    return rng.exponential(1.0, len(t))


def _pareto(rng: Rng, t: Any, key: Any) -> Any:
    return np.minimum(0.05 * (1 - rng.random(len(t))) ** (-1 / 1.2), 300)


def _bimodal(rng: Rng, t: Any, key: Any) -> Any:
    return np.where(rng.random(len(t)) < 0.15, rng.uniform(5, 30, len(t)), rng.exponential(0.05, len(t)))


def _regime(rng: Rng, t: Any, key: Any) -> Any:
    middle = (t > t[-1] / 3) & (t < 2 * t[-1] / 3) & (rng.random(len(t)) < 0.3)
    return np.where(middle, rng.exponential(10.0, len(t)), rng.exponential(0.1, len(t)))


def _hot(rng: Rng, t: Any, key: Any) -> Any:
    return np.where(key == 0, rng.exponential(5.0, len(t)), rng.exponential(0.05, len(t)))


def _bursts(rng: Rng, t: Any, key: Any) -> Any:
    waits = np.where((t % 300 < 20) & (rng.random(len(t)) < 0.5), 20 - t % 300, 0)
    return waits + rng.exponential(0.2, len(t))


def _drawn(delay: Callable[..., Any], hot: float = 0.0) -> Callable[[int, float], Both]:
    def draw(seed: int, seconds: float) -> Both:
        rng, made = np.random.default_rng(seed), []
        for _ in (0, 1):
            t = _poisson(rng, 100, seconds)
            key = rng.integers(0, 20, len(t))
            if hot:
                key = np.where(rng.random(len(t)) < hot, 0, 1 + key)
            made.append(Arriving.of((t + delay(rng, t, key)) * SECOND, t * SECOND, key))
        return made[0], made[1]

    return draw


def _mobile(same: bool) -> Callable[[int, float], Both]:
    def draw(seed: int, seconds: float) -> Both:
        rng, drain = np.random.default_rng(seed), 50.0
        parts: tuple[list[Any], list[Any]] = ([], [])
        for phone in range(200):
            lost, back, t = [-1.0], [-1.0], rng.exponential(240.0)
            while t < seconds:
                gap = min(rng.lognormal(np.log(45.0), 1.0), 600.0)
                lost.append(t)
                back.append(t + gap)
                t += gap + rng.exponential(240.0)
            for number in (0, 1) if same else (phone % 2,):
                ts = _poisson(rng, 1.0, seconds)
                sent = np.maximum(ts, np.array(back)[np.searchsorted(lost, ts, "right") - 1])
                queue = np.arange(len(sent)) / drain
                left = np.maximum.accumulate(sent - queue) + queue + rng.exponential(0.08, len(ts))
                key = np.full(len(ts), phone) if same else rng.integers(0, 20, len(ts))
                parts[number].append((np.maximum(left, ts) * SECOND, ts * SECOND, key))
        one, two = (Arriving.of(*(np.concatenate(each) for each in zip(*part, strict=True))) for part in parts)
        return one, two

    return draw


def football(
    rate: float, body: float, outliers: float, longest: float, part: float = 0.04
) -> Callable[[int, float], Both]:
    """Like the document's data sets, at a part of their rates: the ball has 2,000 rows a second, players the rest."""

    def draw(seed: int, seconds: float) -> Both:
        rng, made = np.random.default_rng(seed), []
        for rows in (2000, rate - 2000):
            t = _poisson(rng, rows * part, seconds)
            delay = rng.exponential(body, len(t))
            late = rng.random(len(t)) < outliers
            delay[late] = np.exp(rng.uniform(np.log(0.1), np.log(longest), int(late.sum())))
            made.append(Arriving.of((t + delay) * SECOND, t * SECOND, rng.integers(0, 50, len(t))))
        return made[0], made[1]

    return draw


def files() -> Path:
    """Where the real files are, if they are anywhere: STREAMJOIN_OOO, or beside the checkout."""
    return Path(os.environ.get("STREAMJOIN_OOO", ROOT.parent / "shared" / "data" / "ooo"))


def _real(name: str) -> Callable[[int, float], Both]:
    def read(seed: int, seconds: float) -> Both:
        with (files() / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        devices = sorted({int(row["device"][4:]) for row in rows})
        made = []
        for number in (0, 1):
            mine = [row for row in rows if devices.index(int(row["device"][4:])) % 2 == number]
            arrival, ts = (np.array([int(row[f"{of}_ms"]) for row in mine]) * MS for of in ("arrival", "event"))
            made.append(Arriving.of(arrival, ts, np.zeros(len(mine))))
        return made[0], made[1]

    return read


@dataclass(frozen=True)
class DataSet:
    """Two streams: how they are drawn, how long, and what is asked of them."""

    draw: Callable[[int, float], Both]
    seconds: float = 1200
    period: int = 60
    warm_up: int = 3  # periods
    real: bool = False

    @property
    def there(self) -> bool:
        """Whether it can be had."""
        return not self.real or files().is_dir()


# Rows a second, mean of the body in seconds, probability of an outlier, and the longest of these.
FOOTBALL: Final = {"D1": (8514, 10.4e-3, 1.34e-3, 142.147), "D2": (10037, 14.2e-3, 0.89e-3, 170.959)}
DATA: Final[dict[str, DataSet]] = {
    "exp": DataSet(_drawn(_exp)),
    "pareto": DataSet(_drawn(_pareto)),
    "bimodal": DataSet(_drawn(_bimodal)),
    "regime": DataSet(_drawn(_regime)),
    "hot": DataSet(_drawn(_hot, hot=0.3)),
    "bursts": DataSet(_drawn(_bursts), seconds=6000, period=600, warm_up=2),
    "mobile": DataSet(_mobile(same=False), seconds=3600, warm_up=10),
    "phone": DataSet(_mobile(same=True), seconds=3600, warm_up=10),
    "D1": DataSet(football(*FOOTBALL["D1"]), seconds=831),
    "D2": DataSet(football(*FOOTBALL["D2"]), seconds=384),
    **{name: DataSet(_real(name), real=True) for name in ("d-1", "d-2", "d-3")},
}
