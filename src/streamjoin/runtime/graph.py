"""A graph of operators in one task: a query over lifetimes, micro-batch by micro-batch.

Nodes are in topological order. In each micro-batch a node gets all that its children have to say, and only then works:
first rows, then ends, then progress. So a row is never behind the progress that its reader has seen, and an end comes
before the progress that reaches it.

    streams --> windows --> selections, projections, unions --> joins, aggregations, ... --> results with known ends

Whatever depends on one row alone (selection, projection) is a function from results to results; it lets holders, ends
and progress through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.operators import Operator, Output, Results, Waiting
from streamjoin.state import Batch, Ends, Snapshot
from streamjoin.state.batch import with_columns

PerRow = Callable[[Results], Results]
Reader = Callable[[Results], Batch]


@dataclass(frozen=True)
class SourceNode:
    """Rows of a stream, with the ends that their window gives them; row windows follow as operators."""

    source: str
    read: Callable[[pa.Table], Batch]


@dataclass(frozen=True)
class PerRowNode:
    """What depends on one row alone."""

    child: int
    apply: PerRow


@dataclass(frozen=True)
class UnionNode:
    """The rows of all children."""

    parts: tuple[int, ...]
    apply: tuple[PerRow, ...]


@dataclass(frozen=True)
class OperatorNode:
    """An operator with state; `read` makes batches of the children's results."""

    parts: tuple[int, ...]
    build: Callable[[], Operator]
    read: tuple[Reader, ...]
    name: PerRow


GraphNode = SourceNode | PerRowNode | UnionNode | OperatorNode


@dataclass
class Said:
    """What a node has said in a micro-batch: results, ends, and how far it is."""

    results: list[Results] = field(default_factory=list)
    ends: list[Ends] = field(default_factory=list)
    progress: int = NEVER


class Graph:
    """A query at work. The last node is its result."""

    def __init__(self, nodes: Sequence[GraphNode]) -> None:
        self.nodes = tuple(nodes)
        self.operators = {at: node.build() for at, node in enumerate(nodes) if isinstance(node, OperatorNode)}
        self.progress: dict[str, int] = {}
        self.waiting = Waiting()
        self.late: dict[str, list[pa.Table]] = {}

    def micro_batch(self, rows: Mapping[str, pa.Table], progress: Mapping[str, int]) -> list[pa.Table]:
        """Rows arrive, then each stream's progress; what leaves, with its validity."""
        said = self.changes(rows, progress)
        out: list[pa.Table] = []
        # All that appears first: in one micro-batch something may be said of an element before the element itself.
        for results in sorted(said.results, key=lambda results: results.sign is not None and int(results.sign[0]) < 0):
            take = self.waiting.take if results.sign is None else self.waiting.take_changes
            out += map(with_validity, take(results))
        for ends in said.ends:
            out += map(with_validity, self.waiting.settle(ends))
        return out

    def end(self) -> list[pa.Table]:
        """All streams have ended."""
        sources = {node.source for node in self.nodes if isinstance(node, SourceNode)}
        out = self.micro_batch({}, dict.fromkeys(sources, FOREVER))
        return out + [with_validity(results) for results in self.waiting.finish()]

    def changes(self, rows: Mapping[str, pa.Table], progress: Mapping[str, int]) -> Said:
        """The same as the last node says it: with holders and ends that follow, or plus and minus tuples."""
        before = dict(self.progress)
        said: list[Said] = []
        for source, time in progress.items():
            self.progress[source] = max(time, self.progress.get(source, NEVER))
        for at, node in enumerate(self.nodes):
            said.append(self._step(at, node, said, rows, before))
        return said[-1]

    def _step(
        self, at: int, node: GraphNode, said: list[Said], rows: Mapping[str, pa.Table], before: Mapping[str, int]
    ) -> Said:
        if isinstance(node, SourceNode):
            news = Said(progress=self.progress.get(node.source, NEVER))
            if node.source in rows:
                first = next(i for i, other in enumerate(self.nodes) if getattr(other, "source", None) == node.source)
                reached = before.get(node.source, NEVER)
                news.results += self._on_time(node, rows[node.source], reached, told=at == first)
            return news
        if isinstance(node, PerRowNode):
            child = said[node.child]
            results = [node.apply(results) for results in child.results]
            return Said([each for each in results if len(each)], child.ends, child.progress)
        if isinstance(node, UnionNode):
            parts = [said[part] for part in node.parts]
            named = zip(node.apply, parts, strict=True)
            return Said(
                [apply(results) for apply, part in named for results in part.results],
                [ends for part in parts for ends in part.ends],
                min(part.progress for part in parts),
            )
        return self._operate(node, self.operators[at], [said[part] for part in node.parts])

    def _on_time(self, node: SourceNode, table: pa.Table, reached: int, *, told: bool) -> Iterator[Results]:
        batch = node.read(table)
        late = batch.ts < reached
        if late.any():
            if told:  # a stream that is read twice has its late rows once
                self.late.setdefault(node.source, []).append(table.filter(pa.array(late)))
            batch = batch.take(~late)
        if len(batch):
            yield Results(batch.payload, batch.ts, batch.te, holder=batch.holder)

    def _operate(self, node: OperatorNode, operator: Operator, parts: list[Said]) -> Said:
        news = Said()
        for number, part in enumerate(parts):
            for results in part.results:
                if len(results):
                    _note(news, node, operator.on_batch(number, node.read[number](results)))
        for number, part in enumerate(parts):
            for ends in part.ends:
                _note(news, node, operator.on_ends(number, ends))
        for number, part in enumerate(parts):
            _note(news, node, operator.on_progress(number, part.progress))
        news.progress = operator.progress
        return news

    @property
    def state_rows(self) -> int:
        """Rows kept, of inputs and of results."""
        return sum(operator.state_rows for operator in self.operators.values()) + self.waiting.footprint.rows

    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""
        manifest: dict[str, Any] = {"progress": dict(self.progress), "operators": {}}
        blobs: dict[str, bytes] = {}
        parts = {str(at): operator.snapshot() for at, operator in self.operators.items()}
        parts["waiting"] = self.waiting.snapshot("waiting")
        for name, part in parts.items():
            manifest["operators"][name] = part.manifest
            blobs |= {f"{name}:{blob}": content for blob, content in part.blobs.items()}
        return Snapshot(manifest, blobs)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of the same graph."""
        self.progress = dict(snapshot.manifest["progress"])
        for name, manifest in snapshot.manifest["operators"].items():
            prefix = name + ":"
            blobs = {k[len(prefix) :]: v for k, v in snapshot.blobs.items() if k.startswith(prefix)}
            part = self.waiting if name == "waiting" else self.operators[int(name)]
            part.restore(Snapshot(manifest, blobs))


def _note(news: Said, node: OperatorNode, outputs: Iterator[Output]) -> None:
    for output in outputs:
        if isinstance(output, Results):
            if len(output):
                news.results.append(node.name(output))
        elif isinstance(output, Ends):
            news.ends.append(output)
        else:
            raise AssertionError("rows of a graph are late at its sources only")


def with_validity(results: Results) -> pa.Table:
    """Results as one table, with columns `valid_from` and `valid_to`."""
    return with_columns(results.payload, valid_from=results.ts, valid_to=results.te)


def as_batch(results: Results) -> Batch:
    """Results as rows of an operator that looks at nothing but payload and validity."""
    group = np.zeros(len(results), np.int64)
    return Batch(results.payload, results.ts, results.te, group, holder=results.holder, sign=results.sign)
