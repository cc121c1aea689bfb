"""An operator over lifetimes in one bucket: packets in, rows of an element frame out. No Spark in here.

In each micro-batch: rows, without those that are late; then ends; then progress. Progress of an input is the least of
its channels': a stream's largest time stamp less its slack, or the least of an operator's buckets. What leaves are
elements and reports, as rows: ends that have become known, and how far this bucket is.

The last operator of a query is *settled*: elements wait here until their ends are known, since nobody could change them
after they have left.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, LatePolicy
from streamjoin.errors import LateRowError
from streamjoin.operators import (
    Aggregating,
    Multiplicity,
    NegativeJoin,
    NegativeWindow,
    Operator,
    Output,
    Results,
    RowWindow,
    StreamOf,
    TemporalJoin,
    Waiting,
)
from streamjoin.operators.negative_window import RunningNegativeWindow
from streamjoin.operators.ordering import HeldResults
from streamjoin.operators.row_window import RunningRowWindow
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.lifetimes_frame import CHANNEL, Channel, element_rows, ends_report, progress_report, report_row
from streamjoin.spark.packing import Packet
from streamjoin.spark.stages import StageName, footprint_figures
from streamjoin.state import Batch, Ends, Snapshot
from streamjoin.state.history import tie_order

Config = RowWindow | Multiplicity | Aggregating | TemporalJoin | StreamOf | NegativeWindow | NegativeJoin


# To another operator; or out of the query, when ends are known, or in a changelog at once.
Leaves = Literal["passed on", "settled", "told"]


@dataclass(frozen=True)
class ElementStage:
    """An operator over lifetimes. `schema` is that of its results; `inputs` are the channels of each input.

    `at_once`: the input is complete, and makes no progress but its end.
    """

    name: ClassVar[StageName] = "lifetimes"
    config: Config
    schema: pa.Schema
    inputs: tuple[tuple[Channel, ...], ...]
    channel: int
    leaves: Leaves = "passed on"
    ordered: bool = False
    late: LatePolicy = "drop"
    at_once: bool = False
    join: JoinPlan | None = None  # which of a join's pairs belong to a bucket
    buckets: int = 1
    below: str = ""  # the tree of the query up to this operator, in words

    @property
    def identity(self) -> dict[str, str]:
        """What a stored state depends on."""
        return {
            "operator": self.config.fingerprint,
            "inputs": str([[(each.number, each.buckets) for each in channels] for channels in self.inputs]),
            "emit": f"{'ordered' if self.ordered else 'eager'}, {self.leaves}",
            "buckets": str(self.buckets),
            "query": self.below,
        }

    def in_bucket(self, bucket: int) -> Config:
        """The operator of one bucket."""
        if self.join is None:
            return self.config
        mine = self.join.join_in(bucket)
        assert isinstance(mine, TemporalJoin) and isinstance(self.config, TemporalJoin | NegativeJoin)
        return replace(self.config, matching=mine.matching)

    def build(self, bucket: int) -> RunningElementStage:
        """The operator in one bucket, empty."""
        return RunningElementStage(self, bucket)


class RunningElementStage:
    """An operator over lifetimes in one bucket."""

    def __init__(self, config: ElementStage, bucket: int) -> None:
        self.config, self.bucket = config, bucket
        self.settled = config.leaves == "settled"
        self.operator: Operator = replace(config.in_bucket(bucket), bucket=bucket).build()
        self.slack = {each.number: each.slack for channels in config.inputs for each in channels if not each.buckets}
        self.largest: dict[int, int] = {}  # of streams
        self.promised: dict[int, int] = {}  # their progress; a restart with more slack takes none of it back
        self.reached: dict[tuple[int, int], int] = {}  # of buckets of operators
        self.waiting, self.held = Waiting(), HeldResults()
        self.counted: Counter[str] = Counter()

    def take(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        self.counted = Counter(rows_out=0, late=0)
        rows: dict[int, list[pa.Table]] = defaultdict(list)
        ends: dict[int, list[Ends]] = defaultdict(list)
        told: list[dict[str, Any]] = []
        for packet in packets:
            if packet.kind == "rows":
                rows[packet.number].append(packet.table)
            elif packet.kind == "ends":
                ends[packet.number].append(Ends.from_table(packet.table))
            else:
                told.append(packet.report)
        batches = {number: self._on_time(number, tables) for number, tables in sorted(rows.items())}
        for report in told:
            self._hear(report)
        # A batch has no progress but its end.
        known = [] if self.config.at_once else [self._progress(channels) for channels in self.config.inputs]
        yield from self._run(batches, ends, known)

    def tick(self, clock: int) -> Iterator[Packet]:
        yield from ()

    def end(self) -> Iterator[Packet]:
        yield from self._run({}, {}, [FOREVER] * len(self.config.inputs))
        for results in self.waiting.finish():
            yield self._out(results)

    def _on_time(self, number: int, tables: list[pa.Table]) -> Batch:
        batch = Batch.concat([Batch.from_table(table) for table in tables])
        channel = np.concatenate([table[CHANNEL].to_numpy() for table in tables])
        late = np.zeros(len(batch), np.bool_)
        for stream in self.slack:
            late |= (channel == stream) & (batch.ts < self._of_stream(stream))
        if late.any():
            self.counted["late"] += self._counted_here(number, batch.take(late))
            if self.config.late == "fail":
                row = batch.payload.slice(int(np.argmax(late)), 1).to_pylist()[0]
                raise LateRowError(
                    f"{int(late.sum())} row(s) came behind the progress of their stream, the first is {row}",
                    hint='allow more lateness, or choose late="drop"',
                )
            batch = batch.take(~late)
        window = self.config.config
        if isinstance(window, RowWindow) or (isinstance(window, NegativeWindow) and window.size is not None):
            batch = in_content_order(batch, len(window.by))
        return batch

    def _counted_here(self, number: int, late: Batch) -> int:
        """How many of the rows are counted in this bucket, though a join may have sent them to others as well."""
        return len(late) if self.config.join is None else int(self.config.join.at_home(self.bucket, number, late).sum())

    def _hear(self, report: dict[str, Any]) -> None:
        number = report["channel"]
        if "bucket" in report:
            key = (number, report["bucket"])
            self.reached[key] = max(self.reached.get(key, NEVER), report["progress"])
        elif report["largest"] is not None:
            self.largest[number] = max(self.largest.get(number, NEVER), report["largest"])
            now = self.largest[number] - self.slack[number]
            self.promised[number] = max(self.promised.get(number, NEVER), now)
            if isinstance(self.operator, RunningRowWindow | RunningNegativeWindow):
                self.operator.order.last = max(self.operator.order.last, self.largest[number])

    def _of_stream(self, number: int) -> int:
        return self.promised.get(number, NEVER)

    def _progress(self, channels: tuple[Channel, ...]) -> int:
        least = FOREVER
        for each in channels:
            buckets = range(each.buckets)
            known = [self.reached.get((each.number, bucket), NEVER) for bucket in buckets]
            least = min(least, *known) if each.buckets else min(least, self._of_stream(each.number))
        return least

    def _run(self, batches: dict[int, Batch], ends: dict[int, list[Ends]], progress: list[int]) -> Iterator[Packet]:
        operator = self.operator
        for number, batch in batches.items():
            if len(batch):
                yield from self._send(operator.on_batch(number, batch))
        for number, parts in ends.items():
            yield from self._send(operator.on_ends(number, Ends.concat(parts)))
        for number, time in enumerate(progress):
            if time > NEVER or number in batches:
                yield from self._send(operator.on_progress(number, time))
        bound = min(operator.progress, self.waiting.first)
        for results in self.held.release(bound):
            yield self._out(results)
        if not self.settled:
            told = progress_report(self.config.channel, bucket=self.bucket, progress=operator.progress)
            yield self._packet(report_row(self.config.schema, told))

    def _send(self, outputs: Iterator[Output]) -> Iterator[Packet]:
        for output in outputs:
            if isinstance(output, Results):
                for results in self._taken(output):
                    yield self._out(results)
            elif isinstance(output, Ends):
                if self.settled:
                    for results in self.waiting.settle(output):
                        yield from self._released(results)
                else:
                    yield self._packet(report_row(self.config.schema, ends_report(output)))
            else:
                raise AssertionError("late rows are sorted out before")

    def _taken(self, results: Results) -> Iterator[Results]:
        if not len(results):
            return
        results = replace(results, payload=self._named(results.payload))
        if not self.settled:
            yield results
            return
        take = self.waiting.take if results.sign is None else self.waiting.take_changes
        for known in take(results):
            if self.config.ordered:
                self.held.add(known)
            else:
                yield known

    def _released(self, results: Results) -> Iterator[Packet]:
        if self.config.ordered:
            self.held.add(results)
        else:
            yield self._out(results)

    def _named(self, payload: pa.Table) -> pa.Table:
        return payload.rename_columns(self.config.schema.names) if self.config.schema.names else pa.table({})

    def _out(self, results: Results) -> Packet:
        if self.config.leaves != "passed on":
            self.counted["rows_out"] += len(results)
        return self._packet(element_rows(results))

    def _packet(self, rows: pa.Table) -> Packet:
        return Packet(self.bucket, 0, "final", rows)

    def figures(self) -> dict[str, int]:
        kept = self.operator.footprint + self.waiting.footprint + self.held.footprint
        figures = dict(self.counted) | footprint_figures(kept)
        newest = max(self.largest.values(), default=NEVER)
        for number, channels in enumerate(self.config.inputs):
            progress = self._progress(channels)
            if NEVER < progress < FOREVER:
                figures[f"progress_{number}"] = progress
                figures[f"lag_{number}"] = max(0, newest - progress)
        return figures

    def snapshot(self) -> Snapshot:
        parts = [self.operator.snapshot(), self.waiting.snapshot("waiting"), self.held.snapshot("held")]
        manifest = {
            "operator": parts[0].manifest,
            "results": [parts[1].manifest, parts[2].manifest],
            "largest": list(self.largest.items()),
            "promised": list(self.promised.items()),
            "reached": [[*key, time] for key, time in self.reached.items()],
        }
        return Snapshot(manifest, ChainMap(*(part.blobs for part in parts)))  # type: ignore[arg-type]

    def restore(self, snapshot: Snapshot) -> None:
        manifest = snapshot.manifest
        self.operator.restore(Snapshot(manifest["operator"], snapshot.blobs))
        self.waiting.restore(Snapshot(manifest["results"][0], snapshot.blobs))
        self.held.restore(Snapshot(manifest["results"][1], snapshot.blobs))
        self.largest, self.promised = dict(manifest["largest"]), dict(manifest["promised"])
        self.reached = {(channel, bucket): time for channel, bucket, time in manifest["reached"]}


def in_content_order(batch: Batch, groups: int) -> Batch:
    """The rows in the order of their time stamps, and then of their arrival, or in a batch of their content.

    Of the proof the first columns make groups; the others are what is compared, and go no further.

    >>> content = pa.table({"a": ["y", "x"]})
    >>> rows = Batch(content, np.array([5, 5]), np.array([9, 9]), np.zeros(2, np.int64), proof=content)
    >>> in_content_order(rows, 0).payload.to_pydict()
    {'a': ['x', 'y']}
    """
    if batch.proof is None:  # a stream of nothing but times: all rows of one time are alike
        return batch.take(np.argsort(batch.ts, kind="stable"))
    order = np.argsort(batch.ts, kind="stable")
    ts = batch.ts[order]
    if (ts[1:] == ts[:-1]).any():
        which = np.concatenate([[0], np.cumsum(ts[1:] != ts[:-1])])
        content = batch.proof.select(range(groups, batch.proof.num_columns)).take(pa.array(order))
        order = order[tie_order(content, which, ())]
    proof = batch.proof.select(range(groups)) if groups else None
    return replace(batch, proof=proof).take(order)
