"""Reading frames: what columns and types they have, and the hidden columns that a join needs beside them.

A column may be given by name or as an expression. Keys and values of the two inputs are brought to a common type by
Spark itself, so that they are equal as Spark's `=` says; where that takes a cast, the cast value is a hidden column
that does not appear in the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from streamjoin.algebra import TimeAxis
from streamjoin.errors import CallError, UnsupportedError, unknown_column
from streamjoin.state.batch import RESERVED_PREFIX

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_FLOATS = (FloatType, DoubleType)


@dataclass
class InputFrame:
    """A frame that is being prepared for a join: the user's columns, and hidden ones added along the way."""

    number: int
    frame: DataFrame
    columns: tuple[str, ...] = ()
    types: dict[str, DataType] = field(default_factory=dict)
    hidden: dict[str, Column] = field(default_factory=dict)
    casts: dict[str, DataType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not hasattr(self.frame, "mapInArrow"):
            raise CallError(f"input {self.number} must be a Spark DataFrame, got {type(self.frame).__name__}")
        if self.frame.isStreaming:
            raise UnsupportedError(
                f"input {self.number} is a streaming frame; this version joins batch frames",
                hint="join inside foreachBatch, or read the source with spark.read",
            )
        self.columns = tuple(self.frame.columns)
        self.types = {field.name: field.dataType for field in self.frame.schema.fields}
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise CallError(f"input {self.number} has two columns {name!r}", hint="rename one with toDF or alias")
            if name.startswith(RESERVED_PREFIX):
                raise CallError(f"column names must not begin with {RESERVED_PREFIX!r}, got {name!r}")

    @property
    def where(self) -> str:
        """How errors call this input."""
        return f"input {self.number}"

    def resolve(self, reference: Any) -> str:
        """The name of the column that a name or an expression means; an expression becomes a hidden column."""
        if isinstance(reference, str):
            found = self._by_name(reference)
            if found is not None:
                return found
            if "." in reference and self._by_name(reference.split(".")[0].strip("`")) is not None:
                return self._hide(F.col(reference))
            raise unknown_column(reference, self.columns, self.where)
        if isinstance(reference, Column):
            return self._hide(reference)
        raise CallError(f"a column of {self.where} must be a name or a Column, got {reference!r}")

    def _by_name(self, name: str) -> str | None:
        if name in self.types:
            return name
        near = [column for column in self.columns if column.lower() == name.lower()]
        return near[0] if len(near) == 1 else None  # like Spark, names do not tell upper from lower case

    def _hide(self, expression: Column) -> str:
        name = f"{RESERVED_PREFIX}c{len(self.hidden)}"
        try:
            self.types[name] = self.frame.select(expression.alias(name)).schema[0].dataType
        except AnalysisException as error:
            raise CallError(f"{self.where} cannot evaluate {expression}: {error.getMessage()}") from error
        self.hidden[name] = expression
        return name

    def cast(self, name: str, kind: DataType) -> str:
        """A column with this type: the column itself if it has it, else a hidden one."""
        if self.types[name] == kind:
            return name
        return self._hide(self._column(name).cast(kind))

    def convert(self, name: str, kind: DataType) -> None:
        """Change the type of one of the user's columns in the result."""
        if self.types[name] != kind:
            self.casts[name] = kind
            self.types[name] = kind

    def expression(self, name: str, template: str) -> str:
        """A hidden column made from another by a SQL function, `template` with `{}` for the column."""
        inner = self.hidden.get(name)
        if inner is None:
            return self._hide(F.expr(template.format(_quoted(name))))
        return self._hide(F.call_function(template.split("(")[0], inner))

    def _column(self, name: str) -> Column:
        if name in self.hidden:
            return self.hidden[name]
        return F.col(_quoted(name))

    def prepared(self) -> DataFrame:
        """The frame with its hidden columns."""
        mine = [
            F.col(_quoted(name)).cast(self.casts[name]).alias(name) if name in self.casts else F.col(_quoted(name))
            for name in self.columns
        ]
        return self.frame.select(*mine, *(column.alias(name) for name, column in self.hidden.items()))

    def schema(self) -> pa.Schema:
        """The prepared frame's schema in Arrow."""
        names = [*self.columns, *self.hidden]
        return pa.schema([pa.field(name, to_arrow_type(self.types[name], timezone="UTC")) for name in names])

    def time_axis(self, name: str) -> TimeAxis:
        """The axis that a time column counts on."""
        kind = self.types[name]
        if isinstance(kind, TimestampType | TimestampNTZType):
            return TimeAxis.TIMESTAMP
        if isinstance(kind, DateType):
            return TimeAxis.DATE
        if isinstance(kind, _INTEGERS):
            return TimeAxis.INTEGER
        raise CallError(
            f"time column {name!r} of {self.where} has type {kind.simpleString()}, which is no time axis",
            hint="use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def common_type(inputs: tuple[InputFrame, InputFrame], names: tuple[str, str], what: str) -> DataType:
    """The type in which Spark compares two columns."""
    one, two = (part.types[name] for part, name in zip(inputs, names, strict=True))
    if one == two:
        return one
    session = inputs[0].frame.sparkSession
    try:
        both = F.coalesce(F.lit(None).cast(one), F.lit(None).cast(two))
        if isinstance(one, StringType) != isinstance(two, StringType):
            raise _not_comparable(inputs, names, what)
        return session.range(0).select(both.alias("c")).schema[0].dataType
    except AnalysisException as error:
        raise _not_comparable(inputs, names, what) from error


def _not_comparable(inputs: tuple[InputFrame, InputFrame], names: tuple[str, str], what: str) -> CallError:
    sides = " and ".join(
        f"{name!r} ({part.types[name].simpleString()})" for part, name in zip(inputs, names, strict=True)
    )
    return CallError(f"{what} compares {sides}, which have no common type", hint="cast one of them")


def key_columns(inputs: tuple[InputFrame, InputFrame], names: tuple[str, str], *, merged: bool) -> tuple[str, str]:
    """The columns that stand for an equality key on both inputs, in a common type.

    `merged`: the key appears once in the result, so the user's own columns get the common type.
    """
    kind = common_type(inputs, names, "equality")
    if merged:
        for part, name in zip(inputs, names, strict=True):
            part.convert(name, kind)
    if isinstance(kind, StringType) and not _binary_collation(kind):
        one, two = (part.expression(name, "collation_key({})") for part, name in zip(inputs, names, strict=True))
        return one, two
    if not kind_is_scalar(kind):
        raise CallError(
            f"equality keys must be scalars, {names[0]!r} is {kind.simpleString()}", hint="compare its fields instead"
        )
    one, two = (part.cast(name, kind) for part, name in zip(inputs, names, strict=True))
    return one, two


def _binary_collation(kind: StringType) -> bool:
    return getattr(kind, "collation", "UTF8_BINARY") == "UTF8_BINARY"


def kind_is_scalar(kind: DataType) -> bool:
    """Whether a type is a single value: neither nested nor one that has no equality."""
    return kind.typeName().split("(")[0] not in ("array", "map", "struct", "variant", "udt", "geometry", "geography")


def value_type(inputs: tuple[InputFrame, InputFrame], names: tuple[str, str], what: str) -> DataType:
    """The type in which two value columns are subtracted and ordered: long, double, a short decimal, or a time."""
    for part, name in zip(inputs, names, strict=True):
        if not isinstance(
            part.types[name], (*_INTEGERS, *_FLOATS, DecimalType, DateType, TimestampType, TimestampNTZType)
        ):
            raise CallError(
                f"{what} needs numbers or times, {name!r} of {part.where} is {part.types[name].simpleString()}",
                hint="cast the column to a number",
            )
    kind = common_type(inputs, names, what)
    if isinstance(kind, _INTEGERS):
        return LongType()
    if isinstance(kind, _FLOATS):
        return DoubleType()
    if isinstance(kind, DecimalType) and kind.precision > 18:
        raise CallError(
            f"{what} on {kind.simpleString()} is wider than the 18 digits that are compared exactly",
            hint="cast to decimal(18, s) or to double",
        )
    return kind


def number_type_check(part: InputFrame, name: str, what: str) -> None:
    """Refuse a column that is not a number."""
    if not isinstance(part.types[name], (*_INTEGERS, *_FLOATS, DecimalType)):
        raise CallError(
            f"{what} needs numbers, {name!r} of {part.where} is {part.types[name].simpleString()}",
            hint="cast the column to double",
        )
