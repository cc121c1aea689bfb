"""What is kept of a query that somebody follows, and how long its rows are taken to wait: made-up reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from streamjoin.api.reporting import Kept
from streamjoin.reporting.measured import MOST
from streamjoin.spark.listening import Followed, Looking
from tests.reporting.making import START


def told(
    batch: int, after: float, seconds: float = 0.5, *, run: str = "one", left: int = 0, names: tuple[int, ...] = (1,)
) -> dict[str, Any]:
    """What Spark says of a micro-batch that began so many seconds after the start; `left` files are not read yet."""
    began = datetime.fromtimestamp(START + after, UTC).isoformat(timespec="milliseconds")
    return {
        "batchId": batch, "runId": run, "timestamp": began.replace("+00:00", "Z"),
        "durationMs": {"addBatch": 1, "triggerExecution": round(1000 * seconds)},
        "sources": [{"metrics": {"numFilesOutstanding": str(left)}}],
        "observedMetrics": {f"streamjoin-{each}-pack": {"rows_in": 10 * each, "state_rows": 7} for each in names},
    }  # fmt: skip


def unseen(looking: Looking, *reports: dict[str, Any]) -> list[float | None]:
    followed = Followed(Kept(), looking)
    for each in reports:
        followed.hear(each)
    return [each.unseen for each in followed.keeper.history.batches]


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
    """A file every eight seconds, and micro-batches of half a second: no row waits for eight seconds."""
    reports = [told(number, 8 * number) for number in range(4)]
    assert unseen(Looking(every=0.0), *reports) == [None, *[pytest.approx(0.51)] * 3]
    assert unseen(Looking(every=2.0), *reports) == [None, *[pytest.approx(2.01)] * 3]
    assert unseen(Looking(), *reports) == [None, *[pytest.approx(8.0)] * 3], "not known: since the last report"


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
