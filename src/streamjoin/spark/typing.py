"""Types as Spark knows them: from its own to a plan's and back, and what expressions have."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkTypeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.condition import one_column
from streamjoin.plan.expression import Expression
from streamjoin.plan.types import Field, Fields, Type, names_of, type_of
from streamjoin.spark.told import asked

# PySpark is told from 4.2 on in which zone timestamps are; before it was always this one.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)


def plan_type(kind: DataType, name: str, where: str = "the query") -> Type:
    """A type of Spark's as plans see it.

    >>> from pyspark.sql.types import LongType
    >>> plan_type(LongType(), "x").text
    'bigint'
    """
    try:
        arrow = _nullable_within(to_arrow_type(kind, **_IN_UTC))
    except PySparkTypeError as error:
        raise UnsupportedError(
            f"column {name!r} of {where} is {kind.simpleString()}, which Spark cannot hand to Python",
            hint="cast it, for example to string, or leave it out",
        ) from error
    of_field = Type(arrow, kind.simpleString(), StructType([StructField("c", kind)]).json())
    return of_field if of_field.collated else Type(arrow, kind.simpleString(), kind.json())


def spark_type(kind: Type) -> DataType:
    """The inverse of `plan_type`."""
    found: Any = json.loads(kind.json)
    if kind.collated:
        return StructType.fromJson(found).fields[0].dataType
    field = {"name": "c", "type": found, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


def fields_of(schema: StructType, where: str) -> Fields:
    """The columns of a frame."""
    return tuple(Field(each.name, plan_type(each.dataType, each.name, where)) for each in schema.fields)


def spark_schema(fields: Fields, more: Sequence[StructField] = ()) -> StructType:
    """Columns with numbers for names, as `mapInArrow` takes them; everything may be NULL."""
    kinds = [spark_type(each.type) for each in fields] + [each.dataType for each in more]
    return StructType([StructField(f"c{number}", kind) for number, kind in enumerate(kinds)])


def reason(error: AnalysisException) -> str:
    """What Spark says, without the plan or the text that it appends."""
    return str(error.getMessage()).strip().partition(";\n")[0].partition("\n\n== SQL")[0]


@contextmanager
def evaluating(what: object) -> Iterator[None]:
    """While this lasts, Spark's refusal to evaluate something is ours."""
    try:
        yield
    except AnalysisException as error:
        raise CallError(f"Spark cannot evaluate {what}: {reason(error)}") from error


class SparkTyping:
    """Spark's own analysis, on frames without rows."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.empty: dict[Fields, DataFrame] = {}

    def computed(self, fields: Fields, columns: Sequence[tuple[str, str]]) -> Fields:
        """The columns that expressions over these ones give."""
        sources = [one_column(text) for _, text in columns]
        given = set(names_of(fields))
        if all(source in given for source in sources):  # nothing to ask: columns under other names
            named = zip(columns, sources, strict=True)
            return tuple(Field(name, type_of(fields, str(source))) for (name, _), source in named)
        with evaluating([text for _, text in columns]):
            shown = [self._expression(text).alias(name) for name, text in columns]
            found = self._schema(self._frame(fields).select(*shown)).fields
        return tuple(Field(each.name, plan_type(each.dataType, each.name)) for each in found)

    def check(self, fields: Fields, condition: str) -> None:
        """Refuse a condition that Spark cannot evaluate over these columns."""
        with evaluating(f"the condition {condition}"):
            self._schema(self._frame(fields).filter(self._expression(condition)))

    def beside(self, fields: Fields, column: Column) -> StructType:
        """These columns, and an expression beside them."""
        return self._schema(self._frame(fields).select("*", column))

    def common(self, one: Type, two: Type) -> Type | None:
        """The type in which two columns are compared."""
        kinds = spark_type(one), spark_type(two)
        if isinstance(kinds[0], StringType) != isinstance(kinds[1], StringType):
            return None
        try:
            both = F.coalesce(*(F.lit(None).cast(kind) for kind in kinds))
            return plan_type(self._schema(self.session.range(0).select(both.alias("c")))[0].dataType, "c")
        except AnalysisException:
            return None

    def agree(self, expression: Expression, inputs: Sequence[Fields]) -> None:
        """Refuse a theta that this session or these columns would have Spark evaluate in another way than we do."""
        for name, ours in (("spark.sql.ansi.enabled", "true"), ("spark.sql.caseSensitive", "false")):
            if str(self.session.conf.get(name, ours)).lower() != ours:
                raise UnsupportedError(
                    f"theta outside an inner join is evaluated as Spark does with {name}={ours}, and this session "
                    "differs",
                    hint=f"set {name}={ours} for this join, or use how='inner'",
                )
        for number, (fields, columns) in enumerate(zip(inputs, expression.columns(), strict=True)):
            for column in columns:
                kind = type_of(fields, column)
                if kind.collated or kind.padded:
                    raise UnsupportedError(
                        f"theta outside an inner join compares strings by their bytes, and {column!r} of input "
                        f"{number} is {kind.text}",
                        hint="use how='inner', or compare lower(...) of it in a column of its own",
                    )

    def _schema(self, frame: DataFrame) -> StructType:
        return asked(self.session, lambda: frame.schema)

    def _frame(self, fields: Fields) -> DataFrame:
        if fields not in self.empty:
            columns = [F.lit(None).cast(spark_type(each.type)).alias(each.name) for each in fields]
            self.empty[fields] = self.session.range(0).select(*columns)
        return self.empty[fields]

    def _expression(self, text: str) -> Column:
        try:
            return F.expr(text)
        except AnalysisException as error:
            raise CallError(f"Spark cannot read {text!r}: {reason(error)}") from error


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
