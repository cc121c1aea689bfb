"""Keeps what queries report: Spark itself keeps the last hundred reports of each, and no more.

A `StreamingQueryListener` per session, which hears of every query and hands on the reports of those that somebody
follows. It is told later than the query runs, so whoever asks for a history also looks at the query itself. Through
Spark Connect there is none: PySpark's runs in a thread that keeps a program from ending. There a history has what the
query still knew whenever somebody asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from streamjoin.spark.figures import from_progress
from streamjoin.spark.jobs import did_run

FOLLOWED: Final = 100  # queries whose figures are kept in a session; of more, those that are over go first
POLL: Final = 0.01  # seconds after which Spark looks again, if the trigger does not say
# Seconds without a micro-batch, after the next look was due, from which on that look has surely found nothing. Between
# two micro-batches that follow each other at once Spark writes its logs and reports: for 0.08 s at most, as measured
# where there was three times the work that there were cores for.
SURELY: Final = 0.25

# Why it is not known since when the rows of a micro-batch had lain at their sources.
ONCE: Final = "of a run over what is there, once"
FIRST: Final = "the first of a run"
BEHIND: Final = "after one that left rows at a source"
LIMITED: Final = "right after one that may have left rows at a source with a limit"


class Left(Enum):
    """Whether a micro-batch has left rows at its sources that were there when Spark looked."""

    NOTHING = "nothing"
    PERHAPS = "perhaps"
    SOMETHING = "something"


@dataclass(frozen=True)
class Told:
    """What one report says: the figures as `sj.progress` has them, and when. `unseen`: seconds since the last look at
    the sources before it, None if its rows may have lain there before, and `why` that may be. `waiting`: what sources
    say still lies there.
    """

    figures: Mapping[str, Any]
    began: float
    unseen: float | None
    why: str
    waiting: Mapping[str, float]


class Keeper(Protocol):
    """Who keeps what is told of a query."""

    def add(self, told: Told) -> None:
        """One more micro-batch."""


@dataclass(frozen=True)
class Looking:
    """How a query looks at its sources: `every` so many seconds, None if that is not known; or `once`, for what is
    there. `limited` are the descriptions of sources of which a micro-batch may not take all that is there, None if that
    is not known: then any may be one.
    """

    every: float | None = None
    once: bool = False
    limited: frozenset[str] | None = None

    @property
    def known(self) -> bool:
        """Whether the query need not be asked again."""
        return self.once or self.limited is not None

    def left(self, sources: Iterable[Mapping[str, Any]]) -> Left:
        """What a micro-batch has left at its sources, as it reports them. One that does not tell, is limited, and gave
        something may have more. Spark's folders of files are such: nothing says how many files are still there.
        """
        left = Left.NOTHING
        for source in sources:
            told = waiting([source])
            if any(told.values()):
                return Left.SOMETHING
            limited = self.limited is None or source.get("description") in self.limited
            if not told and limited and source.get("startOffset") != source.get("endOffset"):
                left = Left.PERHAPS
        return left


@dataclass(frozen=True)
class Ran:
    """A micro-batch that is over, and what it has left at its sources."""

    began: float
    ended: float
    left: Left


@dataclass(eq=False)
class Followed:
    """A query that somebody follows: each of its micro-batches is told once. `looked` is when its run is known to have
    looked at the sources, `before` the last micro-batch of that run.

    `asked` is the query itself while it is not known how it looks. `newest` is its newest run, and `over` whether that
    has ended. What is told while somebody is `fetching` what the query itself still knows comes after that (`early`).
    """

    keeper: Any
    looking: Looking = Looking()
    run: str = ""
    looked: float | None = None
    before: Ran | None = None
    last: int = -1
    asked: Any = None
    newest: str = ""
    over: bool = False
    fetching: int = 0
    early: list[Mapping[str, Any]] = field(default_factory=list)

    def hear(self, progress: Mapping[str, Any]) -> None:
        """One more report, perhaps one that was heard before, or one of an idle query."""
        began, ran = moment(progress["timestamp"]), did_run(progress)  # type: ignore[arg-type]
        if ran and progress["batchId"] <= self.last:
            return
        self._enter(str(progress["runId"]))
        if ran:
            self.last = progress["batchId"]
            figures, (unseen, why) = from_progress(progress), self._arrival(began, look_of(progress))
            left = self.looking.left(progress["sources"])
            self.before = Ran(began, began + float(figures["seconds"]), left)
            self.keeper.add(Told(figures, began, unseen, why, waiting(progress["sources"])))
        self.looked = began if self.looked is None else max(began, self.looked)

    def catch_up(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """What the query itself still knew, and then what was told while it was asked for it."""
        self.fetching -= 1
        for progress in reports:
            self.hear(progress)
        if not self.fetching:
            for progress in self.early:
                self.hear(progress)
            self.early.clear()

    def _enter(self, run: str) -> None:
        if run != self.run:
            self.run, self.looked, self.before = run, None, None
            if run != self.newest:
                self.newest, self.over = run, False

    def _arrival(self, began: float, look: float) -> tuple[float | None, str]:
        """In how many seconds before it began the rows of a micro-batch came; or None, and why that is not known. To
        `look` at the sources took so many.
        """
        if self.looking.once:
            return None, ONCE
        if self.looked is None:
            return None, FIRST
        left = Left.NOTHING if self.before is None else self.before.left
        if left is Left.SOMETHING:
            return None, BEHIND
        idle = self._was_idle(began)
        if left is Left.PERHAPS and not idle:
            return None, LIMITED
        # An idle query reports every ten seconds only, and looks whenever it may: when its trigger lets it, and when a
        # look is over that it had begun before.
        reported, every = max(0.0, began - self.looked), self.looking.every
        return (min(reported, max(every, look) + POLL) if idle and every is not None else reported), ""

    def _was_idle(self, began: float) -> bool:
        """Whether Spark has looked since the last micro-batch, and found nothing: it looks when that is over, but not
        before its trigger lets it, and if there are rows the next one begins at once.
        """
        before, every = self.before, self.looking.every
        if before is None or (self.looked is not None and self.looked > before.began):
            return True
        return every is not None and began > max(before.ended, before.began + every) + SURELY


class Listening(StreamingQueryListener):
    """Hears of all queries of a session."""

    def __init__(self) -> None:
        self.lock, self.followed = threading.Lock(), dict[str, Followed]()

    def follow(self, query: Any, keeper: Callable[[], Keeper]) -> Any:
        """Who keeps what a query reports, with what it still knows; the first time a new one.

        The query is asked without the lock: Spark may want to tell something in between. That waits until the older
        reports have been heard, because whatever comes after a newer one counts as heard before.
        """
        looking, over = looking_of(query), not query.isActive
        with self.lock:
            followed = self.followed.get(str(query.id))
            if followed is None:
                followed = self.followed[str(query.id)] = Followed(keeper())
            followed.looking, followed.asked = looking, None if looking.known else query
            followed.newest, followed.over = str(query.runId), over
            followed.fetching += 1
            self._forget()
        reports: Iterable[Mapping[str, Any]] = ()
        try:
            reports = query.recentProgress
        finally:
            with self.lock:
                followed.catch_up(reports)
        return followed.keeper

    def _forget(self) -> None:
        """Of too many queries the oldest that is over goes; the oldest, if all of them run."""
        if len(self.followed) > FOLLOWED:
            over = (name for name, each in self.followed.items() if each.over)
            self.followed.pop(next(over, next(iter(self.followed))))

    def _hear(self, name: str, progress: Mapping[str, Any]) -> None:
        followed = self.followed.get(name)
        if followed is None:
            return
        self._ask_how_it_looks(followed)
        with self.lock:
            if followed.fetching:
                followed.early.append(progress)
            else:
                followed.hear(progress)

    def _ask_how_it_looks(self, followed: Followed) -> None:
        """A query that has just been started has no sources yet; one that reports has some."""
        query = followed.asked
        if query is None:
            return
        looking = looking_of(query)
        with self.lock:
            if followed.asked is query:  # or it has been started again since
                followed.looking, followed.asked = looking, None if looking.known else query

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to keep."""

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch is over, or a query says that it is idle."""
        self._hear(str(event.progress.id), event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Spark has looked at the sources, and found nothing."""
        self._hear(str(event.id), {"runId": event.runId, "timestamp": event.timestamp, "durationMs": {}})

    def onQueryTerminated(self, event: Any) -> None:
        """What is kept stays: it is asked for when a query is over."""
        followed = self.followed.get(str(event.id))
        if followed is not None:
            with self.lock:
                followed.over = followed.over or str(event.runId) == followed.newest


