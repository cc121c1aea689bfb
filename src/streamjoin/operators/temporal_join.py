"""The temporal join: pairs of rows that match by value while both are valid.

After the temporal join of the PIPES library (Cammert, Heinz, Kraemer, Seeger: Sortierbasierte Joins ueber
Datenstroemen), over batches and value-sorted runs instead of single elements and hash tables.

Law: *probe, then insert*. Whoever arrives later finds whoever is there, so each pair is produced exactly once.

    input 0 --> [area 0]      a batch of input 0 probes area 1, then goes into area 0
                    x
    input 1 --> [area 1]      a batch of input 1 probes area 0, then goes into area 1

Progress of an input purges the areas of the *other* inputs: a row with end `e` goes when no on-time row that starts
before `e` can come on any other input. The result's validity is the intersection. Needs nothing of the order of its
inputs beyond progress. Cost: sorting of each batch, one kernel call per run of the other side, results; O(log n) copies
per row.

Outer, semi and anti joins
  by row        a row that met nobody in its whole life leaves once, padded (outer) or bare (anti), with its own
                validity, when it is purged; a row leaves once at its first partner (semi)
  by snapshot   when a row is purged: the maximal parts of its validity with a partner (semi), with none (anti, padding)

Ordered emission holds back results, or inputs (see `ordering`), and in both cases what a still undecided row could
precede.

Event joins (`validity=False`) have no validity: `ts` is the row's time, `te` the instant from which it can be
forgotten.

Where rows are replicated over buckets no bucket alone knows that a row met nobody: it says what it knows (claimants
and witnesses), and `verdict` decides.

Ends may be unknown when a row comes (see `state.holders`). Such a row is joined and kept like one that never ends; a
result leaves with a holder of its own, and its end follows when it is known: the smaller of the members' ends.

Urgent rows (see `urgency`): pairs with one leave at once, also with ordered emission; so outputs are held, not inputs.

Not here: more than two inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Emit, How, Outer
from streamjoin.algebra.interval import Mask, Times
from streamjoin.algebra.policy import ADDED, Hold
from streamjoin.errors import CallError
from streamjoin.kernels import parts_of_validity
from streamjoin.operators.area_join import RunningAreaJoin, check_emission
from streamjoin.operators.contract import (
    ALONE,
    CLAIMANT,
    Configuration,
    Context,
    JoinTerms,
    Output,
    Results,
    Rows,
    side_by_side,
)
from streamjoin.operators.joining import described, padded, witness
from streamjoin.operators.lateness import LateRows, with_hope
from streamjoin.operators.urgency import NewPriority, lowered, taken, urgent_first
from streamjoin.state import Batch, Decided, Ends, Kept, Matching, PendingEnds, SweepArea
from streamjoin.state.batch import Indices, Priorities
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.view import View

# Arrow's text and bytes end at two gigabytes in one column.
RESULT_BYTES: Final = 256 << 20
# Which inputs' rows must know whether they had a partner.
TRACKED: Final[dict[How, tuple[bool, bool]]] = {
    "inner": (False, False),
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
    "semi": (True, False),
    "anti": (True, False),
}


@dataclass(frozen=True)
class TemporalJoin(Configuration):
    """What to join and how. `build()` makes the running operator.

    `replicated` says of each input whether its rows also go to other buckets, so that its fate is decided elsewhere.
    """

    matching: Matching
    schemas: tuple[pa.Schema, pa.Schema]
    how: How = "inner"
    outer: Outer = "row"
    emit: Emit = "eager"
    hold: Hold = "outputs"
    late: tuple[LateRows, LateRows] = ("drop", "drop")
    validity: bool = True
    replicated: tuple[bool, bool] = (False, False)
    unknown_ends: bool = False
    producer: int = 0
    bucket: int = 0
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        check_emission(self)
        if self.outer == "snapshot" and not self.validity:
            raise CallError(
                'outer="snapshot" needs validity, and an event join has none',
                hint='use outer="row", or a window',
            )

    @property
    def tracked(self) -> tuple[bool, bool]:
        """Which inputs' rows must know whether they had a partner."""
        return TRACKED[self.how]

    @property
    def areas(self) -> int:
        """One for each input."""
        return 2

    @property
    def terms(self) -> JoinTerms:
        """As a join of two that is asked for all pairs."""
        return JoinTerms(self.how, self.outer, self.emit, self.hold, tests=self.matching.tests)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((
            self.matching.first, self.matching.tests, self.matching.timed, self.how, self.outer, self.emit, self.hold,
            self.late, self.validity, self.replicated, self.unknown_ends, described(self.schemas), self.producer,
            *(() if self.new_priority is None else (self.new_priority,)),
        ))  # fmt: skip

    def build(self, context: Context = ALONE) -> RunningTemporalJoin:
        """The running operator, empty."""
        return RunningTemporalJoin(self, context)


