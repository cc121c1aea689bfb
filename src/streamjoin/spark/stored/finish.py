"""The end of a finite stream: what a stopped query still holds, from the state in its checkpoint.

Every stage of every plan is restored from Spark's state, told that nothing comes any more, and what leaves it goes into
the stage after it, as it would in the query:

    stored state --\\
                     exchange by bucket --> restore, take, end --> packets --> ...
    packets -------/

The plan itself comes from the state too (see `plan.stored`), so the program that made it is not needed. Nothing is
collected on the driver but one row per stage, which says what the stage is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.physical import PhysicalPlan, Source
from streamjoin.plan.stored import from_stored
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import Stage
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.running.interpreter import Interpreter
from streamjoin.spark.running.packed import PACKED_SCHEMA, pack
from streamjoin.spark.stored.bundles import unbundled
from streamjoin.spark.stored.checkpoint_log import CheckpointLog
from streamjoin.spark.stored.formats import check_format, readable
from streamjoin.spark.stored.local_runs import remove
from streamjoin.spark.stored.pages import Bindery
from streamjoin.state import Snapshot

# A packed row with the name of what is stored: a blob's, or the manifest's. Packets have none.
_MANIFEST: Final = "manifest"
# What `FinishStage` reads: packets, a stage's manifest, and pages of its blobs. Each has some of it.
_STORED: Final = {
    "label": "int", "bucket": "int", "channel": "int", "kind": "string",
    "name": "string", "page": "int", "pages": "int", "blob": "binary",
}  # fmt: skip


@dataclass(frozen=True)
class StoredStage:
    """A stage as a checkpoint has it: the number of Spark's stateful operator, and the call."""

    operator: int
    call: dict[str, Any]

    @property
    def number(self) -> int:
        """Which stage of its plan this is."""
        return int(self.call["stage"])

    @property
    def name(self) -> str:
        """The same for all stages of one plan."""
        return str(self.call["name"])

    def plan(self) -> PhysicalPlan:
        """The plan that it is part of."""
        plan: PhysicalPlan = from_stored(self.call["plan"])
        return plan


@dataclass(frozen=True)
class Finishing:
    """The plans of a stopped query, by name: the stages of each, by number, with Spark's numbers for them."""

    spark: SparkSession
    checkpoint: str
    plans: dict[str, PhysicalPlan]
    operators: dict[str, dict[int, int]]

    @staticmethod
    def of(spark: SparkSession, checkpoint: str) -> Finishing:
        """The plans that a checkpoint has state of."""
        plans: dict[str, PhysicalPlan] = {}
        operators: dict[str, dict[int, int]] = defaultdict(dict)
        for stage in stored_stages(spark, checkpoint):
            if stage.number in operators[stage.name]:
                raise UnsupportedError(
                    f"the query of {checkpoint} has two joins that are alike, and its state does not tell them apart",
                    hint="end the inputs with a last row far in the future, so that the query itself lets everything "
                    "go; or let the two differ, in suffix= say",
                )
            plans[stage.name] = plans.get(stage.name) or stage.plan()
            operators[stage.name][stage.number] = stage.operator
        if not plans:
            raise CallError(
                f"the query of {checkpoint} has no state of a streamjoin call",
                hint="give the checkpointLocation of a query that has run at least one micro-batch",
            )
        return Finishing(spark, checkpoint, plans, dict(operators))

    def last(self) -> str:
        """The plan whose result no other one reads."""
        read = {source.made_by for plan in self.plans.values() for source in plan.sources}
        last = [name for name in self.plans if name not in read]
        if len(last) > 1:
            raise UnsupportedError(
                f"the query of {self.checkpoint} has {len(last)} joins that do not read each other's results directly, "
                "and what lies between or beside them is not in the checkpoint",
                hint="end the inputs with a last row far in the future, so that the query itself lets everything go",
            )
        return last[0]

    def rest(self, name: str) -> DataFrame:
        """What a plan still holds, with what the plans before it still hold for it."""
        return FinishInterpreter(self, name).run()

    def fed(self, source: Source) -> DataFrame | None:
        """The rest of an earlier plan as a source of a later one; None where nothing can come any more."""
        if source.made_by is None:
            return None
        if source.made_by not in self.plans:
            raise CallError(
                f"{source.reading.label} reads another join, and its state is not in {self.checkpoint}",
                hint="finish a query after it has run at least one micro-batch",
            )
        if source.derived:
            raise UnsupportedError(
                f"{source.reading.label} of the later join has columns that were computed from the earlier one's "
                "result, and how is not in the checkpoint",
                hint="use columns as they are, of equal types on both sides, or end the inputs with a last row far in "
                "the future",
            )
        return self.rest(source.made_by)


