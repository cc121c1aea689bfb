"""What a page tells of a query: only what the query has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from streamjoin.plan.explaining import explain_plan, parts_of
from streamjoin.reporting.measured import MicroBatch, lately, latencies, left_out
from streamjoin.reporting.over_time import Names, plots_of
from streamjoin.reporting.page import Html, Part, Section, Table
from streamjoin.reporting.plan_picture import picture

if TYPE_CHECKING:
    from streamjoin.reporting.report import Report, ReportedPlan

ERROR_LETTERS: Final = 4000
LATELY: Final = 60  # seconds: whoever looks at a running query wants to know how fast it is now


def lead_of(report: Report) -> list[Part]:
    """What a reader wants to know first: whether it runs, the sums, and what went wrong."""
    parts: list[Part] = []
    if report.error is not None:
        cut = report.error if len(report.error) <= ERROR_LETTERS else report.error[:ERROR_LETTERS] + " ..."
        parts.append(Html(f'<h2>The last error</h2><pre class="warn">{escape(cut)}</pre>'))
    if not report.batches:
        return [*parts, "No micro-batch is over yet."]
    first, last = report.batches[0], report.batches[-1]
    known = latencies(report.batches, (0.5, 0.99))
    rows_out = sum(batch.total("rows_out") for batch in report.batches) + (report.held or 0)
    tiles = [
        (f"{last.last - first.first + 1:,}", "micro-batches"),
        (_total(report, "rows_in"), "rows in"),
        (f"{rows_out:,.0f}", "rows out"),
        (_total(report, "late"), "late rows"),
        (f"{last.total('state_rows'):,.0f}", "rows kept now"),
        (in_bytes(last.total("state_bytes")), "state now"),
        ("-" if known is None else f"{known[0]:.1f} / {known[1]:.1f} s", "latency, p50 / p99"),
    ]
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(what)}</span></li>" for value, what in tiles)
    parts.append(Html(f'<ul class="tiles">{items}</ul>'))
    began, ended = (datetime.fromtimestamp(each, UTC) for each in (first.began, last.ended))
    day = "" if began.date() == ended.date() else f"{ended:%Y-%m-%d} "
    parts.append(f"Micro-batches {first.first} to {last.last}, {began:%Y-%m-%d %H:%M:%S} to {day}{ended:%H:%M:%S %Z}.")
    parts += _without_latency(report.batches)
    if report.held is not None:
        parts.append(f"Finished: {report.held:,} of the rows out had still been held, and are in no plot.")
    if first.first > 0:
        parts.append(f"Those before {first.first} are not known here: this report begins with the first it heard of.")
    return parts


def _without_latency(batches: Sequence[MicroBatch]) -> list[str]:
    """Of how many micro-batches the latency is not known, and why."""
    number, missing = sum(batch.number for batch in batches), left_out(batches)
    if not missing:
        return []
    known, why = number - sum(missing.values()), ", ".join(f"{count:,} ({why})" for why, count in missing.items())
    those = f"{known:,} of {number:,} micro-batches" if known else "no micro-batch"
    return [f"Latency is known of {those}. Left out, because nobody knows how long their rows had waited: {why}."]


def sections_of(report: Report) -> list[Section]:
    """Everything else: plans with rates, figures over time, settings."""
    sections = []
    if report.plans:
        words = [_words_on_rates(report)] if report.batches else []
        sections.append(Section("The plan", [*(_drawn(report, each) for each in report.plans), *words]))
    if report.batches:
        sections.append(
            Section("Over time", plots_of(report.batches, Names(report.labels, report.inputs), report.time_unit))
        )
    settings = [*report.settings.items(), *(_split(line) for each in report.plans for line in explain_plan(each.plan))]
    if settings:
        sections.append(Section("Settings", [Table(("what", "value"), settings)]))
    return sections


def _split(line: str) -> tuple[str, str]:
    """A line of an explanation: its heading, and what it says."""
    bare = line.strip()
    return bare[:15].strip(), bare[15:].strip()


def _total(report: Report, name: str) -> str:
    return f"{sum(batch.total(name) for batch in report.batches):,.0f}"


def in_bytes(size: float) -> str:
    """A number of bytes for people.

    >>> in_bytes(800), in_bytes(1_250_000)
    ('800 B', '1.2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


# -- the plan ----------------------------------------------------------------------------------------------------------


def _drawn(report: Report, reported: ReportedPlan) -> Html:
    boxes, arrows = parts_of(reported.plan)
    rates: dict[int, str] = {}
    if report.batches:
        flow = Flow(report.batches, *_rated(report))
        for name, number in reported.stages.items():
            stage = reported.stage(number)
            told = ((name, "rows_of"), (name, "rows_on"))  # of sources, and between stages
            flows = {key for batch in report.batches for key in batch.figures if key[:2] in told}
            rates |= {int(key[2]): flow.of(key) for key in flows}
            leaving = (name, "rows_out")
            if stage.outlet.leaves != "passed on":
                rates[stage.outlet.way.channel] = flow.of(leaving)
            elif _sum(report.batches, leaving) and len(reported.plan.sink.channels) == 1:
                # A stage that decides tells its rows with this one.
                rates[reported.plan.sink.channels[0]] = flow.of(leaving)
    return Html(picture(boxes, arrows, rates))


def _rated(report: Report) -> tuple[Sequence[MicroBatch], float]:
    """The micro-batches whose rows are on the arrows per second, and in how many seconds they came: the last minute of
    a query that runs, all of one that is over.
    """
    return lately(report.batches, LATELY if report.active else math.inf)


def _words_on_rates(report: Report) -> str:
    some, seconds = _rated(report)
    number = sum(batch.number for batch in some)
    when = (
        f"over the last {seconds:,.0f} s before the last micro-batch was over"
        if report.active
        else f"on average over all of the {seconds:,.0f} s"
    )
    batches = f"{number:,} micro-batch" + ("" if number == 1 else "es")
    return f"On the arrows: rows in all, and rows per second {when} ({batches})."


@dataclass(frozen=True)
class Flow:
    """What has flown by an arrow: in all micro-batches, and how fast in some of them, which took so many seconds."""

    batches: Sequence[MicroBatch]
    rated: Sequence[MicroBatch]
    seconds: float

    def of(self, key: tuple[str, ...]) -> str:
        """The words on an arrow, by the figure that counts its rows."""
        return _flow(_sum(self.batches, key), _sum(self.rated, key) / self.seconds)


def _flow(rows: float, rate: float) -> str:
    """What has flown, and how fast.

    >>> _flow(12_345, 1_234.5), _flow(3, 0.3), _flow(5_432_100_000, 1_000_000)
    ('12,345 rows, 1,234/s', '3 rows, 0.3/s', '5.43G rows, 1.00M/s')
    """
    return f"{in_short(rows)} rows, {in_short(rate) if rate >= 10 else f'{rate:.2g}'}/s"


def in_short(number: float) -> str:
    """A number as it is below a million, and with three digits from there.

    >>> in_short(999_999), in_short(1_000_000), in_short(45_600_000), in_short(999_999_999)
    ('999,999', '1.00M', '45.6M', '1.00G')
    """
    if round(number) < 1_000_000:
        return f"{number:,.0f}"
    shorts = [(float(f"{number / size:.3g}"), unit) for size, unit in ((1e6, "M"), (1e9, "G"), (1e12, "T"))]
    short, unit = next(((short, unit) for short, unit in shorts if short < 1000), shorts[-1])
    return f"{short:#.3g}".rstrip(".") + unit


def _sum(batches: Sequence[MicroBatch], key: tuple[str, ...]) -> float:
    return sum(batch.figures.get(key, 0.0) for batch in batches)
