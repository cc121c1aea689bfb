"""Keeps what queries report: Spark itself keeps the last hundred reports of each, and no more.

A `StreamingQueryListener` per session, which hears of every query and hands on the reports of those that somebody
follows. It is told later than the query runs, so whoever asks for a history also looks at the query itself. Through
Spark Connect there is none: PySpark's runs in a thread that keeps a program from ending. There a history has what the
query still knew whenever somebody asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from streamjoin.spark.figures import from_progress
from streamjoin.spark.jobs import did_run

FOLLOWED: Final = 100  # queries whose figures are kept in a session, the last ones
POLL: Final = 0.01  # seconds after which Spark looks again, if the trigger does not say


@dataclass(frozen=True)
class Told:
    """What one report says: the figures as `sj.progress` has them, and when. `unseen`: seconds since the last look at
    the sources before it, None if its rows may have lain there before. `waiting`: what sources say still lies there.
    """

    figures: Mapping[str, Any]
    began: float
    unseen: float | None
    waiting: Mapping[str, float]


class Keeper(Protocol):
    """Who keeps what is told of a query."""

    def add(self, told: Told) -> None:
        """One more micro-batch."""


@dataclass(frozen=True)
class Looking:
    """How a query looks at its sources: `every` so many seconds, None if that is not known; or `once`, for what is
    there.
    """

    every: float | None = None
    once: bool = False


@dataclass(eq=False)
class Followed:
    """A query that somebody follows: each of its micro-batches is told once. `looked` is when its run is known to have
    looked at the sources, `took` how long the last micro-batch took, and `behind` whether that left something there.
    """

    keeper: Any
    looking: Looking = Looking()
    run: str = ""
    looked: float | None = None
    took: float = 0.0
    behind: bool = False
    last: int = -1

    def hear(self, progress: Mapping[str, Any]) -> None:
        """One more report, perhaps one that was heard before, or one of an idle query."""
        began, ran = moment(progress["timestamp"]), did_run(progress)  # type: ignore[arg-type]
        if ran and progress["batchId"] <= self.last:
            return
        if str(progress["runId"]) != self.run:
            self.run, self.looked, self.behind = str(progress["runId"]), None, False
        if ran:
            self.last = progress["batchId"]
            told = Told(from_progress(progress), began, self._unseen(began), waiting(progress["sources"]))
            self.took, self.behind = float(told.figures["seconds"]), any(told.waiting.values())
            self.keeper.add(told)
        self.looked = began if self.looked is None else max(began, self.looked)

    def _unseen(self, began: float) -> float | None:
        if self.looked is None or self.behind or self.looking.once:
            return None
        reported = max(0.0, began - self.looked)
        # An idle query reports every ten seconds only, and looks whenever it may.
        every = self.looking.every
        return reported if every is None else min(reported, max(every, self.took) + POLL)


class Listening(StreamingQueryListener):
    """Hears of all queries of a session."""

    def __init__(self) -> None:
        self.lock, self.followed = threading.Lock(), dict[str, Followed]()

    def follow(self, query: Any, keeper: Callable[[], Keeper]) -> Any:
        """Who keeps what a query reports, with what it still knows; the first time a new one."""
        looking = looking_of(query)
        with self.lock:
            followed = self.followed.get(str(query.id))
            if followed is None:
                followed = self.followed[str(query.id)] = Followed(keeper())
                if len(self.followed) > FOLLOWED:
                    self.followed.pop(next(iter(self.followed)))
            followed.looking = looking
        self._hear(followed, query.recentProgress)
        return followed.keeper

    def _hear(self, followed: Followed, reports: Iterable[Any]) -> None:
        with self.lock:
            for progress in reports:
                followed.hear(progress)

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to keep."""

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch is over, or a query says that it is idle."""
        followed = self.followed.get(str(event.progress.id))
        if followed is not None:
            self._hear(followed, [event.progress])

    def onQueryIdle(self, event: Any) -> None:
        """Spark has looked at the sources, and found nothing."""
        followed = self.followed.get(str(event.id))
        if followed is not None:
            with self.lock:
                followed.looked = max(followed.looked or 0.0, moment(event.timestamp))

    def onQueryTerminated(self, event: Any) -> None:
        """What is kept stays: it is asked for when a query is over."""


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
        trigger = query._jsq.streamingQuery().trigger()
        if not trigger.getClass().getSimpleName().startswith("ProcessingTime"):
            return Looking(once=True)
        return Looking(every=trigger.intervalMs() / 1000)
    except (AttributeError, Py4JError):
        return Looking()


def moment(text: str) -> float:
    """Spark's time stamp in seconds since 1970.

    >>> moment("1970-01-01T00:01:00.500Z")
    60.5
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def waiting(sources: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What sources say still lies there, by what it is: files and bytes of folders, offsets of Kafka.

    >>> waiting([{"metrics": {"numFilesOutstanding": "2", "x": "1"}}, {"metrics": {"numFilesOutstanding": "3"}}])
    {'files': 5.0}
    """
    found: dict[str, float] = {}
    for source in sources:
        for name, word in (("numFilesOutstanding", "files"), ("maxOffsetsBehindLatest", "offsets")):
            value = (source.get("metrics") or {}).get(name)
            if value is not None:
                found[word] = found.get(word, 0.0) + float(value)
    return found