@dataclass
class RunningTemporalJoin(RunningAreaJoin):
    """One temporal join at work."""

    config: TemporalJoin

    def __post_init__(self) -> None:
        super().__post_init__()
        config = self.config
        by_parts = config.outer == "snapshot" or config.unknown_ends
        matching = self.context.owned(config.matching)
        areas = [
            SweepArea(matching, tracked, tracked and by_parts, spilling=self.context.spilling(config.areas, number))
            for number, tracked in enumerate(config.tracked)
        ]
        self._keep_areas(areas, PendingEnds(self.context.first_holder(config.producer, config.bucket)))

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def _join(self, number: int, batch: Batch) -> Iterator[Output]:
        batch, hopeless = with_hope(batch, self.figures, validity=self.config.validity)
        if len(hopeless) and self.config.tracked[number]:
            yield from self._hopeless(number, hopeless)
        if not len(batch):
            return
        theirs = self.areas[1 - number].view()
        # A few of many may meet urgent ones, before the others are even sorted; not of tracked rows, which are marked.
        few = None if batch.priority is not None or self.config.tracked[number] else theirs.may_meet_urgent(batch)
        if few is not None and len(few):
            yield from self._probe(number, self._newcomer(number, few), theirs, urgent=True)
        mine = self._newcomer(number, batch)
        yield from self._probe(number, mine, theirs, urgent=None if few is None else False)
        self.areas[number].insert(mine)

    def _newcomer(self, number: int, batch: Batch) -> Kept:
        return self.areas[number].newcomer(self.config.matching.sorted_run(batch))

    def _probe(self, number: int, mine: Kept, theirs: View, *, urgent: bool | None) -> Iterator[Output]:
        """Rows of an input find others, urgent ones first; or only some of them (see `View.probe`)."""
        for meeting in theirs.probe(mine.run, number, living="join" in self.config.late, urgent=urgent):
            pair, indices = (mine, meeting.kept), (meeting.mine, meeting.theirs)
            if number == 1:
                pair, indices = pair[::-1], indices[::-1]
            i, j = indices
            for wave, ranked in urgent_first(self._priority_of(pair, i, j)):
                for some in in_portions(pair, (i[wave], j[wave]), self.context.result_bytes(RESULT_BYTES)):
                    yield from self._met(pair, some, ranked=ranked)

    def _priority_of(self, pair: tuple[Kept, Kept], i: Indices, j: Indices) -> Priorities | None:
        return self._priority([taken(pair[0].run.rows, i), taken(pair[1].run.rows, j)], len(i))

    def _hopeless(self, number: int, rows: Batch) -> Iterator[Output]:
        """Rows of a tracked input that can meet nobody, anywhere: no need to ask other buckets, or to wait for them."""
        rows = rows if rows.home is None else rows.take(rows.home)
        for alone in self._fate(number, Decided(rows, np.zeros(len(rows), np.bool_)), final=True):
            assert isinstance(alone, Results)
            if rows.holder is not None:
                mine = np.where(rows.te == FOREVER, rows.holder, NO_HOLDER)
                nobody = np.full(len(rows), NO_HOLDER)
                members = [mine if each == number else nobody for each in range(self.inputs)]
                alone = replace(alone, holder=self.pending.add(members, alone.te, self.times.times))
            alone = alone if self.config.emit == "ordered" else self._not_early(number, alone)
            if len(alone):
                yield alone

    def _met(
        self, pair: tuple[Kept, Kept], indices: tuple[Indices, Indices], *, ranked: bool = False
    ) -> Iterator[Output]:
        """Matching pairs: note who has met someone, and make results."""
        one, two = (kept.run.rows for kept in pair)
        i, j = indices
        ts, te = np.maximum(one.ts[i], two.ts[j]), np.minimum(one.te[i], two.te[j])
        if self.config.validity and not (real := ts < te).all():  # one has learned that it ends where it begins
            i, j, ts, te = i[real], j[real], ts[real], te[real]
            indices = i, j
        unknown = (_unknown(one, i), _unknown(two, j))
        for number, (kept, rows) in enumerate(zip(pair, indices, strict=True)):
            if kept.meetings is not None:
                yield from self._mark(number, kept, rows, (ts, te, unknown[1 - number]))
        if self.config.how not in ("semi", "anti"):
            if not self.config.validity:
                te = ts
            payload = side_by_side([one.payload.take(pa.array(i)), two.payload.take(pa.array(j))])
            priority = self._priority_of(pair, i, j) if ranked else None
            if unknown[0] is None and unknown[1] is None:
                yield Results(payload, ts, te, priority=priority)
            else:
                members = [np.full(len(te), NO_HOLDER) if holder is None else holder for holder in unknown]
                holder = self.pending.add(members, te, self.times.times)
                yield Results(payload, ts, np.where(holder < 0, te, FOREVER), holder=holder, priority=priority)

    def _mark(
        self, number: int, kept: Kept, rows: Indices, parts: tuple[Times, Times, Indices | None]
    ) -> Iterator[Output]:
        """Rows of a tracked input have met partners, from when to when; the last are holders of the partners' ends."""
        assert kept.meetings is not None
        if kept.meetings.covered:
            kept.meetings.cover(rows, *parts)
        if self.config.outer == "row" and self.config.unknown_ends:
            return  # a piece may turn out to be empty: whether they have met is known when they leave
        newly = kept.meetings.meet(rows)
        if not len(newly) or self.config.outer == "snapshot":
            return
        met = kept.run.rows.take(newly)
        if self.config.replicated[number]:
            assert met.home is not None
            met, abroad = met.split(met.home)
            if len(abroad):
                yield Rows("witness", number, witness(abroad))
        if self.config.how == "semi" and len(met):
            yield from self._alone(number, met.payload, met.ts, met.te, met.priority)

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        self.areas[number].settle(ends)
        for other in self.areas:
            if other is not self.areas[number]:
                other.settle_partners(ends)
        self.pending.settle(number, ends)
        yield from ()

    # -- progress moves ------------------------------------------------------------------------------------------------

    def _settle(self) -> Iterator[Output]:
        yield from self._whose_turn_has_come()
        yield from self._ends_of_results()
        for number, area in enumerate(self.areas):
            for decided in area.purge(self._passed(number), ended=self.times.of(number) == FOREVER):
                yield from self._leave(self._fate(number, decided))
        yield from self._release()

    def _fate(self, number: int, decided: Decided, *, final: bool = False) -> Iterator[Output]:
        """Rows of a tracked input leave: what becomes of them."""
        rows, matched = decided.rows, self._matched(decided)
        if self.config.replicated[number] and not final:
            yield from self._testify(number, decided, matched)
        elif self.config.outer == "snapshot":
            covered = self.config.how == "semi"
            row, ts, te = parts_of_validity(rows.ts, rows.te, decided.pieces, covered=covered)
            yield from self._alone(number, rows.payload.take(pa.array(row)), ts, te, taken(rows, row))
        elif self.config.how != "semi" or self.config.unknown_ends:
            leaving = rows.take(matched if self.config.how == "semi" else ~matched)
            yield from self._alone(number, leaving.payload, leaving.ts, leaving.te, leaving.priority)

    def _matched(self, decided: Decided) -> Mask:
        """Which rows have met someone: where ends came later, those of which a piece has turned out to be real."""
        if self.config.outer == "snapshot" or not self.config.unknown_ends:
            return decided.matched
        matched = np.zeros(len(decided.rows), np.bool_)
        matched[decided.pieces[0]] = True
        return matched

    def _testify(self, number: int, decided: Decided, matched: Mask) -> Iterator[Output]:
        """Rows that also live in other buckets: say what this bucket knows."""
        rows = decided.rows
        assert rows.home is not None
        if self.config.outer == "snapshot":
            # Every replica reports the parts it saw; the one at home also brings the row.
            row, start, end = decided.pieces
            seen = rows.take(row)
            if len(seen):
                yield Rows("witness", number, witness(seen, start, end))
            claimants: Mask = rows.home
        else:
            claimants = rows.home & ~matched
            if self.config.unknown_ends:  # nothing has been said of them before
                abroad = rows.take(matched & ~rows.home)
                if len(abroad):
                    yield Rows("witness", number, witness(abroad))
                at_home = rows.take(matched & rows.home)
                if self.config.how == "semi" and len(at_home):
                    yield from self._alone(number, at_home.payload, at_home.ts, at_home.te, at_home.priority)
        if claimants.any():
            yield Rows(CLAIMANT, number, rows.take(claimants))

    def _alone(
        self, number: int, payload: pa.Table, ts: Times, te: Times, own: Priorities | None = None
    ) -> Iterator[Results]:
        """Rows, or parts of rows, that leave without a partner: padded in outer joins, bare in semi and anti joins.
        Parts follow snapshots, and are not urgent.
        """
        if not len(ts):
            return
        if self.config.outer == "snapshot":
            priority = lowered(np.zeros(len(ts), np.int64), own)
        else:
            priority = self._priority_alone(number, own, len(ts))
        if self.config.how in ("semi", "anti"):
            yield Results(side_by_side([payload]), ts, te, priority=priority)
            return
        yield padded(self.config.schemas, number, payload, ts, te, priority)

    # -- what is known and kept ----------------------------------------------------------------------------------------

    def _first_to_come(self) -> int:
        bound = self.times.least()
        unmatched_only = self.config.outer == "row"
        for area in self.areas:
            undecided = area.first_undecided(unmatched_only=unmatched_only) if area.tracked else None
            bound = bound if undecided is None else min(bound, undecided)
        return bound


def _unknown(rows: Batch, which: Indices) -> Indices | None:
    """The holders of those ends that are not known, -1 for the others; None when there are none."""
    if rows.holder is None:
        return None
    return np.where(rows.te[which] == FOREVER, rows.holder[which], NO_HOLDER)


def in_portions(
    pair: tuple[Kept, Kept], indices: tuple[Indices, Indices], result_bytes: int
) -> Iterator[tuple[Indices, Indices]]:
    """The pairs, as many at a time as make a result of about so many bytes: one row may have millions of partners."""
    i, j = indices
    rows = [kept.run.rows for kept in pair]
    width = sum(each.payload.nbytes / max(1, len(each)) for each in rows)
    most = max(1, int(result_bytes / max(1.0, width)))
    for start in range(0, len(i), most):
        yield i[start : start + most], j[start : start + most]