_listening: WeakKeyDictionary[SparkSession, Listening] = WeakKeyDictionary()
_lock = threading.Lock()


def listening_in(spark: SparkSession) -> Listening:
    """Who listens in a session, from the first time on that somebody asks."""
    with _lock:
        if spark not in _listening:
            listener = Listening()
            if hasattr(spark, "_jvm"):
                spark.streams.addListener(listener)
            _listening[spark] = listener
        return _listening[spark]


def looking_of(query: Any) -> Looking:
    """How a query looks at its sources, as its trigger says; only a classic session tells it."""
    try:
        execution = query._jsq.streamingQuery()
        trigger = execution.trigger()
        if not trigger.getClass().getSimpleName().startswith("ProcessingTime"):
            return Looking(once=True)
        every = trigger.intervalMs() / 1000
    except (AttributeError, Py4JError):
        return Looking()
    return Looking(every, limited=_limited_sources(execution))


def _limited_sources(execution: Any) -> frozenset[str] | None:
    """The sources of which a micro-batch may not take all, as Spark's reports describe them; None before it has any."""
    found: list[tuple[str, str]] = []
    try:
        sources = execution.uniqueSources().iterator()
        while sources.hasNext():
            source_and_limit = sources.next()
            limit = source_and_limit._2().getClass().getSimpleName()
            found.append((source_and_limit._1().toString(), limit))
    except Py4JError:  # another version of Spark, which does not tell it
        return None
    return frozenset(name for name, limit in found if limit != "ReadAllAvailable") if found else None


