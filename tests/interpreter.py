"""A physical plan in this process, without Spark: the same tasks and the same stages, for tests and measurements.

What Spark computes is computed here for what `Expression` can evaluate: conditions of its subset, columns under other
names, and whole numbers as doubles. Everything else of a plan runs as it is. Types are those of columns themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import UnsupportedError
from streamjoin.plan.condition import one_column
from streamjoin.plan.expression import Expression
from streamjoin.plan.physical import (
    Collate,
    Compute,
    Computed,
    Edge,
    Filter,
    Fold,
    PhysicalPlan,
    Rank,
    Sink,
    Source,
    Step,
)
from streamjoin.plan.tasks import EdgeTask, SinkTask, SourceTask
from streamjoin.plan.types import Field, Fields, Type, type_of
from streamjoin.runtime.elements import REPORT, reports_of
from streamjoin.runtime.intake import HIDDEN, KEEP, WHOLE
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage

Rows = Mapping[str, Sequence[pa.Table]]  # of each source, its partitions


@dataclass
class InProcess:
    """A plan at work. Sources that are complete are read before the first micro-batch."""

    plan: PhysicalPlan
    running: dict[tuple[int, int], RunningStage] = field(default_factory=dict)
    figures: list[dict[str, int]] = field(default_factory=list)

    def batch(self, rows: Rows) -> Iterator[pa.Table]:
        """All rows at once, and then the end: what leaves."""
        yield from self._run(rows, None, end=True)

    def micro_batch(self, rows: Rows, *, clock: int | None = None) -> Iterator[pa.Table]:
        """Rows of some sources arrive; what leaves, as the user sees it."""
        yield from self._run(rows, clock, end=False)

    def end(self) -> Iterator[pa.Table]:
        """Nothing comes any more."""
        yield from self._run({}, None, end=True)

    def tick(self, clock: int) -> Iterator[pa.Table]:
        """Nothing has come, and it is so late now."""
        yield from self._run({}, clock, end=False, ticked=True)

    def _run(self, rows: Rows, clock: int | None, *, end: bool, ticked: bool = False) -> Iterator[pa.Table]:
        self.figures = []
        arrived: dict[int, list[Packet]] = defaultdict(list)  # by channel
        left: dict[int, list[pa.Table]] = defaultdict(list)  # rows that leave, or go through an edge
        for source in self.plan.sources:
            self._source(source, rows.get(source.name, ()), clock, arrived, left)
        for stage in self.plan.stages:
            by_bucket: dict[int, list[Packet]] = defaultdict(list)
            for channel in self.plan.feeders(stage):
                for packet in arrived.pop(channel, ()):
                    by_bucket[packet.bucket].append(packet)
            sent: list[Packet] = []
            # One whose inputs are all complete is over as soon as it has run: its readers take it to have ended.
            everywhere, over = (end or ticked) and not stage.complete, end or stage.complete
            for bucket in range(stage.buckets) if everywhere else sorted(by_bucket):
                running = self._stage(stage.number, bucket)
                sent += running.take(self.travelled(by_bucket[bucket]))
                if ticked and clock is not None:
                    sent += running.tick(clock)
                if over:
                    sent += running.end()
                self.ran(stage.number, bucket, running, end=over)
            self._sent(sent, arrived, left, stage.outlet.way.channel)
        for channel in self.plan.sink.channels:
            edge = self.plan.edge_of(channel)
            for table in left.pop(channel, ()):
                yield from [table] if edge is None else leaving(self.plan.sink, edge, table)

    def _source(
        self,
        source: Source,
        partitions: Iterable[pa.Table],
        clock: int | None,
        arrived: dict[int, list[Packet]],
        left: dict[int, list[pa.Table]],
    ) -> None:
        task = SourceTask(source)
        for number, table in enumerate(partitions):
            read = prepared(source, table)
            if source.target is None:
                for elements in task.elements([read], told=True):
                    left[source.channel].append(elements)
                    self.figures += [packet.report for packet in reports_of(elements) if packet.kind == "figures"]
            else:
                for packet in self.travelled(task.packets([read], number << 40, lambda: clock)):
                    self._arrive(packet, arrived, source.channel)

    def _sent(
        self, sent: list[Packet], arrived: dict[int, list[Packet]], left: dict[int, list[pa.Table]], channel: int
    ) -> None:
        edge = self.plan.edge_of(channel)
        tables = [packet.table for packet in sent if packet.kind == "final"]
        for packet in sent:
            if packet.kind != "final":
                self._arrive(packet, arrived, channel)
        if edge is None or edge.target is None:
            left[channel] += tables
            return
        for table in tables:
            for packet in EdgeTask(edge).packets([stepped(edge, table)]):
                self._arrive(packet, arrived, channel)

    def _arrive(self, packet: Packet, arrived: dict[int, list[Packet]], way: int) -> None:
        """A packet comes to whoever reads its channel; rows to be shown, which keep that of their source, by `way`."""
        if packet.kind == "figures":
            self.figures.append(packet.report)
        else:
            arrived[way if packet.kind in ("late", "invalid") else packet.channel].append(packet)

    # -- what tests put between ----------------------------------------------------------------------------------------

    def travelled(self, packets: Iterable[Packet]) -> Iterable[Packet]:
        """Packets on their way to a bucket."""
        return packets

    def _stage(self, number: int, bucket: int) -> RunningStage:
        if (number, bucket) not in self.running:
            self.running[number, bucket] = self.plan.stages[number].build(bucket)
        return self.running[number, bucket]

    def ran(self, number: int, bucket: int, running: RunningStage, *, end: bool) -> None:
        """A bucket has taken a micro-batch."""
        self.figures.append(running.figures())


class PlainTyping:
    """Knows columns by themselves, and types that are equal: enough where nothing is computed."""

    def computed(self, fields: Fields, columns: Sequence[tuple[str, str]]) -> Fields:
        """Columns under other names."""
        found = []
        for name, text in columns:
            source = one_column(text)
            if source is None:
                raise UnsupportedError(f"a computed column {text!r} is left to Spark", hint="run the query on Spark")
            found.append(Field(name, type_of(fields, source)))
        return tuple(found)

    def check(self, fields: Fields, condition: str) -> None:
        """Spark would say; whoever evaluates it will."""

    def common(self, one: Type, two: Type) -> Type | None:
        """Equal types have one."""
        return one if one == two else None

    def agree(self, expression: Expression, inputs: Sequence[Fields]) -> None:
        """There is no session that could differ."""


def prepared(source: Source, table: pa.Table) -> pa.Table:
    """Rows of a frame as the task of a source reads them, with what Spark would compute of them."""
    columns = [table[column] for _, column in source.reads]
    read = pa.table(columns, names=[name for name, _ in source.reads])
    hidden = [WHOLE, *(name for name, _ in source.reads if name.startswith(HIDDEN))]
    for step in source.steps:
        read = computed(read, step, hidden)
    return read.select(SourceTask(source).schema.names)


def stepped(edge: Edge, table: pa.Table) -> pa.Table:
    """Rows of elements, with what Spark would compute of them."""
    for step in edge.steps:
        table = computed(table, step, edge.hidden.names)
    return table


def leaving(sink: Sink, edge: Edge, table: pa.Table) -> Iterator[pa.Table]:
    """Rows of elements as the user sees them, after what Spark would compute of them; also those that only pass."""
    yield from SinkTask(edge, sink.shape).rows([stepped(edge, table)])


def computed(table: pa.Table, step: Step, hidden: Sequence[str]) -> pa.Table:
    """One step over rows; reports pass."""
    if isinstance(step, Fold):
        whole = pa.table({there: table[here] for there, here in step.columns}).combine_chunks().to_struct_array()
        return table.drop_columns([here for _, here in step.columns]).append_column(WHOLE, whole)
    if isinstance(step, Compute):
        columns, names = [], []
        for each in step.columns:
            columns.append(_column(table, each))
            names.append(each.name)
        passing = [name for name in table.column_names if name in (*hidden, KEEP)]
        return pa.table([*columns, *(table[name] for name in passing)], names=[*names, *passing])
    if isinstance(step, Rank | Collate):
        text = step.text if isinstance(step, Rank) else "a collation key"
        raise UnsupportedError(f"{text!r} is left to Spark", hint="run the query on Spark")
    shown = [name for name in table.column_names if not name.startswith("__sj")]
    expression = _parsed(step.condition, table.select(shown).schema)
    rows = table.select(shown).combine_chunks()
    holds = np.asarray(expression.evaluate([rows], rows=table.num_rows), np.bool_)
    if isinstance(step, Filter):
        if REPORT in table.column_names:
            holds = holds | pc.is_valid(table[REPORT]).to_numpy()
        return table.filter(pa.array(holds))
    if KEEP not in table.column_names:
        return table.append_column(KEEP, pa.array(holds))
    before = np.asarray(table[KEEP].to_numpy(zero_copy_only=False), np.bool_)
    return table.set_column(table.column_names.index(KEEP), KEEP, pa.array(before & holds))


def _column(table: pa.Table, column: Computed) -> pa.ChunkedArray:
    """A column under another name, or a number as a double."""
    if column.column is not None:
        return table[column.column]
    source = one_column(column.text)
    if source is not None and column.cast is not None and not column.collation_key:
        values = table[source]
        if pa.types.is_float64(column.cast.arrow) and pa.types.is_integer(values.type):
            return values.cast(pa.float64(), safe=False)  # rounded, as by Spark
    raise UnsupportedError(f"{column.text!r} is left to Spark", hint="run the query on Spark")


@lru_cache(maxsize=100)
def _parsed(condition: str, schema: pa.Schema) -> Expression:
    """A condition is asked of every micro-batch."""
    return Expression.parse(condition, [schema])
