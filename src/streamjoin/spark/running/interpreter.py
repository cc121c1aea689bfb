"""A physical plan on Spark: frames by channel, stage after stage. How a stage runs is what interpreters differ in.

Over batch frames everything is there: one micro-batch, then the end. All stages are `mapInArrow`: public DataFrame
calls, lazy, recovered by Spark like any other stage. Nothing is collected, and no job runs when the call is made.

    source --pack--\\
                     exchange by bucket --stage--> packed --------------> next stage
    source --pack--/                               rows --Spark--pack--> next stage
                                                   rows -------------> the user
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamjoin.plan.physical import Edge, PhysicalPlan, Source
from streamjoin.runtime.outlet import ToStage, ToUser
from streamjoin.runtime.stage import Stage
from streamjoin.runtime.target import Target
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.running.computing import (
    hidden_fields,
    leaving,
    named,
    numbered,
    prepared,
    stepped,
)
from streamjoin.spark.running.packed import PACKED_SCHEMA
from streamjoin.spark.running.tasks import OperateAtOnce, PackEdge, PackSource, ReadElements, unpack_rows
from streamjoin.spark.running.urgent import Handler
from streamjoin.spark.told import knowing
from streamjoin.spark.typing import spark_schema


class Interpreter:
    """Builds the frames of one plan, sources first. A batch is a stream that ends: here every stage runs at once."""

    def __init__(self, plan: PhysicalPlan, frames: Mapping[str, DataFrame], urgent: Handler | None = None) -> None:
        self.plan, self.frames, self.urgent = plan, frames, urgent
        self.packed: dict[int, DataFrame] = {}  # by channel
        self.left: dict[int, DataFrame] = {}  # what leaves, by channel

    def operated(self, stage: Stage, packed: list[int]) -> DataFrame:
        """What leaves a stage that reads these channels: packed rows, or rows with numbers for names."""
        schema = PACKED_SCHEMA if stage.outlet.packed else self.row_schema(stage)
        exchanged = knowing(self.united(packed).repartition(stage.buckets, "label"), PACKED_SCHEMA)
        task = OperateAtOnce(stage, self.labels_after(stage), self.handler_of(stage))
        return exchanged.mapInArrow(task, schema)

    def handler_of(self, stage: Stage) -> Handler | None:
        """Who is told of urgent results, if they leave here."""
        return self.urgent if isinstance(stage.outlet.way, ToUser) else None

    def unpacked(self, stage: Stage, done: DataFrame) -> DataFrame:
        """The same, of a stage that packs rows too."""
        return done if stage.outlet.packed else done.mapInArrow(unpack_rows, self.row_schema(stage))

    def run(self) -> DataFrame:
        """The result, lazily."""
        for source in self.plan.sources:
            self._source(source)
        for stage in self.plan.stages:
            self._stage(stage)
        return reduce(DataFrame.unionAll, self.results())

    def results(self) -> list[DataFrame]:
        """What leaves, by each channel of the sink."""
        return [self.left[channel] for channel in self.plan.sink.channels]

    def _source(self, source: Source) -> None:
        if source.target is not None:
            self.packed[source.channel] = self.pack_source(source, source.target)
            return
        frame = prepared(source, self.frames[source.name])
        edge = self.plan.edge_of(source.channel)
        assert edge is not None
        hidden = hidden_fields(edge)
        task = ReadElements(source, told=not source.complete)
        rows = named(frame.mapInArrow(task, spark_schema(source.fields, hidden)), edge.fields, hidden)
        self.left[source.channel] = self.passed(source, leaving(self.told(source, rows), self.plan.sink, edge))

    def told(self, source: Source, rows: DataFrame) -> DataFrame:
        """The rows of a source that no stage reads, after its figures were taken off: of a batch there are none."""
        return rows

    def passed(self, source: Source, rows: DataFrame) -> DataFrame:
        """What leaves of such a source."""
        return rows

    def pack_source(self, source: Source, target: Target) -> DataFrame:
        """The packed rows of a source."""
        frame = prepared(source, self.frames[source.name])
        return frame.mapInArrow(PackSource(source, bucket_labels(target.buckets), told=False), PACKED_SCHEMA)

    def _stage(self, stage: Stage) -> None:
        feeders: dict[int, int] = {}  # one channel of each frame: some come by the same
        for channel in self.channels(stage):
            feeders.setdefault(id(self.packed[channel]), channel)
        out, way = self.operated(stage, list(feeders.values())), stage.outlet.way
        if stage.outlet.packed:
            self.packed |= dict.fromkeys((way.channel, *(each.channel for each in stage.outlet.testimony)), out)
        elif isinstance(way, ToUser):
            self.left[way.channel] = named(out, self.plan.sink.fields)
        else:
            edge = self.plan.edge_of(way.channel)
            assert edge is not None
            elements = stepped(named(out, edge.fields, hidden_fields(edge)), edge)
            self._edge(edge, elements, told=self.tells(stage))

    def channels(self, stage: Stage) -> list[int]:
        """The channels that a stage reads."""
        return list(self.plan.feeders(stage))

    def tells(self, stage: Stage) -> bool:
        """Whether figures are told of what a stage does: of a batch nobody asks."""
        return False

    def _edge(self, edge: Edge, elements: DataFrame, *, told: bool) -> None:
        if edge.target is None:
            self.left[edge.channel] = self.counted(leaving(elements, self.plan.sink, edge))
            return
        pack = PackEdge(edge, bucket_labels(edge.target.buckets), told)
        rows = numbered(elements, edge.result, hidden_fields(edge))
        self.packed[edge.channel] = rows.mapInArrow(pack, PACKED_SCHEMA)

    def counted(self, rows: DataFrame) -> DataFrame:
        """Rows that leave after Spark has dropped some."""
        return rows

    def row_schema(self, stage: Stage) -> StructType:
        """The schema of the rows that leave a stage, with numbers for names."""
        way = stage.outlet.way
        if isinstance(way, ToUser):
            return spark_schema(self.plan.sink.fields)
        edge = self.plan.edge_of(way.channel)
        assert edge is not None
        return spark_schema(edge.fields, hidden_fields(edge))

    def labels_after(self, stage: Stage) -> tuple[int, ...]:
        """The labels of the buckets that a stage's packets are for."""
        way = stage.outlet.way
        return bucket_labels(way.target.buckets if isinstance(way, ToStage) else stage.buckets)

    def united(self, channels: list[int]) -> DataFrame:
        """The packed rows of several channels."""
        together = reduce(DataFrame.unionAll, (self.packed[channel] for channel in channels))
        return knowing(together, PACKED_SCHEMA)
