"""The controller: how much slack is enough for a share of the true results. Event time only; no clock, no chance.

After each micro-batch in which `T`, the smaller of the inputs' largest time stamps, enters a new interval:

    1  groups of max(interval, period / 12) of event time hold needs, pairs, what was lost, and rows; they end with the
       micro-batch in which `T` passes a multiple of that
    2  what was heard lately, in max(period, 4 x the largest slack) = n periods, and all that is remembered, in twenty:
       share(d) = loss / pairs of all, and of the recent ones where these differ by more than chance (`learned`). A
       whole number of periods, so that what comes in a rhythm is in there as often as it is in a period
    3  var(d) = own(d) + heard(d) / n of the same: how much one period's results differ from the mean, by the age of
       what is lost (`by_age`), and how well the mean is known, by what is heard; made monotone
    4  of all pairs of slacks with mean_0 + mean_1 + 1.85 sqrt(var_0 + var_1) <= (1 - q) N - 0.5 max(0, debt) the one
       that keeps the fewest rows; N = pairs of a recent period, debt = lost - (1 - q) pairs over the last ten. If the
       same with 1.64 and the variance of whole periods (`whole_periods`) keeps fewer: that
    5  progress never falls, and moves at most twice as fast as the largest time stamp (see `model`)
    6  in the first period slack is the least that loses what a period may, by what was heard (`first_period`); in the
       first three the mean of the recent ones decides alone, because how much periods differ is not known from so few,
       and all of the debt is due, not half of it, but the least of the last half period: what a rhythm has lost early
       is no debt; `initial` is a minimum for twice its length

No pairs heard: nothing is decided. A target of 0 keeps the bare window; one of 1 always keeps `max_delay`.
"""

from __future__ import annotations

import base64
import uuid
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.kernels import cheapest_step
from streamjoin.operators.recall.by_age import ages
from streamjoin.operators.recall.counts import Floats
from streamjoin.operators.recall.first_period import allowance, least_debt, loss_of_period
from streamjoin.operators.recall.learned import Learned, expected, share_since_possible
from streamjoin.operators.recall.needs import ladder, lost_at, tails
from streamjoin.operators.recall.whole_periods import variance_of_periods
from streamjoin.state import Blobs, Snapshot

MARGIN: Final = 1.85  # standard deviations of one period's loss
STEADY: Final = 1.64  # the same, where whole periods are compared
REACH: Final = 4  # times the largest slack that statistics look back
REPAY: Final = 0.5  # of a debt, by the next period
AT_FIRST: Final = 1.0  # the same, as long as there is no margin
MEMORY: Final = 10  # periods that are remembered in groups, and over which a debt is
LONG: Final = 20  # periods that are remembered at all: what is older than those is remembered by the period
GROUPS: Final = 12  # of a period
WARM_UP: Final = 3  # periods without a margin
TOLD: Final = 6  # of a period, its first part: too little was heard to tell what is expected


@dataclass(frozen=True)
class Aim:
    """What is aimed at, in ticks. `step` is the width of a cell, and the smallest step of a slack."""

    target: float
    period: int
    interval: int
    step: int
    max_delay: int | None = None
    initial: int = 0

    @property
    def longest(self) -> int:
        """The largest slack that is considered."""
        return self.max_delay if self.max_delay is not None else max(MEMORY * self.period, 2 * self.initial)

    @property
    def remembered(self) -> int:
        """How long rows are remembered, beyond their windows: longer than they are kept where `max_delay` is short, so
        that what is lost by it is known.
        """
        return max(self.longest, MEMORY * self.period)

    @property
    def edges(self) -> Times:
        """The slacks to choose from."""
        return ladder(self.step, self.longest)


