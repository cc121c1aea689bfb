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

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField

from streamjoin.algebra import Conjunction, InvalidPolicy, LatePolicy, Rows, TimeAxis, Validity, Window
from streamjoin.algebra.policy import ToStream
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import Aggregating, Multiplicity, RowWindow, StreamOf, TemporalJoin
from streamjoin.operators.multiplicity import SetOperator
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, JoinNode
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
from streamjoin.spark.figures import Figures
from streamjoin.spark.frames import InputFrame, arrow_type, common_type
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.lifetimes_frame import (
    HIDDEN,
    REPORT,
    TE,
    TS,
    Channel,
    ElementFrame,
    numbered,
    numbered_schema,
    renamed,
    time_of,
)
from streamjoin.spark.lifetimes_stage import Config, ElementStage
from streamjoin.spark.lifetimes_tasks import ByColumns, ByJoin, OperateElements, PackElements, Placing, ReadStream
from streamjoin.spark.packing import PACKED_SCHEMA
from streamjoin.spark.predicates import bind_predicates
from streamjoin.spark.processor import StageProcessor
from streamjoin.spark.stream import check_session, unpack_rows


@dataclass
class QueryRun:
    """Builds the frames of one query, children first."""

    frames: Mapping[str, DataFrame]
    slack: Mapping[str, int | None]
    buckets: int
    late: LatePolicy = "drop"
    invalid: InvalidPolicy = "fail"
    ordered: bool = False
    axis: TimeAxis | None = None
    time_type: DataType | None = None
    numbers: int = 0
    channels: int = field(default=0)

    def stream_of(self, relation: Relation, kind: ToStream, time: str) -> DataFrame:
        """The changes of a relation, or its snapshots, as a frame: its columns, and when."""
        child = self.lower(relation, settled=False)
        config = StreamOf(kind, child.schema, producer=self._producer())
        placing = ByColumns(child.names, child.names, 1 if kind == "rstream" else self.buckets)
        events = self._stage(config, [child], child.types, placing, placing.buckets, settled=True)
        assert self.time_type is not None
        names = [F.col(_quoted(name)) for name in events.names]
        return events.frame.where(F.col(REPORT).isNull()).select(*names, time_of(TS, self.time_type).alias(time))

    def run(self, relation: Relation, validity: tuple[str, str]) -> DataFrame:
        """The relation as a frame: its columns, and the two ends of the validity."""
        elements = self.lower(relation, settled=True)
        assert self.time_type is not None
        rows = elements.frame.where(F.col(REPORT).isNull() & (F.col(TS) < F.col(TE)))
        names = [F.col(_quoted(name)) for name in elements.names]
        start, end = (time_of(ticks, self.time_type) for ticks in (TS, TE))
        return rows.select(*names, start.alias(validity[0]), end.alias(validity[1]))

    def lower(self, relation: Relation, *, settled: bool) -> ElementFrame:
        """The elements of a relation. `settled`: only such leave whose ends are known."""
        match relation:
            case Stream():
                return self._stream(relation, settled)
            case Selection():
                return self.lower(relation.child, settled=settled).selected(relation.condition)
            case Projection():
                return self.lower(relation.child, settled=settled).projected(relation.computed)
            case Union():
                parts = self._alike([self.lower(part, settled=settled) for part in relation.parts], "UNION")
                return parts[0].united(parts[1:])
            case Join():
                return self._join(relation, settled)
            case Aggregation():
                return self._aggregation(relation, settled)
            case Distinct():
                return self._set("distinct", relation, settled)
            case Difference():
                return self._set("except all" if relation.every else "except", relation, settled)
            case Intersection():
                return self._set("intersect all" if relation.every else "intersect", relation, settled)
        raise UnsupportedError(f"{type(relation).__name__} cannot be part of a relation over lifetimes")

    # -- streams -------------------------------------------------------------------------------------------------------

    def _stream(self, stream: Stream, settled: bool) -> ElementFrame:
        frame = self.frames[stream.source]
        source = InputFrame(0, frame)
        window, times = self._window(stream, source)
        by = self._by(window, source)
        columns = [column for _, column in stream.reads]
        if isinstance(window, Rows) and not frame.isStreaming:
            # In a batch nobody knows who came first: among equal time stamps the order is by all columns, as the frame
            # has them. So those that the query does not read come along: its result must not depend on what it reads.
            ties = [column for column in source.columns if column not in (*columns, *by, *times)]
        else:
            ties = []
        needed = list(dict.fromkeys([*columns, *by, *times, *ties]))
        schema = pa.schema([pa.field(name, arrow_type(source.types[name], name)) for name in needed])
        rows_window = isinstance(window, Rows)
        binding = InputBinding(
            0, tuple(needed), time=None if isinstance(window, Validity) else times[0],
            window=None if rows_window else window, invalid=self.invalid,
        )  # fmt: skip
        channel = self._channel()
        read = ReadStream(schema, binding, (*columns, *by, *ties), channel, ends_known=not rows_window)
        names = [*(name for name, _ in stream.reads), *(f"by {column}" for column in by)]
        names += [f"tie {column}" for column in ties]
        kinds = [source.types[column] for column in (*columns, *by, *ties)]
        types = tuple(StructField(name, kind) for name, kind in zip(names, kinds, strict=True))
        plain = frame.select(*(F.col(_quoted(name)).alias(f"c{number}") for number, name in enumerate(needed)))
        rows = renamed(plain.mapInArrow(read, numbered_schema(types)), types)
        slack = self.slack.get(stream.source)
        elements = ElementFrame(rows, types, (Channel(channel, slack=slack or 0),), bool(frame.isStreaming))
        if not rows_window:
            return elements
        assert isinstance(window, Rows)
        payload = types[: len(columns)]
        groups = pa.schema([schema.field(column) for column in by])
        config = RowWindow(window.size, groups, window.drain, producer=self._producer())
        grouped = tuple(names[len(columns) : len(columns) + len(by)])
        placing = ByColumns(tuple(names[: len(columns)]), grouped, self.buckets if by else 1)
        carried = [*columns, *by, *ties]
        order = tuple(carried.index(column) for column in source.columns if column in carried)
        return self._stage(config, [elements], payload, placing, placing.buckets, settled, ties=order)

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

    def _set(self, operator: SetOperator, relation: Relation, settled: bool) -> ElementFrame:
        parts = self._alike([self.lower(child, settled=False) for child in relation.children], operator.upper())
        types = parts[0].types
        config = Multiplicity(operator, parts[0].schema, producer=self._producer())
        placing = ByColumns(parts[0].names, parts[0].names, self.buckets)
        return self._stage(config, parts, types, placing, self.buckets, settled)

    def _aggregation(self, aggregation: Aggregation, settled: bool) -> ElementFrame:
        child = self.lower(aggregation.child, settled=False)
        config = Aggregating(aggregation.keys, aggregation.aggregates, child.schema, producer=self._producer())
        kinds = {field.name: field.dataType for field in child.types}
        types = [StructField(key, kinds[key]) for key in aggregation.keys]
        results = list(config.result_schema)[len(aggregation.keys) :]
        for each, result in zip(aggregation.aggregates, results, strict=True):
            same = each.function in ("min", "max") and each.column is not None
            types.append(StructField(each.name, kinds[str(each.column)] if same else from_arrow_type(result.type)))
        placing = ByColumns(child.names, aggregation.keys, self.buckets if aggregation.keys else 1)
        return self._stage(config, [child], tuple(types), placing, placing.buckets, settled)

    def _join(self, join: Join, settled: bool) -> ElementFrame:
        parts = [self.lower(child, settled=False) for child in join.children]
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
        config = replace(plan.join, producer=self._producer())
        buckets = plan.partitioning.buckets
        joined = self._stage(config, sides, types, ByJoin(plan), buckets, settled, owner=plan)
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
        node = JoinNode(
            (nodes[0], nodes[1]), predicates=tuple(predicates), theta=theta, axis=TimeAxis.INTEGER,
            time_type=pa.int64(), how=join.how, outer="snapshot", buckets=self.buckets, validity=(TS, TE),
            suffix="_right",
        )  # fmt: skip
        plan = plan_join(node)
        # Rows that must know whether they had a partner are kept in one place.
        return plan_join(replace(node, buckets=1)) if any(plan.followed) else plan

    def _alike(self, parts: list[ElementFrame], what: str) -> list[ElementFrame]:
        """Parts of a set operator: as many columns each, in common types, under the names of the first."""
        widths = {len(part.types) for part in parts}
        if len(widths) > 1:
            raise CallError(
                f"{what} needs parts with as many columns each, got {' and '.join(str(len(p.types)) for p in parts)}",
                hint="select the same columns on both sides",
            )
        types = list(parts[0].types)
        for part in parts[1:]:
            for number, mine in enumerate(part.types):
                types[number] = StructField(types[number].name, self._common(part, types[number], mine, what))
        return [part.cast_to(types) if tuple(types) != part.types else part for part in parts]

    def _common(self, part: ElementFrame, one: StructField, two: StructField, what: str) -> DataType:
        if one.dataType == two.dataType:
            return one.dataType
        empty = part.frame.sparkSession.range(0)
        sides = [
            InputFrame(number, empty.select(F.lit(None).cast(each.dataType).alias(each.name)))
            for number, each in enumerate((one, two))
        ]
        return common_type((sides[0], sides[1]), (one.name, two.name), what)

    # -- stages --------------------------------------------------------------------------------------------------------

    def _stage(
        self,
        config: Config,
        inputs: Sequence[ElementFrame],
        types: Sequence[StructField],
        placing: Placing,
        buckets: int,
        settled: bool,
        owner: JoinPlan | None = None,
        ties: tuple[int, ...] = (),
    ) -> ElementFrame:
        streaming = any(part.streaming for part in inputs)
        channel, labels = self._channel(), bucket_labels(buckets)
        schema = pa.schema([pa.field(f"c{n}", arrow_type(each.dataType, each.name)) for n, each in enumerate(types)])
        stage = ElementStage(
            config, schema, tuple(part.channels for part in inputs), channel, settled, settled and self.ordered,
            self.late, not streaming, owner, ties,
        )  # fmt: skip
        packed = []
        for number, part in enumerate(inputs):
            pack = PackElements(number, part.schema, placing, labels)
            packed.append(numbered(part.frame, part.names).mapInArrow(pack, PACKED_SCHEMA))
        everything = reduce(DataFrame.unionAll, packed)
        if streaming:
            rows = self._run_stream(stage, everything, labels).mapInArrow(unpack_rows, numbered_schema(types))
        else:
            exchanged = everything.repartition(buckets, "label")
            rows = exchanged.mapInArrow(OperateElements(stage), numbered_schema(types))
        return ElementFrame(renamed(rows, types), tuple(types), (Channel(channel, buckets),), streaming)

    def _run_stream(self, stage: ElementStage, packed: DataFrame, labels: tuple[int, ...]) -> DataFrame:
        check_session(packed)
        figures = Figures(self.axis)
        call = {"query": stage.identity, "axis": None if self.axis is None else self.axis.name}
        name = hashlib.sha256(json.dumps([stage.channel, call]).encode()).hexdigest()
        processor = StageProcessor(stage, labels, {"name": name, **call})
        told = figures.observed(packed, "pack")
        done = told.groupBy("label").transformWithStateInPandas(processor, PACKED_SCHEMA, "append", "none")
        return figures.observed(done, "join")

    def _channel(self) -> int:
        self.channels += 1
        return self.channels - 1

    def _producer(self) -> int:
        self.numbers += 1
        return self.numbers - 1


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _col(name: str) -> Any:
    return F.col(_quoted(name))
