"""What a streaming join keeps: read from the checkpoint of a query, whether it runs or has stopped.

    state-metadata          which stateful operators the query has, and which of them are ours
    statestore, manifest    one small json text per bucket: collected
    statestore, blobs       the rows themselves: measured in the tasks that read them, never collected

A blob's name says whose it is (`area1/run/...`, `waiting0/...`, `held/...`, see `SweepArea.snapshot` and
`operators/ordering.py`). Figures are those of the last micro-batch that was committed. Rows that have expired but still
lie in a run are counted: they are kept until their run is merged.

Cost: one pass over the state. Nothing is changed, so the query may run meanwhile.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row, SparkSession

from streamjoin.algebra import NEVER, TimeAxis
from streamjoin.errors import CallError
from streamjoin.state import table_from_bytes
from streamjoin.state.batch import RESERVED_PREFIX

STATE_VARIABLES: Final = {"manifest", "blobs"}
MEASURED_SCHEMA: Final = "owner string, name string, bytes long, rows long, first long, last long, axis string"
_MEASURED_ARROW: Final = pa.schema([
    ("owner", pa.string()), ("name", pa.string()), ("bytes", pa.int64()), ("rows", pa.int64()),
    ("first", pa.int64()), ("last", pa.int64()), ("axis", pa.string()),
])  # fmt: skip


@dataclass(frozen=True)
class StoredInput:
    """What one bucket of one stateful operator keeps of one input.

    `input` is None for results that wait for their turn. Times are ticks of `axis`; `first` is the smallest `ts`,
    `last` the largest `te`, both None without rows; `progress` is None while the input has shown nothing.
    """

    operator: int
    stage: str
    bucket: int
    input: int | None
    rows: int
    bytes: int
    runs: int
    first: int | None
    last: int | None
    progress: int | None
    axis: TimeAxis


@dataclass(frozen=True)
class MeasuredBlob:
    """A blob without its content; `rows` and the times are those of its table, where it holds rows."""

    owner: str
    name: str
    bytes: int
    rows: int
    first: int | None
    last: int | None
    axis: str | None

    @property
    def input(self) -> int | None:
        """The input that the blob belongs to; None for results."""
        digits = "".join(letter for letter in self.name.split("/")[0] if letter.isdigit())
        return int(digits) if digits else None

    @property
    def is_run(self) -> bool:
        """Whether it holds rows, and not marks beside them."""
        return holds_rows(self.name)


def stored_state(spark: SparkSession, checkpoint: str) -> list[StoredInput]:
    """What every join of a query keeps, by operator, bucket and input."""
    stored: list[StoredInput] = []
    for operator in _joins(spark, checkpoint):
        manifests = _read(spark, checkpoint, operator, "manifest").selectExpr("to_json(key)", "value.json").collect()
        blobs = (
            _read(spark, checkpoint, operator, "blobs")
            .selectExpr("to_json(key) owner", "user_map_key.name", "user_map_value.blob")
            .mapInArrow(measure, MEASURED_SCHEMA)
            .collect()
        )
        measured = [MeasuredBlob(*blob) for blob in blobs]
        stored += inputs_of(operator, {owner: json.loads(text) for owner, text in manifests}, measured)
    return sorted(stored, key=lambda one: (one.operator, one.bucket, one.input is None, one.input or 0))


def _joins(spark: SparkSession, checkpoint: str) -> list[int]:
    """The numbers of the stateful operators that are ours."""
    try:
        operators = spark.read.format("state-metadata").load(checkpoint).collect()
    except Exception as error:  # which one depends on what is missing, and some are not PySpark's own
        raise CallError(
            f"{checkpoint} is not the checkpoint of a stateful query",
            hint="give the folder that the query has as its checkpointLocation",
        ) from error
    ours = sorted({operator.operatorId for operator in operators if is_ours(operator)})
    if not ours:
        names = ", ".join(sorted({operator.operatorName for operator in operators})) or "none at all"
        raise CallError(
            f"the query of {checkpoint} has no streamjoin join; its stateful operators are: {names}",
            hint="give the checkpoint of a query over a frame that sj.join, or one of its short forms, has made",
        )
    if all(operator.maxBatchId < 0 for operator in operators):
        raise CallError(f"the query of {checkpoint} has not finished a micro-batch yet", hint="try again later")
    return ours


def is_ours(operator: Row) -> bool:
    """Whether a stateful operator is one of streamjoin's: it has our state variables.

    >>> properties = '{"stateVariables": [{"stateName": "blobs"}, {"stateName": "manifest"}]}'
    >>> is_ours(Row(operatorProperties=properties)), is_ours(Row(operatorProperties=""))
    (True, False)
    """
    properties = json.loads(operator.operatorProperties or "{}")
    return {variable["stateName"] for variable in properties.get("stateVariables", [])} >= STATE_VARIABLES


def _read(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> Any:
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", variable)
    return reader.load(checkpoint)


def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blobs (owner, name, content) to what `MeasuredBlob` has of them."""
    for batch in batches:
        for owner, name, blob in zip(*batch.columns, strict=True):
            content = blob.as_buffer()
            figures = times_of(table_from_bytes(content)) if holds_rows(name.as_py()) else (0, None, None, None)
            values = [owner.as_py(), name.as_py(), content.size, *figures]
            yield pa.record_batch([[value] for value in values], schema=_MEASURED_ARROW)


