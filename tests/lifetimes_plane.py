"""Queries over lifetimes without a JVM: the tasks, the exchange and the state store of Spark, played by lists.

What runs is the real code: reading tasks, packing tasks, and the stages of every bucket. Selections, projections and
unions are Spark's there, and plain functions of tables here. Everything that crosses an exchange goes through bytes;
after each micro-batch every bucket is saved, in a store that writes a blob once, and now and then it is restored.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import Equals, Rows, TimeAxis, Validity
from streamjoin.operators import Aggregating, Multiplicity, RowWindow, StreamOf
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, JoinNode
from streamjoin.plan.planner import plan_join
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
from streamjoin.spark import lifetimes_tasks
from streamjoin.spark.batch import by_bucket
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.lifetimes_frame import HIDDEN, REPORT, TE, TS, Channel
from streamjoin.spark.lifetimes_stage import ElementStage, RunningElementStage
from streamjoin.spark.lifetimes_tasks import ByColumns, ByJoin, OperateElements, PackElements, Placing, ReadStream
from streamjoin.spark.packing import pack, unpack
from tests.state.storing import Store

Work = Callable[["Arrived"], list[pa.Table]]


@dataclass(frozen=True)
class Arrived:
    """What a micro-batch brings, as partitions of each stream; or the end."""

    rows: Mapping[str, list[pa.Table]]
    end: bool = False


@dataclass
class Part:
    """A relation on its way: how its elements are made, its columns, and where they come from."""

    work: Work
    schema: pa.Schema
    channels: tuple[Channel, ...]


@dataclass
class Staged:
    """An operator in all its buckets."""

    stage: ElementStage
    inputs: list[tuple[Part, PackElements]]
    labels: tuple[int, ...]
    plane: Plane

    def __post_init__(self) -> None:
        self.running: dict[int, RunningElementStage] = {}
        self.stores = [Store() for _ in self.labels]

    def __call__(self, arrived: Arrived) -> list[pa.Table]:
        packed = []
        for part, pack_elements in self.inputs:
            for table in part.work(arrived):
                numbered = table.rename_columns([*(f"c{n}" for n in range(len(part.schema))), *HIDDEN])
                packed += _travelled(pack_elements)(numbered.to_batches(max_chunksize=7))
        if self.plane.at_once:
            operated = _travelled(OperateElements(self.stage))(packed)
            return [self._named(pa.Table.from_batches([rows])) for rows in operated]
        out: list[pa.Table] = []
        buckets = dict(by_bucket(packed))
        for bucket in range(len(self.labels)) if arrived.end else sorted(buckets):
            running = self._bucket(bucket)
            packets = list(running.take(buckets.get(bucket, [])))
            self.plane.figures.update({"late": running.figures()["late"], "rows out": running.figures()["rows_out"]})
            packets += running.end() if arrived.end else ()
            for packet in packets:
                out += (self._named(each.table) for each in unpack(pack(packet, self.labels)))
            self.running[bucket] = running
            self.stores[bucket].save(running.snapshot())
            assert not arrived.end or running.figures()["state_rows"] == 0, "state is left after the end"
        return out

    def _bucket(self, bucket: int) -> RunningElementStage:
        known = self.running.get(bucket)
        if known is not None and self.plane.rng.random() >= self.plane.trouble:
            return known
        fresh = _travelled(self.stage).build(bucket)
        if known is not None:
            fresh.restore(self.stores[bucket].load())
        return fresh

    def _named(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns([*self.stage.schema.names, *HIDDEN])


@dataclass
class Plane:
    """A query at work. `slack` by stream; `at_once`: all rows are there, as in a batch."""

    relation: Relation
    schemas: Mapping[str, pa.Schema]
    slack: Mapping[str, int]
    buckets: int
    rng: random.Random
    trouble: float = 0.0
    at_once: bool = False
    ordered: bool = False
    late: Any = "drop"
    stream_of: Any = None
    figures: Counter = field(default_factory=Counter)
    channels: int = 0
    producers: int = 0

    def __post_init__(self) -> None:
        settled = self.stream_of is None
        self.root = self.lower(self.relation, settled)
        if not settled:
            child, names = self.root, tuple(self.root.schema.names)
            config = StreamOf(self.stream_of, child.schema, producer=self._producer())
            buckets = 1 if self.stream_of == "rstream" else self.buckets
            self.root = self._stage(config, [child], child.schema, ByColumns(names, names, buckets), buckets, True)

    def micro_batch(self, rows: Mapping[str, pa.Table]) -> list[pa.Table]:
        """Rows arrive; what leaves, with its validity."""
        return self._results(Arrived({name: self._partitions(table) for name, table in rows.items()}))

    def end(self, rows: Mapping[str, pa.Table] | None = None) -> list[pa.Table]:
        """Nothing comes any more."""
        return self._results(Arrived({name: self._partitions(table) for name, table in (rows or {}).items()}, True))

    def _results(self, arrived: Arrived) -> list[pa.Table]:
        results = []
        for table in self.root.work(arrived):
            alive = pc.and_(pc.is_null(table[REPORT]), pc.less(table[TS], table[TE]))
            alive = table.filter(pc.fill_null(alive, False))
            if alive.num_rows:
                names = [*self.root.schema.names, "valid_from", "valid_to"]
                results.append(alive.select([*self.root.schema.names, TS, TE]).rename_columns(names))
        return results

    def _partitions(self, table: pa.Table) -> list[pa.Table]:
        at = sorted(self.rng.randint(0, table.num_rows) for _ in range(self.rng.randint(0, 2)))
        return [table.slice(start, stop - start) for start, stop in zip([0, *at], [*at, table.num_rows], strict=True)]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def lower(self, relation: Relation, settled: bool) -> Part:
        if isinstance(relation, Stream):
            return self._stream(relation, settled)
        if isinstance(relation, Selection):
            return _selected(self.lower(relation.child, settled), relation.condition)
        if isinstance(relation, Projection):
            child = self.lower(relation.child, settled)
            columns = [text.strip("`") for _, text in relation.computed]
            return _projected(child, columns, [name for name, _ in relation.computed])
        if isinstance(relation, Union):
            parts = [self.lower(part, settled) for part in relation.parts]
            parts = [_projected(part, part.schema.names, parts[0].schema.names) for part in parts]
            channels = tuple(channel for part in parts for channel in part.channels)
            return Part(lambda arrived: [t for part in parts for t in part.work(arrived)], parts[0].schema, channels)
        children = [self.lower(child, False) for child in relation.children]
        if isinstance(relation, Join):
            return self._join(relation, children, settled)
        names, schema = tuple(children[0].schema.names), children[0].schema
        if isinstance(relation, Aggregation):
            config = Aggregating(relation.keys, relation.aggregates, schema, producer=self._producer())
            placing = ByColumns(names, relation.keys, self.buckets if relation.keys else 1)
            return self._stage(config, children, config.result_schema, placing, placing.buckets, settled)
        operator = {Distinct: "distinct", Difference: "except", Intersection: "intersect"}[type(relation)]
        operator += " all" if getattr(relation, "every", False) else ""
        children = [_projected(child, child.schema.names, list(names)) for child in children]
        config = Multiplicity(operator, schema, producer=self._producer())
        return self._stage(config, children, schema, ByColumns(names, names, self.buckets), self.buckets, settled)

    def _stream(self, stream: Stream, settled: bool) -> Part:
        source, window = self.schemas[stream.source], stream.window.resolve(TimeAxis.INTEGER)
        rows_window = isinstance(window, Rows)
        by = list(window.by or ()) if rows_window else []
        columns = [column for _, column in stream.reads]
        times = [window.start, window.end] if isinstance(window, Validity) else [stream.time]
        stamped = rows_window and not self.at_once
        ties = [name for name in source.names if name not in times] if rows_window and self.at_once else []
        needed = list(dict.fromkeys([*columns, *by, *times, *ties]))
        binding = InputBinding(
            0, tuple(needed), time=None if isinstance(window, Validity) else times[0],
            window=None if rows_window else window,
        )  # fmt: skip
        channel, all_columns = self._channel(), (*columns, *by, *ties)
        schema = pa.schema([source.field(name) for name in needed])
        read = ReadStream(schema, binding, all_columns, channel, stamped)
        names = [name for name, _ in stream.reads]
        everything = [*names, *(f"by {name}" for name in by), *(f"tie {name}" for name in ties)]
        kinds = pa.schema([source.field(c).with_name(n) for n, c in zip(everything, all_columns, strict=True)])
        if stamped:
            everything, kinds = [*everything, "arrival"], kinds.append(pa.field("arrival", pa.int64()))

        def work(arrived: Arrived) -> list[pa.Table]:
            partitions = [table.select(needed) for table in arrived.rows.get(stream.source, ())]
            batches = []
            for number, rows in enumerate(partitions):
                with mock.patch.object(lifetimes_tasks, "first_arrival", lambda number=number: number << 40):
                    batches += _travelled(read)(rows.to_batches(max_chunksize=5))
            return [pa.Table.from_batches([batch]).rename_columns([*everything, *HIDDEN]) for batch in batches]

        part = Part(work, kinds, (Channel(channel, slack=self.slack[stream.source]),))
        if not rows_window:
            return part
        groups = pa.schema([source.field(column) for column in by])
        config = RowWindow(window.size, groups, window.drain, producer=self._producer())
        placing = ByColumns(tuple(names), tuple(f"by {name}" for name in by), self.buckets if by else 1)
        return self._stage(config, [part], pa.schema(list(kinds)[: len(names)]), placing, placing.buckets, settled)

    def _join(self, join: Join, parts: list[Part], settled: bool) -> Part:
        keys = [predicate for predicate in join.predicates if isinstance(predicate, Equals)]
        others = tuple(predicate for predicate in join.predicates if not isinstance(predicate, Equals))
        nodes = []
        for number, part in enumerate(parts):
            schema = pa.schema([*part.schema, pa.field(TS, pa.int64()), pa.field(TE, pa.int64())])
            own = tuple(key.columns(number)[0] for key in keys)
            nodes.append(InputNode(schema, tuple(part.schema.names), own, None, Validity(TS, TE)))
        theta = None
        if join.theta is not None and join.how != "inner":
            theta = Expression.parse(join.theta, [part.schema for part in parts])
        node = JoinNode(
            (nodes[0], nodes[1]), predicates=others, theta=theta, axis=TimeAxis.INTEGER, time_type=pa.int64(),
            how=join.how, outer="snapshot", buckets=self.buckets, validity=(TS, TE), suffix="_right",
        )  # fmt: skip
        plan = plan_join(node)
        plan = plan_join(replace(node, buckets=1)) if any(plan.followed) else plan
        config = replace(plan.join, producer=self._producer())
        left_only = join.how in ("semi", "anti")
        schema = parts[0].schema if left_only else pa.schema([*parts[0].schema, *parts[1].schema])
        joined = self._stage(config, parts, schema, ByJoin(plan), plan.partitioning.buckets, settled, plan)
        return _selected(joined, join.theta) if join.theta is not None and join.how == "inner" else joined

    def _stage(
        self, config: Any, parts: list[Part], schema: pa.Schema, placing: Placing, buckets: int, settled: bool,
        join: Any = None,
    ) -> Part:  # fmt: skip
        channel, labels = self._channel(), bucket_labels(buckets)
        inputs = tuple(part.channels for part in parts)
        ordered = settled and self.ordered
        leaves = "settled" if settled else "passed on"
        stage = ElementStage(config, schema, inputs, channel, leaves, ordered, self.late, self.at_once, join)
        packs = [PackElements(number, part.schema, placing, labels) for number, part in enumerate(parts)]
        staged = Staged(stage, list(zip(parts, packs, strict=True)), labels, self)
        return Part(staged, schema, (Channel(channel, buckets),))

    def _channel(self) -> int:
        self.channels += 1
        return self.channels - 1

    def _producer(self) -> int:
        self.producers += 1
        return self.producers - 1


def _projected(part: Part, columns: list[str], names: list[str]) -> Part:
    def work(arrived: Arrived) -> list[pa.Table]:
        tables = part.work(arrived)
        return [pa.table([*(t[c] for c in (*columns, *HIDDEN))], names=[*names, *HIDDEN]) for t in tables]

    fields = [part.schema.field(column).with_name(name) for column, name in zip(columns, names, strict=True)]
    return Part(work, pa.schema(fields), part.channels)


def _selected(part: Part, condition: str) -> Part:
    expression = Expression.parse(condition, [part.schema])

    def work(arrived: Arrived) -> Iterator[pa.Table]:
        for table in part.work(arrived):
            reports = pc.is_valid(table[REPORT]).to_numpy()
            holds = np.asarray(expression.evaluate([table.select(part.schema.names).combine_chunks()]), np.bool_)
            yield table.filter(pa.array(reports | holds))

    return Part(lambda arrived: list(work(arrived)), part.schema, part.channels)


def _travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))
