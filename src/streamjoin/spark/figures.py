"""Figures through Spark's own channel: observed metrics, in every query's progress and for every listener.

Each stage sends one row of figures per bucket and micro-batch beside its results, and so does each task of a source.
Sources that no stage reads, as in a query that keeps nothing, have figures of their own. Per micro-batch of a join:

    rows_in, rows_out, late             rows; marked ones count as leaving too
    rows_of                             those of rows_in by the number of their source
    rows_on                             rows that one stage of a call handed to another, by the number of the channel
    between                             of rows_in (`in`) and rows_out (`out`), those that one call of a query handed to
                                        another: they neither come into the query nor leave it
    invalid                             rows without time, or ending before they begin; also where they take nobody
    ghosts                              rows that end where they begin, and are in no snapshot
    purged                              rows that nobody can meet any more
    state_rows, state_bytes, state_runs what is kept after the micro-batch, over all buckets
    spilled_bytes                       of state_bytes, those that lie in files
    spills, merges                      times that rows left memory for files, and sorted runs made of others
    pages_read, pages_written           pages of runs that do not fit into memory
    progress, lag                       per input: how far it is (time stamps in UTC), and how far (seconds, or days, or
                                        whatever an integer counts) that is behind the newest row of any input
    recall                              with a recall target: the `target`, the recall that is `expected` (None while
                                        too little is known), and per input its `slack`, the rows that are kept of it
                                        (`kept_rows`) and how long (`kept_for`), the `delay` of the micro-batch's rows
                                        (p50, p90, p99, max) and those that came `late`, see `runtime.recall_figures`;
                                        times in units as for lag
    probing                             of joins of many inputs, one after the other: how many rows of an input `asked`
                                        each other one and what they `found`, rows of tables with a column for each; the
                                        `order` in which an input's rows asked the others, first to last; and how often
                                        one sweep over all did without (`swept`), see `operators.probed`
    urgent                              with priorities: how many `rows` of rows_in were urgent, their `share`; and from
                                        `sj.progress`, per input, for how many seconds its progress has been `standing`,
                                        and whether the others are `starving`, see `spark.starving`
    seconds                             pack, read (the state), join, write; summed over tasks, which run side by side
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import TimeAxis
from streamjoin.errors import says_what_fits
from streamjoin.operators.probed import ASKED, SWEPT, figure, figure_names, in_tables
from streamjoin.runtime.elements import REPORT
from streamjoin.runtime.recall_figures import KEPT, LATE, QUANTILES, TOLD
from streamjoin.runtime.stage import probing_figure
from streamjoin.spark.running.packed import PACKED_SCHEMA
from streamjoin.spark.told import knowing

PREFIX: Final = "streamjoin-"
COUNTS: Final = (
    "rows_in", "rows_out", "late", "invalid", "ghosts", "purged", "state_rows", "state_bytes", "state_runs",
    "spilled_bytes", "spills", "merges", "pages_read", "pages_written",
)  # fmt: skip
OF_SOURCE, ONWARDS = "rows_of_", "rows_on_"
STEPS: Final = ("pack", "read", "join", "write")
_SUMMED: Final = (*COUNTS, *(f"{step}_us" for step in STEPS))
# Of a recall target: the same in all buckets, and summed over them.
_AIM: Final = ("target_ppm", "recall_ppm")
_RECALL: Final = (*_AIM, *(f"{name}_{number}" for name in TOLD for number in (0, 1)))
_KEPT: Final = tuple(f"{KEPT}_{number}" for number in (0, 1))

Part = Literal["pack", "join", "verdict"]

_numbers = itertools.count(1)


class Figures:
    """The figures of one join, observed part by part under a name that no other join of this program has."""

    def __init__(
        self,
        axis: TimeAxis | None,
        inputs: int = 2,
        *,
        sources: Mapping[int, Sequence[str]] | None = None,
        target: bool = False,
        prioritised: bool = False,
        joins_of_many: Sequence[int] = (),
    ) -> None:
        self.name, self.axis = f"{PREFIX}{next(_numbers)}", axis
        self.summed = (*_SUMMED, *(_KEPT if target else ()), *(("urgent",) if prioritised else ()))
        self.alike = _RECALL if target else ()
        self.times = [f"progress_{number}" for number in range(inputs)]
        self.lags = [f"lag_{number}" for number in range(inputs)]
        self.probing = [
            probing_figure(join, name) for join, inputs in enumerate(joins_of_many) for name in figure_names(inputs)
        ]
        # By the channels of those that the join reads itself: the names of the figures of those that they come from.
        self.sources = sources or {}

    def observed(self, packed: DataFrame, part: Part, onwards: Sequence[int] = ()) -> DataFrame:
        """The packed output of a part of the join, without the figures, which have been observed. `onwards`: channels
        from one stage to another whose rows are counted here.

        They do not cross the next exchange: they say how long things took, and what a task sends must not depend on
        that, so that a task that is run again sends the same.
        """
        summed = (*self.summed, *(self.probing if part == "join" else ()))
        names = (*summed, "rows_on", *self.alike, *self.times, *self.lags)
        schema = ", ".join(f"{name} bigint" for name in names)
        told = F.from_json(F.when(F.col("kind") == "figures", F.col("blob").cast("string")), schema)
        metrics = [F.sum(f"figures.{name}").alias(name) for name in summed]
        metrics += [F.max(f"figures.{name}").alias(name) for name in (*self.alike, *self.times, *self.lags)]
        metrics += [_by(channel, "rows_on").alias(f"{ONWARDS}{channel}") for channel in onwards]
        if part == "pack":
            metrics += [_by(channel, "rows_in").alias(f"{OF_SOURCE}{channel}") for channel in self.sources]
        metrics += self._origin(self.sources if part == "pack" else ())
        frame = packed.withColumn("figures", told).observe(f"{self.name}-{part}", *metrics)
        return knowing(frame.drop("figures").where("kind != 'figures'"), PACKED_SCHEMA)

    def taken_off(self, rows: DataFrame, channel: int) -> DataFrame:
        """Rows of elements of a source that no stage reads, without its figures, which have been observed. Urgent ones
        are not among these: where nobody keeps rows, none can starve.
        """
        names = ("rows_in", "invalid", "ghosts", "pack_us")
        head, report = f"figures {channel} ", F.col(REPORT).cast("string")
        schema = ", ".join(f"{name} bigint" for name in names)
        told = F.from_json(F.when(report.startswith(head), F.substr(report, F.lit(len(head) + 1))), schema)
        metrics = [F.sum(f"__sj_figures.{name}").alias(name) for name in names]
        metrics += [F.sum("__sj_figures.rows_in").alias(f"{OF_SOURCE}{channel}"), *self._origin([channel])]
        frame = rows.withColumn("__sj_figures", told).observe(f"{self.name}-pack{channel}", *metrics)
        return frame.where("__sj_figures IS NULL").drop("__sj_figures")

    def counted(self, rows: DataFrame, channel: int | str = "") -> DataFrame:
        """The rows that leave after all, where Spark drops some of a join's results; or those of a source."""
        return rows.observe(f"{self.name}-filter{channel}", F.count(F.lit(1)).alias("rows_out"))

    def _origin(self, channels: Iterable[int]) -> list[Column]:
        """Of which figures those of these sources are a continuation, and on which axis times are."""
        fed_by = {channel: list(self.sources[channel]) for channel in channels if self.sources[channel]}
        axis = F.max(F.lit(None if self.axis is None else self.axis.value)).alias("axis")
        return [*([F.max(F.lit(json.dumps(fed_by))).alias("fed_by")] if fed_by else []), axis]


