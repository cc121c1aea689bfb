"""What is kept of a query that somebody follows, and how long its rows are taken to wait: made-up reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from streamjoin.api.reporting import Kept
from streamjoin.reporting.measured import MOST
from streamjoin.spark.listening import BEHIND, FIRST, LIMITED, ONCE, SURELY, Followed, Looking
from tests.reporting.making import START


def at(after: float) -> str:
    """Spark's words for so many seconds after the start."""
    return datetime.fromtimestamp(START + after, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def told(
    batch: int, after: float, seconds: float = 0.5, *, run: str = "one", left: int = 0, names: tuple[int, ...] = (1,)
) -> dict[str, Any]:
    """What Spark says of a micro-batch that began so many seconds after the start; `left` files are not read yet."""
    return {
        "batchId": batch, "runId": run, "timestamp": at(after),
        "durationMs": {"addBatch": 1, "triggerExecution": round(1000 * seconds)},
        "sources": [{"metrics": {"numFilesOutstanding": str(left)}}],
        "observedMetrics": {f"streamjoin-{each}-pack": {"rows_in": 10 * each, "state_rows": 7} for each in names},
    }  # fmt: skip


def silent(batch: int, after: float, seconds: float = 0.5, *, source: str = "folder", read: bool = True) -> Any:
    """As `told`, of a source that does not say what it has left; whether something of it was `read`."""
    offsets = {"startOffset": "3", "endOffset": "4" if read else "3"}
    return told(batch, after, seconds) | {"sources": [{"description": source, "metrics": {}, **offsets}]}


def idle(after: float, run: str = "one") -> dict[str, Any]:
    """What Spark says when it has looked, and found nothing."""
    return {"runId": run, "timestamp": at(after), "durationMs": {}}


def heard(looking: Looking, *reports: dict[str, Any]) -> Followed:
    followed = Followed(Kept(), looking)
    for each in reports:
        followed.hear(each)
    return followed


def unseen(looking: Looking, *reports: dict[str, Any]) -> list[float | None]:
    return [each.unseen for each in heard(looking, *reports).keeper.history.batches]


def left_out(looking: Looking, *reports: dict[str, Any]) -> list[dict[str, int]]:
    return [dict(each.left_out) for each in heard(looking, *reports).keeper.history.batches]


def test_no_more_is_kept_than_is_shown_however_long_nobody_asks() -> None:
    followed = Followed(Kept())
    for number in range(2 * MOST + 3):
        followed.hear(told(number, number))
    batches = followed.keeper.history.batches
    assert len(batches) <= MOST
    assert (batches[0].first, batches[-1].last) == (0, 2 * MOST + 2)
    assert sum(each.total("rows_in") for each in batches) == 10 * (2 * MOST + 3)


def test_of_joins_with_urgent_rows_it_is_kept_how_long_progress_has_been_standing() -> None:
    """From the end of the micro-batch that moved it last; and whether urgent rows have been too many."""
    followed = Followed(Kept())
    for number, progress in enumerate((1, 2, 2, 2)):
        report = told(number, 3 * number)
        figures = report["observedMetrics"]["streamjoin-1-pack"]
        figures |= {"urgent": 6, "progress_0": progress, "progress_1": number}
        followed.hear(report)
    kept = [each.figures for each in followed.keeper.history.batches]
    assert [each["join-1", "urgent", "standing", "0"] for each in kept] == [0.0, 0.0, 3.0, 6.0]
    assert [each["join-1", "urgent", "standing", "1"] for each in kept] == [0.0] * 4
    assert [each["join-1", "urgent", "starving"] for each in kept] == [0.0, 0.0, 1.0, 1.0]
    plain = Followed(Kept())
    plain.hear(told(0, 0))
    assert not [key for key in plain.keeper.history.batches[0].figures if "urgent" in key]


def test_an_idle_query_looks_whenever_its_trigger_lets_it() -> None:
    """A file every eight seconds, and micro-batches of half a second: no row waits for eight seconds, and none for the
    micro-batch before, which had been over for long.
    """
    reports = [told(number, 8 * number) for number in range(4)]
    assert unseen(Looking(every=0.0), *reports) == [None, *[pytest.approx(0.01)] * 3]
    assert unseen(Looking(every=2.0), *reports) == [None, *[pytest.approx(2.01)] * 3]
    assert unseen(Looking(), *reports) == [None, *[pytest.approx(8.0)] * 3], "not known: since the last report"


def test_an_idle_query_looks_no_more_often_than_a_look_takes() -> None:
    reports = [told(number, 8 * number) for number in range(2)]
    reports[1]["durationMs"]["latestOffset"] = 3000  # of a folder with very many files, say
    assert unseen(Looking(every=0.0), *reports) == [None, pytest.approx(3.01)]
    assert unseen(Looking(every=5.0), *reports) == [None, pytest.approx(5.01)]
    reports[1]["durationMs"]["latestOffset"] = 9000
    assert unseen(Looking(every=0.0), *reports) == [None, 8.0], "not before the last report"


def test_what_an_idle_query_says_is_a_look() -> None:
    """Nobody knows how often it looks, but it has said that it did after seven seconds."""
    assert unseen(Looking(), told(0, 0), idle(7), told(1, 8)) == [None, 1.0]
    assert unseen(Looking(), told(0, 0), told(1, 8), idle(7), told(2, 9)) == [None, 8.0, 1.0], "told too late"
    assert unseen(Looking(), idle(3), told(0, 5)) == [2.0], "nothing lay there when it started"
    assert unseen(Looking(), idle(3), told(0, 5, run="two")) == [None], "but of another run that is not known"


def test_after_a_limited_source_that_does_not_tell_rows_may_have_waited_unless_it_was_idle_since() -> None:
    every_second = [silent(number, number, 1.0) for number in range(3)]
    folder = frozenset({"folder"})
    assert unseen(Looking(0.0, limited=folder), *every_second) == [None] * 3
    assert left_out(Looking(0.0, limited=folder), *every_second) == [{FIRST: 1}, {LIMITED: 1}, {LIMITED: 1}]
    assert unseen(Looking(0.0, limited=frozenset({"another"})), *every_second) == [None, 1.0, 1.0]
    assert unseen(Looking(0.0), *every_second) == [None] * 3, "not known which are limited: any may be"
    paused = [silent(0, 0), silent(1, 0.5 + 2 * SURELY)]
    assert unseen(Looking(0.0, limited=folder), *paused) == [None, pytest.approx(0.01)]
    assert unseen(Looking(0.0, limited=folder), silent(0, 0), silent(1, 0.5 + SURELY / 2)) == [None, None]
    assert unseen(Looking(2.0, limited=folder), *paused) == [None, None], "its trigger kept it from looking"
    assert unseen(Looking(2.0, limited=folder), silent(0, 0), idle(2), silent(1, 2.1)) == [None, pytest.approx(0.1)]
    nothing = [silent(number, number, 1.0, read=False) for number in range(2)]
    assert unseen(Looking(0.0, limited=folder), *nothing) == [None, 1.0], "it gave nothing, so it had nothing"


def test_the_reason_why_a_latency_is_not_known_is_told() -> None:
    left = [5, 0, 0]
    reports = [told(number, number, 1.0, left=each) for number, each in enumerate(left)]
    assert left_out(Looking(every=0.0), *reports) == [{FIRST: 1}, {BEHIND: 1}, {}]
    assert left_out(Looking(once=True), *reports) == [{ONCE: 1}] * 3


def test_rows_that_come_while_a_micro_batch_runs_wait_for_its_end() -> None:
    reports = [told(number, 3 * number, 3.0) for number in range(3)]
    assert unseen(Looking(every=0.0), *reports) == [None, 3.0, 3.0]


def test_how_long_rows_of_a_backlog_have_waited_is_not_known() -> None:
    left = [5, 3, 0, 0, 1, 0]
    reports = [told(number, number, 1.0, left=each) for number, each in enumerate(left)]
    assert unseen(Looking(every=0.0), *reports) == [None, None, None, 1.0, 1.0, None]
    assert unseen(Looking(once=True), *reports) == [None] * 6, "all was there before"


def test_what_lay_there_when_a_run_went_on_has_no_latency() -> None:
    reports = [told(0, 0), told(1, 1), told(2, 500, run="two"), told(3, 501, run="two")]
    assert unseen(Looking(every=1.0), *reports) == [None, 1.0, None, 1.0]


def test_a_run_that_goes_on_is_the_same_query_whatever_its_joins_are_called() -> None:
    followed = Followed(Kept())
    followed.hear(told(0, 0, names=(3, 4)))
    followed.hear(told(1, 1, names=(11, 12), run="two"))
    first, second = followed.keeper.history.batches
    assert {key[0] for key in first.figures} == {key[0] for key in second.figures} == {"join-1", "join-2"}
    both = first.followed_by(second)
    assert both.total("state_rows") == 14, "of what is kept, the last holds"
    assert both.figures["join-1", "rows_in"] == 30 + 110
