"""The join of n inputs: tuples with one row of each, that match while all are valid. Inner.

After the multiway join of the PIPES library (Cammert, Heinz, Kraemer, Seeger: Sortierbasierte Joins ueber
Datenstroemen): one area per input, no intermediate results.

Law: *probe, then insert*. A batch of one input asks the areas of all others, then goes into its own. Whoever arrives
last finds the others there, so each tuple is produced exactly once.

    input 0 --> [area 0]      a batch of input 1 asks areas 0 and 2, in an order that follows what rows have found so
                    x         far, and then goes into area 1
    input 1 --> [area 1]
                    x
    input 2 --> [area 2]

A row with end `e` goes when the least progress of all *other* inputs has reached `e`. The result's validity is the
intersection. Needs nothing of the order of its inputs beyond progress. What the rows of an area are asked for, and how
that is enumerated, is `probing`.

Ordered emission holds back results, or inputs (see `ordering`). Ends may be unknown when a row comes (see
`state.holders`): a result leaves with a holder of its own, and its end follows, the smallest of the members'.

Not here: outer, semi and anti joins (a cascade of joins of two has them), state larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Emit, How, LatePolicy
from streamjoin.algebra.interval import Mask
from streamjoin.algebra.policy import Hold
from streamjoin.errors import CallError
from streamjoin.kernels import PAIRS_PER_CHUNK
from streamjoin.operators.contract import ALONE, Context, Footprint, Output, OwnerOfPoints, Results, side_by_side
from streamjoin.operators.joining import Part, RunningJoin, described, numbered
from streamjoin.operators.lateness import without_late
from streamjoin.operators.ordering import HeldRows
from streamjoin.operators.probing import Graph, Probing, Tuples
from streamjoin.operators.temporal_join import RESULT_BYTES
from streamjoin.state import Batch, Ends, Kept, Matching, PendingEnds, Run, SweepArea
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.links import Link
from streamjoin.state.places import Places


@dataclass(frozen=True)
class NwayJoin:
    """What to join and how. `build()` makes the running operator.

    `links`, `common` and `proved`: what holds between the inputs (see `probing.Graph`). `validity`: rows match while
    all are valid; otherwise by value alone.
    """

    schemas: tuple[pa.Schema, ...]
    links: tuple[Link, ...] = ()
    common: tuple[int, ...] | None = None
    proved: int = 0
    emit: Emit = "eager"
    hold: Hold = "outputs"
    late: tuple[LatePolicy, ...] = ()
    validity: bool = True
    unknown_ends: bool = False
    producer: int = 0
    bucket: int = 0
    chunk: int = PAIRS_PER_CHUNK

    def __post_init__(self) -> None:
        inputs = len(self.schemas)
        if inputs < 2:
            raise CallError(f"a join needs two inputs or more, got {inputs}")
        object.__setattr__(self, "late", self.late or ("drop",) * inputs)
        if len(self.late) != inputs:
            raise CallError(f"late must be one of each input, got {len(self.late)} for {inputs} inputs")
        if self.emit == "ordered" and "join" in self.late:
            raise CallError(
                'late="join" cannot be combined with emit="ordered"',
                hint='a late row\'s results would leave out of order: use emit="eager", or late="output"',
            )
        for link in self.links:
            if not 0 <= link.one < inputs or not 0 <= link.two < inputs or link.one == link.two:
                raise CallError(f"a link between inputs {link.one} and {link.two} of {inputs}")

    @property
    def how(self) -> How:
        """Every result has a row of each input."""
        return "inner"

    @property
    def replicated(self) -> tuple[bool, ...]:
        """No row's fate is decided elsewhere."""
        return (False,) * len(self.schemas)

    @property
    def graph(self) -> Graph:
        """What holds between the inputs."""
        return Graph(len(self.schemas), self.links, self.common, self.proved, self.validity)

    @property
    def areas(self) -> int:
        """One for each input."""
        return len(self.schemas)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((
            "n-way", self.links, self.common, self.proved, self.emit, self.hold, self.late, self.validity,
            self.unknown_ends, described(self.schemas), self.producer,
        ))  # fmt: skip

    def build(self, context: Context = ALONE) -> RunningNwayJoin:
        """The running operator, empty."""
        return RunningNwayJoin(self, context, len(self.schemas))