def _by(channel: int, name: str) -> Column:
    return F.sum(F.when(F.col("channel") == channel, F.col(f"figures.{name}")))


@says_what_fits
def from_progress(progress: Any) -> dict[str, Any]:
    """The same as `progress`, from one entry of a query's `recentProgress`, or from what a listener is given: Spark's
    object, its dict or its JSON.

    >>> figures = from_progress({"batchId": 4, "durationMs": {"triggerExecution": 1500}, "observedMetrics": {
    ...     "streamjoin-1-pack": {"rows_in": 10, "pack_us": 2_000_000},
    ...     "streamjoin-1-join": {"rows_out": 3, "late": 1, "progress_0": 7}}})
    >>> figures["batch"], figures["seconds"], figures["rows_in"], figures["late"]
    (4, 1.5, 10, 1)
    >>> figures["joins"]["streamjoin-1"]["progress"], figures["joins"]["streamjoin-1"]["seconds"]["pack"]
    ([7, None], 2.0)

    Spark Connect tells a metric's values apart from their names:

    >>> from_progress({"observedMetrics": {"streamjoin-1-pack": {
    ...     "values": [10, 3], "schema": [{"name": "rows_in"}, {"name": "late"}]}}})["rows_in"]
    10
    """
    told = _as_dict(progress)
    parts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for name, metrics in (told.get("observedMetrics") or {}).items():
        if name.startswith(PREFIX):
            parts[name.rpartition("-")[0]].append(_metrics(metrics))
    joins = {name: _figures(parts[name]) for name in sorted(parts, key=_number)}
    _tell_between(joins, parts)
    totals = {
        "rows_in": sum(join["rows_in"] - join["between"]["in"] for join in joins.values()),
        "rows_out": sum(join["rows_out"] - join["between"]["out"] for join in joins.values()),
        "late": sum(join["late"] for join in joins.values()),
    }
    milliseconds = (told.get("durationMs") or {}).get("triggerExecution", 0)
    return {"batch": told.get("batchId"), "seconds": milliseconds / 1000, **totals, "joins": joins}


