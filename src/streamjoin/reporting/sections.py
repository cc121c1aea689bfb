"""What a page tells of a query: only what the query has."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from streamjoin.plan.explaining import explain_plan, parts_of
from streamjoin.reporting.measured import latencies
from streamjoin.reporting.over_time import Names, plots_of
from streamjoin.reporting.page import Html, Part, Section, Table
from streamjoin.reporting.plan_picture import picture

if TYPE_CHECKING:
    from streamjoin.reporting.report import Report, ReportedPlan

ERROR_LETTERS: Final = 4000


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
    parts.append(f"Micro-batches {first.first} to {last.last}, {began:%Y-%m-%d %H:%M:%S} to {ended:%H:%M:%S %Z}.")
    if report.held is not None:
        parts.append(f"Finished: {report.held:,} of the rows out had still been held, and are in no plot.")
    if first.first > 0:
        parts.append(f"Those before {first.first} are not known here: this report begins with the first it heard of.")
    return parts


def sections_of(report: Report) -> list[Section]:
    """Everything else: plans with rates, figures over time, settings."""
    sections = []
    if report.plans:
        sections.append(Section("The plan", [_drawn(report, each) for each in report.plans]))
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
        seconds = max(1e-3, report.batches[-1].ended - report.batches[0].began)
        for name, number in reported.stages.items():
            stage = reported.stage(number)
            told = ((name, "rows_of"), (name, "rows_on"))  # of sources, and between stages
            flows = {key for batch in report.batches for key in batch.figures if key[:2] in told}
            rates |= {int(key[2]): _flow(_sum(report, key), seconds) for key in flows}
            leaving = _sum(report, (name, "rows_out"))
            if stage.outlet.leaves != "passed on":
                rates[stage.outlet.way.channel] = _flow(leaving, seconds)
            elif leaving and len(reported.plan.sink.channels) == 1:  # a stage that decides tells its rows with this one
                rates[reported.plan.sink.channels[0]] = _flow(leaving, seconds)
    return Html(picture(boxes, arrows, rates))


def _flow(rows: float, seconds: float) -> str:
    """What has flown, and how fast.

    >>> _flow(12_345, 10), _flow(3, 10)
    ('12,345 rows, 1,234/s', '3 rows, 0.3/s')
    """
    rate = rows / seconds
    return f"{rows:,.0f} rows, {rate:,.0f}/s" if rate >= 10 else f"{rows:,.0f} rows, {rate:.2g}/s"


def _sum(report: Report, key: tuple[str, ...]) -> float:
    return sum(batch.figures.get(key, 0.0) for batch in report.batches)
