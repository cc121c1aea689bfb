"""Reading frames: what columns and types they have, and the hidden columns that a join needs beside them.

A column may be given by name or as an expression. Keys and values of the two inputs are brought to a common type by
Spark itself, so that they are equal as Spark's `=` says; where that takes a cast, the cast value is a hidden column
that does not appear in the result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.classic.column import Column as ClassicColumn
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
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.explain import name_in_plan, plan_by_mark
from streamjoin.state.batch import RESERVED_PREFIX

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_FLOATS = (FloatType, DoubleType)
# A name as Spark reads it: a column, in backquotes where it has odd characters, and fields of it.
_VARIABLE: Final = re.compile(r"\b([xyz])_\d+\b")
_REFERENCE: Final = re.compile(r"(`(?:[^`]|``)*`|[^.`]+)(\..+)?", re.DOTALL)


@dataclass
class InputFrame:
    """A frame that is being prepared for a join: the user's columns, and hidden ones added along the way."""

    number: int
    frame: DataFrame
    columns: tuple[str, ...] = ()
    types: dict[str, DataType] = field(default_factory=dict)
    hidden: dict[str, Column] = field(default_factory=dict)
    casts: dict[str, DataType] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)  # what the frame itself calls a column

    def __post_init__(self) -> None:
        if not hasattr(self.frame, "mapInArrow"):
            raise CallError(f"input {self.number} must be a Spark DataFrame, got {type(self.frame).__name__}")
        self.streaming = bool(self.frame.isStreaming)
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
            parts = _REFERENCE.fullmatch(reference)
            column = self._by_name(_unquoted(parts[1])) if parts is not None else None
            if parts is not None and column is not None:
                return column if parts[2] is None else self._hide(F.col(self._source(column) + parts[2]))
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
            # Beside the other columns, as it will stand: an aggregate would be fine alone.
            self.types[name] = self.frame.select("*", expression.alias(name)).schema[-1].dataType
        except AnalysisException as error:
            raise CallError(f"{self.where} cannot evaluate {expression}: {reason(error)}") from error
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

    def rename(self, name: str, new: str) -> None:
        """Call one of the user's columns by another name from here on."""
        if name != new:
            self.renamed[new] = name
            self.columns = tuple(new if column == name else column for column in self.columns)
            self.types[new] = self.types.pop(name)

    def collation_key(self, name: str) -> str:
        """A hidden column of bytes that are equal where the collation says that the strings are.

        Spark itself rewrites collated join keys this way, but has no SQL function for it: the expression is taken from
        the JVM, which only a classic session has.
        """
        session: Any = self.frame.sparkSession
        if not hasattr(session, "_jvm"):
            raise UnsupportedError(
                f"{name!r} of {self.where} is {self.types[name].simpleString()}, and Spark Connect cannot compare "
                "collated keys outside its own joins",
                hint='make it plain text, .cast("string"), with F.lower(...) first where case does not matter',
            )
        sql, column = session._jvm.org.apache.spark.sql, self._column(name)
        inner = sql.classic.ExpressionUtils.expression(column._jc)
        return self._hide(
            ClassicColumn(sql.classic.ExpressionUtils.column(sql.catalyst.expressions.CollationKey(inner)))
        )

    def _column(self, name: str) -> Column:
        if name in self.hidden:
            return self.hidden[name]
        return F.col(self._source(name))

    def _source(self, name: str) -> str:
        return quoted(self.renamed.get(name, name))

    def prepared(self) -> DataFrame:
        """The frame with its hidden columns, in the order of `schema`, numbered.

        `mapInArrow` does not quote names, so a dot or a backquote in one would be misread. The plan knows the names.
        """
        mine = [
            self._column(name).cast(self.casts[name]) if name in self.casts else self._column(name)
            for name in self.columns
        ]
        columns = [*mine, *self.hidden.values()]
        return self.frame.select(*(column.alias(f"c{position}") for position, column in enumerate(columns)))

    def schema(self) -> pa.Schema:
        """The prepared frame's schema in Arrow."""
        names = [*self.columns, *self.hidden]
        return pa.schema([pa.field(name, arrow_type(self.types[name], name, self.where)) for name in names])

    def derived(self) -> tuple[str, ...]:
        """What the hidden columns are computed from, in words: the same whenever the same program runs."""
        texts = [str(expression) for expression in self.hidden.values()]
        # Spark numbers the variables of lambda functions as they come.
        return tuple(_VARIABLE.sub(r"\1", text) if " -> " in text else text for text in texts)

    def watermark_delay(self, name: str) -> int | None:
        """The delay in milliseconds of the user's own watermark on a time column; None without one."""
        source = self.renamed.get(name, name)
        for column in self.frame.schema.fields:
            if column.name == source and "spark.watermarkDelayMs" in (column.metadata or {}):
                return int(column.metadata["spark.watermarkDelayMs"])
        return None

    def joined_by(self, name: str) -> tuple[JoinPlan, str] | None:
        """The streaming join that a column comes from, and its name there; None when there is none."""
        source = self.renamed.get(name, name)
        for column in self.frame.schema.fields:
            plan = plan_by_mark(column) if column.name == source else None
            if isinstance(plan, JoinPlan) and name_in_plan(column) in plan.naming.schema.names:
                return plan, name_in_plan(column)
        return None

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


def arrow_type(kind: DataType, name: str, where: str = "the query") -> pa.DataType:
    """The type in which Spark hands over a column."""
    try:
        return _nullable_within(to_arrow_type(kind, timezone="UTC"))
    except PySparkTypeError as error:
        raise UnsupportedError(
            f"column {name!r} of {where} is {kind.simpleString()}, which Spark cannot hand to Python",
            hint="cast it, for example to string, or leave it out",
        ) from error


def quoted(name: str) -> str:
    """A column's name as Spark takes it literally.

    >>> quoted("R.x")
    '`R.x`'
    """
    return "`" + name.replace("`", "``") + "`"


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def reason(error: AnalysisException) -> str:
    """What Spark says, without the plan that it appends."""
    return str(error.getMessage()).partition(";\n")[0]


def _nullable_within(kind: pa.DataType) -> pa.DataType:
    """The type with all its nested fields nullable: Arrow cannot cast a NULL struct whose fields must not be NULL."""

    def relaxed(inner: pa.Field) -> pa.Field:
        return inner.with_type(_nullable_within(inner.type)).with_nullable(True)

    if pa.types.is_struct(kind):
        return pa.struct([relaxed(inner) for inner in kind])
    if pa.types.is_map(kind):
        key = kind.key_field
        return pa.map_(key.with_type(_nullable_within(key.type)), relaxed(kind.item_field))
    return pa.list_(relaxed(kind.value_field)) if pa.types.is_list(kind) else kind


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
        one, two = (part.collation_key(name) for part, name in zip(inputs, names, strict=True))
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
