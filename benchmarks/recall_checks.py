"""What must hold of a recall target beside the data sets: its ends, a burst, unequal windows, its cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.disorder import DATA, MS, SECOND, Arriving, Both, Times
from benchmarks.line_plot import Line, Plot
from benchmarks.race import Verdict
from benchmarks.recall_join import joined_seconds
from benchmarks.recall_replay import Replay
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim
from streamjoin.operators.recall.counts import MOST_BITS, Counts, counted, fitted
from streamjoin.operators.recall.model import RecallModel
from streamjoin.runtime.recall import MOST_REPORTED

Say = Callable[[str], None]
PERIOD: Final = 60 * SECOND
# Calm, burst, calm: how long rows are late in the middle, and where that is; seconds.
CALM, BURST, DELAY = (0.1, 10.0, 0.3)
BEGIN, END, LENGTH = (400, 700, 1500)
LONGEST: Final = 300 * SECOND
CHEAP: Final = 0.03  # of a run, for all that adapts
IN_ORDER: Final = 1_000_000  # rows of a micro-batch


@dataclass
class Checked:
    """The outcome of one question: lines that must hold, a table, and a plot if there is one."""

    name: str
    table: Table
    verdicts: list[Verdict]
    found: dict[str, Any] = field(default_factory=dict)
    plot: Plot | None = None

    def to_json(self) -> dict[str, Any]:
        """All that was measured."""
        return {**self.found, "verdicts": [each.to_json() for each in self.verdicts]}


def _line(name: str, what: str, measured: float, target: float, *, at_most: bool = True) -> Verdict:
    return Verdict(f"{name}: {what}", measured, target, f"{measured:.4f}", at_most=at_most)


def ends(seed: int, quick: bool, say: Say) -> Checked:
    """A target of 1 with a sufficient largest delay is the exact join; one of 0 keeps the bare window."""
    table = new_table("targets of 1 and 0", "data", "true results", "lost at 1", "rows at 0", "rows of the bare window")
    verdicts = []
    for name in ("exp",) if quick else ("exp", "bimodal", "pareto"):
        say(f"targets of 1 and 0: {name} ...")
        replay = Replay(DATA[name].draw(seed, 200 if quick else 600), SECOND, 200 * MS, PERIOD)
        exact, bare = replay.run([Aim(q, PERIOD, SECOND, replay.step, max_delay=LONGEST) for q in (1.0, 0.0)])
        lost, fixed = int(replay.lost(exact.progress).sum()), replay.kept(replay.fixed((0, 0)))
        kept = replay.kept(bare.progress)
        table.add_row(name, f"{replay.pairs.sum():,}", f"{lost:,}", f"{kept:,.1f}", f"{fixed:,.1f}")
        verdicts.append(_line(name, "results that a target of 1 loses", lost, 0))
        # Until both inputs have been heard of, nothing is purged by either.
        verdicts.append(_line(name, "rows that a target of 0 keeps/bare window", kept / fixed, 1.01))
    return Checked("ends", table, verdicts)


def _burst(seed: int) -> Both:
    rng, made = np.random.default_rng(seed), []
    for _ in (0, 1):
        ts = np.sort(rng.random(rng.poisson(100 * LENGTH)) * LENGTH)
        late = (ts >= BEGIN) & (ts < END) & (rng.random(len(ts)) < DELAY)
        delay = np.where(late, rng.exponential(BURST, len(ts)), rng.exponential(CALM, len(ts)))
        made.append(Arriving.of((ts + delay) * SECOND, ts * SECOND, rng.integers(0, 20, len(ts))))
    return made[0], made[1]


def calm_burst_calm(seed: int, quick: bool, say: Say) -> Checked:
    """Slack goes up within two periods, and down within max(two periods, five times the burst's slack)."""
    say("calm, burst, calm ...")
    target = 0.95
    replay = Replay(_burst(seed), SECOND, 2 * SECOND, PERIOD)
    (ours,) = replay.run([Aim(target, PERIOD, SECOND, replay.step)])
    now = (np.minimum(*replay.largest)[2:] - replay.begin) / SECOND
    pairs = zip(replay.largest, ours.progress, strict=True)
    slack = np.max([(most - progress)[2:] for most, progress in pairs], axis=0) / SECOND
    calm = float(slack[(now > 3 * PERIOD / SECOND) & (now < BEGIN)].max())
    burst = float(np.median(slack[(now >= END - PERIOD / SECOND) & (now < END)]))
    half = (calm + burst) / 2
    up = float(now[(now >= BEGIN) & (slack >= half)].min(initial=np.inf)) - BEGIN
    allowed = max(2 * PERIOD / SECOND, 5 * burst)
    high = now[(now >= END) & (slack > max(1.1 * calm, calm + replay.step / SECOND))]
    down = float(high.max(initial=END)) - END
    table = new_table(
        "calm, burst, calm: the larger slack of both inputs, s", "calm", "burst", "up after", "down after"
    )
    table.add_row(f"{calm:.2f}", f"{burst:.2f}", f"{up:.0f}", f"{down:.0f}")
    table.caption = "up: half of the way; down: to at most a tenth more than the most of the first calm"
    verdicts = [
        _line("calm, burst, calm", "slack up, s", up, 2 * PERIOD / SECOND),
        _line("calm, burst, calm", "slack down, s", down, allowed),
    ]
    line = Line(
        "the larger slack of both inputs, s", list(zip(now.tolist(), slack.tolist(), strict=True))[::5], "#c0392b"
    )
    late = f"Between {BEGIN} and {END} s {DELAY:.0%} of the rows are {BURST:g} s late, others {CALM:g} s."
    words = [f"{late} Target {target}."]
    plot = Plot("calm, burst, calm", "event time, s", "slack, s", [line], words, linear=True)
    return Checked("calm-burst-calm", table, verdicts, {"slack": slack.tolist(), "time": now.tolist()}, plot)


def unequal(seed: int, quick: bool, say: Say) -> Checked:
    """Windows that differ: each input's rows are kept as long as the other one's late rows need them."""
    table = new_table(
        "windows of unequal length (R, S)", "data", "windows s", "target", "slack 0", "true", "predicted", "kept",
        "/best fixed", "slack R s", "slack S s",
    )  # fmt: skip
    verdicts = []
    for name in ("exp",) if quick else ("exp", "bimodal"):
        for windows in ((100 * MS, 2 * SECOND), (2 * SECOND, 100 * MS)):
            say(f"unequal windows: {name}, {windows[0] / SECOND:g} s and {windows[1] / SECOND:g} s ...")
            replay = Replay(DATA[name].draw(seed, 300 if quick else 1200), SECOND, windows[0], PERIOD, windows[1])
            aims = [Aim(q, PERIOD, SECOND, replay.step) for q in ((0.9,) if quick else (0.9, 0.99))]
            total, known = int(replay.pairs.sum()), replay.hindsight(aims[0].edges)
            at_0 = 1 - int(replay.lost(replay.fixed((0, 0))).sum()) / total
            for ours in replay.run(aims):
                recall, target = 1 - int(replay.lost(ours.progress).sum()) / total, ours.aim.target
                over = replay.kept(ours.progress) / replay.best_fixed(known, target)
                slack = [
                    float((most - progress)[replay.steps // 5 :].mean()) / SECOND
                    for most, progress in zip(replay.largest, ours.progress, strict=True)
                ]
                sizes = f"{windows[0] / SECOND:g}, {windows[1] / SECOND:g}"
                table.add_row(
                    name, sizes, f"{target:g}", f"{at_0:.4f}", f"{recall:.4f}", f"{ours.predicted:.4f}",
                    f"{replay.kept(ours.progress):,.0f}", f"{over:.2f}", f"{slack[0]:.2f}", f"{slack[1]:.2f}",
                )  # fmt: skip
                called = f"{name}, windows of {sizes} s, target {target:g}"
                verdicts.append(_line(called, "prediction off", abs(ours.predicted - recall), 0.01))
                if at_0 < target:
                    verdicts.append(_line(called, "recall - target", recall - target, 0.0, at_most=False))
                    verdicts.append(_line(called, "kept/best fixed", over, 1.5))
    return Checked("unequal", table, verdicts)


def _counted(key: Times, ts: Times, step: int, window: int) -> Counts | None:
    """What a task reports."""
    counts = counted(key, ts, width=step, bits=MOST_BITS, most=MOST_REPORTED)
    return fitted(counts, MOST_REPORTED, window // 2)


def cost(seed: int, quick: bool, say: Say) -> Checked:
    """What adapts, in seconds of the process, for a micro-batch of streams in order; beside joining these rows.

    Counting, what a task does; hearing, what a bucket does.
    """
    rows = 100_000 if quick else IN_ORDER
    batches = 4 if quick else 8
    say(f"cost of adapting: {batches} micro-batches of {rows:,} rows ...")
    rng = np.random.default_rng(seed)
    window = 2 * SECOND
    model = RecallModel(Aim(0.95, PERIOD, SECOND, window // 20), (window, window)).build()
    counting, hearing, streams = [], [], []
    for at in range(batches):
        ts = [np.sort(rng.integers(at * 10 * SECOND, (at + 1) * 10 * SECOND, rows // 2)) for _ in (0, 1)]
        keys = [rng.integers(0, rows // 10, rows // 2) for _ in (0, 1)]
        streams.append((ts, keys))
        start = time.process_time()
        counts = [_counted(key, times, model.config.aim.step, window) for key, times in zip(keys, ts, strict=True)]
        middle = time.process_time()
        model.hear(counts, [int(each[-1]) for each in ts], list(model.promised))
        counting.append(middle - start)
        hearing.append(time.process_time() - middle)
    exact, aimed = joined_seconds(streams, window)
    warm = slice(1, None)
    adapting = float(np.median(np.add(counting, hearing)[warm]))
    table = new_table(
        f"streams in order, {rows:,} rows per micro-batch: seconds of the process, medians of {batches - 1}",
        "counting", "hearing", "exact join", "to a target", "adapting/run", "target/exact",
    )  # fmt: skip
    one, two = float(np.median(exact[warm])), float(np.median(aimed[warm]))
    table.add_row(
        f"{np.median(counting[warm]):.4f}", f"{np.median(hearing[warm]):.4f}", f"{one:.3f}", f"{two:.3f}",
        f"{adapting / two:.2%}", f"{two / one:.3f}",
    )  # fmt: skip
    verdicts = [
        _line("in order", "adaptation, share of the run", adapting / two, CHEAP),
        _line("in order", "recall target/exact join, time", two / one, 1.05),
    ]
    return Checked("cost", table, verdicts, {"counting": counting, "hearing": hearing, "exact": exact, "aimed": aimed})


CHECKS: Final[dict[str, Callable[[int, bool, Say], Checked]]] = {
    "ends": ends,
    "calm-burst-calm": calm_burst_calm,
    "unequal": unequal,
    "cost": cost,
}
