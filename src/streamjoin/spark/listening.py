"""Keeps what queries report: Spark itself keeps the last hundred reports of each, and no more.

A `StreamingQueryListener` per session, which hears of every query and keeps the figures of those that somebody follows.
On classic Spark it is called through the driver's gateway, on Spark Connect by a thread of the client; either way later
than the query runs, so whoever asks for a history also looks at the query itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from streamjoin.spark.figures import from_progress
from streamjoin.spark.jobs import did_run

FOLLOWED: Final = 100  # queries whose figures are kept in a session, the last ones


@dataclass(frozen=True)
class Told:
    """What one report says: the figures as `sj.progress` has them, and when. `unseen`: seconds since the last look at
    the sources before it, None if there was none. `waiting`: what sources say still lies there.
    """

    figures: Mapping[str, Any]
    began: float
    unseen: float | None
    waiting: Mapping[str, float]


@dataclass(eq=False)
class Followed:
    """The reports of one query since somebody has followed it, each once, until they are taken."""

    looked: float | None = None
    last: int = -1
    told: list[Told] = field(default_factory=list)

    def hear(self, progress: Mapping[str, Any]) -> None:
        """One more report, perhaps one that was heard before, or one of an idle query."""
        began = moment(progress["timestamp"])
        if did_run(progress):  # type: ignore[arg-type]
            if progress["batchId"] <= self.last:
                return
            self.last = progress["batchId"]
            unseen = None if self.looked is None else max(0.0, began - self.looked)
            self.told.append(Told(from_progress(progress), began, unseen, waiting(progress["sources"])))
        self.looked = began if self.looked is None else max(began, self.looked)


class Listening(StreamingQueryListener):
    """Hears of all queries of a session."""

    def __init__(self) -> None:
        self.lock, self.followed = threading.Lock(), dict[str, Followed]()

    def follow(self, query: Any) -> Followed:
        """Begin to keep what a query reports, with what it still knows; or go on."""
        with self.lock:
            followed = self.followed.setdefault(str(query.id), Followed())
            if len(self.followed) > FOLLOWED:
                self.followed.pop(next(iter(self.followed)))
        self._hear(followed, query.recentProgress)
        return followed

    def take(self, followed: Followed) -> list[Told]:
        """What has been heard since the last time."""
        with self.lock:
            told, followed.told = followed.told, []
            return told

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
            spark.streams.addListener(listener)
            _listening[spark] = listener
        return _listening[spark]


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
