"""A frame that a call reads: its columns by name, and hidden ones for what the call computes of them.

Wherever a column may stand, it is a name, SQL text or a Column; `Input.resolve` is the one place that reads them. A
name that is a column wins over SQL text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import Arrival, Rows, TimeAxis, Window
from streamjoin.errors import CallError, unknown_column
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.condition import quoted
from streamjoin.plan.types import Field, Fields, Type, check_name
from streamjoin.runtime.intake import HIDDEN
from streamjoin.spark.calls.options import Options, listed, per_source
from streamjoin.spark.marks import WATERMARK, is_streaming
from streamjoin.spark.told import is_connect, schema_of, streams
from streamjoin.spark.typing import SparkTyping, fields_of, plan_type, reason

# Spark numbers the variables of lambda functions as they come.
_VARIABLE: Final = re.compile(r"\b([xyz])_\d+\b")
# A name as Spark reads it: a column, in backquotes where it has odd characters, and fields of it.
_REFERENCE: Final = re.compile(r"(`(?:[^`]|``)*`|[^.`]+)(\..+)?", re.DOTALL)
# A text that can only be meant as a name. Of two words SQL would take the second for another name of the first.
_NAME: Final = re.compile(r"|\w+(\.\w+)*|(?!not )\w+ \w+", re.IGNORECASE)
# How a Column shows itself that is nothing but a column.
_COLUMN: Final = re.compile(r"Column<'([^\W\d]\w*)'>")
# What is no frame, by its module and class, and how to make one of it.
_MADE_BY: Final = {
    "pandas.DataFrame": "spark.createDataFrame(frame)",
    "pyarrow.Table": "spark.createDataFrame(table)",
    "polars.DataFrame": "spark.createDataFrame(frame.to_arrow())",
    "polars.LazyFrame": "spark.createDataFrame(frame.collect().to_arrow())",
    "pyspark.DataFrame": "frame.to_spark()",  # pandas on Spark
    "pyspark.RDD": "rdd.toDF()",
    "builtins.str": "spark.read.parquet(path), or spark.readStream for a stream",
    "pathlib.PosixPath": "spark.read.parquet(str(path)), or spark.readStream for a stream",
    "builtins.list": "spark.createDataFrame(rows, schema)",
}


class Input:
    """A frame that is being prepared. `label` is what errors call it; `schema` and `streaming` say what the call knows,
    and are None where Spark is to be asked.
    """

    def __init__(self, frame: Any, label: str, schema: Any = None, streaming: Any = None) -> None:
        check_frame(frame, label)
        self.frame, self.label = frame, label
        # Nobody can look whether a stream was called none, but Spark refuses to sort one.
        self.unchecked = streaming is False and is_connect(frame.sparkSession)
        self.streaming = streams(frame, is_streaming(frame) if streaming is None else streaming, label)
        self.schema, self.declared = schema_of(frame, schema, label), schema is not None
        self.columns = tuple(self.schema.names)
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise CallError(f"{label} has two columns {name!r}", hint="rename one with toDF or alias")
            check_name(name)
        self.types: dict[str, Type] = {each.name: each.type for each in fields_of(self.schema, label)}
        self.hidden: dict[str, Column] = {}
        self.shown: dict[str, str] = {}  # what Spark calls a hidden column
        self.texts: dict[str, str] = {}  # the hidden column of a text
        self.arrival: str | None = None  # the hidden column that stamps rows when they arrive

    def resolve(self, reference: Any) -> str:
        """The name of the column that is meant by a name, SQL text or a Column; what is computed is a hidden column."""
        if isinstance(reference, str):
            return self._by_name(reference) or self.texts.get(reference) or self._of_text(reference)
        if isinstance(reference, Column):
            return self.hide(reference)
        hint = "sj.arrival() stands where a time is asked for; as a value, give the frame a column current_timestamp()"
        raise CallError(
            f"a column of {self.label} must be a name, SQL text or a Column, got {reference!r}",
            hint=hint if isinstance(reference, Arrival) else None,
        )

    def _by_name(self, name: str) -> str | None:
        if name in self.types:
            return name
        near = [column for column in self.columns if column.lower() == name.lower()]
        return near[0] if len(near) == 1 else None  # like Spark, names do not tell upper from lower case

    def _of_text(self, text: str) -> str:
        parts = _REFERENCE.fullmatch(text)
        column = self._by_name(unquoted(parts[1])) if parts is not None else None
        if parts is not None and column is not None:
            return column if parts[2] is None else self.hide(F.col(quoted(column) + parts[2]))
        if _NAME.fullmatch(text):
            raise unknown_column(text, self.columns, self.label)
        self.texts[text] = self.hide(F.expr(text), repr(text))
        return self.texts[text]

    def hide(self, expression: Column, written: str = "") -> str:
        """A hidden column for what an expression computes; the column itself where it is nothing else."""
        name = f"{HIDDEN}c{len(self.hidden)}"
        try:
            # Beside the other columns, as it will stand: an aggregate would be fine alone.
            if self.declared:
                typing = SparkTyping(self.frame.sparkSession)
                *own, found = typing.beside(fields_of(self.schema, self.label), expression)
            else:
                *own, found = self.frame.select("*", expression).schema
        except AnalysisException as error:
            raise CallError(
                f"{self.label} has no column {written}, and cannot evaluate it: {reason(error)}"
                if written
                else f"{self.label} cannot evaluate {expression}: {reason(error)}",
                hint=None if written else "a Column of another frame means nothing here: write F.col(...), or its name",
            ) from error
        if len(own) != len(self.columns):
            raise CallError(f"{self.label}: {written or expression} gives several columns", hint="take one of them")
        plain = _COLUMN.fullmatch(str(expression))
        same = self._by_name(found.name) if plain is not None and plain[1].lower() == found.name.lower() else None
        if same is not None and same.lower() not in ("true", "false", "null"):
            return same
        self.types[name] = plan_type(found.dataType, str(expression), self.label)
        self.hidden[name], self.shown[name] = expression, found.name
        return name

    def column(self, name: str) -> Column:
        """A column of the frame, or what a hidden one is computed by."""
        return self.hidden[name] if name in self.hidden else F.col(quoted(name))

    def time_column(self, given: Any) -> str:
        """The column that says when rows are. `sj.arrival()` is a hidden one with the time at which a row arrives: on a
        stream, Spark makes it the micro-batch's clock.
        """
        if not isinstance(given, Arrival):
            return self.resolve(given)
        if self.arrival is None:
            self.arrival = self.hide(F.current_timestamp())
        return self.arrival

    def with_groups(self, window: Window) -> Window:
        """A window, with the columns that make groups of a row window by name."""
        if not isinstance(window, Rows) or window.by is None:
            return window
        return Rows(window.size, tuple(self.resolve(each) for each in listed(window.by)), window.drain)

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
        if self.unchecked:
            frame = frame.sortWithinPartitions(F.lit(""))  # by a constant: Spark takes it out again
        return frame.select("*", *(each.alias(name) for name, each in self.hidden.items())) if self.hidden else frame

    def is_time(self, name: str) -> bool:
        """Whether a column counts on a time axis."""
        return time_axis(self.types[name].arrow) is not None

    def time_axis(self, name: str) -> TimeAxis:
        """The axis that a time column counts on."""
        axis = time_axis(self.types[name].arrow)
        if axis is not None:
            return axis
        raise CallError(
            f"time column {name!r} of {self.label} has type {self.types[name].text}, which is no time axis",
            hint="use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
        )

    def watermark_delay(self, name: str) -> int | None:
        """The delay in milliseconds of the user's own watermark on a time column; None without one."""
        for column in self.schema.fields:
            if column.name == name and WATERMARK in (column.metadata or {}):
                return int(column.metadata[WATERMARK])
        return None


def inputs_of(frames: Mapping[str, Any], options: Options, what: str) -> dict[str, Input]:
    """The frames of a call by name, with what it says of them; `what` they are for errors, before their name."""
    schemas, streaming = (
        per_source(option, list(frames), name, None)
        for option, name in ((options.schemas, "schemas"), (options.streaming, "streaming"))
    )
    return {name: Input(frame, f"{what} {name}", schemas[name], streaming[name]) for name, frame in frames.items()}


def check_frame(given: Any, what: str) -> None:
    """Refuse whatever is no DataFrame of Spark's, with the way to make one of it."""
    if hasattr(given, "mapInArrow"):
        return
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    fix = _MADE_BY.get(f"{package}.{kind}")
    shown = kind if package == "builtins" else f"{package}.{kind}"
    raise CallError(
        f"{what} must be a Spark DataFrame, got {shown}", hint=None if fix is None else f"make one of it: {fix}"
    )


def unquoted(name: str) -> str:
    """A part of a name as it is called, without the backquotes that it may have been written in.

    >>> unquoted("`odd name`"), unquoted("plain")
    ('odd name', 'plain')
    """
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
