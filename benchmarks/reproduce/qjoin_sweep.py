"""QJOIN: Figure 2, rows kept over the period P, the interval L and the step g (which is the basic window b as well)."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import recall, recall_figures
from benchmarks.disorder import DATA, SECOND
from benchmarks.recall_replay import Replay
from benchmarks.reproduce.documents import QJOIN
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from streamjoin.operators.recall.controller import Aim

HARDLY: Final = 1.1  # the most over the least
NOTHING: Final = 1.02  # where the least is a matter of chance


def measure(effort: Effort) -> Findings:
    """The sweep of `bench recall`, on delays of 1 s; and D1 beside it, where there is nothing to sweep."""
    drawn = recall_figures.sweep(recall.SEED, effort.quick, effort.say)
    effort.say("what slack 0 finds on D1 ...")
    bare, kept, rows = _on_d1(20 if effort.quick else 300)
    return Findings(
        lines=[_on_the_documents_data(bare, kept, rows), *_lines(drawn.found)],
        plots=list(drawn.plots.values()),
        checks=[Check("something is kept at every setting", _all_positive(drawn.found))],
        shortened=f"{20 if effort.quick else 300} s of streams with delays of 1 s on average, instead of D1.",
        different="P is 30 s where L and g are swept (the document: 60 s), and b is not swept by itself: a step g is "
        "the basic window here. A virtual clock, in micro-batches of 0.1 s.",
        figures=drawn.found,
    )


def _on_d1(seconds: int) -> tuple[float, float, float]:
    """Recall with slack 0 on D1, and the rows that a target of 0.95 keeps beside the bare window's."""
    replay = Replay(DATA["D1"].draw(recall.SEED, seconds), SECOND // 10, 2 * SECOND, 60 * SECOND)
    nothing = replay.fixed((0, 0))
    (ours,) = replay.run([Aim(0.95, 60 * SECOND, SECOND, replay.step)])
    recalled = 1 - int(replay.lost(nothing).sum()) / int(replay.pairs.sum())
    return recalled, replay.kept(ours.progress), replay.kept(nothing)


def _on_the_documents_data(bare: float, kept: float, rows: float) -> Finding:
    return beside(
        "what there is to adapt on D1, with which the document draws this figure",
        f"windows of 2 s find {bare:.2%} of the results without any slack; a target of 0.95 keeps {kept / rows:.3f} "
        "times the rows of the bare window",
        "There delays are far shorter than the windows, so nothing needs to be kept longer and there is nothing to "
        "adapt; the sweeps below use delays of 1 s and windows of 200 ms."
        if bare >= 0.95
        else "There is something to adapt; the sweeps below use delays of 1 s and windows of 200 ms all the same.",
    )


def _reason(spread: float, why: str) -> str:
    """Why the least is elsewhere, if it is more than chance."""
    return f"No difference to speak of: the most is {spread:.3f} times the least." if spread <= NOTHING else why


def _lines(found: dict[str, Any]) -> list[Finding]:
    lines = []
    for target, points in found["P"].items():
        rows = dict(points)
        spread, least = max(rows.values()) / min(rows.values()), min(rows, key=lambda value: rows[value])
        lines.append(
            compared(
                f"P hardly matters, and 60 s keeps least (target {target})",
                f"the most is {spread:.2f} times the least, which is at P = {least:g} s",
                spread <= HARDLY and least == 60,
                _reason(
                    spread,
                    "P says over how long a time the target must hold: a longer one lets good intervals pay for bad "
                    "ones, and a short one must hold in each."
                    if rows[max(rows)] < rows[min(rows)]
                    else f"P = {min(rows):g} s keeps no more than P = {max(rows):g} s: why is not known.",
                ),
            )
        )
    for target, points in found["L"].items():
        rows = dict(points)
        least, usual = min(rows, key=lambda value: rows[value]), rows.get(1.0)
        spread = max(rows.values()) / min(rows.values())
        than_usual = f", {rows[min(rows)] / usual:.3f} of what L = 1 s keeps" if usual else ""
        lines.append(
            compared(
                f"L of 0.1 s keeps least (target {target})",
                f"the least is at L = {least:g} s; the shortest L of {min(rows):g} s keeps {rows[min(rows)]:,.0f} rows"
                f"{than_usual}",
                least == min(rows) and spread > NOTHING,
                _reason(
                    spread,
                    "Deciding more often does not find out more: what is decided comes from the last period, and slack "
                    "may only fall as fast as it can rise.",
                ),
            )
        )
    for target, points in found["g"].items():
        rows = dict(points)
        spread, least = max(rows.values()) / min(rows.values()), min(rows, key=lambda value: rows[value])
        lines.append(
            compared(
                f"steps and basic windows of 10 ms keep little, finer and wider ones more (target {target})",
                f"the most is {spread:.2f} times the least, which is at g = {least * 1000:g} ms",
                least == 0.01 and spread > NOTHING,
                _reason(
                    spread,
                    "Needs are counted pair by pair and not estimated from rates, so a finer step does not "
                    "predict worse."
                    if least < 0.01
                    else "A wider step keeps less here: why is not known.",
                ),
            )
        )
    return lines


def _all_positive(found: dict[str, Any]) -> bool:
    return all(kept > 0 for by_target in found.values() for points in by_target.values() for _, kept in points)


EXPERIMENT: Final = Experiment("qjoin-sweep", QJOIN, "Figure 2", "Rows kept over P, L and g", measure, minutes=1)
