"""A run as an area keeps it: with what happens to its rows. They expire, their ends are learned, they meet others.

Law: a row with end `e` is gone when progress is at `e`. Who that is, is found in the order of the ends. Where some are
unknown, those that are known wait in a queue of their own, unsorted until progress reaches them; a row without an end
is kept, and found, as one that never ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import FOREVER, NEVER, Mask
from streamjoin.kernels import expired_mask
from streamjoin.state.batch import Indices
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.layout import Layout
from streamjoin.state.meetings import Meetings
from streamjoin.state.run import Run
from streamjoin.state.spilled_run import SpilledRun
from streamjoin.state.time_queue import TimeQueue

_NOTHING: Indices = np.empty(0, np.int64)


@dataclass
class Kept:
    """A run and what has happened to its rows since. `meetings` only where rows must know their fate."""

    run: Run
    meetings: Meetings | None = None
    expired: int = 0  # how many rows, in order of their ends, have been handed out
    fresh: bool = True  # came after the last purge: nothing of it has been removed, not even what is behind progress
    layout: Layout | None = None  # where its rows are stored; None as long as nobody has asked
    cut: int = NEVER  # rows of its parts that end here or earlier have been left behind
    heard: int = 0  # how many times the area had heard of ends by then
    reached: int = NEVER  # of a run in a store: rows that end here or earlier have been handed out
    came: int = 0  # rows of the largest run that has come and is in here; not known of one that was restored

    def __post_init__(self) -> None:
        self.expiry: TimeQueue | None = None  # of rows whose ends are known, where there are others
        holder = self.run.rows.holder
        if holder is not None:
            self.index = HolderIndex(holder)
            self.expiry = TimeQueue()
            self._expect(np.flatnonzero((holder < 0) | (self.run.rows.te < FOREVER)))

    def _expect(self, rows: Indices) -> None:
        assert self.expiry is not None
        self.expiry.add(self.run.rows.te[rows], pa.table({"row": rows}))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, of whom they met, and of what finds those that expire and those whose ends are learned.

        Rows in a store count with what they have there: without it the rest is what is in memory, and never less than
        nothing.
        """
        found = 0 if self.expiry is None else self.expiry.nbytes + self.index.nbytes
        noted = 0 if self.meetings is None else self.meetings.nbytes
        rows = self.run.stored.nbytes if isinstance(self.run, SpilledRun) else self.run.rows.nbytes
        return rows + found + noted

    def ensure_whole(self) -> None:
        """An error where the run lies in files that have been cut: for whoever is about to look at its rows."""
        if isinstance(self.run, SpilledRun):
            self.run.stored.ensure_whole()

    @property
    def open_ended(self) -> bool:
        """Whether the end of any row is not known."""
        self.ensure_whole()
        rows = self.run.rows
        return rows.holder is not None and bool(((rows.holder >= 0) & (rows.te == FOREVER)).any())

    def holding(self, ends: Ends) -> Indices:
        """The rows that wait for one of these ends, or did."""
        self.ensure_whole()
        return _NOTHING if self.expiry is None else self.index.find(ends)[0]

    def settle(self, ends: Ends) -> Indices:
        """Ends of rows become known; the rows."""
        if self.expiry is None:
            return _NOTHING
        self.ensure_whole()
        rows, te = self.index.find(ends)
        self.run.rows.te[rows] = te
        self._expect(rows)
        return rows

    def parts(self) -> Layout:
        """Where the rows are stored."""
        if self.layout is None:
            self.layout = Layout.whole(len(self.run))
        return self.layout

    def living(self, progress: int) -> Mask | None:
        """Which rows are still there; None when all are."""
        self.ensure_whole()
        return expired_mask(self.run.rows.te, progress)[0] if self.any_removed(progress) else None

    def any_removed(self, progress: int) -> bool:
        """Whether rows that lie here may be gone."""
        return not self.fresh and (self.expiry is not None or self.run.first_end <= progress)

    def expire(self, progress: int) -> Indices:
        """The rows that have expired since they were last asked for."""
        self.ensure_whole()
        if self.expiry is not None:
            due = self.expiry.take_up_to(progress)
            rows = _NOTHING if due is None else due[1]["row"].to_numpy()
            if progress == FOREVER:  # at the end also those that never end
                rows = np.concatenate([rows, np.flatnonzero(self.run.rows.te == FOREVER)])
            self.expired += len(rows)
            return np.sort(rows)
        run = self.run
        if isinstance(run, SpilledRun):  # its ends are never sorted: pages say where to look
            rows, self.reached = run.ending(self.reached, progress), max(self.reached, progress)
            self.expired += len(rows)
            return rows
        reached = int(np.searchsorted(run.rows.te[run.by_end], progress, side="right"))
        rows, self.expired = run.by_end[self.expired : reached], reached
        return np.sort(rows)

    def half_expired(self, progress: int) -> bool:
        """Whether it is worth while to make the run anew without the expired."""
        if self.expiry is not None:
            return 2 * self.expired >= len(self.run)
        assert not isinstance(self.run, SpilledRun)
        return self.run.first_end <= progress and self.run.half_end <= progress

    def all_expired(self, progress: int) -> bool:
        """Whether nothing is left."""
        return self.expired == len(self.run) if self.expiry is not None else self.run.last_end <= progress