def holds_rows(name: str) -> bool:
    """Whether the blob of this name is a table of rows: a run, or rows or results that wait.

    >>> holds_rows("area0/run/3f"), holds_rows("area0/matched/3f/7"), holds_rows("waiting1/3f"), holds_rows("held/3f")
    (True, False, True, True)
    """
    part, rest = name.split("/", 1)
    return not part.startswith("area") or rest.startswith("run/")


def times_of(table: pa.Table) -> tuple[int, int | None, int | None, str | None]:
    """Number of rows, smallest `ts`, largest `te`, and the axis that they count on as far as the rows show it."""
    # Results that wait have no other columns of ours than their validity, and no prefix before it.
    prefix = RESERVED_PREFIX if RESERVED_PREFIX + "ts" in table.column_names else ""
    if not table.num_rows:
        return 0, None, None, None
    ts, te = table[prefix + "ts"], table[prefix + "te"]
    axis = axis_of(table, ts.to_numpy())
    return table.num_rows, pc.min(ts).as_py(), pc.max(te).as_py(), None if axis is None else axis.value


def axis_of(table: pa.Table, ts: Any) -> TimeAxis | None:
    """The axis of a run's time: that of the payload's column which it was read from; None when there is none.

    >>> table = pa.table({"day": pa.array([3, 4], pa.date32()), "n": [3, 4]})
    >>> axis_of(table, np.array([3, 4])), axis_of(table.select(["n"]), np.array([3, 4]))
    (<TimeAxis.DATE: 'date'>, None)
    """
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            axis = TimeAxis.TIMESTAMP
        elif pa.types.is_date32(field.type):
            axis = TimeAxis.DATE
        else:
            continue
        column = table[field.name]
        ticks = column.cast(pa.int64() if axis is TimeAxis.TIMESTAMP else pa.int32())
        if not column.null_count and np.array_equal(ticks.to_numpy(), ts):
            return axis
    return None


def inputs_of(operator: int, manifests: dict[str, Any], blobs: list[MeasuredBlob]) -> Iterator[StoredInput]:
    """One operator's manifests, by the key of their bucket, and its blobs, put together by bucket and input."""
    # All of a join counts on one axis. Where no row shows one, the numbers are shown as they are.
    axis = next((TimeAxis(blob.axis) for blob in blobs if blob.axis is not None), TimeAxis.INTEGER)
    kept: dict[tuple[str, int | None], list[MeasuredBlob]] = defaultdict(list)
    for blob in blobs:
        kept[blob.owner, blob.input].append(blob)
    for owner, manifest in manifests.items():
        progress = dict[int | None, int](enumerate(manifest["operator"]["progress"]))
        held = [None] if kept[owner, None] else []
        for number in (*range(len(progress)), *held):
            mine = kept[owner, number]
            runs = [blob for blob in mine if blob.is_run]
            reached = progress.get(number, NEVER)
            yield StoredInput(
                operator=operator,
                stage=manifest["stage"],
                bucket=manifest["bucket"],
                input=number,
                rows=sum(run.rows for run in runs),
                bytes=sum(blob.bytes for blob in mine),
                runs=len(runs),
                first=min((run.first for run in runs if run.first is not None), default=None),
                last=max((run.last for run in runs if run.last is not None), default=None),
                progress=None if reached == NEVER else reached,
                axis=axis,
            )
