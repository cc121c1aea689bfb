"""A fragment: operators that share one placing, at work in one bucket, driven by one driver.

Nodes are in topological order: children first. In each micro-batch a node gets rows, then word that all rows are there,
then ends, then progress. So a row is never behind the progress that its reader has seen, and an end comes before the
progress that reaches it. What a node says goes straight on to its reader, result by result: a large result never lies
in memory as a whole, unless somebody holds it back.

    stage input 0 --> row window --\\
                                    join --> aggregation --> outlet
    stage input 1 -----------------/
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import NEVER
from streamjoin.operators import Footprint, Operator, Output, Results
from streamjoin.operators.contract import Context
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.intake import KEEP, earlier
from streamjoin.runtime.placing import Partitioning
from streamjoin.state import Batch, Ends, Snapshot
from streamjoin.state.history import tie_order


@dataclass(frozen=True)
class Room:
    """What a fragment may use: bytes of memory, shared by its sweep areas, and a folder for the rest."""

    memory: int | None = None
    scratch: str | None = None


UNBOUNDED: Final = Room()


@dataclass(frozen=True)
class Entry:
    """A node's input from outside: the rows of a stage's input, bound already. `groups`: of a row window, how many of
    the proof's columns make a group; the others say who came first among equal time stamps.
    """

    input: int
    groups: int | None = None


@dataclass(frozen=True)
class Inner:
    """A node's input from another node of the fragment, and how its results are read. `behind`: how far behind the
    other's progress the times are by which they are read.
    """

    node: int
    binding: RowBinding
    behind: int = 0


@dataclass(frozen=True)
class Node:
    """An operator of a fragment. Its results get these column names; `kept` says that a column marks what goes on, and
    `pick` which of the columns do, under which names.
    """

    config: Any
    feeds: tuple[Entry | Inner, ...]
    names: tuple[str, ...]
    producer: int = 0
    partitioning: Partitioning | None = None  # of a join whose pairs meet in several buckets
    kept: bool = False
    pick: tuple[tuple[str, str], ...] | None = None

    def build(self, bucket: int, room: Room = UNBOUNDED, areas: int = 1) -> Operator:
        """The operator in one bucket, empty; `areas`: how many sweep areas all operators of the fragment have."""
        owner = None if self.partitioning is None else self.partitioning.owner_test(bucket)
        memory = None if room.memory is None else room.memory * self.areas // max(1, areas)
        operator: Operator = self.config.build(
            Context(bucket, self.producer, owner, memory=memory or None, scratch=room.scratch)
        )
        return operator

    @property
    def areas(self) -> int:
        """How many sweep areas the operator has."""
        areas: int = getattr(self.config, "areas", 0)
        return areas

    def named(self, results: Results) -> Results:
        """Results under the names of the relation, without those that a selection drops."""
        table = results.payload.rename_columns(list(self.names)) if self.names else pa.table({})
        if self.kept:
            keep = np.asarray(table[KEEP].to_numpy(zero_copy_only=False), np.bool_)
            results = replace(results, payload=table)
            if not keep.all():
                results = results.take(keep)
                table = results.payload
            table = table.drop_columns([KEEP]) if len(self.names) > 1 else pa.table({})
        if self.pick is not None:
            table = pa.table([table[old] for _, old in self.pick], names=[new for new, _ in self.pick])
        return replace(results, payload=table)


class Fragment:
    """A fragment at work. The last node's results leave it."""

    def __init__(self, nodes: Sequence[Node], bucket: int, room: Room = UNBOUNDED) -> None:
        self.nodes = tuple(nodes)
        areas = sum(node.areas for node in nodes)
        self.operators = [node.build(bucket, room, areas) for node in nodes]
        self.readers: dict[int, tuple[int, int]] = {
            feed.node: (at, number)
            for at, node in enumerate(nodes)
            for number, feed in enumerate(node.feeds)
            if isinstance(feed, Inner)
        }
        self.ends: dict[tuple[int, int], list[Ends]] = defaultdict(list)

    def run(
        self, batches: Mapping[int, Batch], ends: Mapping[int, list[Ends]], progress: Sequence[int]
    ) -> Iterator[Output]:
        """One micro-batch, by the stage's inputs."""
        for at, (node, operator) in enumerate(zip(self.nodes, self.operators, strict=True)):
            for number, feed in enumerate(node.feeds):
                if isinstance(feed, Entry):
                    batch = batches.get(feed.input)
                    if batch is not None and len(batch):
                        batch = batch if feed.groups is None else in_order(batch, feed.groups)
                        yield from self._emit(at, operator.on_batch(number, batch))
                    self.ends[at, number] += ends.get(feed.input, ())
            yield from self._emit(at, operator.on_batches_end())
            yield from self._settle(at, node, operator)
            for number, feed in enumerate(node.feeds):
                if isinstance(feed, Entry):
                    time = progress[feed.input]
                else:
                    time = earlier(self.operators[feed.node].progress, feed.behind)
                yield from self._emit(at, operator.on_progress(number, time))

    def end(self) -> Iterator[Output]:
        """Nothing comes any more."""
        for at, (node, operator) in enumerate(zip(self.nodes, self.operators, strict=True)):
            yield from self._settle(at, node, operator)
            yield from self._emit(at, operator.on_end())

    def _settle(self, at: int, node: Node, operator: Operator) -> Iterator[Output]:
        for number in range(len(node.feeds)):
            for some in self.ends.pop((at, number), ()):
                yield from self._emit(at, operator.on_ends(number, some))

    def _emit(self, at: int, outputs: Iterator[Output]) -> Iterator[Output]:
        """Whatever a node says, to its reader or out."""
        node, reader = self.nodes[at], self.readers.get(at)
        for output in outputs:
            if isinstance(output, Results):
                output = node.named(output)
                if not len(output):
                    continue
            if reader is None:
                yield output
            elif isinstance(output, Results):
                feed = self.nodes[reader[0]].feeds[reader[1]]
                assert isinstance(feed, Inner)
                batch = feed.binding.bind(output)
                yield from self._emit(reader[0], self.operators[reader[0]].on_batch(reader[1], batch))
            else:
                assert isinstance(output, Ends), "rows that other buckets decide about leave by the last node"
                self.ends[reader].append(output)

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def progress(self) -> int:
        """No result with a smaller `ts` leaves any more."""
        return self.operators[-1].progress

    @property
    def joined(self) -> int:
        """Rows that end here or earlier have met all whom they can meet."""
        return self.operators[-1].joined

    def seen(self, largest: Mapping[int, int]) -> None:
        """The largest time stamp of each input, by all of its tasks."""
        for node, operator in zip(self.nodes, self.operators, strict=True):
            for number, feed in enumerate(node.feeds):
                if isinstance(feed, Entry) and largest[feed.input] > NEVER:
                    operator.on_seen(number, largest[feed.input])

    @property
    def footprint(self) -> Footprint:
        """What is kept."""
        return sum((operator.footprint for operator in self.operators), Footprint())

    def kept_rows(self, number: int) -> int:
        """Rows of an input that are kept by the operators that take it, as far as they tell inputs apart."""
        feeds = (
            (operator, at)
            for node, operator in zip(self.nodes, self.operators, strict=True)
            for at, feed in enumerate(node.feeds)
            if isinstance(feed, Entry) and feed.input == number
        )
        return sum(operator.kept_rows(at) for operator, at in feeds)

    def figure(self, name: str) -> int:
        """A figure, summed over the operators that have it."""
        return sum(operator.figures.get(name, 0) for operator in self.operators)

    def snapshots(self) -> list[Snapshot]:
        """One for each operator."""
        return [operator.snapshot() for operator in self.operators]

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """The inverse of `snapshots`."""
        for operator, snapshot in zip(self.operators, snapshots, strict=True):
            operator.restore(snapshot)


def in_order(batch: Batch, groups: int) -> Batch:
    """The rows in the order of their time stamps, and then of their arrival, or in a batch of their content.

    Of the proof the first columns make groups; the others are what is compared, and go no further.

    >>> content = pa.table({"a": ["y", "x"]})
    >>> rows = Batch(content, np.array([5, 5]), np.array([9, 9]), np.zeros(2, np.int64), proof=content)
    >>> in_order(rows, 0).payload.to_pydict()
    {'a': ['x', 'y']}
    """
    ordered = replace(batch, proof=batch.proof.select(range(groups)) if batch.proof is not None and groups else None)
    if (batch.ts[1:] > batch.ts[:-1]).all():  # as most streams come: nothing need be moved
        return ordered
    order = np.argsort(batch.ts, kind="stable")
    ts = batch.ts[order]
    # In a stream of nothing but times all rows of one time are alike.
    if batch.proof is not None and (ts[1:] == ts[:-1]).any():
        which = np.concatenate([[0], np.cumsum(ts[1:] != ts[:-1])])
        content = batch.proof.select(range(groups, batch.proof.num_columns)).take(pa.array(order))
        order = order[tie_order(content, which, ())]
    return ordered.take(order)
