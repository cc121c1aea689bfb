"""A report: what a query is, what it did over time, and how it ended, as a value and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from streamjoin.algebra import TimeAxis
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.reporting.measured import MicroBatch
from streamjoin.reporting.page import main, page
from streamjoin.reporting.sections import lead_of, sections_of
from streamjoin.runtime.stage import Stage


@dataclass(frozen=True)
class ReportedPlan:
    """A call of a query: its plan, and under which names its stages tell their figures."""

    plan: PhysicalPlan
    stages: Mapping[str, int]

    def stage(self, number: int) -> Stage:
        """The stage of that number."""
        return next(stage for stage in self.plan.stages if stage.number == number)

    def input_names(self, stage: int) -> list[str]:
        """What the inputs of a stage are called: like their sources, with their number where two read the same one."""
        labels = [self._source_label(each.channels[0].number) for each in self.stage(stage).inputs]
        return [
            f"input {number}" if label is None else f"{label}, input {number}" if labels.count(label) > 1 else label
            for number, label in enumerate(labels)
        ]

    def _source_label(self, channel: int) -> str | None:
        return next((each.reading.label for each in self.plan.sources if each.channel == channel), None)


@dataclass(frozen=True)
class Report:
    """What a streaming query did until now.

    `batches` are its micro-batches, the first ones joined two by two where there are very many; `plans` the calls that
    it is made of; `settings` what it was told, in words; `error` what it ended with, None if it did not fail;
    `held` how many rows left when it was finished, None if nobody has finished it.
    """

    name: str
    active: bool
    batches: tuple[MicroBatch, ...]
    plans: tuple[ReportedPlan, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    held: int | None = None

    @property
    def title(self) -> str:
        """What the page is called."""
        return f"{self.name}: {'running' if self.active else 'failed' if self.error else 'over'}"

    @property
    def labels(self) -> dict[str, str]:
        """What stages are called in plots, by the names of their figures; nothing where there is only one."""
        names = [name for plan in self.plans for name in plan.stages]
        if len(names) < 2:
            return dict.fromkeys(names, "")
        several = len(self.plans) > 1
        return {
            name: (f"call {number}, " if several else "") + f"stage {stage}"
            for number, plan in enumerate(self.plans)
            for name, stage in plan.stages.items()
        }

    @property
    def inputs(self) -> dict[tuple[str, int], str]:
        """What the inputs of stages are called, by the names of figures and the number of the input."""
        return {
            (name, number): label
            for plan in self.plans
            for name, stage in plan.stages.items()
            for number, label in enumerate(plan.input_names(stage))
        }

    @property
    def time_unit(self) -> str:
        """What lengths of event time are counted in."""
        axes = {plan.plan.axis for plan in self.plans} or {TimeAxis.TIMESTAMP}
        units = {TimeAxis.TIMESTAMP: "seconds", TimeAxis.DATE: "days"}
        return (
            units.get(next(iter(axes)) or TimeAxis.TIMESTAMP, "ticks of the time column") if len(axes) == 1 else "time"
        )

    def figures(self) -> dict[str, list[float | None]]:
        """The figures as columns, a value for each micro-batch, for a table of your own: `pandas.DataFrame(...)`.

        Times are seconds since 1970. Those of joins are called `join-1 lag 0`, by their place in the query;
        `latency_p50` and `latency_p99` are those of the page.
        """
        names = sorted({key for batch in self.batches for key in batch.figures})
        columns: dict[str, list[float | None]] = {
            "batch": [batch.last for batch in self.batches],
            "began": [batch.began for batch in self.batches],
            "ended": [batch.ended for batch in self.batches],
            "seconds": [batch.busy for batch in self.batches],
            "latency_p50": [batch.latency(0.5) for batch in self.batches],
            "latency_p99": [batch.latency(0.99) for batch in self.batches],
        }
        for name in ("rows_in", "rows_out", "late", "state_rows", "state_bytes"):
            columns[name] = [batch.total(name) for batch in self.batches]
        return columns | {" ".join(key): [batch.figures.get(key) for batch in self.batches] for key in names}

    def html(self, refresh: float | None = None) -> str:
        """The page: one HTML file without network. With `refresh` it asks whoever serves it for news, every so many
        seconds.
        """
        return page(self.title, sections_of(self), lead_of(self), refresh)

    def main(self) -> str:
        """What a reader sees of the page, for one that was loaded before."""
        return main(self.title, sections_of(self), lead_of(self))

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file; whole or not at all, so that nobody reads half of one."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.part")
        try:
            beside.write_text(self.html(), encoding="utf-8")
            return beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