@dataclass
class Group:
    """What was heard in a stretch of event time that begins at `begin`."""

    begin: int
    needs: Floats
    pairs: float = 0.0
    lost: float = 0.0
    rows: Floats = field(default_factory=lambda: np.zeros(2))
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_bytes(self) -> bytes:
        """To be stored."""
        head = np.array([self.begin], "<i8").tobytes()
        numbers = np.concatenate([[self.pairs, self.lost], self.rows, self.needs.ravel()])
        return head + zlib.compress(numbers.astype("<f8").tobytes(), 1)

    @staticmethod
    def from_bytes(stored: bytes) -> Group:
        """The inverse of `to_bytes`."""
        begin = int(np.frombuffer(bytes(stored[:8]), "<i8")[0])
        numbers = np.frombuffer(zlib.decompress(bytes(stored[8:])), "<f8")
        pairs, lost = numbers[:2].tolist()
        return Group(begin, numbers[4:].reshape(2, -1).copy(), pairs, lost, numbers[2:4].copy())

    def with_next(self, other: Group) -> Group:
        """Both as one, under a new name: what is stored under a name does not change.

        >>> one, two = Group(0, np.ones((2, 1)), 3.0), Group(60, np.ones((2, 1)), 4.0)
        >>> (one.with_next(two).begin, one.with_next(two).pairs, one.with_next(two).needs.tolist())
        (0, 7.0, [[2.0], [2.0]])
        """
        needs, rows = self.needs + other.needs, self.rows + other.rows
        return Group(self.begin, needs, self.pairs + other.pairs, self.lost + other.lost, rows)


