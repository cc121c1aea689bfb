"""Figures through Spark's own channel: observed metrics, in every query's progress and for every listener.

Each stage sends one row of figures per bucket and micro-batch beside its results. Per micro-batch of a join:

    rows_in, rows_out, late, invalid    rows; marked ones count as leaving too
    purged                              rows that nobody can meet any more
    state_rows, state_bytes, state_runs what is kept after the micro-batch, over all buckets
    progress, lag                       per input: how far it is, and how far that is behind the newest row of any input
    seconds                             pack, read (the state), join, write; summed over tasks, which run side by side
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import TimeAxis

PREFIX: Final = "streamjoin-"
COUNTS: Final = ("rows_in", "rows_out", "late", "invalid", "purged", "state_rows", "state_bytes", "state_runs")
STEPS: Final = ("pack", "read", "join", "write")
_SUMMED: Final = (*COUNTS, *(f"{step}_us" for step in STEPS))
_TIMES: Final = ("progress_0", "progress_1")
_LAGS: Final = ("lag_0", "lag_1")

_numbers = itertools.count(1)


def observed(packed: DataFrame, axis: TimeAxis | None) -> DataFrame:
    """The packed output of a join, with its figures observed under a name that no other join of this program has."""
    schema = ", ".join(f"{name} bigint" for name in (*_SUMMED, *_TIMES, *_LAGS))
    told = F.from_json(F.when(F.col("kind") == "figures", F.col("blob").cast("string")), schema)
    metrics = [F.sum(f"figures.{name}").alias(name) for name in _SUMMED]
    metrics += [_as_time(F.max(f"figures.{name}"), axis).alias(name) for name in _TIMES]
    metrics += [_as_duration(F.max(f"figures.{name}"), axis).alias(name) for name in _LAGS]
    frame = packed.withColumn("figures", told)
    return frame.observe(f"{PREFIX}{next(_numbers)}", *metrics).drop("figures")


def _as_time(ticks: Column, axis: TimeAxis | None) -> Column:
    if axis is TimeAxis.TIMESTAMP:
        return F.timestamp_micros(ticks)
    return F.date_from_unix_date(ticks.cast("int")) if axis is TimeAxis.DATE else ticks


def _as_duration(ticks: Column, axis: TimeAxis | None) -> Column:
    return ticks / 1e6 if axis is TimeAxis.TIMESTAMP else ticks


def from_progress(progress: Any) -> dict[str, Any]:
    """The figures of one micro-batch, from a query's progress: Spark's object, its dict or its JSON.

    >>> figures = from_progress({"batchId": 4, "durationMs": {"triggerExecution": 1500}, "observedMetrics": {
    ...     "streamjoin-1": {"rows_in": 10, "rows_out": 3, "late": 1, "progress_0": 7, "pack_us": 2_000_000}}})
    >>> figures["batch"], figures["seconds"], figures["rows_in"], figures["late"]
    (4, 1.5, 10, 1)
    >>> figures["joins"]["streamjoin-1"]["progress"], figures["joins"]["streamjoin-1"]["seconds"]["pack"]
    ([7, None], 2.0)
    """
    told = _as_dict(progress)
    joins = {
        name: _figures(_as_dict(metrics))
        for name, metrics in sorted((told.get("observedMetrics") or {}).items(), key=lambda item: _number(item[0]))
        if name.startswith(PREFIX)
    }
    totals = {count: sum(join[count] for join in joins.values()) for count in ("rows_in", "rows_out", "late")}
    milliseconds = (told.get("durationMs") or {}).get("triggerExecution", 0)
    return {"batch": told.get("batchId"), "seconds": milliseconds / 1000, **totals, "joins": joins}


def nothing_yet() -> dict[str, Any]:
    """The figures of a query before its first micro-batch."""
    return from_progress({})


def _number(name: str) -> int:
    number = name.removeprefix(PREFIX)
    return int(number) if number.isdigit() else 0


def _figures(told: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {count: told.get(count) or 0 for count in COUNTS}
    figures["progress"] = [told.get(name) for name in _TIMES]
    figures["lag"] = [told.get(name) for name in _LAGS]
    figures["seconds"] = {step: (told.get(f"{step}_us") or 0) / 1e6 for step in STEPS}
    return figures


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
