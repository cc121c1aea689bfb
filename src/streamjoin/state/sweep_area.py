"""A sweep area: what one input keeps for the others to find (after the PIPES library's sweep areas).

Three operations: `insert` a batch as a run, `probe` with a run of another input, `purge` by progress. And three laws:

1. A row with end `e` is removed when `e <= P`, P the progress of the inputs that could still meet it. Removed rows are
   never found again, wherever they physically lie until the next merge.
2. Runs are immutable. What changes lies beside them (`kept`): which rows have met a partner (`meetings`), and how far
   expiry has come.
3. Runs are merged and forgotten by a policy of their own (`merging`); after progress has passed everything, nothing is
   kept. Those that do not fit into memory lie in a store (`spilling`), and are looked at page by page.

Ends may be unknown when a row comes (see `holders`): such a row is kept, and found, as one that never ends. `settle`
puts ends in their place. What is stored of a row stays as it is (`stored_area`), so ends are stored beside it.

Rows that must know their fate (outer, semi, anti joins) are *tracked*: `purge` hands out the removed ones together with
whether they had a partner. Cost of a purge: O(log n) per run when nothing expires, O(expired) when rows are tracked.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from streamjoin.algebra.interval import FOREVER, NEVER
from streamjoin.state.batch import Indices
from streamjoin.state.holders import Ends
from streamjoin.state.kept import Kept
from streamjoin.state.layout import LateEnds
from streamjoin.state.matching import Matching
from streamjoin.state.meetings import Decided, Meetings
from streamjoin.state.merging import tidied
from streamjoin.state.run import Run
from streamjoin.state.snapshot import Snapshot
from streamjoin.state.spilled_run import SpilledRun
from streamjoin.state.spilling import Spilling
from streamjoin.state.stored_area import area_snapshot, restore_area
from streamjoin.state.view import Meeting, View


@dataclass
class SweepArea:
    """The rows of one input that can still find a partner.

    `tracked`: rows are told apart by whether they met a partner. `covered`: also which parts of their validity did.
    """

    matching: Matching
    tracked: bool = False
    covered: bool = False
    progress: int = NEVER
    removed: int = 0  # rows that have physically gone
    kept: list[Kept] = field(default_factory=list)
    heard: int = 0  # how many times ends have become known
    late_ends: list[LateEnds] = field(default_factory=list)
    spilling: Spilling | None = None  # where runs go that do not fit into memory
    merged: int = 0  # runs that were made of others in memory

    @property
    def rows(self) -> int:
        """Rows kept, the expired ones that still lie in runs included."""
        return sum(len(kept.run) for kept in self.kept)

    @property
    def runs(self) -> int:
        """In how many runs they lie."""
        return len(self.kept)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(kept.nbytes for kept in self.kept)

    @property
    def spilled_nbytes(self) -> int:
        """Those of them that are not in memory."""
        return sum(kept.run.stored.nbytes for kept in self.kept if isinstance(kept.run, SpilledRun))

    @property
    def spills(self) -> int:
        """How many times runs have left memory since the area was built."""
        return 0 if self.spilling is None else self.spilling.spills

    @property
    def merges(self) -> int:
        """How many runs have been made of others since then, in memory and in the store."""
        return self.merged + (0 if self.spilling is None else self.spilling.merges)

    @property
    def pages(self) -> tuple[int, int]:
        """How many pages of files have been read and written since then."""
        figures = None if self.spilling is None else self.spilling.store.figures
        return (0, 0) if figures is None else (figures.pages_read, figures.pages_written)

    @property
    def holder_nbytes(self) -> int:
        """Those of holders, and of what finds rows by them."""
        held = [kept for kept in self.kept if kept.run.rows.holder is not None]
        return sum(len(kept.run) * 8 + kept.index.nbytes for kept in held)

    # -- rows come, and are looked for ---------------------------------------------------------------------------------

    def newcomer(self, run: Run) -> Kept:
        """A run that is not here yet, with what will be noted beside it: it can meet others before it is inserted."""
        noted = Meetings.nobody(len(run), covered=self.covered) if self.tracked else None
        return Kept(run, noted, came=len(run))

    def insert(self, run: Run | Kept) -> Kept:
        """Keep a run. Runs are merged when the area is purged, not here, so that marks can be made beside this one."""
        kept = self.newcomer(run) if isinstance(run, Run) else run
        self.kept.append(kept)
        return kept

    def view(self, since: int = 0, until: int | None = None) -> View:
        """The runs as they are now; or those from number `since` on, up to `until`."""
        return View(self.matching, tuple(self.kept[since:until]), since, self.progress)

    def probe(self, run: Run, side: int = 0, *, living: bool = False) -> Iterator[Meeting]:
        """Whom the rows of another input's run find here, chunk by chunk (see `View.probe`)."""
        return self.view().probe(run, side, living=living)

    # -- ends become known ---------------------------------------------------------------------------------------------

    def settle(self, ends: Ends) -> None:
        """Ends of rows that came without become known."""
        for kept in self.kept:
            rows = kept.settle(ends)
            if len(rows) and kept.layout is not None:
                part_of = kept.layout.part_of
                parts = np.unique(part_of[rows]) if part_of is not None else [0]
                names = frozenset(kept.layout.names[part] for part in parts)
                holder = kept.run.rows.holder
                assert holder is not None
                late = Ends(holder[rows], kept.run.rows.te[rows])
                self.late_ends.append(LateEnds(uuid.uuid4().hex, late, names, self.heard))
        self.heard += 1

    def settle_partners(self, ends: Ends) -> None:
        """Ends of those become known whom rows have met: up to there they had a partner."""
        for kept in self.kept:
            if kept.meetings is not None and kept.meetings.covered:
                kept.meetings.settle(ends)

    def holding(self, ends: Ends) -> Iterator[Run]:
        """The rows that have come with these holders, as runs."""
        for kept in self.kept:
            rows = kept.holding(ends)
            if len(rows):
                yield self.matching.run_of(kept.run.rows.take(np.sort(rows)))

    # -- progress moves ------------------------------------------------------------------------------------------------

    def first_undecided(self, *, unmatched_only: bool) -> int | None:
        """The smallest `ts` among rows whose fate is open; None when there is none."""
        smallest: int | None = None
        for kept in self.kept:
            assert kept.meetings is not None
            if isinstance(kept.run, SpilledRun):
                smallest = kept.run.first_start(self.progress, kept.meetings.met if unmatched_only else None, smallest)
                continue
            open_rows = kept.run.rows.te > self.progress
            if unmatched_only:
                open_rows &= ~kept.meetings.met
            if open_rows.any():
                least = int(kept.run.rows.ts[open_rows].min())
                smallest = least if smallest is None else min(smallest, least)
        return smallest

    def purge(self, progress: int, *, ended: bool = True) -> Iterator[Decided]:
        """Remove every row that ends at or before `progress` (a tracked area hands them out), then merge the rest.

        `ended`: so has the input itself. Before that a row whose end is unknown may still learn it, though nobody is
        left whom it could meet: a tracked area waits.
        """
        reached = max(self.progress, progress)
        self.progress = reached
        if self.tracked and not ended and reached == FOREVER:
            self.progress = FOREVER - 1  # not for ever: rows without an end may come
            reached = self.progress if any(kept.open_ended for kept in self.kept) else reached
        for kept in self.kept:
            kept.fresh = False
            if kept.expiry is not None or (self.tracked and kept.run.first_end <= reached):
                expired = kept.expire(reached)
                if kept.meetings is not None:
                    for some in self._portions(kept, expired):
                        yield kept.meetings.hand_out(kept.run.rows, some)
        before = self.rows
        self._tidy(reached)
        self.removed += before - self.rows

    def went_before(self, rows: int) -> None:
        """Rows of the input have gone that were never inserted: they are counted as if they had been."""
        self.removed += rows

    def make_room(self) -> None:
        """Runs are merged, and leave memory, while rows still come: of a batch that is before progress moves at all."""
        assert self.progress == NEVER, "rows behind progress are removed by a purge, and nowhere else"
        self._tidy(NEVER)

    def _tidy(self, progress: int) -> None:
        tidy = tidied if self.spilling is None else self.spilling.tidied
        before = self.kept
        self.kept = tidy(before, self.matching, progress, self.heard)
        known = {id(kept) for kept in before}  # the others have been made just now
        self.merged += sum(id(kept) not in known and not isinstance(kept.run, SpilledRun) for kept in self.kept)

    def _portions(self, kept: Kept, rows: Indices) -> Iterator[Indices]:
        """Rows of a run, as many at a time as may be in memory."""
        most = max(1, len(rows))
        if self.spilling is not None and isinstance(kept.run, SpilledRun):
            most = self.spilling.page_rows(kept.run.rows.nbytes / max(1, len(kept.run)))
        for start in range(0, len(rows), most):
            yield rows[start : start + most]

    # -- what is kept --------------------------------------------------------------------------------------------------

    def snapshot(self, name: str) -> Snapshot:
        """What is kept, to be stored."""
        return area_snapshot(self, name)

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        restore_area(self, snapshot)
