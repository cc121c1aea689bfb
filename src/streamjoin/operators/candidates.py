"""What joins share whose rows take among candidates: all that are near enough, found by a matching, and then compared.

A row is final when no candidate for it can come: progress of the other input is beyond its time plus the reach. It is
joined then, in one step with all its candidates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Mask, saturating_add
from streamjoin.operators.choosing import Answer, Choosing, RunningChoosingJoin
from streamjoin.operators.contract import Output
from streamjoin.state import Batch, Matching, SweepArea, View
from streamjoin.state.batch import Indices

ROWS_AT_ONCE: Final = 1 << 16  # so many rows find their candidates before the best of them are chosen

Values = list[npt.NDArray[Any]]  # of one side of pairs, column by column


class ChoosingAmongCandidates(Choosing, Protocol):
    """What is asked of the configuration of such a join."""

    @property
    def matching(self) -> Matching: ...
    @property
    def reach(self) -> int: ...  # how far after a row's time its candidates may lie


@dataclass(frozen=True)
class Candidates:
    """Pairs that could be results: the chooser's row, and the other row by run and position."""

    row: Indices
    run: Indices
    position: Indices
    distances: list[npt.NDArray[Any]]  # one column, or several where a distance is a vector

    def take(self, which: Indices | Mask) -> Candidates:
        """Some of them."""
        distances = [column[which] for column in self.distances]
        return Candidates(self.row[which], self.run[which], self.position[which], distances)


@dataclass
class RunningCandidatesJoin(RunningChoosingJoin):
    """A join at work whose rows take among candidates."""

    config: ChoosingAmongCandidates

    @abstractmethod
    def _distances(self, left: Values, right: Values) -> list[npt.NDArray[Any]]:
        """How far apart pairs are, from the values of both sides."""

    @abstractmethod
    def _best(self, found: Candidates, seen: View) -> Indices:
        """Which of the candidates, ordered by row, are taken; in order."""

    def _new_area(self) -> SweepArea:
        matching, full = self.context.owned(self.config.matching), self.config.how == "full"
        return SweepArea(matching, tracked=full, spilling=self.context.spilling(1))

    def _choose_final(self) -> Iterator[Output]:
        progress = self.times.of(self.other)
        ended = progress == FOREVER
        final = self.waiting.release(
            lambda rows: np.full(len(rows), ended) | (saturating_add(rows.ts, self.config.reach) < progress)
        )
        if final is None or self.config.changelog:
            return
        final = self._arranged(final)
        seen = self.area.view()
        for first in range(0, len(final), ROWS_AT_ONCE):
            rows = final.take(np.arange(first, min(first + ROWS_AT_ONCE, len(final))))
            yield from self._decide(rows, self._answer(rows, seen), seen)

    def _arranged(self, rows: Batch) -> Batch:
        return self.config.matching.sorted_run(rows).rows

    def _answer(self, rows: Batch, seen: View) -> Answer:
        found = self._candidates(rows, seen)
        best = found.take(self._best(found, seen))
        row, run, position = best.row, best.run, best.position
        if self._stays(self.chooser):
            alone = np.ones(len(rows), np.bool_)
            alone[found.row] = False
            lonely = np.flatnonzero(alone)
            nobody = np.full(len(lonely), -1)
            row, run, position = (np.concatenate(both) for both in ((row, lonely), (run, nobody), (position, nobody)))
        return Answer(row, run, position)

    def _candidates(self, rows: Batch, seen: View) -> Candidates:
        """All candidates of these rows, ordered by row."""
        mine = self.config.matching.run_of(rows)
        none = np.empty(0, np.int64)
        row, run, position = [none], [none], [none]
        distances: list[list[npt.NDArray[Any]]] = []
        for meeting in seen.probe(mine, self.chooser):
            row.append(meeting.mine)
            run.append(np.full(len(meeting.mine), meeting.number))
            position.append(meeting.theirs)
            values = [column[meeting.mine] for column in rows.values]
            others = [column[meeting.theirs] for column in meeting.kept.run.rows.values]
            distances.append(self._distances(*((values, others) if self.chooser == 0 else (others, values))))
        columns = [np.concatenate(column) for column in zip(*distances, strict=True)]
        found = Candidates(np.concatenate(row), np.concatenate(run), np.concatenate(position), columns)
        return found.take(np.argsort(found.row, kind="stable"))
