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

Rows that come while some input has nobody yet meet nobody, and stay as they are. When the last input's first rows come,
those of groups that only some inputs have are left out before anything is sorted. So whole inputs, as in a batch, are
sorted and swept where they can match, and nowhere else; the areas get their rows when more come.

A row with end `e` goes when the least progress of all *other* inputs has reached `e`. The result's validity is the
intersection. Needs nothing of the order of its inputs beyond progress. What the rows of an area are asked for, and how
that is enumerated, is `probing`.

Ordered emission holds back results, or inputs (see `ordering`). Ends may be unknown when a row comes (see
`state.holders`): a result leaves with a holder of its own, and its end follows, the smallest of the members'.

Not here: outer, semi and anti joins: a cascade of joins of two has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Emit, How
from streamjoin.algebra.interval import Mask, Times
from streamjoin.algebra.policy import ADDED, Hold
from streamjoin.errors import CallError
from streamjoin.kernels import PAIRS_PER_CHUNK, rows_of_common_groups
from streamjoin.operators.area_join import RunningAreaJoin, check_emission
from streamjoin.operators.contract import (
    ALONE,
    Configuration,
    Context,
    Footprint,
    JoinTerms,
    Output,
    OwnerOfPoints,
    Results,
    side_by_side,
)
from streamjoin.operators.joining import described
from streamjoin.operators.lateness import LateRows, with_hope
from streamjoin.operators.probing import Graph, Probing, Tuples
from streamjoin.operators.temporal_join import RESULT_BYTES
from streamjoin.operators.urgency import NewPriority, urgent_first
from streamjoin.state import Batch, Ends, Kept, Matching, PendingEnds, Run, Snapshot, SweepArea
from streamjoin.state.batch import Indices, Priorities
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.links import Link
from streamjoin.state.places import Places
from streamjoin.state.view import View


@dataclass(frozen=True)
class NwayJoin(Configuration):
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
    late: tuple[LateRows, ...] = ()
    validity: bool = True
    unknown_ends: bool = False
    producer: int = 0
    bucket: int = 0
    chunk: int = PAIRS_PER_CHUNK
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        inputs = len(self.schemas)
        if inputs < 2:
            raise CallError(f"a join needs two inputs or more, got {inputs}")
        object.__setattr__(self, "late", self.late or ("drop",) * inputs)
        if len(self.late) != inputs:
            raise CallError(f"late must be one of each input, got {len(self.late)} for {inputs} inputs")
        check_emission(self)
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
    def terms(self) -> JoinTerms:
        """As a join of many."""
        return JoinTerms(self.how, emit=self.emit, hold=self.hold, links=self.links)

    @property
    def probes_many(self) -> bool:
        """It counts whom rows have asked."""
        return True

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((
            "n-way", self.links, self.common, self.proved, self.emit, self.hold, self.late, self.validity,
            self.unknown_ends, described(self.schemas), self.producer,
            *(() if self.new_priority is None else (self.new_priority,)),
        ))  # fmt: skip

    def build(self, context: Context = ALONE) -> RunningNwayJoin:
        """The running operator, empty."""
        return RunningNwayJoin(self, context, len(self.schemas))


