"""A query over lifetimes on Spark: from a relational tree and frames to a frame.

Selections, projections and unions are Spark's own, on frames of elements (see `lifetimes_frame`). Every other node is a
stage: elements are packed for its buckets, exchanged, and its operator runs on them, with state on a stream. So a query
is as many stages as it has row windows, joins, set operators and aggregations.

| node | buckets |
|---|---|
| row window | by the columns it is partitioned by; one without, because it counts the rows of the whole stream |
| join | as any join: by keys, by a grid over values, by a matrix; one for an outer join without keys or bounds |
| DISTINCT, EXCEPT, INTERSECT | by all columns |
| aggregation | by its keys; one without |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, LongType, StructField, StructType

from streamjoin.algebra import Conjunction, InvalidPolicy, LatePolicy, Method, Rows, TimeAxis, Validity, Window
from streamjoin.algebra.policy import ToStream
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import (
    Aggregating,
    Multiplicity,
    NegativeJoin,
    NegativeWindow,
    RowWindow,
    StreamOf,
    TemporalJoin,
)
from streamjoin.operators.multiplicity import SetOperator
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, JoinNode
from streamjoin.plan.partition import MatrixPartitioning
from streamjoin.plan.picture import explain_relation
from streamjoin.plan.planner import JoinPlan, plan_join
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.plan.rules import below_window
from streamjoin.spark.figures import Figures
from streamjoin.spark.frames import InputFrame, arrow_type, quoted, reason
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.lifetimes_frame import (
    HIDDEN,
    REPORT,
    SIGN,
    TE,
    TS,
    Channel,
    ElementFrame,
    numbered,
    numbered_schema,
    renamed,
    time_of,
)
from streamjoin.spark.lifetimes_stage import Config, ElementStage, Leaves
from streamjoin.spark.lifetimes_tasks import ByColumns, ByJoin, OperateElements, PackElements, Placing, ReadStream
from streamjoin.spark.lifetimes_types import alike
from streamjoin.spark.packing import PACKED_SCHEMA
from streamjoin.spark.predicates import bind_predicates, check_agreement
from streamjoin.spark.processor import StageProcessor
from streamjoin.spark.stream import check_session, unpack_rows
from streamjoin.state.holders import MOST_PRODUCERS


@dataclass
class QueryRun:
    """Builds the frames of one query, children first."""

    frames: Mapping[str, DataFrame]
    slack: Mapping[str, int | None]
    buckets: int
    late: LatePolicy = "drop"
    invalid: InvalidPolicy = "fail"
    ordered: bool = False
    method: Method = "direct"
    axis: TimeAxis | None = None
    time_type: DataType | None = None
    call: dict[str, Any] = field(default_factory=dict)  # what is stored of the query beside its state
    numbers: int = 0
    channels: int = 0
    stages: int = 0

    def stream_of(self, relation: Relation, kind: ToStream, time: str) -> DataFrame:
        """The changes of a relation, or its snapshots, as a frame: its columns, and when."""
        child = self.lower(relation, leaves="passed on")
        config = StreamOf(kind, child.schema, producer=self._producer())
        placing = ByColumns(child.names, child.names, 1 if kind == "rstream" else self.buckets)
        events = self._stage(config, [child], child.types, placing, relation, placing.buckets, leaves="settled")
        assert self.time_type is not None
        names = [F.col(quoted(name)) for name in events.names]
        return events.frame.where(F.col(REPORT).isNull()).select(*names, time_of(TS, self.time_type).alias(time))

    def changelog(self, relation: Relation, change: str, time: str) -> DataFrame:
        """What becomes of the relation's rows, as a frame: its columns, "insert" or "retract", and when."""
        assert self.method == "negative"
        changes = self.lower(relation, leaves="told")
        assert self.time_type is not None
        names = [F.col(quoted(name)) for name in changes.names]
        said = F.when(F.col(SIGN) > 0, "insert").otherwise("retract")
        rows = changes.frame.where(F.col(REPORT).isNull())
        return rows.select(*names, said.alias(change), time_of(TS, self.time_type).alias(time))

    def run(self, relation: Relation, validity: tuple[str, str]) -> DataFrame:
        """The relation as a frame: its columns, and the two ends of the validity."""
        elements = self.lower(relation, leaves="settled")
        assert self.time_type is not None
        rows = elements.frame.where(F.col(REPORT).isNull() & (F.col(TS) < F.col(TE)))
        names = [F.col(quoted(name)) for name in elements.names]
        start, end = (time_of(ticks, self.time_type) for ticks in (TS, TE))
        return rows.select(*names, start.alias(validity[0]), end.alias(validity[1]))

    def lower(self, relation: Relation, *, leaves: Leaves) -> ElementFrame:
        """The elements of a relation, and whether they leave as they are, or only when their ends are known."""
        match relation:
            case Stream():
                return self._stream(relation, leaves)
            case Selection(child=Stream() as stream) if self._asked_first(stream):
                return self._stream(stream, leaves, relation.condition)
            case Selection():
                return self.lower(relation.child, leaves=leaves).selected(relation.condition)
            case Projection():
                return self.lower(relation.child, leaves=leaves).projected(relation.computed)
            case Union():
                parts = alike([self.lower(part, leaves=leaves) for part in relation.parts], "UNION")
                return parts[0].united(parts[1:])
            case Join():
                return self._join(relation, leaves)
            case Aggregation():
                return self._aggregation(relation, leaves)
            case Distinct():
                return self._set("distinct", relation, leaves)
            case Difference():
                return self._set("except all" if relation.every else "except", relation, leaves)
            case Intersection():
                return self._set("intersect all" if relation.every else "intersect", relation, leaves)
        raise UnsupportedError(f"{type(relation).__name__} cannot be part of a relation over lifetimes")

    def _asked_first(self, stream: Stream) -> bool:
        """Whether a selection may stand below a stream's window, where Spark can hand it to whoever reads the files.

        Never below a row window, which counts what it would leave out. And not on a running stream: rows that are left
        out also say how far it is.
        """
        return below_window(stream) and not self.frames[stream.source].isStreaming

    # -- streams -------------------------------------------------------------------------------------------------------

    def _stream(self, stream: Stream, leaves: Leaves, condition: str | None = None) -> ElementFrame:
        """The elements of a stream; with a condition only those for which it is true, asked before anything else."""
        frame = self.frames[stream.source]
        source = InputFrame(0, frame)
        window, times = self._window(stream, source)
        by = self._by(window, source)
        # Who came first among equal time stamps is known on a stream; in a batch the order is by all columns.
        stamped = isinstance(window, Rows) and bool(frame.isStreaming)
        at_once = isinstance(window, Rows) and not stamped
        ties = [column for column in source.columns if column not in times] if at_once else []
        kept = [*stream.reads, *((f"by {column}", column) for column in by), *((f"tie {c}", c) for c in ties)]
        needed = [*kept, *((f"time {column}", column) for column in times)]
        rows = frame.select(*(F.col(quoted(column)).alias(name) for name, column in needed))
        if condition is not None:
            rows = filtered_by(rows, condition)
        schema = pa.schema([pa.field(name, arrow_type(source.types[column], column)) for name, column in needed])
        types = tuple(StructField(name, source.types[column]) for name, column in kept)
        types = (*types, StructField("arrival", LongType())) if stamped else types
        channel, slack = self._channel(), self.slack.get(stream.source)
        binding = self._binding(window, schema, len(times))
        read = ReadStream(schema, binding, tuple(name for name, _ in kept), channel, stamped)
        numbers = (F.col(quoted(name)).alias(f"c{number}") for number, (name, _) in enumerate(needed))
        rows = renamed(rows.select(*numbers).mapInArrow(read, numbered_schema(types)), types)
        elements = ElementFrame(rows, types, (Channel(channel, slack=slack or 0),), bool(frame.isStreaming))
        if isinstance(window, Rows):
            return self._row_window(stream, window, elements, len(by), leaves)
        return elements if self.method == "direct" else self._negative_window(stream, elements, leaves)

    def _binding(self, window: Window, schema: pa.Schema, times: int) -> InputBinding:
        """What reads the rows: the last columns are their times."""
        names = tuple(schema.names)
        if isinstance(window, Validity):
            return InputBinding(0, names, window=Validity(*names[-times:]), invalid=self.invalid)
        given = None if isinstance(window, Rows) else window
        return InputBinding(0, names, time=names[-1], window=given, invalid=self.invalid)

    def _row_window(
        self, stream: Stream, window: Rows, elements: ElementFrame, groups: int, leaves: Leaves
    ) -> ElementFrame:
        """Elements with the ends that later ones give them. Behind the stream's columns are those that make groups."""
        width, names = len(stream.reads), elements.names
        payload = elements.types[:width]
        by = pa.schema(list(elements.schema)[width : width + groups])
        config: RowWindow | NegativeWindow
        if self.method == "direct":
            config = RowWindow(window.size, by, window.drain, producer=self._producer())
        else:
            shown = pa.schema(list(elements.schema)[:width])
            config = NegativeWindow(shown, window.size, by, window.drain, producer=self._producer())
        placing = ByColumns(names[:width], names[width : width + groups], self.buckets if groups else 1)
        return self._stage(config, [elements], payload, placing, stream, placing.buckets, leaves)

    def _negative_window(self, stream: Stream, elements: ElementFrame, leaves: Leaves) -> ElementFrame:
        """A window of time that says every element twice."""
        config = NegativeWindow(elements.schema, producer=self._producer())
        placing = ByColumns(elements.names, elements.names, self.buckets)
        return self._stage(config, [elements], elements.types, placing, stream, self.buckets, leaves)

    def _window(self, stream: Stream, source: InputFrame) -> tuple[Window, list[str]]:
        assert stream.window is not None
        if isinstance(stream.window, Validity):
            times = [source.resolve(stream.window.start), source.resolve(stream.window.end)]
        else:
            times = [source.resolve(stream.time)]
        axes = {source.time_axis(name) for name in times}
        kinds = [source.types[name] for name in times]
        if len(axes) > 1 or (self.axis is not None and self.axis not in axes):
            raise CallError(
                f"the time of stream {stream.source} is {kinds[0].simpleString()}, on another axis than the others'",
                hint="cast the time columns to one type",
            )
        self.axis = axes.pop()
        kind = kinds[0] if self.axis is not TimeAxis.INTEGER else from_arrow_type(pa.int64())
        if self.time_type is not None and self.time_type != kind:
            raise CallError(
                f"the time of stream {stream.source} is {kind.simpleString()}, and another stream's is "
                f"{self.time_type.simpleString()}",
                hint="cast the time columns to one type",
            )
        self.time_type = kind
        window = stream.window.resolve(self.axis)
        return (Validity(*times) if isinstance(window, Validity) else window), times

    def _by(self, window: Window, source: InputFrame) -> list[str]:
        if not isinstance(window, Rows) or window.by is None:
            return []
        names: Any = [window.by] if isinstance(window.by, str) else window.by
        return [source.resolve(name) for name in names]

    # -- operators -----------------------------------------------------------------------------------------------------

    def _set(self, operator: SetOperator, relation: Relation, leaves: Leaves) -> ElementFrame:
        parts = alike([self.lower(child, leaves="passed on") for child in relation.children], operator.upper())
        types = parts[0].types
        config = Multiplicity(operator, parts[0].schema, producer=self._producer(), method=self.method)
        placing = ByColumns(parts[0].names, parts[0].names, self.buckets)
        return self._stage(config, parts, types, placing, relation, self.buckets, leaves)

    def _aggregation(self, aggregation: Aggregation, leaves: Leaves) -> ElementFrame:
        child = self.lower(aggregation.child, leaves="passed on")
        config = Aggregating(
            aggregation.keys, aggregation.aggregates, child.schema, producer=self._producer(), method=self.method
        )
        kinds = {field.name: field.dataType for field in child.types}
        types = [StructField(key, kinds[key]) for key in aggregation.keys]
        results = list(config.result_schema)[len(aggregation.keys) :]
        for each, result in zip(aggregation.aggregates, results, strict=True):
            same = each.function in ("min", "max") and each.column is not None
            types.append(StructField(each.name, kinds[str(each.column)] if same else from_arrow_type(result.type)))
        placing = ByColumns(child.names, aggregation.keys, self.buckets if aggregation.keys else 1)
        return self._stage(config, [child], tuple(types), placing, aggregation, placing.buckets, leaves)

    def _join(self, join: Join, leaves: Leaves) -> ElementFrame:
        parts = [self.lower(child, leaves="passed on") for child in join.children]
        inputs = tuple(InputFrame(n, part.frame.select(*map(_col, part.names))) for n, part in enumerate(parts))
        plan = self._join_plan(join, parts, (inputs[0], inputs[1]))
        sides = []
        for part, source in zip(parts, inputs, strict=True):
            hidden = [column.alias(name) for name, column in source.hidden.items()]
            types = (*part.types, *(StructField(name, source.types[name]) for name in source.hidden))
            sides.append(replace(part, frame=part.frame.select(*map(_col, part.names), *hidden, *HIDDEN), types=types))
        assert isinstance(plan.join, TemporalJoin)
        left_only = join.how in ("semi", "anti")
        types = parts[0].types if left_only else (*parts[0].types, *parts[1].types)
        config: TemporalJoin | NegativeJoin = replace(plan.join, producer=self._producer())
        if self.method == "negative":
            config = NegativeJoin(plan.join.matching, plan.join.schemas, join.how, producer=self._producer())
        buckets = plan.partitioning.buckets
        joined = self._stage(config, sides, types, ByJoin(plan), join, buckets, leaves, owner=plan)
        return joined.selected(join.theta) if join.theta is not None and join.how == "inner" else joined

    def _join_plan(self, join: Join, parts: Sequence[ElementFrame], inputs: tuple[InputFrame, InputFrame]) -> JoinPlan:
        keys, predicates, _ = bind_predicates(inputs, Conjunction(join.predicates) if join.predicates else None)
        nodes = []
        for number, source in enumerate(inputs):
            times = [pa.field(TS, pa.int64()), pa.field(TE, pa.int64())]
            schema = pa.schema([*source.schema(), *times])
            own = tuple(key[number] for key in keys)
            nodes.append(InputNode(schema, source.columns, own, None, Validity(TS, TE)))
        theta = None
        if join.theta is not None and join.how != "inner":
            theta = Expression.parse(join.theta, [part.schema for part in parts])
            check_agreement(theta, inputs)
        node = JoinNode(
            (nodes[0], nodes[1]), predicates=tuple(predicates), theta=theta, axis=TimeAxis.INTEGER,
            time_type=pa.int64(), how=join.how, outer="snapshot", buckets=self.buckets, validity=(TS, TE),
            suffix="_right",
        )  # fmt: skip
        plan = plan_join(node)
        # Rows that must know whether they had a partner are kept in one place.
        # So are plus and minus tuples where their place is by content, which includes their times.
        scattered = self.method == "negative" and isinstance(plan.partitioning, MatrixPartitioning)
        return plan_join(replace(node, buckets=1)) if scattered or any(plan.followed) else plan

    # -- stages --------------------------------------------------------------------------------------------------------

    def _stage(
        self,
        config: Config,
        inputs: Sequence[ElementFrame],
        types: Sequence[StructField],
        placing: Placing,
        relation: Relation,
        buckets: int,
        leaves: Leaves,
        owner: JoinPlan | None = None,
    ) -> ElementFrame:
        self.stages += 1
        streaming = any(part.streaming for part in inputs)
        channel, labels = self._channel(), bucket_labels(buckets)
        schema = pa.schema([pa.field(f"c{n}", arrow_type(each.dataType, each.name)) for n, each in enumerate(types)])
        stage = ElementStage(
            config, schema, tuple(part.channels for part in inputs), channel, leaves,
            leaves == "settled" and self.ordered, self.late, not streaming, owner, buckets,
            "; ".join(line.strip() for line in explain_relation(relation).splitlines()),
        )  # fmt: skip
        packed = []
        for number, part in enumerate(inputs):
            pack = PackElements(number, part.schema, placing, labels, streaming)
            packed.append(numbered(part.frame, part.names).mapInArrow(pack, PACKED_SCHEMA))
        rows = self._operated(stage, reduce(DataFrame.unionAll, packed), labels, numbered_schema(types))
        return ElementFrame(renamed(rows, types), tuple(types), (Channel(channel, buckets),), streaming)

    def _operated(
        self, stage: ElementStage, packed: DataFrame, labels: tuple[int, ...], schema: StructType
    ) -> DataFrame:
        """What leaves a stage, with numbers for names."""
        if stage.at_once:
            return packed.repartition(len(labels), "label").mapInArrow(OperateElements(stage), schema)
        return self._run_stream(stage, packed, labels).mapInArrow(unpack_rows, schema)

    def _run_stream(self, stage: ElementStage, packed: DataFrame, labels: tuple[int, ...]) -> DataFrame:
        check_session(packed)
        figures = Figures(self.axis)
        axis = None if self.axis is None else self.axis.name
        processor = StageProcessor(stage, labels, {**self.call, "axis": axis, "channel": stage.channel})
        told = figures.observed(packed, "pack")
        done = told.groupBy("label").transformWithStateInPandas(processor, PACKED_SCHEMA, "append", "none")
        return figures.observed(done, "join")

    def _channel(self) -> int:
        self.channels += 1
        return self.channels - 1

    def _producer(self) -> int:
        self.numbers += 1
        if self.numbers > MOST_PRODUCERS:
            raise UnsupportedError(
                f"a query may have {MOST_PRODUCERS} windows and operators, and this one has more",
                hint="cut it into several queries",
            )
        return self.numbers - 1


def filtered_by(frame: DataFrame, condition: str) -> DataFrame:
    """The rows for which a condition is true."""
    try:
        return frame.filter(F.expr(condition))
    except AnalysisException as error:
        raise CallError(f"Spark cannot evaluate the condition {condition}: {reason(error)}") from error


def _col(name: str) -> Any:
    return F.col(quoted(name))
