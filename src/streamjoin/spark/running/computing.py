"""What Spark computes of a plan: the steps above a source, and on the edges between stages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import BinaryType, ByteType, DataType, LongType, StructField

from streamjoin.algebra.interval import FOREVER
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.condition import quoted
from streamjoin.plan.physical import Compute, Computed, Edge, Filter, Sink, Source, Step
from streamjoin.plan.types import names_of
from streamjoin.runtime.elements import REPORT, SIGN, TE, TS
from streamjoin.runtime.fragment import KEEP
from streamjoin.runtime.intake import HIDDEN
from streamjoin.runtime.naming import CHANGE, FLAGS, OutputColumn
from streamjoin.spark.typing import reason, spark_type

HIDDEN_FIELDS: Final = (
    StructField(TS, LongType()), StructField(TE, LongType()), StructField("__sj_holder", LongType()),
    StructField(SIGN, ByteType()), StructField(REPORT, BinaryType()),
)  # fmt: skip
_HIDDEN_NAMES: Final = tuple(field.name for field in HIDDEN_FIELDS)


def prepared(source: Source, frame: DataFrame) -> DataFrame:
    """The columns that a source hands over, with numbers for names: fields, then hidden ones."""
    frame = frame.select(*(F.col(quoted(column)).alias(name) for name, column in source.reads))
    hidden = [name for name, _ in source.reads if name.startswith(HIDDEN)]
    for step in source.steps:
        frame = _source_step(frame, step, hidden)
    names = [*names_of(source.fields), *(each.name for each in source.hidden if each.name != HIDDEN + "arrival")]
    return frame.select(*(F.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(names)))


def _source_step(frame: DataFrame, step: Step, hidden: list[str]) -> DataFrame:
    kept = KEEP in frame.columns
    if isinstance(step, Compute):
        passing = [name for name in (*hidden, KEEP) if name in frame.columns]
        unmarked = F.col(quoted(KEEP)) if kept else None
        return _select(frame, step, unmarked, passing)
    condition = F.expr(step.condition)
    if isinstance(step, Filter):
        return _evaluated(lambda: frame.filter(condition), step.condition)
    # Of a row that is marked already nothing is asked any more.
    asked = F.when(F.col(quoted(KEEP)), condition) if kept else condition
    return _evaluated(lambda: frame.withColumn(KEEP, F.coalesce(asked, F.lit(False))), step.condition)


def named_elements(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows of elements under their own names."""
    every = [*names, *_HIDDEN_NAMES]
    return frame.select(*(F.col(f"c{number}").alias(name) for number, name in enumerate(every)))


def numbered_elements(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The inverse of `named_elements`."""
    every = [*names, *_HIDDEN_NAMES]
    return frame.select(*(F.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(every)))


def stepped(frame: DataFrame, edge: Edge) -> DataFrame:
    """Rows of elements with what Spark computes of them; reports pass."""
    for step in edge.steps:
        report = F.col(REPORT).isNotNull()
        if isinstance(step, Compute):
            frame = _select(frame, step, ~report, _HIDDEN_NAMES)
        else:
            condition = step.condition
            before = frame
            frame = _evaluated(lambda: before.filter(report | F.expr(condition)), condition)  # noqa: B023
    return frame


def _select(frame: DataFrame, step: Compute, asked: Column | None, passing: Sequence[str]) -> DataFrame:
    columns = [_computed(frame, each, asked).alias(each.name) for each in step.columns]
    shown = str([each.text for each in step.columns])
    return _evaluated(lambda: frame.select(*columns, *(F.col(quoted(name)) for name in passing)), shown)


def _computed(frame: DataFrame, column: Computed, asked: Column | None) -> Column:
    value = F.expr(column.text)
    if asked is not None and not column.text.strip().startswith("`"):
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
    if not hasattr(session, "_jvm"):
        raise UnsupportedError(
            f"{text} is collated, and Spark Connect cannot compare collated keys outside its own joins",
            hint='make it plain text, .cast("string"), with F.lower(...) first where case does not matter',
        )
    sql, column = session._jvm.org.apache.spark.sql, value
    inner = sql.classic.ExpressionUtils.expression(column._jc)
    return ClassicColumn(sql.classic.ExpressionUtils.column(sql.catalyst.expressions.CollationKey(inner)))


def _evaluated(made: Any, what: str) -> DataFrame:
    try:
        frame: DataFrame = made()
        frame.schema  # noqa: B018
    except AnalysisException as error:
        raise CallError(f"Spark cannot evaluate {what}: {reason(error)}") from error
    return frame


def leaving(frame: DataFrame, sink: Sink) -> DataFrame:
    """Rows of elements as the user sees them."""
    shape = sink.shape
    when = (shape.time, *(shape.validity or ()))
    kind = next((spark_type(each.type) for each in sink.fields if each.name in when), None)
    element = F.col(REPORT).isNull()
    alive = element if shape.validity is None else element & (F.col(TS) < F.col(TE))
    shown = {flag: _is_marked(mark) for mark, flag in FLAGS.items() if flag in shape.flags}
    columns = [_coalesced(each).alias(each.name) for each in shape.columns]
    if shape.validity is not None:
        assert kind is not None
        columns += [time_of(ticks, kind).alias(name) for ticks, name in zip((TS, TE), shape.validity, strict=True)]
    columns += [shown[flag].alias(flag) for flag in shape.flags]
    if shape.change:
        said = F.when(F.coalesce(F.col(SIGN), F.lit(1)) > 0, "insert").otherwise("retract")
        columns.append(F.when(element, said).alias(CHANGE))
    if shape.time is not None:
        assert kind is not None
        columns.append(time_of(TS, kind).alias(shape.time))
    return frame.where(reduce(Column.__or__, shown.values(), alive)).select(*columns)


def _is_marked(mark: str) -> Column:
    """Whether a row only passes, to be shown for this reason."""
    return F.expr(f"coalesce({quoted(REPORT)} = X'{mark.encode().hex()}', false)")


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
