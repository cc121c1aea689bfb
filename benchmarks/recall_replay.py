"""A replay of two streams in micro-batches: what our controller does, what rivals do, and what is true.

The truth by the rule that a purging operator follows (`streamjoin.operators.recall.needs`, and the tests beside it): a
pair is lost iff its rows came in different micro-batches, and the progress of the later row's input had reached the end
of the earlier row. So of each pair that can be lost at all, the later row's micro-batch and that end are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from benchmarks.disorder import Both, Times
from streamjoin.algebra import NEVER
from streamjoin.operators.recall.controller import Aim, Controller
from streamjoin.operators.recall.counts import MOST_BITS, Counts, counted, fitted
from streamjoin.operators.recall.model import Met, RecallModel, RunningRecall
from streamjoin.operators.recall.needs import lost_at, tails
from streamjoin.runtime.recall import MOST_REPORTED, finest

Progress = list[Times]  # of each input, BEFORE each micro-batch, and after the last
EXACT: Final = 1e-6  # of a pair: more than products of floats are off
_CHUNK: Final = 1 << 22


@dataclass
class Replay:
    """Two streams, cut at the same arrival times. Both windows are as long, unless there is another for S."""

    streams: Both
    size: int
    window: int
    period: int
    other: int | None = None
    first: int = field(init=False)  # arrival
    batch: list[Times] = field(init=False)
    largest: Progress = field(init=False)
    steps: int = field(init=False)

    def __post_init__(self) -> None:
        self.first = min(int(each.arrival[0]) for each in self.streams)
        self.batch = [(each.arrival - self.first) // self.size for each in self.streams]
        self.steps = int(max(each[-1] for each in self.batch)) + 1
        self.largest = []
        for stream, batch in zip(self.streams, self.batch, strict=True):
            most = np.full(self.steps + 1, NEVER)
            np.maximum.at(most, batch + 1, stream.ts)
            self.largest.append(np.maximum.accumulate(most))

    @property
    def windows(self) -> tuple[int, int]:
        return self.window, self.window if self.other is None else self.other

    # -- the truth -----------------------------------------------------------------------------------------------------

    @cached_property
    def _sorted(self) -> list[tuple[Times, Times, Times]]:
        """Of each input by key and time: one number for both, the time stamp, the micro-batch."""
        made = []
        for stream, batch in zip(self.streams, self.batch, strict=True):
            order = np.lexsort((stream.ts, stream.key))
            made.append((self._keys(stream.key, stream.ts)[order], stream.ts[order], batch[order]))
        return made

    @cached_property
    def begin(self) -> int:
        return min(int(each.ts.min()) for each in self.streams)

    def _keys(self, key: Times, ts: Times) -> Times:
        return key * (1 << 46) + np.clip(ts - self.begin, 0, (1 << 46) - 1)

    @cached_property
    def pairs(self) -> Times:
        """True results by the period of their time stamp."""
        periods = int((max(int(each.ts.max()) for each in self.streams) - self.begin) // self.period) + 1
        total = np.zeros(periods, np.int64)
        for number, stream in enumerate(self.streams):
            keys = self._sorted[1 - number][0]
            # Partners with a smaller time stamp; of equal ones each pair is counted once.
            low = np.searchsorted(keys, self._keys(stream.key, stream.ts - self.windows[1 - number] + 1))
            high = np.searchsorted(keys, self._keys(stream.key, stream.ts), "left" if number else "right")
            np.add.at(total, (stream.ts - self.begin) // self.period, np.maximum(high - low, 0))
        return total

    def partners(self, number: int) -> Times:
        """How many partners each row of an input has."""
        stream, keys, (own, other) = self.streams[number], self._sorted[1 - number][0], self._windows(number)
        low = np.searchsorted(keys, self._keys(stream.key, stream.ts - other + 1))
        return np.searchsorted(keys, self._keys(stream.key, stream.ts + own - 1), "right") - low

    @cached_property
    def endangered(self) -> list[tuple[Times, Times, Times]]:
        """Pairs that slack 0 loses, by the later row's input: its micro-batch, the end of the other, the period."""
        return [self._endangered(number) for number in (0, 1)]

    def _endangered(self, number: int) -> tuple[Times, Times, Times]:
        stream, batch, own, window = self.streams[number], self.batch[number], *self._windows(number)
        keys, ts, others = self._sorted[1 - number]
        bound = self.largest[number][batch]
        rows = np.flatnonzero(bound > stream.ts)
        mine = stream.ts[rows]
        low = np.searchsorted(keys, self._keys(stream.key[rows], mine - window + 1))
        last = np.minimum(mine + own - 1, bound[rows] - window)
        high = np.searchsorted(keys, self._keys(stream.key[rows], last), "right")
        count = np.where(last > mine - window, np.maximum(high - low, 0), 0)
        found: list[Any] = []
        for some in np.array_split(np.arange(len(rows)), max(1, int(count.sum()) // _CHUNK)):
            size = count[some]
            partner = np.arange(int(size.sum())) + np.repeat(low[some] - np.cumsum(size) + size, size)
            row = np.repeat(rows[some], size)
            real = others[partner] < batch[row]
            row, partner = row[real], partner[real]
            period = (np.maximum(stream.ts[row], ts[partner]) - self.begin) // self.period
            found.append((batch[row], ts[partner] + window, period))
        one, two, three = (np.concatenate([part[at] for part in found]) for at in range(3))
        return one, two, three

    def _windows(self, number: int) -> tuple[int, int]:
        return self.windows[number], self.windows[1 - number]

    def lost(self, progress: Progress) -> Times:
        """True results that are lost, by period."""
        gone = np.zeros(len(self.pairs), np.int64)
        for number, (batch, end, period) in enumerate(self.endangered):
            np.add.at(gone, period[end <= progress[number][batch]], 1)
        return gone

    def kept(self, progress: Progress, since: int = 0) -> float:
        """Rows that are kept after a micro-batch, on average: until the other input's progress passes their end.

        `since`: only after so many periods.
        """
        first = int(np.searchsorted(np.minimum(*self.largest), self.begin + since * self.period)) if since else 0
        rows = 0
        for number, stream in enumerate(self.streams):
            gone = np.searchsorted(progress[1 - number][1:], stream.ts + self.windows[number])
            came = np.maximum(self.batch[number], first)
            rows += int(np.maximum(gone - came, 0).sum())
        return rows / max(1, self.steps - first)

    def fixed(self, slacks: tuple[int, int]) -> Progress:
        """Progress with fixed slacks."""
        return [np.where(most == NEVER, NEVER, most - slack) for most, slack in zip(self.largest, slacks, strict=True)]

    # -- ours ----------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        return finest(self.windows)

    def counts(self, step: int) -> list[list[Counts | None]]:
        """What tasks report, by micro-batch."""
        made: list[list[Counts | None]] = [[None, None] for _ in range(self.steps)]
        for number, (stream, batch) in enumerate(zip(self.streams, self.batch, strict=True)):
            cuts = np.searchsorted(batch, np.arange(self.steps + 1))
            for at in range(self.steps):
                some = slice(cuts[at], cuts[at + 1])
                if cuts[at] < cuts[at + 1]:
                    keys, ts = stream.key[some], stream.ts[some]
                    counts = counted(keys, ts, width=step, bits=MOST_BITS, most=MOST_REPORTED)
                    made[at][number] = fitted(counts, MOST_REPORTED, sum(self.windows) // 4)
        return made

    def run(self, aims: list[Aim], controller: type[Controller] = Controller) -> list[Ours]:
        """Our controllers, one for each aim; aims differ in what no micro-batch is measured by: the target."""
        models = [RecallModel(aim, self.windows).build() for aim in aims]
        for model in models:
            model.controller = controller(model.config.aim)
        ours = [Ours(aim, [np.full(self.steps + 1, NEVER) for _ in (0, 1)]) for aim in aims]
        for at, counts in enumerate(self.counts(aims[0].step)):
            met = models[0].meet(counts)
            for model, mine in zip(models, ours, strict=True):
                self._decide(model, met, at, mine)
        return ours

    def _decide(self, model: RunningRecall, met: Met, at: int, mine: Ours) -> None:
        told = list(model.promised)
        for number in (0, 1):
            if told[number] != NEVER:
                slack = int(self.largest[number][at]) - told[number]
                mine.lost += lost_at(met.needs[number], slack, model.controller.edges)
        mine.pairs += met.pairs
        mine.needs = mine.needs + met.needs
        model.decide(met, [int(most[at + 1]) for most in self.largest], told)
        for number in (0, 1):
            mine.progress[number][at + 1] = model.promised[number]

    # -- rivals --------------------------------------------------------------------------------------------------------

    def hindsight(self, edges: Times) -> tuple[list[Any], list[Times]]:
        """For `best_fixed`: results lost by period, and rows kept, at each slack of each input."""
        lost, rows = [], []
        for number, (batch, end, period) in enumerate(self.endangered):
            need = self.largest[number][batch] - end
            table = np.zeros((len(self.pairs), len(edges)))
            np.add.at(table, (period, np.searchsorted(edges, need, "right") - 1), 1)
            lost.append(tails(table))
            ends, came = self.streams[1 - number].ts + self.windows[1 - number], self.batch[1 - number]
            most = self.largest[number][1:]
            kept = [np.maximum(np.searchsorted(most, ends + slack) - came, 0).sum() / self.steps for slack in edges]
            rows.append(np.array(kept))
        return lost, rows

    def best_fixed(self, known: tuple[list[Any], list[Times]], target: float, share: float = 0.95) -> float:
        """The fewest kept rows of a fixed pair of slacks that reaches the target in a share of the periods."""
        lost, rows = known
        there = self.pairs > 0
        one, two = least_pair([each[there] for each in lost], rows, may_lose(self.pairs[there], target), share)
        return float(rows[0][one] + rows[1][two])

    def result_waits(self, released: Sequence[Times]) -> float:
        """Seconds from the arrival of a result's later row until it leaves, on average over all true results: with the
        micro-batch in which the last of its rows is let go to the join. `released`: that of each row of each input.
        """
        one, two = self.streams
        order = np.lexsort((two.ts, two.key))
        keys, (own, other) = self._sorted[1][0], self._windows(0)
        low = np.searchsorted(keys, self._keys(one.key, one.ts - other + 1))
        count = np.searchsorted(keys, self._keys(one.key, one.ts + own - 1), "right") - low
        waited = 0
        for some in np.array_split(np.arange(len(one.ts)), max(1, int(count.sum()) // _CHUNK)):
            size = count[some]
            row = np.repeat(some, size)
            partner = order[np.arange(int(size.sum())) + np.repeat(low[some] - np.cumsum(size) + size, size)]
            left = (np.maximum(released[0][row], released[1][partner]) + 1) * self.size + self.first
            waited += int((left - np.maximum(one.arrival[row], two.arrival[partner])).sum())
        return waited / max(1, int(count.sum())) / 1e6

    def released(self, progress: Progress) -> list[Times]:
        """The micro-batches in which a join hears of rows that are held until progress has reached them."""
        return [
            np.maximum(np.searchsorted(reached[1:], stream.ts), batch)
            for reached, stream, batch in zip(progress, self.streams, self.batch, strict=True)
        ]

    def k_slack(self) -> tuple[Progress, float, float]:
        """MP-K-slack before a join that expects order: progress, rows in buffer and windows, seconds a row waits.

        The largest delay so far is K; a row leaves the buffer when the largest time stamp is K beyond it.
        """
        progress = []
        for stream, batch, most in zip(self.streams, self.batch, self.largest, strict=True):
            slack = np.zeros(self.steps + 1, np.int64)
            known = most[batch] != NEVER
            np.maximum.at(slack, batch[known] + 1, np.maximum(0, most[batch[known]] - stream.ts[known]))
            reached = np.where(most == NEVER, NEVER, most - np.maximum.accumulate(slack))
            progress.append(np.maximum.accumulate(reached))
        rows, waited = 0, 0
        for number, stream in enumerate(self.streams):
            batch = self.batch[number]
            window = np.searchsorted(progress[1 - number][1:], stream.ts + self.windows[number])
            buffer = self.released(progress)[number]
            rows += int((np.maximum(window, buffer) - batch).sum())
            waited += int((buffer - batch).sum())
        count = sum(len(stream.ts) for stream in self.streams)
        return progress, rows / self.steps, waited / count * self.size / 1e6


@dataclass
class Ours:
    """What our controller did for one aim: progress, and what it believes to have lost."""

    aim: Aim
    progress: Progress
    lost: float = 0.0
    pairs: float = 0.0
    needs: Any = 0.0  # of all pairs, by input and place on the ladder

    def lost_at(self, slack: int) -> float:
        """What a fixed slack of both inputs would lose, as predicted."""
        return sum(lost_at(needs, slack, self.aim.edges) for needs in self.needs)

    @property
    def predicted(self) -> float:
        """Predicted recall over the whole run."""
        return 1 - self.lost / self.pairs


def may_lose(pairs: Any, target: float) -> Any:
    """How many of so many pairs a period may lose and still reach the target. Floats would have 1 - 0.9 below 0.1.

    >>> may_lose(np.array([100, 105]), 0.9).tolist()
    [10, 10]
    """
    return np.floor((1 - target) * np.asarray(pairs) + EXACT).astype(np.int64)


def least_pair(lost: Sequence[Any], rows: Sequence[Any], allowed: Any, share: float) -> tuple[int, int]:
    """The places of the pair of slacks that keeps fewest rows and loses no more than is allowed in a share of the
    periods; the largest ones where none does. `lost`: of each input, by period and slack.

    With more slack of one input less of the other is enough, so the pairs that just suffice are a staircase.

    >>> least_pair([np.array([[3, 1, 0]]), np.array([[2, 0, 0]])], [np.array([5, 7, 9]), np.array([5, 8, 9])], [1], 1)
    (1, 1)
    """

    def good(one: int, two: int) -> bool:
        return bool((lost[0][:, one] + lost[1][:, two] <= allowed).mean() >= share)

    at = lost[1].shape[1] - 1
    best, least = (lost[0].shape[1] - 1, at), np.inf
    for one in range(lost[0].shape[1]):
        if good(one, at):
            while at > 0 and good(one, at - 1):
                at -= 1
            if rows[0][one] + rows[1][at] < least:
                best, least = (one, at), rows[0][one] + rows[1][at]
    return best
