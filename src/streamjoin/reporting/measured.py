"""What a query did, micro-batch by micro-batch: figures as plain numbers, few enough for a page.

Spark forgets all but the last reports of a query, so whoever wants a history keeps one. A query may run for months:
when there are too many micro-batches, two neighbours become one. Counts add up; of what is kept the later one holds.

How long rows take from their arrival to the sink is not something that Spark tells. What it tells is when it looked at
the sources, and when a micro-batch was over:

    looked ---------- began ------------------ ended
            arrival          micro-batch              latency of a row = ended - its arrival

A row of a micro-batch came after the last look before it, evenly in between, and is in the sink when the micro-batch
ends. Micro-batches whose rows may have lain there before are left out: whoever tells of one says so, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

MOST: Final = 2000  # micro-batches of a query that are kept
# Figures that count what happened in a micro-batch. All others say how things are when it ends.
COUNTED: Final = frozenset({
    "rows_in", "rows_out", "rows_of", "rows_on", "between", "late", "invalid", "ghosts", "purged", "spills", "merges",
    "pages_read", "pages_written", "seconds",
})  # fmt: skip
BETWEEN: Final = {"rows_in": ("between", "in"), "rows_out": ("between", "out")}
COUNTED_PAIRS: Final = frozenset({("urgent", "rows")})


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch, or several in a row. Times in seconds since 1970; `busy` is how long they took together.

    `unseen` is how long Spark had not looked at the sources before, None if that is not known, and `took` how long the
    micro-batch took; of several in a row what their rows saw on average. `figures` are by the join's name and the
    figure's: `("join-1", "lag", "0")`. `waiting` is what the sources say still lies there. `timed` is how many of the
    rows `unseen` and `took` are about, None for all of them, or for none if `unseen` is not known. `left_out` counts
    the micro-batches of which it is not known, by the reason.
    """

    first: int
    last: int
    began: float
    ended: float
    unseen: float | None
    took: float
    busy: float
    figures: Mapping[tuple[str, ...], float]
    waiting: Mapping[str, float] = field(default_factory=dict)
    timed: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """How many micro-batches it is."""
        return self.last - self.first + 1

    @property
    def timed_rows(self) -> float:
        """How many rows it is known of how long they took."""
        if self.timed is not None:
            return self.timed
        return 0.0 if self.unseen is None else self.total("rows_in")

    def total(self, name: str) -> float:
        """A figure, summed over the joins. Rows that one call hands to another neither come in nor go out."""
        rows = sum(value for key, value in self.figures.items() if key[1:] == (name,))
        between = BETWEEN.get(name)
        return rows - sum(value for key, value in self.figures.items() if between and key[1:] == between)

    def latency(self, share: float) -> float | None:
        """How long it took at most for so many of its rows, from arrival to the sink; None if that is not known."""
        return None if self.unseen is None else self.took + share * self.unseen

    def followed_by(self, later: MicroBatch) -> MicroBatch:
        """This one and the next one as one."""
        keys = {key for each in (self, later) for key in each.figures if counts(key)}
        added = {key: self.figures.get(key, 0) + later.figures.get(key, 0) for key in keys}
        # Of rows whose latency is known; where there are none, each micro-batch is as good as the other.
        known = [each for each in (self, later) if each.unseen is not None] or [self, later]
        rows = [each.timed_rows for each in known]
        weights = rows if any(rows) else [1.0] * len(known)
        unseen = [each.unseen for each in known if each.unseen is not None]
        return replace(
            later,
            first=self.first,
            began=self.began,
            unseen=float(np.average(unseen, weights=weights)) if unseen else None,
            took=float(np.average([each.took for each in known], weights=weights)),
            busy=self.busy + later.busy,
            figures={**later.figures, **added},
            timed=sum(rows),
            left_out=left_out((self, later)),
        )


def left_out(batches: Iterable[MicroBatch]) -> dict[str, int]:
    """How many micro-batches have no latency, by the reason; the most frequent ones first.

    >>> one = MicroBatch(7, 7, 10.0, 12.0, None, 2.0, 2.0, {}, left_out={"the first of a run": 1})
    >>> left_out([one, one])
    {'the first of a run': 2}
    """
    found = Counter[str]()
    for batch in batches:
        found.update(batch.left_out)
    return dict(found.most_common())


