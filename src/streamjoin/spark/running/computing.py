"""What Spark computes of a plan: the steps above a source, and on the edges between stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField

from streamjoin.algebra.interval import FOREVER
from streamjoin.errors import UnsupportedError
from streamjoin.plan.condition import one_column, quoted
from streamjoin.plan.physical import Collate, Compute, Computed, Edge, Filter, Fold, Mark, Rank, Sink, Source, Step
from streamjoin.plan.tasks import SinkTask
from streamjoin.plan.types import Fields, names_of
from streamjoin.runtime.elements import PRIORITY as ELEMENT_PRIORITY
from streamjoin.runtime.elements import REPORT, SIGN, TE, TS
from streamjoin.runtime.intake import HIDDEN, KEEP, PRIORITY, WHOLE
from streamjoin.runtime.naming import CHANGE, OutputColumn
from streamjoin.spark.running.tasks import Leave
from streamjoin.spark.told import is_connect, knowing
from streamjoin.spark.typing import evaluating, spark_schema, spark_type


def hidden_fields(edge: Edge) -> tuple[StructField, ...]:
    """The hidden columns of an edge's elements."""
    return tuple(StructField(each.name, from_arrow_type(each.type)) for each in edge.hidden)


def prepared(source: Source, frame: DataFrame) -> DataFrame:
    """The columns that a source hands over, with numbers for names: fields, then hidden ones."""
    frame = frame.select(*(F.col(quoted(column)).alias(name) for name, column in source.reads))
    passing = [name for name, _ in source.reads if name.startswith(HIDDEN)]  # whatever is computed
    for step in source.steps:
        frame = _source_step(frame, step, passing)
        if isinstance(step, Fold):
            folded = {here for _, here in step.columns}
            passing = [*(name for name in passing if name not in folded), WHOLE]
        elif isinstance(step, Rank):
            passing = [*(name for name in passing if name not in step.columns), PRIORITY]
        elif isinstance(step, Mark) and KEEP not in passing:
            passing.append(KEEP)
    return numbered(frame, source.handed_over)


def _source_step(frame: DataFrame, step: Step, passing: list[str]) -> DataFrame:
    kept = KEEP in passing
    if isinstance(step, Fold):
        folded = F.struct(*(F.col(quoted(here)).alias(there) for there, here in step.columns))
        return frame.withColumn(WHOLE, folded).drop(*(here for _, here in step.columns))
    if isinstance(step, Rank):
        with evaluating(step.text):
            return frame.withColumn(PRIORITY, F.expr(step.text)).drop(*step.columns)
    if isinstance(step, Collate):
        keys = {name: collation_key(frame, F.col(quoted(name)), column) for name, column in step.columns}
        return frame.withColumns(keys)
    if isinstance(step, Compute):
        unmarked = F.col(quoted(KEEP)) if kept else None
        return _select(frame, step, unmarked, passing)
    condition = F.expr(step.condition)
    with evaluating(step.condition):
        if isinstance(step, Filter):
            return frame.filter(condition)
        # Of a row that is marked already nothing is asked any more.
        asked = F.when(F.col(quoted(KEEP)), condition) if kept else condition
        return frame.withColumn(KEEP, F.coalesce(asked, F.lit(False)))


def named(frame: DataFrame, fields: Fields, hidden: Sequence[StructField] = ()) -> DataFrame:
    """Columns that have numbers for names under their own; of rows of elements also the hidden ones."""
    every = [*names_of(fields), *(each.name for each in hidden)]
    return frame.select(*(F.col(f"c{number}").alias(name) for number, name in enumerate(every)))


def numbered(frame: DataFrame, fields: Fields, hidden: Sequence[StructField] = ()) -> DataFrame:
    """The inverse of `named`."""
    every = [*names_of(fields), *(each.name for each in hidden)]
    columns = [F.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(every)]
    return knowing(frame.select(*columns), spark_schema(fields, hidden))


def stepped(frame: DataFrame, edge: Edge) -> DataFrame:
    """Rows of elements with what Spark computes of them; reports pass."""
    for step in edge.steps:
        report = F.col(REPORT).isNotNull()
        if isinstance(step, Compute):
            frame = _select(frame, step, ~report, edge.hidden.names)
        elif isinstance(step, Filter):
            with evaluating(step.condition):
                frame = frame.filter(report | F.expr(step.condition))
    return frame


def _select(frame: DataFrame, step: Compute, asked: Column | None, passing: Sequence[str]) -> DataFrame:
    columns = [_computed(frame, each, asked).alias(each.name) for each in step.columns]
    with evaluating([each.text for each in step.columns]):
        return frame.select(*columns, *(F.col(quoted(name)) for name in passing))


def _computed(frame: DataFrame, column: Computed, asked: Column | None) -> Column:
    value = F.expr(column.text)
    if asked is not None and one_column(column.text) is None:
        value = F.when(asked, value)
    if column.collation_key:
        value = collation_key(frame, value, column.text)
    return value if column.cast is None else value.cast(spark_type(column.cast))


def collation_key(frame: DataFrame, value: Column, text: str) -> Column:
    """Bytes that are equal where the collation says that the strings are.

    Spark itself rewrites collated join keys this way, but has no SQL function for it: the expression is taken from the
    JVM, which only a classic session has.
    """
    session: Any = frame.sparkSession
    if is_connect(session):
        raise UnsupportedError(
            f"{text} is collated, and Spark Connect cannot compare collated keys outside its own joins",
            hint='make it plain text, .cast("string"), with F.lower(...) first where case does not matter',
        )
    sql, column = session._jvm.org.apache.spark.sql, value
    inner = sql.classic.ExpressionUtils.expression(column._jc)
    return ClassicColumn(sql.classic.ExpressionUtils.column(sql.catalyst.expressions.CollationKey(inner)))


def leaving(frame: DataFrame, sink: Sink, edge: Edge) -> DataFrame:
    """Rows of elements as the user sees them. Where rows are shown that leave unjoined, Python finds them."""
    shape = sink.shape
    if shape.flags or shape.marked:
        rows = numbered(frame, edge.result, hidden_fields(edge))
        return named(rows.mapInArrow(Leave(SinkTask(edge, shape)), spark_schema(sink.fields)), sink.fields)
    when = (shape.time, *(shape.validity or ()))
    kind = next((spark_type(each.type) for each in sink.fields if each.name in when), None)
    alive = F.col(REPORT).isNull()
    if shape.validity is not None:
        alive = alive & (F.col(TS) < F.col(TE))
    columns = [_coalesced(each).alias(each.name) for each in shape.columns]
    if shape.validity is not None:
        assert kind is not None
        columns += [time_of(ticks, kind).alias(name) for ticks, name in zip((TS, TE), shape.validity, strict=True)]
    if shape.priority is not None:
        columns.append(F.col(ELEMENT_PRIORITY).alias(shape.priority))
    if shape.change:
        columns.append(F.when(F.coalesce(F.col(SIGN), F.lit(1)) > 0, "insert").otherwise("retract").alias(CHANGE))
    if shape.time is not None:
        assert kind is not None
        columns.append(time_of(TS, kind).alias(shape.time))
    return frame.where(alive).select(*columns)


def _coalesced(column: OutputColumn) -> Column:
    sources = [F.col(quoted(source)) for source in column.sources]
    return sources[0] if len(sources) == 1 else F.coalesce(*sources)


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
