"""The join by plus and minus tuples: pairs appear when the second member does, and disappear with the first that goes.

Law: changes are taken in the order of time, those before the least progress of both inputs; so who is still there when
somebody appears is known. A pair is said when it appears, and again when it disappears: for that, whoever goes looks
for its partners a second time.

    appears      new rows of each input look for those who are there, as in the direct join
    disappears   rows that go look for those who are still there; of two that go, the one that goes first says it

Outer, semi and anti joins follow how many partners a row has at each instant, as EXCEPT and INTERSECT do: padded where
it is there and has none, kept (semi) where it has one.

The rival of the direct join, over the same areas and kernels. Pairs are told apart by a hash of their members' numbers,
of 63 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, How, Progress
from streamjoin.algebra.interval import Times
from streamjoin.kernels import OPERATORS, combine_hashes
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, JoinTerms, Output, side_by_side
from streamjoin.operators.joining import described, padded_payload
from streamjoin.operators.lifetimes import plus_and_minus
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.operators.temporal_join import TRACKED
from streamjoin.state import Batch, Catalogue, Ends, Kept, Matching, OpenPieces, Run, SweepArea, TimeQueue
from streamjoin.state.batch import Indices, with_columns

_POSITIVE = np.int64(0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class NegativeJoin(Configuration):
    """A join of two streams of plus and minus tuples. `build()` makes the running operator."""

    matching: Matching
    schemas: tuple[pa.Schema, pa.Schema]
    how: How = "inner"
    producer: int = 0
    bucket: int = 0

    @property
    def areas(self) -> int:
        """One for each input."""
        return 2

    @property
    def terms(self) -> JoinTerms:
        """As a join that nothing but snapshots are asked of."""
        return JoinTerms(self.how, tests=self.matching.tests)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        what = (self.matching.first, self.matching.tests, self.how, described(self.schemas))
        return repr(("negative join", *what, self.producer))

    def build(self, context: Context = ALONE) -> RunningNegativeJoin:
        """The running operator, empty."""
        return RunningNegativeJoin(self, context)


@dataclass
class Partners:
    """How many partners each row of one input has, and the pieces of its validity in which it has none (or some)."""

    schema: pa.Schema
    operator: int
    next_id: int

    def __post_init__(self) -> None:
        self.rows = Catalogue(pa.schema([pa.field("__sj_id", pa.int64()), *self.schema]))
        self.pieces = OpenPieces(self.operator, self.next_id)
        self.events: list[tuple[Indices, Times, int, int]] = []

    def note(self, payload: pa.Table, ids: Indices, time: Times, number: int, sign: int) -> None:
        """The rows themselves (0) or partners of theirs (1) have come (1) or gone (-1)."""
        if len(ids):
            columns = [pa.array(ids), *payload.columns]
            codes = self.rows.codes(pa.table(columns, schema=self.rows.schema), len(ids))
            self.events.append((codes, time, number, sign))

    def sweep(self) -> Iterator[tuple[pa.Table, Times, Indices, int]]:
        """What appears and disappears: payload, time, id and sign."""
        if not self.events:
            return
        code = np.concatenate([codes for codes, *_ in self.events])
        time = np.concatenate([times for _, times, *_ in self.events])
        number = np.concatenate([np.full(len(codes), number) for codes, _, number, _ in self.events])
        sign = np.concatenate([np.full(len(codes), sign) for codes, _, _, sign in self.events])
        order = np.lexsort((time, code))
        opened, closed = self.pieces.sweep((code[order], time[order], number[order], sign[order]))
        names = self.schema.names
        yield self.rows.take(opened.code).select(names), opened.start, opened.id, 1
        yield self.rows.take(closed.code).select(names), closed.end, closed.id, -1
        gone = [codes for codes, _, number, sign in self.events if number == 0 and sign < 0]
        self.rows.release(np.concatenate([np.empty(0, np.int64), *gone]))
        self.events = []


@dataclass
class RunningNegativeJoin(OperatorOfParts):
    """A join of plus and minus tuples at work."""

    config: NegativeJoin
    context: Context = ALONE
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        self.times = Progress(self.inputs)
        matching = self.context.owned(config.matching)
        self.areas = [
            SweepArea(matching, spilling=self.context.spilling(config.areas, at)) for at in range(self.inputs)
        ]
        self.appearing, self.going = [TimeQueue() for _ in self.areas], [TimeQueue() for _ in self.areas]
        kind = OPERATORS.index("intersect" if config.how == "semi" else "except")
        first = self.context.first_holder(config.producer, config.bucket)
        # Numbers of padded rows: each input has half of what this operator may give out.
        self.partners = [
            Partners(schema, kind, first + number * (1 << 39)) if tracked else None
            for number, (schema, tracked) in enumerate(zip(config.schemas, TRACKED[config.how], strict=True))
        ]
        self.figures = {"rows_in": 0, "results": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        assert batch.sign is not None and batch.holder is not None
        self.figures["rows_in"] += len(batch)
        minus = batch.sign < 0
        matchable = np.ones(len(batch), np.bool_) if batch.matchable is None else batch.matchable
        plus = replace(batch, sign=None, te=np.full(len(batch), FOREVER), matchable=matchable).take(~minus)
        self.appearing[number].add(plus.ts, plus.to_table())
        leaving = batch.take(minus).payload if self.partners[number] is not None else pa.table({})
        self.going[number].add(batch.ts[minus], with_columns(leaving, __sj_id=batch.holder[minus]))
        yield from ()

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        least = self.times.least()
        new = [self._appear(each, least) for each in range(self.inputs)]
        gone = [self._go(each, kept, least) for each, kept in enumerate(new)]
        yield from self._pairs_appear(new)
        yield from self._pairs_go(gone)
        for each, partners in enumerate(self.partners):
            for payload, times, ids, sign in partners.sweep() if partners is not None else ():
                yield plus_and_minus(self._alone(each, payload, len(ids)), times, ids, sign)
        for area in self.areas:
            for _ in area.purge(least - 1 if least < FOREVER else FOREVER):
                raise AssertionError("these areas are not tracked")

    def _appear(self, number: int, before: int) -> Kept | None:
        """Rows that have come before `before`, as a run that is not among the others yet."""
        due = self.appearing[number].take(before)
        if due is None:
            return None
        rows = Batch.from_table(due[1])
        partners = self.partners[number]
        if partners is not None and rows.holder is not None:
            partners.note(rows.payload, rows.holder, rows.ts, 0, 1)
        if rows.matchable is not None:
            rows = rows.take(rows.matchable).without_matchable()
        return self.areas[number].newcomer(self.config.matching.sorted_run(rows)) if len(rows) else None

    def _go(self, number: int, new: Kept | None, before: int) -> Ends:
        """Rows that go before `before`: from now on it is known when."""
        due = self.going[number].take(before)
        if due is None:
            return Ends.none()
        ends = Ends(due[1]["__sj_id"].to_numpy(), due[0])
        partners = self.partners[number]
        if partners is not None:
            partners.note(due[1].drop_columns(["__sj_id"]), ends.holder, ends.te, 0, -1)
        self.areas[number].settle(ends)
        if new is not None:
            new.settle(ends)
        return ends

    def _pairs_appear(self, new: list[Kept | None]) -> Iterator[Output]:
        """Probe, then insert: the new ones of input 1 find those of input 0 among the others."""
        for number, kept in enumerate(new):
            if kept is not None:
                yield from self._say(kept.run, number, 1)
                self.areas[number].insert(kept)

    def _pairs_go(self, gone: list[Ends]) -> Iterator[Output]:
        for number, ends in enumerate(gone):
            for going in self.areas[number].holding(ends):
                yield from self._say(going, number, -1)

    def _say(self, run: Run, side: int, sign: int) -> Iterator[Output]:
        """Pairs of these rows of input `side` appear, or disappear with them."""
        for meeting in self.areas[1 - side].probe(run, side):
            rows, others, mine, theirs = run.rows, meeting.kept.run.rows, meeting.mine, meeting.theirs
            time = np.maximum(rows.ts[mine], others.ts[theirs])
            if sign < 0:
                # Who goes first says it; at the same time input 0.
                time, end = rows.te[mine], others.te[theirs]
                first = time <= end if side == 0 else time < end
                mine, theirs, time = mine[first], theirs[first], time[first]
            if not len(mine):
                continue
            pair = rows.take(mine), others.take(theirs)
            members = pair if side == 0 else pair[::-1]
            for number, partners in enumerate(self.partners):
                if partners is not None:
                    holder = members[number].holder
                    assert holder is not None
                    partners.note(members[number].payload, holder, time, 1, sign)
            if self.config.how in ("semi", "anti"):
                continue
            assert members[0].holder is not None and members[1].holder is not None
            both = combine_hashes(members[0].holder, members[1].holder) & _POSITIVE
            self.figures["results"] += len(mine) * (sign > 0)
            yield plus_and_minus(side_by_side([member.payload for member in members]), time, both, sign)

    def _alone(self, number: int, payload: pa.Table, rows: int) -> pa.Table:
        if self.config.how in ("semi", "anti"):
            return side_by_side([payload])
        return padded_payload(self.config.schemas, number, payload, rows)

    @property
    def footprint(self) -> Footprint:
        queues = (*self.appearing, *self.going)
        rows = sum(area.rows for area in self.areas) + sum(len(queue) for queue in queues)
        nbytes = sum(area.nbytes for area in self.areas) + sum(queue.nbytes for queue in queues)
        spilled = sum(area.spilled_nbytes for area in self.areas)
        counted = ((area.runs, area.spills, area.merges, *area.pages) for area in self.areas)
        runs, *done = (sum(each) for each in zip(*counted, strict=True))
        return Footprint(rows, nbytes, runs, 0, spilled, *done)

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for number in range(self.inputs):
            parts |= {f"area{number}": self.areas[number], f"appearing{number}": self.appearing[number]}
            parts[f"going{number}"] = self.going[number]
            partners = self.partners[number]
            if partners is not None:
                parts |= {f"rows{number}": partners.rows, f"pieces{number}": partners.pieces}
        return parts
