"""The end of a finite stream: what a stopped query still holds, from the state in its checkpoint.

Every stage of every join is restored from Spark's state, told that nothing comes any more, and what leaves it goes into
the stage after it, as it would in the query:

    stored state --\\
                     exchange by bucket --> restore, take, end --> packets --> ...
    packets -------/

The join itself comes from the state too (see `plan.stored`), so the program that made it is not needed. Nothing is
collected on the driver but one row per stage, which says what the stage is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.planner import JoinPlan, plan_join
from streamjoin.plan.stored import from_stored
from streamjoin.spark.batch import Pack
from streamjoin.spark.checkpoint_log import CheckpointLog
from streamjoin.spark.event_query import above_events
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.lifetimes_run import QueryRun
from streamjoin.spark.lifetimes_stage import ElementStage
from streamjoin.spark.packing import PACKED_SCHEMA, Packet, pack
from streamjoin.spark.pages import Bindery
from streamjoin.spark.query import arrow_schema, leaving
from streamjoin.spark.residual import filtered
from streamjoin.spark.stages import JoinStage, Stage, VerdictStage
from streamjoin.spark.stream import unpack_rows
from streamjoin.state import Snapshot

# A packed row with the name of what is stored: a blob's, or the manifest's. Packets have none.
_MANIFEST: Final = "manifest"
# What `FinishStage` reads: packets, a stage's manifest, and pages of its blobs. Each has some of it.
_STORED: Final = {
    "label": "int", "bucket": "int", "input": "int", "kind": "string",
    "name": "string", "page": "int", "pages": "int", "blob": "binary",
}  # fmt: skip


@dataclass(frozen=True)
class StoredStage:
    """A stage of a join as a checkpoint has it: the number of Spark's stateful operator, and the call."""

    operator: int
    call: dict[str, Any]

    @property
    def name(self) -> str:
        """Which stage of the join this is."""
        return str(self.call["stage"])

    @property
    def join(self) -> str:
        """The same for all stages of one join."""
        return str(self.call["name"])

    @property
    def reads(self) -> list[str | None]:
        """Of each input, the join whose result it is."""
        return list(self.call.get("reads", ()))

    @property
    def schema(self) -> StructType:
        """The result's schema."""
        return StructType.fromJson(json.loads(self.call["schema"]))

    def plan(self) -> JoinPlan:
        """The join."""
        return replace(plan_join(from_stored(self.call["node"])), arrivals=from_stored(self.call["arrivals"]))


@dataclass(frozen=True)
class Finishing:
    """The joins of a stopped query, by name: the stages of each."""

    spark: SparkSession
    checkpoint: str
    joins: dict[str, list[StoredStage]]

    @staticmethod
    def of(spark: SparkSession, checkpoint: str) -> Finishing:
        """The joins that a checkpoint has state of."""
        joins: dict[str, list[StoredStage]] = defaultdict(list)
        for stage in stored_stages(spark, checkpoint):
            joins[stage.join].append(stage)
        if not joins:
            raise CallError(
                f"the query of {checkpoint} has no state of a streamjoin call",
                hint="give the checkpointLocation of a query that has run at least one micro-batch",
            )
        for stages in joins.values():
            if len({(stage.name, stage.call.get("channel")) for stage in stages}) < len(stages):
                raise UnsupportedError(
                    f"the query of {checkpoint} has two joins that are alike, and its state does not tell them apart",
                    hint="end the inputs with a last row far in the future, so that the query itself lets everything "
                    "go; or let the two differ, in suffix= say",
                )
        return Finishing(spark, checkpoint, joins)

    def last(self) -> str:
        """The join that no other one reads."""
        read = {name for stages in self.joins.values() for name in stages[0].reads}
        last = [name for name in self.joins if name not in read]
        if len(last) > 1:
            raise UnsupportedError(
                f"the query of {self.checkpoint} has {len(last)} joins that do not read each other's results directly, "
                "and what lies between or beside them is not in the checkpoint",
                hint="end the inputs with a last row far in the future, so that the query itself lets everything go",
            )
        return last[0]

    def rest(self, name: str) -> DataFrame:
        """What a join still holds, with what the joins before it still hold for it."""
        stages = sorted(self.joins[name], key=lambda stage: stage.name)  # "join" before "verdict"
        plan = stages[0].plan()
        labels = bucket_labels(plan.partitioning.buckets)
        packed = [
            self._fed(plan, number, before).mapInArrow(Pack(plan, number, labels), PACKED_SCHEMA)
            for number, before in enumerate(stages[0].reads)
            if before is not None
        ]
        for stage in stages:
            rows = stored_rows(self.spark, self.checkpoint, stage.operator)
            for more in packed:
                rows = rows.unionAll(_stored(more))
            running: Stage = JoinStage(plan) if stage.name == "join" else VerdictStage(plan)
            packed = [rows.repartition(len(labels), "label").mapInArrow(FinishStage(running, labels), PACKED_SCHEMA)]
        rest = filtered(packed[0].mapInArrow(unpack_rows, stages[0].schema), plan)
        within = stages[0].call.get("within")
        return rest if within is None else above_events(from_stored(within), rest)

    def _fed(self, plan: JoinPlan, number: int, before: str) -> DataFrame:
        """The rest of an earlier join as an input of a later one."""
        if before not in self.joins:
            raise CallError(
                f"input {number} reads another join, and its state is not in {self.checkpoint}",
                hint="finish a query after it has run at least one micro-batch",
            )
        rest, wanted = self.rest(before), plan.node.inputs[number]
        given = arrow_schema(rest, f"input {number}")
        if [(field.name, field.type) for field in given] != [(field.name, field.type) for field in wanted.schema]:
            raise UnsupportedError(
                f"input {number} of the later join has columns that were computed from the earlier one's result, "
                "and how is not in the checkpoint",
                hint="use columns as they are, of equal types on both sides, or end the inputs with a last row far in "
                "the future",
            )
        return rest.toDF(*(f"c{position}" for position in range(len(given))))


