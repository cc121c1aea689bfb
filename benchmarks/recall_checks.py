"""What must hold of a recall target beside the data sets: its ends, a burst, unequal windows, its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.disorder import DATA, MS, SECOND, Arriving, Both
from benchmarks.race import Verdict
from benchmarks.recall_join import MicroBatch, joined_seconds
from benchmarks.recall_replay import Replay
from benchmarks.tables import new_table
from streamjoin.operators.recall.controller import Aim
from streamjoin.reporting.charts import Line, Plot

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


def _in_order(seed: int, rows: int, batches: int) -> Iterator[MicroBatch]:
    """Micro-batches of ten seconds of two streams, ten rows of each key in both together."""
    rng = np.random.default_rng(seed)
    for at in range(batches):
        ts = [np.sort(rng.integers(at * 10 * SECOND, (at + 1) * 10 * SECOND, rows // 2)) for _ in (0, 1)]
        yield ts, [rng.integers(0, rows // 10, rows // 2) for _ in (0, 1)]


def cost(seed: int, quick: bool, say: Say) -> Checked:
    """What adapts, in seconds of the process, of a join of streams in order; and that join beside the exact one.

    Counting: what tasks do for it, with making the report; hearing: what a bucket does, with reading the reports.
    Medians of the later half of the run: by then as much is remembered as there is room for.
    """
    rows = 100_000 if quick else IN_ORDER
    batches = 4 if quick else 32
    say(f"cost of adapting: {batches} micro-batches of {rows:,} rows ...")
    took = joined_seconds(_in_order(seed, rows, batches), 2 * SECOND)
    later = slice(batches // 2, None)
    exact, aimed, counting, hearing = (
        float(np.median(each[later])) for each in (took.exact, took.aimed, took.counting, took.hearing)
    )
    share = float(np.median(np.add(took.counting, took.hearing)[later] / np.array(took.aimed)[later]))
    ratio = float(np.median(np.array(took.aimed)[later] / np.array(took.exact)[later]))
    table = new_table(
        f"streams in order, {rows:,} rows per micro-batch: seconds of the process, medians of {batches - batches // 2}",
        "counting", "hearing", "exact join", "to a target", "adapting/run", "target/exact",
    )  # fmt: skip
    table.add_row(f"{counting:.4f}", f"{hearing:.4f}", f"{exact:.3f}", f"{aimed:.3f}", f"{share:.2%}", f"{ratio:.3f}")
    verdicts = [
        _line("in order", "adaptation, share of the run", share, CHEAP),
        _line("in order", "recall target/exact join, time", ratio, 1.05),
    ]
    return Checked("cost", table, verdicts, asdict(took))


CHECKS: Final[dict[str, Callable[[int, bool, Say], Checked]]] = {
    "ends": ends,
    "calm-burst-calm": calm_burst_calm,
    "unequal": unequal,
    "cost": cost,
}