def lately(batches: Sequence[MicroBatch], seconds: float) -> tuple[Sequence[MicroBatch], float]:
    """The micro-batches that ended in so many seconds before the last one did, and in how many seconds they came: more,
    if the first of them had begun before; fewer, if there was nothing before.

    >>> each = [MicroBatch(at, at, 100.0 * at, 100.0 * at + 30, 1.0, 30.0, 30.0, {}) for at in range(3)]
    >>> [(len(some), length) for some, length in (lately(each, length) for length in (20, 60, 120, 999))]
    [(1, 30.0), (1, 60.0), (2, 130.0), (3, 230.0)]
    """
    end = batches[-1].ended
    some = [batch for batch in batches if batch.ended > end - seconds]
    before = len(batches) - len(some)
    start = max(batches[before - 1].ended, end - seconds) if before else some[0].began
    return some, max(1e-3, end - min(start, some[0].began))


def counts(key: tuple[str, ...]) -> bool:
    """Whether a figure counts what happened, so that two micro-batches have the sum.

    >>> counts(("streamjoin-1", "late")), counts(("streamjoin-1", "rows_of", "0")), counts(("streamjoin-1", "lag", "0"))
    (True, True, False)
    >>> counts(("streamjoin-1", "probing", "0", "asked", "0", "1"))
    True
    """
    asked = key[1] == "probing" and key[3] != "order"
    return asked or key[1] in COUNTED or key[1:3] in COUNTED_PAIRS


def flat(figures: Any, *names: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """The numbers of nested figures by their names; what is no number is left out.

    >>> dict(flat({"late": 2, "lag": [1.5, None], "recall": {"target": 0.9}}, "join"))
    {('join', 'late'): 2.0, ('join', 'lag', '0'): 1.5, ('join', 'recall', 'target'): 0.9}
    """
    if isinstance(figures, bool | int | float):
        yield names, float(figures)
    elif isinstance(figures, Mapping):
        for name, each in figures.items():
            yield from flat(each, *names, str(name))
    elif isinstance(figures, list | tuple):
        for number, each in enumerate(figures):
            yield from flat(each, *names, str(number))


class History:
    """The micro-batches of one query, in order, at most so many."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.batches = most, list[MicroBatch]()

    def add(self, batch: MicroBatch) -> None:
        """One more; one that is known already is left out, whoever tells it first."""
        if self.batches and batch.last <= self.batches[-1].last:
            return
        self.batches.append(batch)
        if len(self.batches) > self.most:
            pairs = zip(self.batches[::2], self.batches[1::2], strict=False)
            rest = self.batches[len(self.batches) // 2 * 2 :]
            self.batches = [*(one.followed_by(two) for one, two in pairs), *rest]


def few(batches: Sequence[MicroBatch], most: int) -> list[MicroBatch]:
    """The same micro-batches, joined two by two until there are at most so many."""
    history = History(most)
    for batch in batches:
        history.add(batch)
    return history.batches


def latencies(batches: Sequence[MicroBatch], shares: Sequence[float]) -> list[float] | None:
    """How long it took at most for such shares of all rows of these micro-batches; None if nothing is known of any.

    >>> one = MicroBatch(7, 7, began=10.0, ended=12.0, unseen=10.0, took=2.0, busy=2.0, figures={("j", "rows_in"): 9.0})
    >>> latencies([one], [0.5, 1.0])
    [7.0, 12.0]
    """
    known = [batch for batch in batches if batch.timed_rows]
    if not known:
        return None
    steps = np.arange(1, 101) / 100
    times = np.concatenate([[batch.latency(step) for step in steps] for batch in known])
    rows = np.repeat([batch.timed_rows / len(steps) for batch in known], len(steps))
    order = np.argsort(times, kind="stable")
    gone = np.cumsum(rows[order]) / rows.sum()
    places = np.minimum(np.searchsorted(gone, np.asarray(shares) - 1e-9), len(times) - 1)
    return [float(each) for each in times[order][places]]
