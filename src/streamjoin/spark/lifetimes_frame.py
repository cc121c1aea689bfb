"""Frames of elements: how a relation over lifetimes looks between Spark's operators.

A row is an element: the relation's columns, and hidden ones beside them.

    __sj_ts, __sj_te   the validity in ticks; `te` is infinity where the element never ends, or its end is not known
    __sj_holder        who will know the end; -1 where it is known
    __sj_sign          in a query by plus and minus tuples: 1 where a row appears at `ts`, -1 where it disappears
    __sj_channel       the stream that the row comes from, as long as nothing with state has seen it; then -1
    __sj_report        NULL; in a *report* it is what is reported, and everything else is NULL

Reports are rows that travel with the elements: how far a stream or an operator is, and ends that have become known. So
selections and projections can be Spark's own, any expression will do, and still nobody downstream loses sight of
progress. A batch needs no reports: it ends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from streamjoin.algebra.interval import FOREVER
from streamjoin.errors import CallError
from streamjoin.operators import Results
from streamjoin.spark.frames import arrow_type, quoted, reason
from streamjoin.state import Ends, table_from_bytes, table_to_bytes
from streamjoin.state.batch import with_columns

TS: Final = "__sj_ts"
TE: Final = "__sj_te"
HOLDER: Final = "__sj_holder"
CHANNEL: Final = "__sj_channel"
REPORT: Final = "__sj_report"
SIGN: Final = "__sj_sign"
HIDDEN_SCHEMA: Final = pa.schema([
    (TS, pa.int64()), (TE, pa.int64()), (HOLDER, pa.int64()), (SIGN, pa.int8()), (CHANNEL, pa.int32()),
    (REPORT, pa.binary()),
])  # fmt: skip
HIDDEN: Final = tuple(HIDDEN_SCHEMA.names)
NO_CHANNEL: Final = -1


@dataclass(frozen=True)
class Channel:
    """Where elements come from: a stream, with its slack, or the buckets of an operator."""

    number: int
    buckets: int = 0  # 0 for a stream
    slack: int = 0


@dataclass(frozen=True)
class ElementFrame:
    """A relation as a Spark frame: its columns with Spark's types, and the channels that feed it."""

    frame: DataFrame
    types: tuple[StructField, ...]
    channels: tuple[Channel, ...]
    streaming: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The relation's columns."""
        return tuple(field.name for field in self.types)

    @property
    def schema(self) -> pa.Schema:
        """The relation's columns in Arrow."""
        return pa.schema([pa.field(field.name, arrow_type(field.dataType, field.name)) for field in self.types])

    def selected(self, condition: str) -> ElementFrame:
        """The elements for which a condition is true, and all reports."""
        keep = F.col(REPORT).isNotNull() | self._expression(condition, "WHERE")
        try:
            return replace(self, frame=self.frame.filter(keep))
        except AnalysisException as error:
            raise CallError(f"Spark cannot evaluate the condition {condition}: {reason(error)}") from error

    def projected(self, computed: Sequence[tuple[str, str]]) -> ElementFrame:
        """Computed columns."""
        columns = [
            F.when(F.col(REPORT).isNull(), self._expression(text, "SELECT")).alias(name) for name, text in computed
        ]
        try:
            frame = self.frame.select(*columns, *HIDDEN)
            fields = frame.schema.fields[: len(columns)]
        except AnalysisException as error:
            raise CallError(f"Spark cannot evaluate {[text for _, text in computed]}: {reason(error)}") from error
        types = tuple(StructField(field.name, field.dataType) for field in fields)
        return replace(self, frame=frame, types=types)

    def _expression(self, text: str, clause: str) -> Column:
        try:
            return F.expr(text)
        except AnalysisException as error:
            raise CallError(f"Spark cannot read {text!r} of {clause}: {reason(error)}") from error

    def cast_to(self, types: Sequence[StructField]) -> ElementFrame:
        """The same columns by position, under these names and with these types."""
        columns = [
            F.col(quoted(mine.name)).cast(other.dataType).alias(other.name)
            for mine, other in zip(self.types, types, strict=True)
        ]
        return replace(self, frame=self.frame.select(*columns, *HIDDEN), types=tuple(types))

    def united(self, others: Sequence[ElementFrame]) -> ElementFrame:
        """The elements of all, which have the same columns."""
        frame, channels = self.frame, self.channels
        for other in others:
            frame, channels = frame.unionAll(other.frame), channels + other.channels
        return replace(self, frame=frame, channels=channels)


def numbered_schema(types: Sequence[StructField]) -> StructType:
    """The schema of an element frame with these columns; everything may be NULL.

    It has numbers for names: `mapInArrow` does not quote names, so a dot in one would be misread.
    """
    columns = [StructField(f"c{number}", field.dataType) for number, field in enumerate(types)]
    return StructType([*columns, *(StructField(field.name, from_arrow_type(field.type)) for field in HIDDEN_SCHEMA)])


def renamed(frame: DataFrame, types: Sequence[StructField]) -> DataFrame:
    """A numbered frame under its own names."""
    columns = [F.col(f"c{number}").alias(field.name) for number, field in enumerate(types)]
    return frame.select(*columns, *HIDDEN)


def numbered(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """A frame with numbers for names."""
    return frame.select(*(F.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(names)), *HIDDEN)


def element_rows(results: Results, channel: int = NO_CHANNEL) -> pa.Table:
    """Elements as rows of an element frame."""
    rows, holder, sign = len(results), results.holder, results.sign
    return with_columns(
        results.payload,
        **{
            TS: results.ts,
            TE: results.te,
            HOLDER: np.full(rows, -1) if holder is None else holder,
            SIGN: pa.nulls(rows, pa.int8()) if sign is None else sign,
            CHANNEL: np.full(rows, channel, np.int32),
            REPORT: pa.nulls(rows, pa.binary()),
        },
    )


def report_row(schema: pa.Schema, report: bytes) -> pa.Table:
    """A report as a row of an element frame with these columns."""
    columns = {field.name: pa.nulls(1, field.type) for field in (*schema, *HIDDEN_SCHEMA)}
    return pa.table({**columns, REPORT: pa.array([report], pa.binary())})


def progress_report(channel: int, **told: int | None) -> bytes:
    """How far a channel is: a stream's largest time stamp, or the progress of an operator's bucket."""
    return b"P" + json.dumps({"channel": channel, **told}).encode()


def ends_report(ends: Ends) -> bytes:
    """Ends that have become known."""
    return b"E" + table_to_bytes(ends.to_table())


def read_report(report: bytes) -> dict[str, Any] | Ends:
    """What is reported."""
    if report[:1] == b"E":
        return Ends.from_table(table_from_bytes(report[1:]))
    told: dict[str, Any] = json.loads(report[1:])
    return told


def time_of(ticks: str, kind: DataType) -> Column:
    """A column of ticks as Spark's time; infinity is NULL."""
    known = F.when(F.col(ticks) != F.lit(FOREVER), F.col(ticks))
    name = kind.typeName()
    if name == "timestamp":
        return F.timestamp_micros(known)
    if name == "timestamp_ntz":
        seconds = (known.cast("decimal(20, 0)") / 1_000_000).cast("decimal(18, 6)")
        return F.lit("1970-01-01").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
    if name == "date":
        return F.date_from_unix_date(known.cast("int"))
    return known
