"""Progress from what tasks report."""

from __future__ import annotations

from streamjoin.algebra import FOREVER, Grace
from streamjoin.runtime import Arrivals

BOTH = (Grace(2), Grace(0))


def test_progress_is_the_largest_time_stamp_less_the_slack() -> None:
    arrivals = Arrivals(BOTH).build()
    assert arrivals.progress() == {}
    arrivals.heard(0, 10)
    arrivals.heard(0, 7)
    assert arrivals.progress() == {0: 8}
    arrivals.heard(1, 5)
    assert (arrivals.progress(), arrivals.newest) == ({0: 8, 1: 5}, 10)


def test_a_report_without_a_time_stamp_only_says_that_the_input_lives() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=0)
    arrivals.heard(1, None, clock=5)
    arrivals.heard(0, 20, clock=15)
    assert arrivals.progress() == {0: 18}, "input 1 has been silent for no more than it may"


def test_an_input_that_has_ended_is_past_everything_and_never_idle() -> None:
    arrivals = Arrivals((Grace(0), None), ended=(False, True), idle_after=1).build()
    arrivals.heard(0, 3, clock=0)
    arrivals.tick(100)
    assert arrivals.progress() == {0: 3, 1: FOREVER}


def test_an_input_without_slack_never_moves() -> None:
    arrivals = Arrivals((None, None)).build()
    arrivals.heard(0, 3)
    assert arrivals.progress() == {}


def test_an_idle_input_moves_up_to_those_that_are_not() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=0)
    arrivals.heard(1, 4, clock=0)
    arrivals.heard(0, 50, clock=10)
    assert arrivals.progress() == {0: 48, 1: 4}
    arrivals.heard(0, 60, clock=11)
    assert arrivals.progress() == {0: 58, 1: 58}
    arrivals.heard(1, 5, clock=12)
    assert arrivals.progress()[1] == 5, "awake; whoever has promised more keeps the promise"


def test_an_input_that_never_delivered_is_idle_too() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=100)
    assert arrivals.progress() == {0: 8}
    arrivals.heard(0, 11, clock=111)
    assert arrivals.progress() == {0: 9, 1: 9}


def test_when_all_are_idle_the_least_moves_up_to_the_largest() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=0)
    arrivals.heard(1, 30, clock=0)
    arrivals.tick(11)
    assert arrivals.progress() == {0: 30, 1: 30}
    nothing = Arrivals(BOTH, idle_after=10).build()
    nothing.tick(0)
    nothing.tick(100)
    assert nothing.progress() == {}


def test_a_clock_that_was_set_back_is_not_believed() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=100)
    arrivals.heard(1, 10, clock=50)
    assert (arrivals.clock, arrivals.last) == (100, [100, 100])


def test_what_was_heard_survives_a_restart() -> None:
    arrivals = Arrivals(BOTH, idle_after=10).build()
    arrivals.heard(0, 10, clock=1)
    again = Arrivals(BOTH, idle_after=10).build()
    again.restore(arrivals.to_json())
    for one in (arrivals, again):
        one.heard(0, 20, clock=12)
    assert again == arrivals
    assert again.progress() == {0: 18, 1: 18}
