"""QJOIN: Table 1, what the two data sets are like, beside what the generators draw that stand for them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from benchmarks.disorder import FOOTBALL, MS, SECOND, Both, football
from benchmarks.plots import COLOURS
from benchmarks.reproduce.documents import QJOIN
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, at_most_off, beside
from streamjoin.reporting.charts import Line, Plot

SEED: Final = 4711
NEAR: Final = 0.1
QUICK_PART: Final = 0.02  # of the length


@dataclass(frozen=True)
class Features:
    """A line of Table 1: seconds, rows, rows a second, late rows, largest and mean delay in seconds."""

    seconds: float
    rows: int
    rate: float
    late: int
    largest: float
    mean: float

    @property
    def share(self) -> float:
        return self.late / self.rows


DOCUMENT: Final = {
    "D1": Features(831.174, 7_122_060, 8_514, 5_940_703, 142.147, 0.034133),
    "D2": Features(384.084, 4_022_600, 10_037, 3_493_068, 170.959, 0.029597),
}


def features(streams: Both) -> Features:
    """Both streams as they arrive together: late is who is older than somebody before it, by how much is its delay."""
    arrival = np.concatenate([each.arrival for each in streams])
    ts = np.concatenate([each.ts for each in streams])[np.argsort(arrival, kind="stable")]
    delay = np.maximum.accumulate(ts) - ts
    seconds = float(ts.max() - ts.min()) / SECOND
    late = int((delay > 0).sum())
    return Features(
        seconds, len(ts), len(ts) / seconds, late, float(delay.max()) / SECOND, float(delay.mean()) / SECOND
    )


def measure(effort: Effort) -> Findings:
    """Both data sets at their full rates."""
    found: dict[str, Features] = {}
    lines: list[Line] = []
    for (name, document), colour in zip(DOCUMENT.items(), COLOURS, strict=False):
        effort.say(f"Table 1: {name} at its full rate ...")
        seconds = document.seconds * (QUICK_PART if effort.quick else 1)
        streams = football(*FOOTBALL[name], part=1.0)(SEED, seconds)
        found[name] = features(streams)
        lines.append(_delays(name, streams, colour))
    words = ["Share of the rows whose delay at the source is longer; an exponential body and a log-uniform tail."]
    return Findings(
        lines=[line for name in found for line in _lines(name, found[name])],
        plots=[Plot("Delays of the generated data sets", "seconds", "share of rows", lines, words)],
        checks=[
            Check("both data sets are there, and most of their rows late", all(f.share > 0.5 for f in found.values()))
        ],
        shortened=f"{QUICK_PART:.0%} of the length of both data sets, so their largest delays are cut off."
        if effort.quick
        else "",
        different="The data of the stadium are not there: a generator draws them, which is fitted to this table by "
        "two exponents and a tail. So nothing here confirms the table; it shows how near the drawn streams come to it.",
        figures={name: asdict(each) for name, each in found.items()},
    )


def _lines(name: str, found: Features) -> list[Finding]:
    document = DOCUMENT[name]
    return [
        _beside(
            f"{name}: {document.rows:,} rows, {document.rate:,.0f} a second",
            f"{found.rows:,} rows, {found.rate:,.0f} a second",
            [(found.rows, document.rows), (found.rate, document.rate)],
            "The number of rows is that of a Poisson process of the table's rate.",
        ),
        _beside(
            f"{name}: {document.share:.1%} of the rows late",
            f"{found.share:.1%}",
            [(found.share, document.share)],
            "Late is whoever is older than any row before it, of both streams together.",
        ),
        _beside(
            f"{name}: the largest delay is {document.largest:.1f} s",
            f"{found.largest:.1f} s",
            [(found.largest, document.largest)],
            "The longest delay of the tail need not be drawn.",
        ),
        _beside(
            f"{name}: the mean delay is {document.mean * 1e3:.1f} ms",
            f"{found.mean * 1e3:.1f} ms",
            [(found.mean, document.mean)],
            "The mean hangs on a few long delays.",
        ),
    ]


def _beside(table: str, drawn: str, both: list[tuple[float, float]], why: str) -> Finding:
    """What is drawn beside the table that it is drawn from; why, where it is farther off than a tenth."""
    off = ", ".join(f"{mine / document - 1:+.1%}" for mine, document in both)
    return beside(table, f"{drawn} ({off})", "" if all(at_most_off(*each, NEAR) for each in both) else why)


def _delays(name: str, streams: Both, colour: str) -> Line:
    delays = np.sort(np.concatenate([each.arrival - each.ts for each in streams]))
    ladder = np.geomspace(MS, delays[-1], 40)
    longer = 1 - np.searchsorted(delays, ladder, "right") / len(delays)
    points = [(float(at) / SECOND, float(share)) for at, share in zip(ladder, longer, strict=True) if share > 0]
    return Line(name, points, colour)


EXPERIMENT: Final = Experiment("qjoin-data", QJOIN, "Table 1", "The data sets", measure, minutes=0.5)
