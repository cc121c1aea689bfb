"""What it takes to run a job: micro-batches as they end, each once."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.spark.jobs import EndedBatches, did_run


class Query:
    """A query whose reports are what a test says."""

    def __init__(self) -> None:
        self.recentProgress: list[dict[str, Any]] = []  # Spark's name

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def report(self, *batches: int, ran: bool = True) -> None:
        for batch in batches:
            spent = {"addBatch": 5} if ran else {"latestOffset": 1}
            moment = f"{len(self.recentProgress)}"
            self.recentProgress.append({"batchId": batch, "timestamp": moment, "durationMs": spent})


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Query:
    monkeypatch.setattr("streamjoin.spark.jobs.from_progress", lambda progress: progress["batchId"])
    return Query()


def test_every_batch_is_told_once_and_in_order(query: Query) -> None:
    ended = EndedBatches(query)
    assert ended.new() == []
    query.report(0)
    assert ended.new() == [0]
    assert ended.new() == []
    query.report(1)
    assert ended.new() == [1]
    query.report(2, 3, 4)
    assert ended.new() == [2, 3, 4]
    assert ended.last == 4


def test_an_idle_report_neither_counts_nor_hides_a_batch(query: Query) -> None:
    ended = EndedBatches(query)
    query.report(7)
    query.report(8, ran=False)
    assert ended.new() == [7]
    query.report(8)
    query.report(9, ran=False)
    assert ended.new() == [8]
    assert not did_run(query.recentProgress[-1])
