"""The recall of a join of two inputs: what is remembered of both, and the progress that is promised of each.

A micro-batch is heard whole: the counts of both inputs, and how far each is. Then needs and pairs are added up, the
controller says the slacks, and progress follows: the largest time stamp less the slack. It never falls and moves at
most twice as fast as the largest time stamp, so that slack falls no faster than it can rise.

Rows are remembered for ten periods, or the longest slack. Of rows that come later than that nobody knows whom they
would have met: each is taken to have lost as many as a row meets on average. Rows from so long before the beginning
have lost nothing, and meet nobody: as a rule they are of no time at all, such as 0.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamjoin.algebra.interval import NEVER
from streamjoin.operators.recall.controller import MEMORY, Aim, Controller
from streamjoin.operators.recall.counts import Counts, Floats
from streamjoin.operators.recall.needs import lost_at
from streamjoin.operators.recall.seen import Alike, Seen
from streamjoin.state import Snapshot


@dataclass(frozen=True)
class RecallModel:
    """A join of two inputs to a recall target: the aim, and how long rows of each input are valid."""

    aim: Aim
    windows: tuple[int, int]

    def build(self) -> RunningRecall:
        """Nothing has been heard yet."""
        return RunningRecall(self)


@dataclass(frozen=True)
class Met:
    """What a micro-batch brought: needs of pairs by input and place on the ladder, all pairs, rows by input."""

    needs: Floats
    pairs: float
    rows: Floats


class RunningRecall:
    """What is known of a join. Inputs are 0 and 1."""

    def __init__(self, config: RecallModel) -> None:
        self.config = config
        self.controller = Controller(config.aim)
        self.alike = Alike()
        self.seen = [Seen(self.alike), Seen(self.alike)]
        self.largest = [NEVER, NEVER]
        self.promised = [NEVER, NEVER]
        # A partner of the last row that is remembered ends this long before the largest time stamp.
        self.reach = config.aim.remembered + sum(map(abs, config.windows))
        # Lately: pairs, and rows of each input, without rows that came later than anything is remembered.
        self.known = np.zeros(3)

    def hear(self, counts: list[Counts | None], largest: list[int], told: list[int]) -> None:
        """A micro-batch: the new rows of both inputs, how far they are now, and which progress was in force so far."""
        self.decide(self.meet(counts), largest, told)

    def meet(self, counts: list[Counts | None]) -> Met:
        """New rows meet those before. Rows of a micro-batch meet all others of it, whatever their order."""
        edges, counts = self.controller.edges, [self._of_some_time(news) for news in counts]
        needs, pairs, rows = np.zeros((2, len(edges))), 0.0, np.zeros(2)
        if counts[0] is not None and counts[1] is not None:
            bits = [part.bits for seen in self.seen for _, part in seen.parts]
            self.alike.learn(counts[0], counts[1], self._windows(0), bits)
        for number, news in enumerate(counts):
            others = self.seen[1 - number]
            if news is not None and self.largest[number] != NEVER and others.parts:
                needs[number] = others.needs_of(news, self.largest[number], self._windows(number), edges)
        for number, news in enumerate(counts):
            if news is not None:
                found = self.seen[1 - number].pairs_with(news, self._windows(number))
                forgotten = self._forgotten(number, news, found)
                needs[number, -1] += forgotten  # more than any slack
                pairs += found + forgotten
                rows[number] = news.total
                self.seen[number].add(news)
        return Met(needs, pairs, rows)

    def _of_some_time(self, news: Counts | None) -> Counts | None:
        """Without rows from longer before the beginning than anything is remembered: no slack finds what they match."""
        first = self.controller.first
        if news is None or first is None or news.first * news.width >= first - self.reach:
            return news
        news = news.since(first - self.reach)
        return news if len(news) else None

    def _forgotten(self, number: int, news: Counts, found: float) -> float:
        """How many pairs rows that come later than anything is remembered would make with what is forgotten; `found`:
        the pairs that all of the new rows make with what is remembered.
        """
        first, now = self.controller.first, self.controller.now
        late, pairs, met = 0, 0.0, 0.0
        if first is not None and now is not None and news.first * news.width < now - self.reach - news.width:
            behind = news.split(first)[1].split(now - self.reach - news.width)[0]
            late, met = behind.total, self.seen[1 - number].pairs_with(behind, self._windows(number))
            if self.known[1 + number] > 0:
                pairs = max(0.0, late * float(self.known[0] / self.known[1 + number]) - met)
        self.known[0] += found - met
        self.known[1 + number] += news.total - late
        return pairs

    def decide(self, met: Met, largest: list[int], told: list[int]) -> None:
        """Slack and progress after a micro-batch."""
        lost = sum(
            lost_at(met.needs[number], self.largest[number] - told[number], self.controller.edges)
            for number in (0, 1)
            if told[number] != NEVER and met.needs[number].any()
        )
        before, self.largest = self.largest, [max(pair) for pair in zip(self.largest, largest, strict=True)]
        now = min(self.largest)
        # An input is as far as its own rows say, also while the other one has none: that one may be idle.
        before_now = self.controller.now
        slack = self.controller.hear(now, met.needs, met.pairs, lost, met.rows) if now > NEVER else self.controller.held
        memory = MEMORY * self.config.aim.period
        if before_now is not None and now // memory > before_now // memory:
            self.known /= 2
        for number, seen in enumerate(self.seen):
            if self.largest[number] == NEVER:
                continue
            self._promise(number, int(slack[number]), before[number])
            if now > NEVER:
                seen.forget(now, self.reach)
            seen.fit(now if now > NEVER else self.largest[number])

    def _windows(self, number: int) -> tuple[int, int]:
        return self.config.windows[number], self.config.windows[1 - number]

    def _promise(self, number: int, slack: int, before: int) -> None:
        largest, last = self.largest[number], self.promised[number]
        to = largest - slack
        if last != NEVER:
            to = min(to, last + 2 * (largest - before))
        self.promised[number] = max(last, to)

    @property
    def slack(self) -> list[int]:
        """How far the promised progress of each input is behind its largest time stamp."""
        pairs = zip(self.largest, self.promised, strict=True)
        return [0 if promised == NEVER else largest - promised for largest, promised in pairs]

    @property
    def expected(self) -> float | None:
        """The share of the results that is found with these slacks; None where it is not known yet."""
        return self.controller.expected(self.slack)

    def snapshot(self) -> Snapshot:
        """To be stored."""
        parts = [self.controller.snapshot("groups"), *(each.snapshot(str(at)) for at, each in enumerate(self.seen))]
        manifest = {
            "times": [self.largest, self.promised],
            "alike": self.alike.to_json(),
            "known": self.known.tolist(),
            "parts": [part.manifest for part in parts],
        }
        blobs: Any = ChainMap(*(part.blobs for part in parts))  # type: ignore[arg-type]
        return Snapshot(manifest, blobs)

    def restore(self, stored: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.largest, self.promised = map(list, stored.manifest["times"])
        self.alike.restore(stored.manifest["alike"])
        self.known = np.array(stored.manifest.get("known", [0.0, 0.0, 0.0]))  # once it was not counted
        controller, *seen = [Snapshot(manifest, stored.blobs) for manifest in stored.manifest["parts"]]
        self.controller.restore("groups", controller)
        for at, each in enumerate(self.seen):
            each.restore(str(at), seen[at])