@dataclass
class RunningNwayJoin(RunningAreaJoin):
    """One join of n inputs at work."""

    config: NwayJoin

    def __post_init__(self) -> None:
        super().__post_init__()
        config = self.config
        self.graph = config.graph
        self.figures |= {"swept": 0}
        self.chunk = self.context.chunk(config.chunk)
        self.probing = Probing(self.graph, self.figures, self.chunk)
        areas = [
            SweepArea(
                Matching(order.predicate, timed=config.validity, chunk=self.chunk),
                spilling=self.context.spilling(config.areas, number),
            )
            for number, order in enumerate(self.graph.orders())
        ]
        self._keep_areas(areas, PendingEnds(self.context.first_holder(config.producer, config.bucket)))
        self.newcomers: list[list[Batch]] = [[] for _ in areas]

    def restore(self, snapshot: Any) -> None:
        super().restore(snapshot)
        self.probing = Probing(self.graph, self.figures, self.chunk)

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def _join(self, number: int, batch: Batch) -> Iterator[Results]:
        batch, _ = with_hope(batch, self.figures, validity=self.config.validity)
        if not len(batch):
            return
        others = [each for each in range(self.inputs) if each != number]
        if any(not self.newcomers[each] and not self.areas[each].runs for each in others):
            self.newcomers[number].append(batch)  # there is nobody to be met
            return
        if not any(area.runs for area in self.areas) and not self.newcomers[number]:
            reduced = self._of_common_groups(number, batch)
            if reduced is not None:
                self.newcomers[number].append(batch)
                runs = [area.matching.sorted_run(rows) for area, rows in zip(self.areas, reduced, strict=True)]
                yield from self._meet(number, runs[number], [[Kept(run)] if len(run) else [] for run in runs], None)
                return
        self._settle_in()
        mine = self.areas[number].matching.sorted_run(batch)
        views = [area.view() for area in self.areas]
        yield from self._meet(number, mine, [view.runs for view in views], self._alive(number, views))
        self.areas[number].insert(mine)

    def make_room(self) -> None:
        waiting = sum(batch.nbytes for some in self.newcomers for batch in some)
        if self.context.memory is not None and 2 * waiting > self.context.memory:
            self._settle_in()
        super().make_room()
        self.probing.orders.forget(area.view().runs for area in self.areas)

    def _of_common_groups(self, number: int, batch: Batch) -> list[Batch] | None:
        """The first rows of all inputs, only those of groups that all have; None where an input has only one group.

        Of whole inputs, as in a batch, the others need never be sorted.
        """
        first = [
            batch if each == number else Batch.concat(some) if len(some) > 1 else some[0]
            for each, some in enumerate(self.newcomers)
        ]
        if any(rows.group[0] == rows.group[-1] and (rows.group == rows.group[0]).all() for rows in first):
            return None  # most likely there are no keys at all
        common = rows_of_common_groups([rows.group for rows in first])
        return [rows.take(places) for rows, places in zip(first, common, strict=True)]

    def _settle_in(self) -> None:
        """Rows that came when there was nobody to be met go into their areas."""
        for area, newcomers in zip(self.areas, self.newcomers, strict=True):
            for batch in newcomers:
                area.insert(area.matching.sorted_run(batch))
            newcomers.clear()

    def _meet(
        self, number: int, mine: Run, kept: Sequence[Sequence[Kept]], alive: dict[int, Mask] | None
    ) -> Iterator[Results]:
        """A run of one input finds those of all others."""
        places = [Places([Kept(mine)] if each == number else runs) for each, runs in enumerate(kept)]
        for found in self.probing.tuples(number, mine, kept, alive):
            for some in self._portions(number, mine, found, places):
                yield from self._met(some, places)

    def _alive(self, number: int, views: list[View]) -> dict[int, Mask] | None:
        """Of the other areas' rows, which are still there; None where rows that come cannot find those that are not."""
        if "join" not in self.config.late:
            return None
        return {each: view.living() for each, view in enumerate(views) if each != number}

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
        for which, ranked in urgent_first(self._priority_of(members, places)) if len(ts) else ():
            some = [each[which] for each in members]
            priority = self._priority_of(some, places) if ranked else None
            yield from self._made(some, ts[which], te[which], places, priority)

    def _made(
        self, members: list[Indices], ts: Times, te: Times, places: list[Places], priority: Priorities | None
    ) -> Iterator[Results]:
        """Tuples with their payload."""
        payload = side_by_side(
            [each.table(at, lambda rows: rows.payload) for each, at in zip(places, members, strict=True)]
        )
        if not self.config.validity:
            yield Results(payload, ts, ts, priority=priority)
            return
        unknown = [self._unknown(each, at) for each, at in zip(places, members, strict=True)]
        if all(holder is None for holder in unknown):
            yield Results(payload, ts, te, priority=priority)
            return
        holders = [np.full(len(te), NO_HOLDER) if holder is None else holder for holder in unknown]
        holder = self.pending.add(holders, te, self.times.times)
        yield Results(payload, ts, np.where(holder < 0, te, FOREVER), holder=holder, priority=priority)

    def _priority_of(self, members: list[Indices], places: list[Places]) -> Priorities | None:
        own = [each.priority(at) for each, at in zip(places, members, strict=True)]
        return self._priority(own, len(members[0]))

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
        self._settle_in()
        self.areas[number].settle(ends)
        self.pending.settle(number, ends)
        yield from ()

    # -- progress moves ------------------------------------------------------------------------------------------------

    def _settle(self) -> Iterator[Output]:
        yield from self._whose_turn_has_come()
        yield from self._ends_of_results()
        for number, area in enumerate(self.areas):
            passed = self._passed(number)
            self._purge_newcomers(number, passed)
            for _ in area.purge(passed, ended=self.times.of(number) == FOREVER):
                raise AssertionError("rows of an inner join leave no word behind")
        self.probing.orders.forget(area.view().runs for area in self.areas)
        yield from self._release()

    def _purge_newcomers(self, number: int, passed: int) -> None:
        """Those go that have not gone into their area yet: whole inputs never do."""
        staying = []
        for batch in self.newcomers[number]:
            alive = batch.te > passed
            if passed < FOREVER and alive.all():
                staying.append(batch)
                continue
            rest = batch.take(alive) if passed < FOREVER else batch.empty()
            self.areas[number].went_before(len(batch) - len(rest))
            staying += [rest] if len(rest) else []
        self.newcomers[number] = staying

    # -- what is known and kept ----------------------------------------------------------------------------------------

    def _first_to_come(self) -> int:
        return self.times.least()

    def snapshot(self) -> Snapshot:
        self._settle_in()
        return super().snapshot()

    @property
    def probed(self) -> Mapping[str, int]:
        return self.probing.probed

    def kept_rows(self, number: int) -> int:
        return super().kept_rows(number) + sum(map(len, self.newcomers[number]))

    @property
    def footprint(self) -> Footprint:
        waiting = [batch for some in self.newcomers for batch in some]
        own = Footprint(sum(map(len, waiting)), sum(each.nbytes for each in waiting) + self.probing.nbytes)
        return super().footprint + own


def _ts(rows: Batch) -> Any:
    return rows.ts


def _te(rows: Batch) -> Any:
    return rows.te
