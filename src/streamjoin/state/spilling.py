"""When runs leave memory, and how those in the store are merged. The policy of sweep areas with a budget.

    memory   [new] [new] ...          runs merge as without a budget, until they need more than the area's share
    store    [    ] [    ] [ ] [ ]    then all of them become one run there

Law, in the store: four neighbours of one level become one of the next, as long as that holds at most a quarter of the
area. So there are a few runs of each level, a row is copied once per level, and a run expires as a whole, which costs
nothing: no row that could go is copied to be rid of it. Where ends are of all kinds and more than half of the area has
expired, the run that has lost most is made anew. A history (of an as-of join) forgets rows only when they are merged:
there the quarter does not count, and what becomes no larger by being merged stays at its level.

Areas take turns. Those of one query get rows in the same micro-batches, and would all merge in each fourth one, which
would take longer than the others by all of it; so would the database behind Spark's state, in the same ones. So an area
without a merged run waits for three to six runs, by its turn, and then for four each time: of four areas one merges in
each micro-batch.

Files of runs that are gone are removed one purge later: a micro-batch that is run again still finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from streamjoin.state.kept import Kept
from streamjoin.state.matching import Matching
from streamjoin.state.merging import tidied
from streamjoin.state.spilled_merge import merged_into
from streamjoin.state.spilled_run import SpilledRun
from streamjoin.state.stores import RunStore, StoredRun

FAN_IN: Final = 4
# Bytes of memory, for each area: half of it for its runs, the other half for pages of those that are merged.
LEAST_MEMORY: Final = 1 << 20


@dataclass
class Spilling:
    """Where an area's runs go that do not fit. `share`: bytes of runs that it may have in memory."""

    store: RunStore
    share: int
    turn: int = 1  # of areas that get rows together, from 0 to 3
    gone: list[StoredRun] = field(default_factory=list)  # to be removed with the next purge
    spills: int = 0  # times that runs have left memory
    merges: int = 0  # of runs in the store

    def tidied(self, kept: Sequence[Kept], matching: Matching, progress: int, heard: int) -> list[Kept]:
        """The same runs by the law, when progress is here; `heard`: how many times ends have become known by now."""
        for stored in self.gone:
            self.store.delete(stored)
        self.gone = []
        there = [each for each in kept if isinstance(each.run, SpilledRun)]
        here = [each for each in kept if not isinstance(each.run, SpilledRun)]
        self._let_go([each for each in there if each.all_expired(progress)])
        there = [each for each in there if not each.all_expired(progress)]
        if sum(each.run.rows.nbytes for each in here) > self.share:
            here = [each for each in here if not each.all_expired(progress)]
            if here:
                self.spills += 1
                there += self._merged(here, matching, progress, heard)
            here = []
        else:
            here = tidied(here, matching, progress, heard)
        return [*self._levelled(there, matching, progress, heard), *here]

    def _levelled(self, there: list[Kept], matching: Matching, progress: int, heard: int) -> list[Kept]:
        """Runs in the store, merged by the law."""
        while (first := self._block(there, matching)) is not None:
            last = first + self._fan_in(there)
            self.merges += 1
            together = self._merged(there[first:last], matching, progress, heard)
            there = [*there[:first], *together, *there[last:]]
        rows = sum(len(each.run) for each in there)
        expired = [_expired(each, progress) for each in there]
        if 2 * sum(expired) > rows:
            worst = max(range(len(there)), key=lambda at: expired[at])
            self.merges += 1
            anew = self._merged([there[worst]], matching, progress, heard)
            there = [*there[:worst], *anew, *there[worst + 1 :]]
        return there

    def _block(self, there: Sequence[Kept], matching: Matching) -> int | None:
        """Where the first runs are that shall be merged."""
        rows = sum(len(each.run) for each in there)
        fan_in = self._fan_in(there)
        for first in range(len(there) - fan_in + 1):
            block = there[first : first + fan_in]
            level = _level(block[0])
            if any(_level(each) != level for each in block):
                continue
            together = sum(len(each.run) for each in block)
            if level == 0 or matching.regards_neighbours or FAN_IN * together <= rows:
                return first
        return None

    def _fan_in(self, there: Sequence[Kept]) -> int:
        """How many runs are merged: four, and the first time more or less, so that areas take turns."""
        return FAN_IN if any(_level(each) for each in there) else FAN_IN - 1 + self.turn

    def _merged(self, parts: list[Kept], matching: Matching, progress: int, heard: int) -> list[Kept]:
        for part in parts:
            part.ensure_whole()
        rows = sum(len(part.run) for part in parts)
        page_rows = self.page_rows(sum(part.run.rows.nbytes for part in parts) / max(1, rows))
        together = merged_into(self.store, parts, matching, progress, heard, page_rows)
        self._let_go(parts)
        return [] if together is None else [together]

    def page_rows(self, row_bytes: float) -> int:
        """Rows of a page: fewer of wide ones, so that a page of each run that is merged fits into the share."""
        return max(1, min(self.store.page_rows, int(self.share / (2 * FAN_IN * max(1.0, row_bytes)))))

    def _let_go(self, runs: Sequence[Kept]) -> None:
        self.gone += [each.run.stored for each in runs if isinstance(each.run, SpilledRun)]


def _level(kept: Kept) -> int:
    assert isinstance(kept.run, SpilledRun)
    return kept.run.level


def _expired(kept: Kept, progress: int) -> int:
    assert isinstance(kept.run, SpilledRun)
    return kept.expired if kept.expiry is not None else kept.run.stored.index.expired_at_least(progress)