def finish_query(spark: SparkSession, checkpoint: str) -> DataFrame:
    """What the joins of a stopped query still hold, as their last one gives it."""
    finishing, log = Finishing.of(spark, checkpoint), CheckpointLog(spark, checkpoint)
    log.check_over()
    stages = finishing.joins[finishing.last()]
    rest = finish_lifetimes(spark, checkpoint, stages) if "query" in stages[0].call else finishing.rest(stages[0].join)
    log.mark_finished()
    return rest


def was_finished(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a query has been ended, so that it cannot go on."""
    return CheckpointLog(spark, checkpoint).is_finished


@dataclass
class FinishingRun(QueryRun):
    """A query over lifetimes once more, over nothing but what its stages still keep."""

    checkpoint: str = ""
    operators: dict[int, int] = field(default_factory=dict)  # Spark's stateful operators by channel

    def _operated(
        self, stage: ElementStage, packed: DataFrame, labels: tuple[int, ...], schema: StructType
    ) -> DataFrame:
        rows = _stored(packed)
        if stage.channel in self.operators:
            rows = rows.unionAll(stored_rows(packed.sparkSession, self.checkpoint, self.operators[stage.channel]))
        # The stage as it ran: its rows came in micro-batches, and have an order.
        ended = FinishStage(replace(stage, at_once=False), labels)
        finished = rows.repartition(len(labels), "label").mapInArrow(ended, PACKED_SCHEMA)
        return finished.mapInArrow(unpack_rows, schema)


def finish_lifetimes(spark: SparkSession, checkpoint: str, stages: list[StoredStage]) -> DataFrame:
    """What a query over lifetimes still holds."""
    call = stages[0].call
    options, query = call["options"], from_stored(call["query"])
    schemas = {name: StructType.fromJson(json.loads(text)) for name, text in call["schemas"].items()}
    frames = {name: spark.createDataFrame([], schema) for name, schema in schemas.items()}
    run = FinishingRun(
        frames, {}, options["buckets"], options["late"], options["invalid"], options["emit"] == "ordered",
        options["method"], checkpoint=checkpoint,
        operators={stage.call["channel"]: stage.operator for stage in stages},
    )  # fmt: skip
    return leaving(run, query, options["output"], tuple(options["validity"]))


@dataclass(frozen=True)
class FinishStage:
    """Stored buckets of a stage, and packets for them, to what still leaves."""

    stage: Stage
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        manifests: dict[int, dict[str, Any]] = {}
        blobs: dict[int, dict[str, Any]] = defaultdict(dict)
        packets: dict[int, list[Packet]] = defaultdict(list)
        bindery = Bindery()
        for batch in batches:
            *small, contents = batch.columns
            for label, bucket, number, kind, name, page, pages, content in zip(
                *(column.to_pylist() for column in small), contents, strict=True
            ):
                if name == _MANIFEST:
                    manifests[label] = json.loads(content.as_py())
                elif name is not None:
                    blob = bindery.add((label, name), page, pages, content.as_buffer())
                    if blob is not None:
                        blobs[label][name] = blob
                else:
                    packets[label].append(Packet.of(bucket, number, kind, content.as_py()))
        for label in sorted({*manifests, *packets}):
            running = self.stage.build(self.labels.index(label))
            if label in manifests:
                running.restore(Snapshot(manifests[label], blobs[label]))
            for packet in chain(running.take(packets[label]), running.end()):
                yield from pack(packet, self.labels)


def stored_stages(spark: SparkSession, checkpoint: str) -> list[StoredStage]:
    """The stages of our joins that a checkpoint has state of."""
    try:
        operators = spark.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").distinct()
        numbers = sorted(row.operatorId for row in operators.collect() if "transformWithState" in row.operatorName)
    except PySparkException as error:
        raise CallError(
            f"there is no state of a streaming query in {checkpoint}",
            hint="give the checkpointLocation of a query that has run at least one micro-batch",
        ) from error
    found = []
    for number in numbers:
        try:
            call = state_variable(spark, checkpoint, number, "call").select("value.json").first()
        except PySparkException:
            continue  # another program's operator
        if call is not None:
            found.append(StoredStage(number, json.loads(call["json"])))
    return found


def state_variable(spark: SparkSession, checkpoint: str, operator: int, name: str) -> DataFrame:
    """A state variable of one of the query's stateful operators."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", name)
    return reader.load(checkpoint)


def stored_rows(spark: SparkSession, checkpoint: str, operator: int) -> DataFrame:
    """All that a stage has stored, as rows for `FinishStage`."""
    manifests = state_variable(spark, checkpoint, operator, "manifest")
    blobs = state_variable(spark, checkpoint, operator, "blobs")
    manifests = manifests.select("key.label", F.lit(_MANIFEST).alias("name"), F.col("value.json").alias("blob"))
    return _stored(manifests).unionAll(_stored(blobs.select("key.label", "user_map_key.*", "user_map_value.*")))


def _stored(frame: DataFrame) -> DataFrame:
    """The columns of `_STORED`, with NULL for those that the frame has not."""
    given = set(frame.columns)
    return frame.select(
        *((F.col(name) if name in given else F.lit(None)).cast(kind).alias(name) for name, kind in _STORED.items())
    )
