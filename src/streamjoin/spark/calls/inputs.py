"""A frame that a call reads: its columns by name, and hidden ones for what the call computes of them."""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import Arrival, Rows, TimeAxis, Window
from streamjoin.errors import CallError, unknown_column
from streamjoin.plan.condition import quoted
from streamjoin.plan.types import Field, Fields, Type
from streamjoin.runtime.intake import HIDDEN
from streamjoin.spark.typing import frame_fields, plan_type, reason

RESERVED: Final = "__sj"
# Spark numbers the variables of lambda functions as they come.
_VARIABLE: Final = re.compile(r"\b([xyz])_\d+\b")
# A name as Spark reads it: a column, in backquotes where it has odd characters, and fields of it.
_REFERENCE: Final = re.compile(r"(`(?:[^`]|``)*`|[^.`]+)(\..+)?", re.DOTALL)


class Input:
    """A frame that is being prepared. `label` is what errors call it."""

    def __init__(self, frame: Any, label: str) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise CallError(f"{label} must be a Spark DataFrame, got {type(frame).__name__}")
        self.frame, self.label = frame, label
        self.streaming = bool(frame.isStreaming)
        self.columns = tuple(frame.columns)
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise CallError(f"{label} has two columns {name!r}", hint="rename one with toDF or alias")
            if name.startswith(RESERVED):
                raise CallError(f"column names must not begin with {RESERVED!r}, got {name!r}", hint="rename it")
        self.types: dict[str, Type] = {each.name: each.type for each in frame_fields(frame, label)}
        self.hidden: dict[str, Column] = {}
        self.arrival: str | None = None  # the hidden column that stamps rows when they arrive

    def resolve(self, reference: Any) -> str:
        """The name of the column that a name or an expression means; an expression becomes a hidden column."""
        if isinstance(reference, str):
            found = self._by_name(reference)
            if found is not None:
                return found
            parts = _REFERENCE.fullmatch(reference)
            column = self._by_name(_unquoted(parts[1])) if parts is not None else None
            if parts is not None and column is not None:
                return column if parts[2] is None else self.hide(F.col(quoted(column) + parts[2]))
            raise unknown_column(reference, self.columns, self.label)
        if isinstance(reference, Column):
            return self.hide(reference)
        hint = "sj.arrival() stands where a time is asked for; as a value, give the frame a column current_timestamp()"
        raise CallError(
            f"a column of {self.label} must be a name or a Column, got {reference!r}",
            hint=hint if isinstance(reference, Arrival) else None,
        )

    def _by_name(self, name: str) -> str | None:
        if name in self.types:
            return name
        near = [column for column in self.columns if column.lower() == name.lower()]
        return near[0] if len(near) == 1 else None  # like Spark, names do not tell upper from lower case

    def hide(self, expression: Column) -> str:
        """A hidden column for what an expression computes."""
        name = f"{HIDDEN}c{len(self.hidden)}"
        try:
            # Beside the other columns, as it will stand: an aggregate would be fine alone.
            kind = self.frame.select("*", expression.alias(name)).schema[-1].dataType
        except AnalysisException as error:
            raise CallError(f"{self.label} cannot evaluate {expression}: {reason(error)}") from error
        self.types[name] = plan_type(kind, str(expression), self.label)
        self.hidden[name] = expression
        return name

    def stamped(self) -> str:
        """A hidden column with the time at which a row arrives: on a stream, Spark makes it the micro-batch's clock."""
        if self.arrival is None:
            self.arrival = self.hide(F.current_timestamp())
        return self.arrival

    def with_groups(self, window: Window) -> Window:
        """A window, with the columns that make groups of a row window by name."""
        if not isinstance(window, Rows) or window.by is None:
            return window
        by: Any = window.by if isinstance(window.by, list | tuple) else [window.by]
        return Rows(window.size, tuple(self.resolve(each) for each in by), window.drain)

    @property
    def fields(self) -> Fields:
        """All columns, the hidden ones too."""
        return tuple(Field(name, kind) for name, kind in self.types.items())

    @property
    def derived(self) -> tuple[str, ...]:
        """What the hidden columns are computed from, in words: the same whenever the same program runs."""
        texts = [str(expression) for expression in self.hidden.values()]
        return tuple(_VARIABLE.sub(r"\1", text) if " -> " in text else text for text in texts)

    def prepared(self) -> DataFrame:
        """The frame with its hidden columns."""
        frame: DataFrame = self.frame
        return frame.select("*", *(each.alias(name) for name, each in self.hidden.items())) if self.hidden else frame

    def time_axis(self, name: str) -> TimeAxis:
        """The axis that a time column counts on."""
        kind = self.types[name].text
        if kind in ("timestamp", "timestamp_ntz"):
            return TimeAxis.TIMESTAMP
        if kind == "date":
            return TimeAxis.DATE
        if kind in ("tinyint", "smallint", "int", "bigint"):
            return TimeAxis.INTEGER
        raise CallError(
            f"time column {name!r} of {self.label} has type {kind}, which is no time axis",
            hint="use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
        )

    def watermark_delay(self, name: str) -> int | None:
        """The delay in milliseconds of the user's own watermark on a time column; None without one."""
        for column in self.frame.schema.fields:
            if column.name == name and "spark.watermarkDelayMs" in (column.metadata or {}):
                return int(column.metadata["spark.watermarkDelayMs"])
        return None


def is_time(frame: Any, column: Any) -> bool:
    """Whether a column counts on a time axis."""
    part = Input(frame, "the frame")
    try:
        part.time_axis(part.resolve(column))
    except CallError as error:
        if "no time axis" in error.message:
            return False
        raise
    return True


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
