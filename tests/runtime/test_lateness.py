"""Lateness: how progress follows from what tasks report."""

from __future__ import annotations

import json

import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.runtime.lateness import Complete, Lateness, Slack, Timeless
from tests.state.making import batch


def report(policy: Lateness, *times: int) -> dict:
    measuring = policy.measure()
    for time in times:
        measuring.see(batch([(time, time + 1)]))
    return measuring.report()


def test_progress_is_the_largest_time_stamp_of_all_tasks_less_the_slack() -> None:
    running = Slack(2).build()
    assert (running.progress, running.largest) == (NEVER, NEVER)
    running.heard(report(Slack(2), 4, 10, 3))
    running.heard(report(Slack(2), 7))
    assert (running.progress, running.largest) == (8, 10)


def test_a_task_without_valid_rows_reports_no_time() -> None:
    running = Slack(2).build()
    empty = Slack(2).measure()
    empty.see(batch([]))
    running.heard(empty.report())
    assert running.progress == NEVER


def test_progress_does_not_go_below_never() -> None:
    running = Slack(5).build()
    running.heard({"largest": NEVER + 1})
    assert running.progress == NEVER


def test_more_slack_after_a_restart_takes_no_progress_back() -> None:
    strict, lenient = Slack(0).build(), Slack(6).build()
    strict.heard({"largest": 10})
    lenient.restore(json.loads(json.dumps(strict.to_json())))
    assert lenient.progress == 10
    lenient.heard({"largest": 12})
    assert lenient.progress == 10
    lenient.heard({"largest": 20})
    assert lenient.progress == 14


def test_what_is_complete_is_past_everything_and_what_has_no_time_never_moves() -> None:
    assert (Complete().build().progress, Timeless().build().progress) == (FOREVER, NEVER)
    running, again = Complete().build(), Complete().build()
    running.heard(report(Complete(), 3, 9))
    again.restore(json.loads(json.dumps(running.to_json())))
    assert (again.progress, again.largest) == (FOREVER, 9), "its last time stamp is known where anybody asks"


@pytest.mark.parametrize(("policy", "delay"), [(Slack(3), 3), (Complete(), None), (Timeless(), None)])
def test_how_far_behind_a_row_may_be(policy: Lateness, delay: int | None) -> None:
    assert policy.delay == delay