def look_of(progress: Mapping[str, Any]) -> float:
    """How many seconds a micro-batch took to see what is new at its sources; none, if it does not say.

    >>> look_of({"durationMs": {"latestOffset": 40, "addBatch": 500}})
    0.04
    """
    return float(progress["durationMs"].get("latestOffset", 0)) / 1000


def moment(text: str) -> float:
    """Spark's time stamp in seconds since 1970.

    >>> moment("1970-01-01T00:01:00.500Z")
    60.5
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def waiting(sources: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What sources say still lies there, by what it is. Files of all folders; and offsets of Kafka, of the partition
    that has most, which is all that it tells.

    >>> waiting([{"metrics": {"numFilesOutstanding": "2", "x": "1"}}, {"metrics": {"numFilesOutstanding": "3"}}])
    {'files': 5.0}
    >>> waiting([{"metrics": {"maxOffsetsBehindLatest": "2"}}, {"metrics": {"maxOffsetsBehindLatest": "3"}}])
    {'offsets': 3.0}
    """
    every = [source.get("metrics") or {} for source in sources]
    files, offsets = (
        [float(metrics[name]) for metrics in every if metrics.get(name) is not None]
        for name in ("numFilesOutstanding", "maxOffsetsBehindLatest")
    )
    return ({"files": sum(files)} if files else {}) | ({"offsets": max(offsets)} if offsets else {})
