"""What lies in an area at one moment, for others to look at: runs by number, which do not change.

    probe     a run of another input finds its pairs, run by run; before it is a run, who could find urgent rows
    living    which rows have not been removed
    parted    places that were found, run by run
    payload   the payload at places that were found, in any order

A place is the number of a run and a position in it. Numbers count from the oldest run, whichever part of the area is
looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import NEVER, Mask
from streamjoin.kernels import rows_of_common_groups
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.kept import Kept
from streamjoin.state.matching import Matching
from streamjoin.state.run import Run
from streamjoin.state.spilled_run import SpilledRun, sided_pairs, spilled_pairs

# Which part of a batch is looked at apart from the others, because it may meet urgent rows, at most.
FEW: Final = 0.5


@dataclass(frozen=True)
class Meeting:
    """Pairs that a run has found in one run of an area: positions `mine` in the run, `theirs` in the other."""

    number: int
    kept: Kept
    mine: Indices
    theirs: Indices


@dataclass(frozen=True)
class View:
    """Some runs of an area, the first of them with this number."""

    matching: Matching
    runs: tuple[Kept, ...]
    first: int = 0
    progress: int = NEVER

    def __len__(self) -> int:
        return len(self.runs)

    def probe(
        self,
        run: Run,
        side: int = 0,
        *,
        living: bool = False,
        by: Matching | None = None,
        urgent: bool | None = None,
    ) -> Iterator[Meeting]:
        """Whom the rows of a run find here, chunk by chunk; first in the runs in which urgent rows are.

        `side`: on which side of the matching the run stands, 0 or 1. `living`: rows of the run may lie behind progress,
        and must not find who has been removed; others cannot. `by`: another way to find pairs than the area's own.
        `urgent`: only in the runs of `may_meet_urgent`, or only in the others.
        """
        matching = self.matching if by is None else by
        numbered = sorted(enumerate(self.runs, self.first), key=_whom_first)
        for number, kept in numbered:
            if urgent is not None and urgent is not _at_hand(kept):
                continue
            if isinstance(kept.run, SpilledRun):
                found = spilled_pairs(matching, run, kept.run, side)
            else:
                found = ((pair[side], pair[1 - side]) for pair in sided_pairs(matching, run, kept.run, side))
            removed = living and kept.any_removed(self.progress)
            for mine, theirs in found:
                if removed:
                    there = kept.run.rows.te[theirs] > self.progress
                    mine, theirs = mine[there], theirs[there]
                yield Meeting(number, kept, mine, theirs)

    def living(self) -> Mask:
        """Of the rows of all runs, one run after the other, which have not been removed."""
        masks = [np.zeros(0, np.bool_)]
        for kept in self.runs:
            some = kept.living(self.progress)
            masks.append(np.ones(len(kept.run), np.bool_) if some is None else some)
        return np.concatenate(masks)

    def may_meet_urgent(self, batch: Batch) -> Batch | None:
        """Those rows of a batch that could find somebody in runs in memory in which urgent rows are; None where there
        is no such run, or where they are not few. By their groups alone, so that nothing need be sorted for it.
        """
        urgent = [kept.run.rows.group for kept in self.runs if _at_hand(kept)]
        if not urgent:
            return None
        few, _ = rows_of_common_groups([batch.group, np.concatenate(urgent)])
        return batch.take(few) if len(few) <= FEW * len(batch) else None

    def parted(self, number: Indices) -> Iterator[tuple[Kept, Indices]]:
        """Of places in runs with these numbers: each run that is among them, and which places are in it."""
        for each, kept in enumerate(self.runs, self.first):
            mine = np.flatnonzero(number == each)
            if len(mine):
                yield kept, mine

    def payload(self, number: Indices, position: Indices) -> pa.Table:
        """The payload at these places, in their order; there must be one."""
        found, places = [], []
        for kept, mine in self.parted(number):
            found.append(kept.run.rows.payload.take(pa.array(position[mine])))
            places.append(mine)
        if len(found) == 1:
            return found[0]
        back = np.empty(len(number), np.int64)
        back[np.concatenate(places)] = np.arange(len(number))
        return pa.concat_tables(found).take(pa.array(back))


def _at_hand(kept: Kept) -> bool:
    """Whether urgent rows are in a run, which is in memory."""
    return kept.run.rows.priority is not None and not isinstance(kept.run, SpilledRun)


def _whom_first(numbered: tuple[int, Kept]) -> tuple[bool, bool]:
    """Runs in which urgent rows are before others, and those in memory before those that must be read."""
    run = numbered[1].run
    return run.rows.priority is None, isinstance(run, SpilledRun)