class FinishInterpreter(Interpreter):
    """A plan once more, over nothing but what its stages still keep."""

    def __init__(self, finishing: Finishing, name: str) -> None:
        plan = finishing.plans[name]
        fed = {source.name: finishing.fed(source) for source in plan.sources}
        super().__init__(plan, {each: frame for each, frame in fed.items() if frame is not None})
        self.finishing, self.operators = finishing, finishing.operators[name]

    def _source(self, source: Source) -> None:
        if source.name in self.frames:
            super()._source(source)

    def _stage(self, stage: Stage) -> None:
        fed = any(channel in self.packed for channel in self.plan.feeders(stage))
        if stage.number in self.operators or fed:
            super()._stage(stage)

    def channels(self, stage: Stage) -> list[int]:
        return [channel for channel in super().channels(stage) if channel in self.packed]

    def operated(self, stage: Stage, packed: list[int]) -> DataFrame:
        spark, checkpoint = self.finishing.spark, self.finishing.checkpoint
        given = [_stored(self.united(packed))] if packed else []
        if stage.number in self.operators:
            given.append(stored_rows(spark, checkpoint, self.operators[stage.number]))
        rows = given[0] if len(given) == 1 else given[0].unionAll(given[1])
        task = FinishStage(stage, bucket_labels(stage.buckets), self.labels_after(stage))
        done = rows.repartition(stage.buckets, "label").mapInArrow(task, PACKED_SCHEMA)
        return self.unpacked(stage, done)

    def results(self) -> list[DataFrame]:
        return [self.left[channel] for channel in self.plan.sink.channels if channel in self.left]


def finish_query(spark: SparkSession, checkpoint: str) -> DataFrame:
    """What the plans of a stopped query still hold, as the last one gives it."""
    log = CheckpointLog(spark, checkpoint)
    log.check_can_be_marked()
    finishing = Finishing.of(spark, checkpoint)
    log.check_over()
    rest = finishing.rest(finishing.last())
    log.mark_finished()
    return rest


def was_finished(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a query has been ended, so that it cannot go on."""
    return CheckpointLog(spark, checkpoint).is_finished


@dataclass(frozen=True)
class FinishStage:
    """Stored buckets of a stage, and packets for them, to what still leaves. `labels` are the stage's own."""

    stage: Stage
    labels: tuple[int, ...]
    after: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        manifests: dict[int, dict[str, Any]] = {}
        blobs: dict[int, dict[str, Any]] = defaultdict(dict)
        packets: dict[int, list[Packet]] = defaultdict(list)
        bindery = Bindery()
        for batch in batches:
            *small, contents = batch.columns
            for label, bucket, channel, kind, name, page, pages, content in zip(
                *(column.to_pylist() for column in small), contents, strict=True
            ):
                if name == _MANIFEST:
                    manifests[label] = json.loads(content.as_py())
                elif name is not None:
                    blob = bindery.add((label, name), page, pages, content.as_buffer())
                    if blob is not None:
                        blobs[label].update(unbundled(name, blob))
                else:
                    packets[label].append(Packet.of(bucket, channel, kind, content.as_py()))
        for label in sorted({*manifests, *packets}):
            running = self.stage.build(self.labels.index(label))
            if label in manifests:
                if self.stage.memory is not None:
                    remove(manifests[label]["state"])  # a second copy, on this host, of what has just been read
                running.restore(readable(Snapshot(manifests[label], blobs[label])))
            for packet in chain(running.take(packets[label]), running.end()):
                yield from pack(packet, self.after)


def stored_stages(spark: SparkSession, checkpoint: str) -> list[StoredStage]:
    """The stages of our calls that a checkpoint has state of."""
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
            found.append(_stage_of(number, json.loads(call["json"]), checkpoint))
    return found


def _stage_of(operator: int, call: dict[str, Any], checkpoint: str) -> StoredStage:
    if "plan" not in call:
        raise CallError(
            f"the state in {checkpoint} was made by an earlier version of streamjoin, which stored another form",
            hint="end that query with the version that made it, and start with a new checkpoint",
        )
    check_format(call.get("format", 5))  # 5 did not say it at first
    return StoredStage(operator, call)


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
