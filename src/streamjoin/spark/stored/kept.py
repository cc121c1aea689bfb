"""What a streaming join keeps: read from the checkpoint of a query, whether it runs or has stopped.

    call        the plan itself: one row for each of its stages
    manifest    one small json text per bucket: collected
    blobs       the rows themselves: measured in the tasks that read them, never collected

A blob's name says whose it is. Names begin with the number of the operator in its fragment, and the part of it:

    0:area1/run/...                   a part of a run of its input 1; beside it 0:area1/matched/..., 0:area1/pieces/...
    0:waiting1/..., 0:held/...        rows of its input 1, and results, that wait for their turn
    0:verdict1/0/..., 0:verdict1/1/.. claimants and witnesses of input 1, in a stage that decides about copies
    aside/...                         packets of a static input, before the first micro-batch; the manifest says whose

Figures are those of the last micro-batch that was committed. Rows that have expired but still lie in a run are counted:
they are kept until the run is written anew. Cost: one pass over the state. Nothing is changed, so the query may run.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from streamjoin.algebra import NEVER, TimeAxis
from streamjoin.errors import CallError
from streamjoin.operators.judging import Judging
from streamjoin.runtime.fragment import Entry
from streamjoin.runtime.stage import Stage
from streamjoin.spark.stored.bundles import unbundled
from streamjoin.spark.stored.finish import state_variable, stored_stages
from streamjoin.spark.stored.formats import readable
from streamjoin.spark.stored.pages import Bindery
from streamjoin.state import Snapshot, table_from_bytes
from streamjoin.state.batch import RESERVED_PREFIX

_MEASURED: Final = pa.schema([
    ("owner", pa.string()), ("name", pa.string()), ("bytes", pa.int64()), ("rows", pa.int64()),
    ("first", pa.int64()), ("last", pa.int64()),
])  # fmt: skip
_NOT_ROWS: Final = re.compile(
    r"\d+:(area\d+/(matched|pieces|ends)/|(waiting|pending|catalogue|members|groups|pieces|there)/|unknown\d+/)|(in|out):"
)


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


def stored_state(spark: SparkSession, checkpoint: str) -> list[StoredInput]:
    """What every join of a query keeps, by operator, bucket and input."""
    stages = stored_stages(spark, checkpoint)
    if not stages:
        raise CallError(
            f"the query of {checkpoint} keeps no state of a streamjoin call",
            hint="give the checkpoint of a query over a frame from sj.join or one of its short forms, "
            "which has run at least one micro-batch",
        )
    stored: list[StoredInput] = []
    for stage in stages:
        manifests = state_variable(spark, checkpoint, stage.operator, "manifest")
        blobs = state_variable(spark, checkpoint, stage.operator, "blobs")
        contents = blobs.selectExpr("to_json(key) owner", "user_map_key.*", "user_map_value.*")
        plan = stage.plan()
        stored += inputs_of(
            stage.operator,
            plan.stages[stage.number],
            plan.axis or TimeAxis.INTEGER,
            {
                owner: readable(Snapshot(json.loads(text))).manifest
                for owner, text in manifests.selectExpr("to_json(key)", "value.json").collect()
            },
            [MeasuredBlob(*blob) for blob in contents.mapInArrow(measure, from_arrow_schema(_MEASURED)).collect()],
        )
    return sorted(stored, key=lambda one: (one.operator, one.bucket, one.input is None, one.input or 0))


def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pages of blobs (owner, name, page, pages, content) to what `MeasuredBlob` has of each blob."""
    bindery = Bindery()
    for batch in batches:
        *small, contents = batch.columns
        for owner, name, page, pages, content in zip(*(column.to_pylist() for column in small), contents, strict=True):
            blob = bindery.add((owner, name), page, pages, content.as_buffer())
            for one, inside in () if blob is None else unbundled(name, blob):
                figures = times_of(table_from_bytes(inside)) if holds_rows(one) else (0, None, None)
                values = [owner, one, len(inside), *figures]
                yield pa.record_batch([[value] for value in values], schema=_MEASURED)


def holds_rows(name: str) -> bool:
    """Whether the blob of this name is a table of rows with their times.

    >>> [holds_rows(name) for name in ("0:area0/run/3f", "0:area0/matched/3f/7", "0:waiting1/3f", "0:held/3f")]
    [True, False, True, True]
    >>> holds_rows("in:0/3f")  # counts that a recall target goes by
    False
    """
    return _NOT_ROWS.match(name) is None


def times_of(table: pa.Table) -> tuple[int, int | None, int | None]:
    """Number of rows, smallest `ts`, largest `te`."""
    # Results that wait have no other columns of ours than their validity, and no prefix before it.
    prefix = RESERVED_PREFIX if RESERVED_PREFIX + "ts" in table.column_names else ""
    if prefix + "ts" not in table.column_names or prefix + "te" not in table.column_names:
        return table.num_rows, None, None  # events of a query over lifetimes
    return table.num_rows, pc.min(table[prefix + "ts"]).as_py(), pc.max(table[prefix + "te"]).as_py()


def inputs_of(
    operator: int, stage: Stage, axis: TimeAxis, manifests: dict[str, Any], blobs: list[MeasuredBlob]
) -> Iterator[StoredInput]:
    """One stage's manifests, by the key of their bucket, and its blobs, put together by bucket and input."""
    kept: dict[tuple[str, int | None], list[MeasuredBlob]] = defaultdict(list)
    for blob in (each for each in blobs if each.name in manifests[each.owner]["blobs"]):  # some in a bundle are gone
        kept[blob.owner, input_of(blob.name, stage, manifests[blob.owner])].append(blob)
    for owner, manifest in manifests.items():
        progress = progress_in(stage, manifest)
        for number in (*progress, *([None] if kept[owner, None] else [])):
            mine = kept[owner, number]
            runs = [blob for blob in mine if holds_rows(blob.name)]
            reached = NEVER if number is None else progress[number]
            yield StoredInput(
                operator=operator,
                stage=called(stage),
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


def called(stage: Stage) -> str:
    """A stage by what it does: a join, a verdict, or the operators of its fragment."""
    if isinstance(stage.nodes[-1].config, Judging):
        return "verdict"
    names = [re.sub("(?<!^)([A-Z])", r" \1", type(node.config).__name__).lower() for node in stage.nodes]
    return "join" if len(names) == 1 and names[0].endswith("join") else ", ".join(names)


def input_of(name: str, stage: Stage, manifest: dict[str, Any]) -> int | None:
    """The input that a blob belongs to; None for results."""
    numbered = re.match(r"(\d+):[a-z]+(\d+)/", name)
    if numbered is not None:
        config = stage.nodes[int(numbered[1])].config
        if isinstance(config, Judging):
            return config.verdicts[int(numbered[2])].number
        feed = stage.nodes[int(numbered[1])].feeds[int(numbered[2])]
        return feed.input if isinstance(feed, Entry) else None
    channels = {channel.number: number for number, each in enumerate(stage.inputs) for channel in each.channels}
    packets = {f"aside/{packet}": channels[channel] for packet, channel, _ in manifest.get("aside", [])}
    return packets.get(name)


def progress_in(stage: Stage, manifest: dict[str, Any]) -> dict[int, int]:
    """How far each input is. A stage that decides about copies hears it from every bucket of the one before."""
    told = {number: known[1] for number, known in manifest["intake"]["channels"]}
    last = stage.nodes[-1].config
    if isinstance(last, Judging):
        return {verdict.number: min(told.values()) for verdict in last.verdicts}
    return {number: min(told[each.number] for each in given.channels) for number, given in enumerate(stage.inputs)}
