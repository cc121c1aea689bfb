"""A plan over streaming frames: pack, exchange, operate with state. The same tasks and stages as for a batch.

Every task of a source tells every bucket what its lateness policy has measured, so each bucket learns every source's
progress without Spark's watermark, which would drop late rows before we see them.

A static frame beside streaming ones goes into the state once, as a stage's initial state: its packets wait in the
buckets for the first micro-batch. It is frozen then. A stage that reads nothing but static frames runs at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from streamjoin.plan.identity import identity_of
from streamjoin.plan.physical import PhysicalPlan, Source
from streamjoin.runtime.recall import RecallSide
from streamjoin.runtime.stage import Stage
from streamjoin.runtime.target import Target
from streamjoin.spark.figures import Figures
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.marks import remember_stage
from streamjoin.spark.running.computing import prepared
from streamjoin.spark.running.interpreter import Interpreter
from streamjoin.spark.running.packed import PACKED_SCHEMA
from streamjoin.spark.running.tasks import PackSource
from streamjoin.spark.running.urgent import Handler
from streamjoin.spark.stored.processor import StageProcessor
from streamjoin.spark.told import knowing
from streamjoin.spark.typing import spark_schema

# Milliseconds without rows, after which a join does some of the work that it has put off: a merge of sorted runs.
WORK_TIMER: Final = 200


class StreamInterpreter(Interpreter):
    """Runs stages with state, and those that are complete at once."""

    def __init__(
        self,
        plan: PhysicalPlan,
        frames: Mapping[str, DataFrame],
        call: dict[str, Any],
        urgent: Handler | None = None,
        fed_by: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        super().__init__(plan, frames, urgent)
        self.call = call
        self.fed_by = fed_by or {}  # of sources that are results of other calls, the names of those calls' figures
        self.figures: Figures | None = None  # of the last stage
        self.reading: Figures | None = None  # of the sources that no stage reads

    def pack_source(self, source: Source, target: Target) -> DataFrame:
        if source.complete:
            return super().pack_source(source, target)
        frame = prepared(source, self.frames[source.name])
        clocked = any(stage.idle_after is not None for stage in self.plan.stages)
        if clocked:
            clock = StructField("clock", LongType())
            stamped = frame.withColumn(clock.name, F.unix_micros(F.current_timestamp()))
            frame = knowing(stamped, StructType([*spark_schema(source.handed_over).fields, clock]))
        task = PackSource(source, bucket_labels(target.buckets), told=True, clocked=clocked)
        return frame.mapInArrow(task, PACKED_SCHEMA)

    def told(self, source: Source, rows: DataFrame) -> DataFrame:
        if self.reading is None:
            passing = [each for each in self.plan.sources if each.target is None]
            fed_by = {each.channel: self.fed_by.get(each.name, ()) for each in passing}
            self.reading = Figures(self.plan.axis, sources=fed_by)
            remember_stage(self.reading.name, self.plan, None)
        return self.reading.taken_off(rows, source.channel)

    def passed(self, source: Source, rows: DataFrame) -> DataFrame:
        assert self.reading is not None
        return self.reading.counted(rows, source.channel)

    def operated(self, stage: Stage, packed: list[int]) -> DataFrame:
        if stage.complete:
            return super().operated(stage, packed)
        court: bool = stage.nodes[-1].config.judges
        if self.figures is None or not court:
            target = any(isinstance(source.lateness, RecallSide) for source in self.plan.sources)
            prioritised = any(source.reading.priority is not None for source in self.plan.sources)
            sources = [c.number for each in stage.inputs for c in each.channels if c.from_source and not c.ended]
            fed_by = {each.channel: self.fed_by.get(each.name, ()) for each in self.plan.sources}
            self.figures = Figures(
                self.plan.axis,
                len(stage.inputs),
                sources={channel: fed_by[channel] for channel in sources},
                target=target,
                prioritised=prioritised,
                joins_of_many=stage.joins_of_many,
            )
            remember_stage(self.figures.name, self.plan, stage.number)
        streams, tables = self._split(stage, packed)
        given = self.united(streams)
        if not court:
            edges = [channel for channel in self.channels(stage) if self.plan.edge_of(channel) is not None]
            given = self.figures.observed(given, "pack", edges)
        timers = self.plan.timers and any(c.from_source for each in stage.inputs for c in each.channels)
        processor = StageProcessor(
            stage, self.labels_after(stage), self.call, identity_of(self.plan, stage), idle_timer(stage, timers=timers),
            self.handler_of(stage), work_timer(stage, timers=timers),
        )  # fmt: skip
        done = given.groupBy("label").transformWithStateInPandas(
            processor,
            PACKED_SCHEMA,
            "append",
            "processingTime" if timers else "none",
            initialState=self.united(tables).groupBy("label") if tables else None,
        )
        onwards = [stage.outlet.way.channel] if stage.outlet.packed else []
        return self.unpacked(stage, self.figures.observed(done, "verdict" if court else "join", onwards))

    def _split(self, stage: Stage, packed: list[int]) -> tuple[list[int], list[int]]:
        """The channels that go on delivering, and those that are complete."""
        ended = {channel.number for each in stage.inputs for channel in each.channels if channel.ended}
        return [each for each in packed if each not in ended], [each for each in packed if each in ended]

    def tells(self, stage: Stage) -> bool:
        return not stage.complete

    def counted(self, rows: DataFrame) -> DataFrame:
        return rows if self.figures is None else self.figures.counted(rows)


def idle_timer(stage: Stage, *, timers: bool) -> int | None:
    """After how many milliseconds a timer looks for idle inputs; None without timers."""
    return -(-stage.idle_after // 1000) if timers and stage.idle_after is not None else None


def work_timer(stage: Stage, *, timers: bool) -> int | None:
    """After how many milliseconds a timer looks after work that was put off; None where nobody puts any off."""
    return WORK_TIMER if timers and any(node.config.puts_off for node in stage.nodes) else None