class Controller:
    """Hears of each micro-batch, says the slacks of both inputs."""

    def __init__(self, aim: Aim) -> None:
        self.aim, self.edges = aim, aim.edges
        self.groups: deque[Group] = deque()
        self.older: deque[Group] = deque()  # before those, a period each
        self.first: int | None = None  # T when it was first known
        self.since: int | None = None  # T since when anything was learned: later, after a restart with another ladder
        self.now: int | None = None
        self.decided: int | None = None  # T of the last decision
        self.slack = np.full(2, aim.longest if aim.target >= 1 else 0, np.int64)

    def hear(self, now: int, needs: Floats, pairs: float, lost: float, rows: Floats) -> Times:
        """A micro-batch is over, and `T` is `now`. Both slacks."""
        aim = self.aim
        if self.first is None or self.now is None:
            self.first = self.now = now
        if self.since is None:
            self.since = now
        width = max(aim.interval, aim.period // GROUPS)
        if not self.groups or now // width > self.now // width:
            self.groups.append(Group(self.now, np.zeros_like(needs)))
        last, self.now = self.groups[-1], now
        last.needs += needs
        last.pairs, last.lost, last.rows = last.pairs + pairs, last.lost + lost, last.rows + rows
        if 0 < aim.target < 1:
            self._adapt(now)
        self._forget(now)
        return self.held

    @property
    def held(self) -> Times:
        """Both slacks, with the one to begin with: as long as that is held, and before `T` is known."""
        aim = self.aim
        begins = self.first is None or self.now is None or self.now - self.first < 2 * aim.initial
        return np.minimum(np.maximum(self.slack, aim.initial if begins and aim.target > 0 else 0), aim.longest)

    def _adapt(self, now: int) -> None:
        aim = self.aim
        assert self.since is not None
        if self.decided is None or now // aim.interval > self.decided // aim.interval:
            elapsed = now - self.since
            choose = self._begin if elapsed < aim.period else self._choose
            # What was known before a restart is forgotten, but not what came of it, until a period tells more.
            least = self.slack if self.since != self.first and elapsed < aim.period else 0
            self.decided, self.slack = now, np.maximum(choose(now, elapsed), least)

    def _begin(self, now: int, elapsed: int) -> Times:
        """In the first period: by all that was heard so far."""
        aim, elapsed = self.aim, max(elapsed, self.aim.interval)
        some = [each for each in self.groups if each.pairs > 0]
        if not some:
            return self.slack
        pairs, groups = np.array([each.pairs for each in some]), tails(np.array([each.needs for each in some]))
        if len(some) > 1:
            whole = float(pairs.sum()) * aim.period / elapsed
            loss, allowed = loss_of_period(groups, pairs, whole), self.budget(now, whole, AT_FIRST * self._debt(some))
        else:
            loss, allowed = groups[0], allowance(aim.target, float(pairs[0]), elapsed, aim.period)
        cost = np.sum([each.rows for each in self.groups], axis=0)[::-1]
        at = cheapest(loss, np.zeros_like(loss), allowed, cost, self.edges)
        return self.edges[list(at)]

    def _forget(self, now: int) -> None:
        """Groups that are older than anything looks back to in detail become periods, and those are forgotten later."""
        period = self.aim.period
        far = max(MEMORY * period, REACH * int(self.slack.max()))
        while len(self.groups) > 1 and self.groups[1].begin < now - far:
            past = self.groups.popleft()
            if self.older and self.older[-1].begin // period == past.begin // period:
                past = self.older.pop().with_next(past)
            self.older.append(past)
        while self.older and self.older[0].begin < now - LONG * period:
            self.older.popleft()

    def expected(self, slack: Sequence[int]) -> float | None:
        """The share of the pairs that is found with these slacks, by what was heard lately; None while too little was:
        in the first sixth of a period, and without pairs. It decides nothing, and is told with every target.
        """
        if self.since is None or self.now is None or (self.now - self.since) * TOLD < self.aim.period:
            return None
        since = self.now - max(self.aim.period, REACH * max(slack))
        recent = [each for each in self.groups if each.begin >= since] or list(self.groups)[-1:]
        pairs = sum(each.pairs for each in recent)
        if pairs <= 0:
            return None
        needs = np.sum([each.needs for each in recent], axis=0)
        lost = sum(lost_at(each, one, self.edges) for each, one in zip(needs, slack, strict=True))
        return max(0.0, 1 - lost / pairs)

    def _choose(self, now: int, elapsed: int) -> Times:
        aim, known = self.aim, elapsed >= WARM_UP * self.aim.period
        far = max(aim.period, REACH * int(self.slack.max()))
        groups = self._since(now - MEMORY * aim.period)
        whole = self._since(now - min(MEMORY, elapsed // aim.period) * aim.period - aim.interval // 2)
        recent = [each for each in whole if each.begin >= now - far] or whole[-1:]
        wanted = sum(each.pairs for each in recent) / self._periods(recent)
        if wanted <= 0:
            return self.slack
        budget = self.budget(now, wanted, REPAY * self._debt(groups) if known else AT_FIRST * self._least_debt(groups))
        cost = np.sum([each.rows for each in recent], axis=0)[::-1]
        mean = tails(np.sum([each.needs for each in recent], axis=0)) / self._periods(recent)
        at = cheapest(mean, np.zeros_like(mean), budget, cost, self.edges)
        if known and mean[:, 0].any():
            mean, var = self._expected(recent, self._all(now, whole), wanted)
            at = cheapest(mean, var, budget, cost, self.edges)
            steady = self._steady(groups) if any(at) else None
            if steady is not None:
                other = cheapest(mean, steady, budget, cost, self.edges, STEADY)
                at = min(at, other, key=lambda each: float(cost @ self.edges[list(each)]))
        return self.edges[list(at)]

    def _since(self, begin: int) -> list[Group]:
        """The groups that begin then or later; the last one at least."""
        return [each for each in self.groups if each.begin >= begin] or [self.groups[-1]]

    def _all(self, now: int, whole: list[Group]) -> list[Group]:
        """What is remembered of the last twenty periods, if that goes back further than ten; otherwise a whole number
        of periods of it, which is all there is after a pause that is longer than both.
        """
        period = self.aim.period
        some = [each for each in (*self.older, *self.groups) if each.begin >= now - LONG * period]
        return some if some and some[0].begin < now - MEMORY * period - self.aim.interval // 2 else whole

    def _periods(self, groups: list[Group]) -> float:
        """How many periods the latest groups tell of."""
        assert self.now is not None
        return max(self.now - groups[0].begin, self.aim.interval) / self.aim.period

    def _expected(self, recent: list[Group], groups: list[Group], wanted: float) -> tuple[Floats, Floats]:
        """Mean and variance of a period's loss, by what was heard lately and all that is remembered."""
        assert self.first is not None
        age = ages(self.edges, self.aim.period)
        needs, pairs = np.array([each.needs for each in groups]), np.array([each.pairs for each in groups])
        some = slice(len(groups) - len(recent), None)
        lately = Learned.of(needs[some], pairs[some], self._periods(recent), wanted, age)
        remembered = Learned.of(needs, pairs, self._periods(groups), wanted, age)
        begins = np.array([each.begin - self.first for each in groups])
        return expected(lately, remembered, share_since_possible(needs, pairs, begins, self.edges), wanted)

    def _steady(self, groups: list[Group]) -> Floats | None:
        """The variance of whole periods in these groups, if they are long enough."""
        over = groups[:-1]
        pairs = np.array([each.pairs for each in over])
        if pairs.sum() <= 0:
            return None
        loss, times = tails(np.array([each.needs for each in over])), np.array([each.begin for each in groups])
        return variance_of_periods(loss, pairs, times, self.aim.period)

    def _debt(self, groups: list[Group]) -> float:
        """How many pairs were lost in these groups beyond what the target allows."""
        return sum(each.lost - (1 - self.aim.target) * each.pairs for each in groups)

    def _least_debt(self, groups: list[Group]) -> float:
        """The same, at its least in the last half period."""
        assert self.now is not None
        debts = np.array([self._debt([each]) for each in groups])
        ends = np.array([*(each.begin for each in groups[1:]), self.now])
        return least_debt(debts, ends, self.now - self.aim.period // 2)

    def budget(self, now: int, wanted: float, owed: float) -> float:
        """How many of a period's pairs may be lost, of so many, if so many are to be made good."""
        return max(0.0, (1 - self.aim.target) * wanted - max(0.0, owed))

    def snapshot(self, name: str) -> Snapshot:
        """To be stored. Groups that are over do not change any more: each is written once."""
        numbers = [self.first, self.now, self.decided, self.slack.tolist()]
        over = list(self.groups)[:-1]
        last = [base64.b64encode(group.to_bytes()).decode() for group in list(self.groups)[-1:]]
        blobs = Blobs({f"{name}/{group.name}": group.to_bytes for group in (*self.older, *over)})
        names, older = [group.name for group in over], [group.name for group in self.older]
        steps = [self.aim.step, self.aim.longest]
        kept = {"numbers": numbers, "since": self.since, "groups": names, "older": older, "last": last, "ladder": steps}
        return Snapshot(kept, blobs)

    def restore(self, name: str, stored: Snapshot) -> None:
        """The inverse of `snapshot`. With other slacks to choose from (another aim) what was learned is forgotten, but
        not the slack: it goes on from there, and does not fall in the first period. A target of 0 or 1 does not choose,
        and has its own at once.
        """
        kept, blobs = stored.manifest, stored.blobs

        def read(names: list[str]) -> list[Group]:
            return [replace(Group.from_bytes(blobs[f"{name}/{each}"]), name=each) for each in names]

        # Once nothing was remembered beyond ten periods.
        groups, older = read(kept["groups"]), read(kept.get("older", []))
        groups += [Group.from_bytes(base64.b64decode(text)) for text in kept["last"]]
        # Checkpoints of before have more numbers: the largest needs, and the recall that was expected.
        self.first, self.now, self.decided, slack = kept["numbers"][:4]
        self.since = kept.get("since", self.first)  # once nothing was ever learned anew
        # Before it was stored what ladder the groups are by, only its length could tell.
        step, longest = kept.get("ladder", [self.aim.step, self.aim.longest])
        same = (step, longest) == (self.aim.step, self.aim.longest)
        if not same or any(group.needs.shape[1] != len(self.edges) for group in groups):
            groups, older, self.since = [], [], self.now
        self.groups, self.older = deque(groups), deque(older)
        if 0 < self.aim.target < 1:
            self.slack = np.minimum(np.array(slack, np.int64), self.aim.longest)


def cheapest(
    mean: Floats, var: Floats, budget: float, cost: Floats, edges: Times, margin: float = MARGIN
) -> tuple[int, int]:
    """The places of the pair of slacks that costs least and loses no more than the budget, with a margin.

    Both losses fall with slack, so the pairs that just suffice are a staircase: with more of one less of the other is
    enough. `cost`: rows per tick of slack. Where nothing suffices, all there is.

    >>> mean, none = np.array([[4.0, 1.0, 0.0], [2.0, 2.0, 0.0]]), np.zeros((2, 3))
    >>> cheapest(mean, none, 3.0, np.array([1.0, 1.0]), np.array([0, 10, 20]))
    (1, 0)
    """
    return cheapest_step(mean, var, margin, budget, cost, edges)