@dataclass
class RunningNwayJoin(RunningJoin):
    """One join of n inputs at work."""

    config: NwayJoin

    def __post_init__(self) -> None:
        super().__post_init__()
        config = self.config
        self.graph = config.graph
        self.figures |= {"ghosts": 0, "swept": 0}
        self.chunk = self.context.chunk(config.chunk)
        self.probing = Probing(self.graph, self.figures, self.chunk)
        self.areas = [
            SweepArea(
                Matching(order.predicate, timed=config.validity, chunk=self.chunk),
                spilling=self.context.spilling(config.areas),
            )
            for order in self.graph.orders()
        ]
        self.waiting = [HeldRows() for _ in self.areas]
        self.pending = PendingEnds(self.context.first_holder(config.producer, config.bucket))

    def restore(self, snapshot: Any) -> None:
        super().restore(snapshot)
        self.probing = Probing(self.graph, self.figures, self.chunk)

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = batch.ts < self.times.of(number)
        batch = yield from without_late(
            number, batch, late, self.config.late[number], self.times.of(number), self.figures, self.home_test
        )
        if self.config.emit == "ordered" and self.config.hold == "inputs":
            self.waiting[number].add(batch)
        else:
            yield from self._leave(self._join(number, batch))

    def _join(self, number: int, batch: Batch) -> Iterator[Results]:
        if self.config.validity:
            ghosts = batch.ts >= batch.te
            self.figures["ghosts"] += int(ghosts.sum())
            _, batch = batch.split(ghosts)
        if batch.matchable is not None:
            batch, hopeless = batch.split(batch.matchable)
            self.figures["unmatchable"] += len(hopeless)
            batch = batch.without_matchable()
        if not len(batch):
            return
        mine = self.areas[number].matching.sorted_run(batch)
        kept = [area.kept for area in self.areas]
        places = [Places([Kept(mine)] if each == number else runs) for each, runs in enumerate(kept)]
        for found in self.probing.tuples(number, mine, kept, self._alive(number)):
            for some in self._portions(number, mine, found, places):
                yield from self._met(some, places)
        self.areas[number].insert(mine)

    def _alive(self, number: int) -> dict[int, Mask] | None:
        """Of the other areas' rows, which are still there; None where rows that come cannot find those that are not."""
        if "join" not in self.config.late:
            return None
        alive: dict[int, Mask] = {}
        for each, area in enumerate(self.areas):
            if each != number:
                living = [kept.living(area.progress) for kept in area.kept]
                alive[each] = np.concatenate(
                    [
                        np.zeros(0, np.bool_),
                        *(
                            np.ones(len(kept.run), np.bool_) if some is None else some
                            for kept, some in zip(area.kept, living, strict=True)
                        ),
                    ]
                )
        return alive

    def _portions(self, number: int, mine: Run, found: Tuples, places: list[Places]) -> Iterator[Tuples]:
        """As many tuples at a time as make a result of about `RESULT_BYTES`."""
        width = sum(
            kept.run.rows.payload.nbytes / max(1, len(kept.run)) for each in places for kept in each.runs[:1]
        )  # fmt: skip
        most = max(1, int(self.context.result_bytes(RESULT_BYTES) / max(1.0, width)))
        for start in range(0, len(found[number]), most):
            yield {each: member[start : start + most] for each, member in found.items()}

    def _met(self, found: Tuples, places: list[Places]) -> Iterator[Results]:
        """Tuples become results: those that belong to this bucket, and that are valid at all."""
        members = [found[each] for each in range(self.inputs)]
        ts = np.maximum.reduce([each.column(at, _ts) for each, at in zip(places, members, strict=True)])
        te = np.minimum.reduce([each.column(at, _te) for each, at in zip(places, members, strict=True)])
        keep = ts < te if self.config.validity else np.ones(len(ts), np.bool_)
        owner = self.context.owner
        if isinstance(owner, OwnerOfPoints):
            keep &= owner.owns(self._reference(ts, members, places))
        if not keep.all():
            members, ts, te = [at[keep] for at in members], ts[keep], te[keep]
        if not len(ts):
            return
        payload = side_by_side(
            [each.table(at, lambda rows: rows.payload) for each, at in zip(places, members, strict=True)]
        )
        if not self.config.validity:
            yield Results(payload, ts, ts)
            return
        unknown = [self._unknown(each, at) for each, at in zip(places, members, strict=True)]
        if all(holder is None for holder in unknown):
            yield Results(payload, ts, te)
            return
        holders = [np.full(len(te), NO_HOLDER) if holder is None else holder for holder in unknown]
        holder = self.pending.add(holders, te, self.times.times)
        yield Results(payload, ts, np.where(holder < 0, te, FOREVER), holder=holder)

    def _reference(self, ts: Any, members: list[Indices], places: list[Places]) -> Any:
        """The point by which a tuple belongs to a bucket: the largest start, of the values or of the validity."""
        common = self.config.common
        if common is None:
            return ts
        starts = [
            each.column(at, lambda rows, column=column: rows.values[column])  # type: ignore[misc]
            for each, at, column in zip(places, members, common, strict=True)
        ]
        return np.maximum.reduce(starts)

    def _unknown(self, places: Places, at: Indices) -> Indices | None:
        """The holders of those ends that are not known, -1 for the others; None when there are none."""
        holder = places.holder(at)
        return None if holder is None else np.where(places.column(at, _te) == FOREVER, holder, NO_HOLDER)

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        self.areas[number].settle(ends)
        self.pending.settle(number, ends)
        yield from ()

    # -- progress moves ------------------------------------------------------------------------------------------------

    def _settle(self) -> Iterator[Output]:
        holds_inputs = self.config.emit == "ordered" and self.config.hold == "inputs"
        if holds_inputs:
            bound = self.times.least()
            for number, waiting in enumerate(self.waiting):
                released = waiting.release(lambda rows: rows.ts < bound)
                if released is not None:
                    yield from self._leave(self._join(number, released))
        for ends in self.pending.known(self.times.times):
            for held in (self.held, *self.early):
                ends = held.settle(ends)
            if len(ends):
                yield ends
        for number, area in enumerate(self.areas):
            # Rows that wait here have not been met yet.
            passed = self.times.least() if holds_inputs else self.times.of_others(number)
            for _ in area.purge(passed, ended=self.times.of(number) == FOREVER):
                raise AssertionError("rows of an inner join leave no word behind")
        self.probing.orders.forget(area.kept for area in self.areas)
        yield from self._release()

    def _leave(self, outputs: Iterator[Results]) -> Iterator[Output]:
        """Results leave at once, or wait for their turn."""
        for output in outputs:
            if self.config.emit == "ordered":
                self.held.add(output)
            else:
                self.figures["results"] += len(output)
                yield output

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def joined(self) -> int:
        """Rows that end here or earlier have met all whom they can meet."""
        return self.times.least()

    def _first_to_come(self) -> int:
        return self.times.least()

    def _own_parts(self) -> dict[str, Part]:
        return {**numbered("area", self.areas), **numbered("waiting", self.waiting), "pending": self.pending}

    @property
    def footprint(self) -> Footprint:
        kept = super().footprint
        return replace(kept, nbytes=kept.nbytes + self.probing.nbytes)


def _ts(rows: Batch) -> Any:
    return rows.ts


def _te(rows: Batch) -> Any:
    return rows.te
