"""Aggregation with GROUP BY over lifetimes.

Law: between two neighbouring instants at which one of a group's elements starts or ends, one piece with the aggregates
of the elements that are valid there. Cut at every such instant, also where the values stay the same; nothing where the
group is empty.

    elements of a group   [1, 6) 10        count   [1, 4) 1   [4, 6) 2   [6, 9) 1
                          [4, 9) 20        sum     [1, 4) 10  [4, 6) 30  [6, 9) 20

Cost: a sort of the events that are due, then O(log) per event, whatever the window. Sums are exact, so they depend
neither on the order nor on what came and went (see `state.aggregates`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Aggregate, Method
from streamjoin.algebra.interval import Times
from streamjoin.operators.contract import ALONE, Configuration, Context, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.lifetimes import RunningLifetimes, plus_and_minus
from streamjoin.state import Batch, Blobs, Catalogue, Changes, Ends, GroupAggregates, Pieces, Snapshot
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.snapshot import table_from_bytes, table_to_bytes


@dataclass(frozen=True)
class Aggregating(Configuration):
    """Aggregates of groups by `keys`, over elements of this schema. `build()` makes the running operator."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    schema: pa.Schema
    producer: int = 0
    bucket: int = 0
    method: Method = "direct"
    inputs: int = 1

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((self.keys, self.aggregates, described([self.schema]), self.producer, self.method))

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that the aggregates read."""
        return tuple(dict.fromkeys(each.column for each in self.aggregates if each.column is not None))

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The columns that make a group."""
        return pa.schema([self.schema.field(key) for key in self.keys])

    @property
    def result_schema(self) -> pa.Schema:
        """The keys, then the aggregates."""
        return pa.schema([*self.key_schema, *GroupAggregates(self.aggregates, self.schema).result_schema])

    def build(self, context: Context = ALONE) -> RunningAggregating:
        """The running operator, empty."""
        return RunningAggregating(self, Catalogue(self.key_schema), context)


@dataclass
class RunningAggregating(RunningLifetimes):
    """An aggregation at work."""

    config: Aggregating

    def __post_init__(self) -> None:
        super().__post_init__()
        first = self.context.first_holder(self.config.producer, self.config.bucket)
        self.groups = OpenGroups(GroupAggregates(self.config.aggregates, self.config.schema), first)

    def _rows(self, number: int, batch: Batch) -> pa.Table:
        code = self.catalogue.codes(batch.payload.select(list(self.config.keys)), len(batch))
        columns = [batch.payload[name] for name in self.config.values]
        return pa.table([pa.array(code), *columns], names=["code", *(f"value {name}" for name in self.config.values)])

    def _sweep(self, times: Times, rows: pa.Table) -> Iterator[Output]:
        code = rows["code"].to_numpy()
        columns = [rows[f"value {name}"] for name in self.config.values]
        values = pa.table(columns, names=list(self.config.values)) if columns else pa.table({})
        changes = Changes(code, times, rows["sign"].to_numpy(), values)
        closed, before = self.groups.close(changes)
        opened, holder = self.groups.open(np.flatnonzero(np.bincount(code)))  # codes are dense
        if self.config.method == "negative":
            yield from self._plus_and_minus(closed, before, opened, holder)
            return
        known = before < 0
        if not known.all():
            yield Ends(before[~known], closed.end[~known])
        yield from self._results(closed.take(known), before[known])
        yield from self._results(opened, holder)

    def _plus_and_minus(self, closed: Pieces, before: Indices, opened: Pieces, holder: Indices) -> Iterator[Output]:
        self.figures["results"] += len(closed) + len(opened)
        new = before < 0
        before[new] = self.groups.new_holders(int(new.sum()))
        appeared = closed.take(new)
        yield plus_and_minus(self._payload(appeared), appeared.start, before[new], 1)
        yield plus_and_minus(self._payload(closed), closed.end, before, -1)
        yield plus_and_minus(self._payload(opened), opened.start, holder, 1)

    def _payload(self, pieces: Pieces) -> pa.Table:
        columns = [*self.catalogue.take(pieces.group).columns, *pieces.values.columns]
        return pa.table(columns, names=[*self.config.keys, *pieces.values.column_names])

    def _results(self, pieces: Pieces, holder: Indices) -> Iterator[Results]:
        if len(holder):
            self.figures["results"] += len(holder)
            yield Results(self._payload(pieces), pieces.start, pieces.end, holder=holder)

    def _finish(self) -> Iterator[Output]:
        ends = self.groups.finish()
        if len(ends) and self.config.method == "direct":
            yield ends

    def _own_parts(self) -> dict[str, Any]:
        return {"groups": self.groups}


class OpenGroups:
    """The aggregates of groups, and the holder of each group's open piece."""

    def __init__(self, aggregates: GroupAggregates, next_holder: int) -> None:
        self.aggregates, self.next_holder = aggregates, next_holder
        self.holders = np.zeros(0, np.int64)
        self.note = uuid.uuid4().hex

    def close(self, changes: Changes) -> tuple[Pieces, Indices]:
        """The pieces that these changes close; and the holders of those that were open before, -1 for the others."""
        closed = self.aggregates.sweep(changes)
        self.note = uuid.uuid4().hex
        before = np.full(len(closed), NO_HOLDER)
        carried = closed.carried
        before[carried] = self.holders[closed.group[carried]]
        return closed, before

    def new_holders(self, count: int) -> Indices:
        """So many that nobody has."""
        self.next_holder += count
        return np.arange(self.next_holder - count, self.next_holder)

    def open(self, groups: Indices) -> tuple[Pieces, Indices]:
        """The pieces of these groups that are open now, with new holders. Every change has closed the one before."""
        opened = self.aggregates.open_pieces(groups)
        holder = self.new_holders(len(opened))
        missing = int(groups[-1]) + 1 - len(self.holders)
        if missing > 0:
            more = max(missing, len(self.holders))
            self.holders = np.concatenate([self.holders, np.full(more, NO_HOLDER)])
        self.holders[opened.group] = holder
        return opened, holder

    def finish(self) -> Ends:
        """What is open stays open; nothing is kept."""
        group = self.aggregates.finish().group
        ends = Ends(self.holders[group], np.full(len(group), FOREVER))
        self.__init__(GroupAggregates(self.aggregates.aggregates, self.aggregates.schema), self.next_holder)  # type: ignore[misc]
        return ends

    def snapshot(self, name: str) -> Snapshot:
        """To be stored."""
        tables = {**self.aggregates.to_tables(), "holders": pa.table({"holder": self.holders})}
        # All groups are written with every micro-batch. Most of their bytes are zero: a twentieth is left of them.
        pack = partial(partial, table_to_bytes, compressed=True)
        makers = {f"{name}/{self.note}/{part}": pack(table) for part, table in tables.items()}
        manifest = {"name": name, "note": self.note, "tables": list(tables), "next_holder": self.next_holder}
        return Snapshot(manifest, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        manifest = snapshot.manifest
        self.note, self.next_holder = manifest["note"], manifest["next_holder"]
        tables = {
            part: table_from_bytes(snapshot.blobs[f"{manifest['name']}/{self.note}/{part}"])
            for part in manifest["tables"]
        }
        self.holders = tables.pop("holders")["holder"].to_numpy().copy()
        known = self.aggregates
        self.aggregates = GroupAggregates.from_tables(known.aggregates, known.schema, tables)
