"""A fragment: operators that share one placing, at work in one bucket, driven by one driver.

Nodes are in topological order: children first. In each micro-batch a node gets rows, then word that all rows are there,
then ends, then progress. So a row is never behind the progress that its reader has seen, and an end comes before the
progress that reaches it. What a node says goes straight on to its reader, result by result: a large result never lies
in memory as a whole, unless somebody holds it back.

    stage input 0 --> row window --\\
                                    join --> aggregation --> outlet
    stage input 1 -----------------/

With priorities a micro-batch passes in waves. First its urgent rows, through all nodes. Then the others, node by node:
after a node's turn what is urgent of its results passes all nodes above, the rest waits for its reader's turn. Ends and
progress come last. What waits goes on in few large batches: each small one would be sorted, looked up in all that is
kept, and kept as a run of its own that everybody who comes has to look into. Where memory is limited they go on before
the reader's turn when they have become many: an eighth of the fragment's memory for each reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import NEVER
from streamjoin.operators import Configuration, Footprint, Operator, Output, Results
from streamjoin.operators.contract import Context
from streamjoin.operators.row_window import in_order
from streamjoin.operators.temporal_join import RESULT_BYTES
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.intake import KEEP, earlier
from streamjoin.runtime.placing import Partitioning
from streamjoin.state import Batch, Ends, Snapshot


@dataclass(frozen=True)
class Room:
    """What a fragment may use: bytes of memory, shared by its sweep areas, and a folder for the rest."""

    memory: int | None = None
    scratch: str | None = None


UNBOUNDED: Final = Room()
# Urgent results do not wait for the end of a node's turn when they are this many bytes together.
URGENT_BYTES: Final = RESULT_BYTES // 16


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
        config: Configuration = self.config
        return config.areas

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


@dataclass
class Held:
    """Results that wait for their reader."""

    results: list[Results] = field(default_factory=list)
    nbytes: int = 0

    def add(self, results: Results) -> int:
        """Some more; how many bytes all of them have."""
        self.results.append(results)
        self.nbytes += results.nbytes
        return self.nbytes

    def pieces(self) -> Iterator[Results]:
        """All of them, in pieces of about `RESULT_BYTES`: one large batch is joined sooner than many. They wait no more
        then, and nothing is left here: its memory is for what the reader makes of a piece.
        """
        waiting, self.results = self.results[::-1], []
        while waiting:
            piece = [waiting.pop()]
            size = piece[0].nbytes
            while waiting and size + waiting[-1].nbytes <= RESULT_BYTES:
                size += waiting[-1].nbytes
                piece.append(waiting.pop())
            whole = Results.concat(piece)
            piece.clear()
            yield whole


Holding = dict[tuple[int, int], Held]  # by their reader: a node, and which of its inputs


class Fragment:
    """A fragment at work. The last node's results leave it."""

    def __init__(
        self, nodes: Sequence[Node], bucket: int, room: Room = UNBOUNDED, *, prioritised: bool = False
    ) -> None:
        self.nodes, self.prioritised = tuple(nodes), prioritised
        areas = sum(node.areas for node in nodes)
        self.operators = [node.build(bucket, room, areas) for node in nodes]
        self.readers: dict[int, tuple[int, int]] = {
            feed.node: (at, number)
            for at, node in enumerate(nodes)
            for number, feed in enumerate(node.feeds)
            if isinstance(feed, Inner)
        }
        self.ends: dict[tuple[int, int], list[Ends]] = defaultdict(list)
        self.urgent: Holding = defaultdict(Held)  # until a turn ends
        self.waiting: Holding = defaultdict(Held)  # the others, for their reader's turn
        self.most = None if room.memory is None else max(1, room.memory // 8)  # bytes of those that wait for a reader

    def run(
        self,
        batches: Mapping[int, Batch],
        ends: Mapping[int, list[Ends]],
        progress: Sequence[int],
        urgent: Mapping[int, Batch] | None = None,
    ) -> Iterator[Output]:
        """One micro-batch, by the stage's inputs; `urgent` rows of it pass first."""
        assert self.prioritised or not urgent, "urgent rows in a stage that knows of none"
        if self.prioritised:
            for at in range(len(self.nodes)):
                yield from self._enter(at, urgent or {})
            for at in range(len(self.nodes)):
                yield from self._enter(at, batches)
                yield from self._hurry(at)
            batches = {}
        for at, (node, operator) in enumerate(zip(self.nodes, self.operators, strict=True)):
            yield from self._enter(at, batches)
            for number, feed in enumerate(node.feeds):
                if isinstance(feed, Entry):
                    self.ends[at, number] += ends.get(feed.input, ())
            yield from self._emit(at, operator.on_batches_end())
            yield from self._settle(at, node, operator)
            for number, feed in enumerate(node.feeds):
                if isinstance(feed, Entry):
                    time = progress[feed.input]
                else:
                    time = earlier(self.operators[feed.node].progress, feed.behind)
                yield from self._emit(at, operator.on_progress(number, time))

    def enter(self, batches: Mapping[int, Batch]) -> Iterator[Output]:
        """Some rows of a micro-batch, by the stage's inputs; the others follow, and `run` comes last."""
        assert not self.prioritised, "urgent rows go first, so all of a micro-batch must be there"
        for at in range(len(self.nodes)):
            yield from self._enter(at, batches)
        for operator in self.operators:
            operator.make_room()

    def idle(self) -> Iterator[Output]:
        """Nothing comes just now: operators do some of what they have put off."""
        for at, operator in enumerate(self.operators):
            yield from self._emit(at, operator.on_idle())

    @property
    def owes(self) -> bool:
        """Whether some operator has put work off."""
        return any(operator.owes for operator in self.operators)

    def end(self) -> Iterator[Output]:
        """Nothing comes any more."""
        for at, (node, operator) in enumerate(zip(self.nodes, self.operators, strict=True)):
            yield from self._enter(at, {})
            yield from self._settle(at, node, operator)
            yield from self._emit(at, operator.on_end())

    def _enter(self, at: int, batches: Mapping[int, Batch]) -> Iterator[Output]:
        """A node's turn: what has waited for it, and rows of the stage's inputs."""
        operator, feeds = self.operators[at], self.nodes[at].feeds
        for number, _ in enumerate(feeds):
            yield from self._go_on((at, number), self.urgent)
        for number, feed in enumerate(feeds):
            batch = batches.get(feed.input) if isinstance(feed, Entry) else None
            if isinstance(feed, Entry) and batch is not None and len(batch):
                batch = batch if feed.groups is None else in_order(batch, feed.groups)
                yield from self._emit(at, operator.on_batch(number, batch))
        for number, _ in enumerate(feeds):  # last: they are many, and the rows of inputs meet urgent ones without them
            yield from self._go_on((at, number), self.waiting)

    def _hurry(self, at: int) -> Iterator[Output]:
        """After a node's turn: what is urgent of its results passes all nodes above."""
        reader = self.readers.get(at)
        while reader is not None:
            yield from self._go_on(reader, self.urgent)
            reader = self.readers.get(reader[0])

    def _go_on(self, reader: tuple[int, int], held: Holding) -> Iterator[Output]:
        """Results that were held for a reader go on to it."""
        for results in held.pop(reader, Held()).pieces():
            yield from self._read(reader, results)

    def _read(self, reader: tuple[int, int], results: Results) -> Iterator[Output]:
        at, number = reader
        feed = self.nodes[at].feeds[number]
        assert isinstance(feed, Inner)
        yield from self._emit(at, self.operators[at].on_batch(number, feed.binding.bind(results)))

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
                if self.prioritised:
                    yield from self._hold(reader, output)
                else:
                    yield from self._read(reader, output)
            else:
                assert isinstance(output, Ends), "rows that other buckets decide about leave by the last node"
                self.ends[reader].append(output)

    def _hold(self, reader: tuple[int, int], results: Results) -> Iterator[Output]:
        """Let results wait for their reader, urgent ones apart; those that have become many go on."""
        if results.priority is None:
            others = results
        else:
            urgent, others = results.split(results.priority > 0)
            # To whom it may concern, none of the others is urgent: an area keeps them apart from those that are.
            others = replace(others, priority=None)
            most = URGENT_BYTES if self.most is None else min(URGENT_BYTES, self.most)
            if len(urgent) and self.urgent[reader].add(urgent) >= most:
                yield from self._go_on(reader, self.urgent)
        if len(others):
            waiting = self.waiting[reader].add(others)
            if self.most is not None and waiting >= self.most:
                yield from self._go_on(reader, self.urgent)
                yield from self._go_on(reader, self.waiting)

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

    @property
    def probed(self) -> list[Mapping[str, int]]:
        """Of each join of many inputs, children first, whom rows have asked since it was built."""
        return [told for operator in self.operators if (told := operator.probed) is not None]

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

    def close(self) -> None:
        """Nobody goes on with it here."""
        for operator in self.operators:
            operator.close()