def _tell_between(joins: dict[str, Any], parts: Mapping[str, list[Mapping[str, Any]]]) -> None:
    """What one call of the query handed to another. Names of other queries say nothing: columns of a frame may have
    been written by one, and read by this one.
    """
    fed_by = {
        name: {int(channel): set(names) & joins.keys() for channel, names in json.loads(part["fed_by"]).items()}
        for name, mine in parts.items()
        for part in mine
        if part.get("fed_by")
    }
    read = {each for channels in fed_by.values() for names in channels.values() for each in names}
    for name, join in joins.items():
        inside = [channel for channel, names in fed_by.get(name, {}).items() if names]
        rows = sum(join["rows_of"].get(channel, 0) for channel in inside)
        join["between"] = {"in": rows, "out": join["rows_out"] if name in read else 0}


def _number(name: str) -> int:
    number = name.removeprefix(PREFIX)
    return int(number) if number.isdigit() else 0


def _figures(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(part.get(name) or 0 for part in parts)

    def known(name: str) -> Any:
        return next((part[name] for part in parts if part.get(name) is not None), None)

    figures: dict[str, Any] = {count: total(count) for count in COUNTS}
    for flow, prefix in (("rows_of", OF_SOURCE), ("rows_on", ONWARDS)):
        names = sorted({name for part in parts for name in part if name.startswith(prefix)})
        figures[flow] = {int(name.removeprefix(prefix)): total(name) for name in names}
    axis = known("axis")
    inputs = max(2, len({name for part in parts for name in part if name.startswith("progress_")}))
    figures["progress"] = [_moment(known(f"progress_{number}"), axis) for number in range(inputs)]
    figures["lag"] = [_duration(known(f"lag_{number}"), axis) for number in range(inputs)]
    if known("target_ppm") is not None:
        figures["recall"] = _recall(known, axis)
    joins = _joins_of_many({name for part in parts for name in part})
    if joins:
        figures["probing"] = [
            in_tables({name: total(probing_figure(join, name)) for name in figure_names(inputs)}, inputs)
            for join, inputs in enumerate(joins)
        ]
    if any("urgent" in part for part in parts):
        rows, urgent = figures["rows_in"], total("urgent")
        figures["urgent"] = {"rows": urgent, "share": urgent / rows if rows else 0.0}
    figures["seconds"] = {step: total(f"{step}_us") / 1e6 for step in STEPS}
    return figures


def _joins_of_many(names: Set[str]) -> list[int]:
    """How many inputs those joins of many have of which there are figures."""
    found: list[int] = []
    while probing_figure(len(found), SWEPT) in names:
        join = len(found)
        inputs = 2
        while probing_figure(join, figure(ASKED, 0, inputs)) in names:
            inputs += 1
        found.append(inputs)
    return found


def _recall(known: Callable[[str], Any], axis: str | None) -> dict[str, Any]:
    """The figures of a recall target; those of inputs in lists, as progress and lag are."""

    def lasting(name: str) -> list[float | None]:
        return [_duration(known(f"{name}_{number}"), axis) for number in (0, 1)]

    delay = {name: lasting(f"delay_{name}") for name in QUANTILES}
    expected = known("recall_ppm")
    return {
        "target": known("target_ppm") / 1e6,
        "expected": None if expected is None else expected / 1e6,
        "slack": lasting("slack"),
        "kept_for": lasting("kept_for"),
        KEPT: [known(f"{KEPT}_{number}") for number in (0, 1)],
        "delay": [{name: delay[name][number] for name in QUANTILES} for number in (0, 1)],
        "late": [
            dict(zip(("rows", "classes", "most"), (known(f"{name}_{number}") for name in LATE), strict=True))
            for number in (0, 1)
        ],
    }


def _moment(ticks: int | None, axis: str | None) -> Any:
    """A time as Python has it. Spark would hand it over as text, without its zone."""
    return ticks if ticks is None or axis is None else TimeAxis(axis).moment(ticks)


def _duration(ticks: int | None, axis: str | None) -> float | None:
    """In seconds over time stamps, otherwise in ticks."""
    return ticks if ticks is None or axis != TimeAxis.TIMESTAMP.value else ticks / 1e6


def _metrics(told: Any) -> Mapping[str, Any]:
    """The metrics of one observation by name; Spark Connect has the names in a schema beside the values."""
    found = _as_dict(told)
    if found.keys() != {"values", "schema"}:
        return found
    schema = found["schema"]
    columns = schema["fields"] if isinstance(schema, Mapping) else schema
    return {column["name"]: value for column, value in zip(columns, found["values"], strict=True)}


def _as_dict(told: Any) -> Mapping[str, Any]:
    if isinstance(told, Mapping):
        return told
    if isinstance(told, str):
        return json.loads(told)  # type: ignore[no-any-return]
    if hasattr(told, "asDict"):
        return told.asDict()  # type: ignore[no-any-return]
    return {
        "batchId": told.batchId,
        "durationMs": dict(told.durationMs),
        "observedMetrics": dict(told.observedMetrics),
    }
