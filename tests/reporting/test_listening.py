"""Who listens: older reports come before newer ones whoever tells them first, and queries that run are kept.

With queries that nobody has started: the listener asks them what it asks a query of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from streamjoin.api.reporting import Kept
from streamjoin.spark import listening
from streamjoin.spark.listening import FOLLOWED, Listening, Looking
from tests.reporting.test_followed import at, told


@dataclass
class Query:
    """What the listener asks a query; `between` happens while it asks for the reports that are still known."""

    id: str
    reports: Sequence[dict[str, Any]] = ()
    runId: str = "one"  # noqa: N815
    isActive: bool = True  # noqa: N815
    between: Callable[[], None] = lambda: None
    looks: list[Looking] = field(default_factory=lambda: [Looking()])

    @property
    def recentProgress(self) -> Sequence[dict[str, Any]]:  # noqa: N802
        self.between()
        return self.reports


class Progress(dict[str, Any]):
    """A report as listeners are told it: with the query's name."""

    def __init__(self, report: dict[str, Any], id: str = "a") -> None:
        super().__init__(report)
        self.id = id


def progress_of(batch: int, id: str = "a") -> Any:
    return SimpleNamespace(progress=Progress(told(batch, batch), id))


def terminated(id: str, run: str = "one") -> Any:
    return SimpleNamespace(id=id, runId=run)


def numbers(kept: Kept) -> list[int]:
    return [batch.last for batch in kept.history.batches]


def test_what_is_told_while_older_reports_are_asked_for_comes_after_them() -> None:
    listener = Listening()
    query = Query("a", [told(0, 0), told(1, 1)], between=lambda: listener.onQueryProgress(progress_of(2)))
    kept = listener.follow(query, Kept)
    assert numbers(kept) == [0, 1, 2]
    assert [batch.unseen for batch in kept.history.batches] == [None, 1.0, 1.0]
    query.reports, query.between = [told(2, 2)], lambda: None
    listener.onQueryProgress(progress_of(3))
    assert numbers(listener.follow(query, Kept)) == [0, 1, 2, 3], "each once"


def test_a_query_that_cannot_be_asked_is_heard_all_the_same() -> None:
    def fail() -> None:
        listener.onQueryProgress(progress_of(0))
        raise ConnectionError("no answer")

    listener, query = Listening(), Query("a", between=fail)
    with pytest.raises(ConnectionError):
        listener.follow(query, Kept)
    listener.onQueryProgress(progress_of(1))
    query.between = lambda: None
    assert numbers(listener.follow(query, Kept)) == [0, 1]


def test_a_look_of_an_idle_query_is_heard_by_its_event() -> None:
    listener = Listening()
    kept = listener.follow(Query("a", [told(0, 0)]), Kept)
    listener.onQueryIdle(SimpleNamespace(id="a", runId="one", timestamp=at(7)))
    listener.onQueryProgress(SimpleNamespace(progress=Progress(told(1, 8))))
    assert [batch.unseen for batch in kept.history.batches] == [None, 1.0]


def test_queries_that_nobody_follows_are_not_kept() -> None:
    listener = Listening()
    listener.onQueryProgress(progress_of(0, "another"))
    listener.onQueryIdle(SimpleNamespace(id="another", runId="one", timestamp=at(7)))
    listener.onQueryTerminated(terminated("another"))
    assert not listener.followed


def test_of_too_many_queries_those_that_are_over_are_forgotten_first() -> None:
    listener = Listening()
    for number in range(FOLLOWED):
        listener.follow(Query(str(number)), Kept)
    listener.onQueryTerminated(terminated("5"))
    listener.follow(Query("one more"), Kept)
    assert "5" not in listener.followed
    assert len(listener.followed) == FOLLOWED
    listener.follow(Query("and another"), Kept)
    assert "0" not in listener.followed, "the oldest, if all of them run"
    listener.follow(Query("7", isActive=False), Kept)
    listener.follow(Query("the last"), Kept)
    assert "7" not in listener.followed
    assert "1" in listener.followed


def test_a_query_that_was_started_again_is_not_over_because_its_earlier_run_is() -> None:
    listener = Listening()
    listener.follow(Query("a"), Kept)
    listener.onQueryTerminated(terminated("a"))
    assert listener.followed["a"].over
    listener.follow(Query("a", runId="two"), Kept)
    listener.onQueryTerminated(terminated("a", run="one"))
    assert not listener.followed["a"].over
    listener.onQueryTerminated(terminated("a", run="two"))
    assert listener.followed["a"].over
    listener.onQueryProgress(SimpleNamespace(progress=Progress(told(0, 0, run="three"))))
    assert not listener.followed["a"].over, "whoever started it"


def test_a_query_is_asked_how_it_looks_until_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no sources before its first micro-batch."""
    known = Looking(2.0, limited=frozenset({"folder"}))
    query = Query("a", looks=[Looking(2.0), Looking(2.0), known])
    monkeypatch.setattr(listening, "looking_of", lambda asked: asked.looks.pop(0))
    listener = Listening()
    listener.follow(query, Kept)
    for batch, looking in ((0, Looking(2.0)), (1, known), (2, known)):
        listener.onQueryProgress(progress_of(batch))
        assert listener.followed["a"].looking == looking
    assert not query.looks, "and then no more"
