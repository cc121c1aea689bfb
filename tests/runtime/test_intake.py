"""The intake of a stage: what is late, and how far each input is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.errors import LateRowError
from streamjoin.runtime.intake import Channel, Intake, StageInput
from streamjoin.runtime.lateness import Complete, Slack, Timeless
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.placing import MatrixPartitioning, Partitioning
from streamjoin.state import Ends, Snapshot
from tests.state.making import batch, ids

BOTH = (Slack(2), Slack(0))


def intake(*policies: Any, idle_after: int | None = None, **options: Any) -> Intake:
    """One input for each policy, fed by one source."""
    channels = [Channel(number, policy, label=f"stream {number}", **options) for number, policy in enumerate(policies)]
    return Intake(tuple(StageInput((each,), Partitioning(1)) for each in channels), 0, idle_after)


def rows(channel: int, *times: int) -> Packet:
    return Packet(0, channel, "rows", batch([(time, time + 1) for time in times], ids=times).to_table())


def told(channel: int, largest: int | None, clock: int | None = None) -> Packet:
    return Packet(0, channel, "progress", {"largest": largest} | ({} if clock is None else {"clock": clock}))


def heard(given: Intake, *packets: Packet) -> list[int]:
    given.take(packets)
    return given.progress()


# Progress ------------------------------------------------------------------------------------------------------------


def test_progress_is_that_of_each_source_whatever_its_tasks_say_first() -> None:
    given = intake(*BOTH)
    assert given.progress() == [NEVER, NEVER]
    assert heard(given, told(0, 10), told(0, 7)) == [8, NEVER]
    assert heard(given, told(1, 5)) == [8, 5]
    assert (given.newest, given.largest(0), given.largest(1)) == (10, 10, 5)


def test_an_input_is_as_far_as_the_least_of_its_channels_and_of_their_buckets() -> None:
    channels = Channel(0, Slack(0)), Channel(1, buckets=2)
    given = Intake((StageInput(channels, Partitioning(1)),), 0)

    def bucket(number: int, progress: int) -> Packet:
        return Packet(0, 1, "progress", {"bucket": number, "progress": progress})

    assert heard(given, told(0, 9), bucket(0, 20)) == [NEVER]
    assert heard(given, bucket(1, 5)) == [5]
    assert heard(given, bucket(1, 3), bucket(1, 30)) == [9], "a bucket does not go back either"


def test_what_has_ended_is_past_everything_and_what_has_no_time_never_moves() -> None:
    given = intake(Slack(0), Complete(), Timeless())
    assert heard(given, told(0, 3)) == [3, FOREVER, NEVER]
    stage = Channel(3, buckets=4, complete=True)
    assert Intake((StageInput((stage,), Partitioning(1)),), 0).progress() == [FOREVER]


def test_what_was_heard_survives_a_restart() -> None:
    given, again = (intake(*BOTH, idle_after=10) for _ in range(2))
    heard(given, told(0, 10, clock=1))
    again.restore(Snapshot(json.loads(json.dumps(given.snapshot().manifest))))
    for one in (given, again):
        one.take([told(0, 20, clock=12)])
    assert again.progress() == given.progress() == [18, 18]
    assert again.snapshot() == given.snapshot()


# Late rows -----------------------------------------------------------------------------------------------------------


def test_a_row_is_late_only_against_progress_that_earlier_micro_batches_made() -> None:
    given = intake(Slack(0))
    assert ids(given.take([told(0, 100), rows(0, 5, 100)]).batches[0]) == [5, 100], "whatever comes first"
    given.progress()
    assert ids(given.take([rows(0, 99, 100), told(0, 200)]).batches[0]) == [100]
    assert given.late == 1
    given.progress()
    given.take([])
    assert given.late == 0, "counted anew in each micro-batch"


def test_rows_of_a_stage_and_of_what_is_complete_are_never_late() -> None:
    given = intake(Complete())
    given.progress()
    assert ids(given.take([rows(0, -5, 5)]).batches[0]) == [-5, 5]
    stage = Intake((StageInput((Channel(0, buckets=1),), Partitioning(1)),), 0)
    heard(stage, Packet(0, 0, "progress", {"bucket": 0, "progress": 50}))
    assert ids(stage.take([rows(0, 5)]).batches[0]) == [5]


@pytest.mark.parametrize(("policy", "goes_on"), [("drop", [9]), ("output", [9]), ("join", [5, 9])])
def test_late_rows_are_dropped_or_shown_or_go_on(policy: Any, goes_on: list[int]) -> None:
    given = intake(Slack(0), late=policy)
    heard(given, told(0, 9))
    arrived = given.take([rows(0, 5, 9)])
    assert (ids(arrived.batches[0]), given.late) == (goes_on, 1)
    shown = [(packet.kind, packet.channel, ids(packet.table)) for packet in arrived.shown]
    assert shown == ([("late", 0, [5])] if policy == "output" else [])


def test_late_rows_fail_with_the_source_and_the_row() -> None:
    given = intake(Slack(0), late="fail")
    heard(given, told(0, 9))
    with pytest.raises(LateRowError, match=r"stream 0 brought 2 row\(s\) behind its progress 9, .* {'id': 5, 'note'"):
        given.take([rows(0, 5, 6)])


def test_a_row_without_time_is_never_late() -> None:
    given = intake(Slack(0))
    heard(given, told(0, 9))
    assert ids(given.take([rows(0, NEVER)]).batches[0]) == [NEVER]


def test_a_late_row_with_copies_is_counted_where_it_is_at_home() -> None:
    """A matrix of 2 x 2 buckets has each row of input 0 twice."""
    matrix = MatrixPartitioning(4)
    late = batch([(5, 6)], ids=[1])
    where = set(matrix.place(0, late).buckets.tolist())
    assert len(where) == 2
    counted = {}
    for bucket in where:
        given = Intake((StageInput((Channel(0, Slack(0), late="output"),), matrix, 0),), bucket)
        heard(given, told(0, 9))
        arrived = given.take([Packet(bucket, 0, "rows", late.to_table())])
        counted[bucket] = (given.late, len(arrived.shown))
    assert sorted(counted.values()) == [(0, 0), (1, 1)]


def test_rows_of_all_channels_of_an_input_come_as_one_batch_and_ends_beside_them() -> None:
    given = Intake((StageInput((Channel(0, Slack(0)), Channel(1, Slack(0))), Partitioning(1)),), 0)
    ends = Packet(0, 1, "ends", Ends(np.array([7]), np.array([9])).to_table())
    passing = Packet(0, 5, "invalid", rows(0, 3).table)
    arrived = given.take([rows(1, 2), ends, rows(0, 1), passing])
    assert sorted(ids(arrived.batches[0])) == [1, 2]
    assert [some.te.tolist() for some in arrived.ends[0]] == [[9]]
    assert arrived.shown == [passing]


# Idle channels -------------------------------------------------------------------------------------------------------


def test_an_idle_channel_moves_up_to_those_that_are_not_and_its_rows_behind_are_late() -> None:
    given = intake(*BOTH, idle_after=10)
    heard(given, told(0, 10, clock=0), told(1, 4, clock=0))
    assert heard(given, told(0, 50, clock=10)) == [48, 4]
    assert heard(given, told(0, 60, clock=11)) == [58, 58]
    given.take([rows(1, 57, 58), told(1, 58, clock=12)])
    assert given.late == 1
    assert heard(given, told(1, 5, clock=12)) == [58, 58], "awake; what was promised is kept"


def test_a_report_without_a_time_stamp_says_that_the_channel_lives() -> None:
    given = intake(*BOTH, idle_after=10)
    assert heard(given, told(0, 10, clock=0), told(1, None, clock=5)) == [8, NEVER]
    assert heard(given, told(0, 20, clock=15)) == [18, NEVER]


def test_a_channel_that_never_delivered_is_idle_too() -> None:
    given = intake(*BOTH, idle_after=10)
    assert heard(given, told(0, 10, clock=100)) == [8, NEVER]
    assert heard(given, told(0, 11, clock=111)) == [9, 9]


def test_when_all_are_idle_the_least_moves_up_to_the_largest() -> None:
    given = intake(*BOTH, idle_after=10)
    heard(given, told(0, 10, clock=0), told(1, 30, clock=0))
    given.tick(11)
    assert given.progress() == [30, 30]
    nothing = intake(*BOTH, idle_after=10)
    nothing.tick(0)
    nothing.tick(100)
    assert nothing.progress() == [NEVER, NEVER]


def test_what_has_ended_is_never_idle_and_holds_nobody_up() -> None:
    given = intake(Slack(0), Complete(), idle_after=1)
    heard(given, told(0, 3, clock=0))
    given.tick(100)
    assert given.progress() == [3, FOREVER]


def test_a_clock_that_was_set_back_is_not_believed() -> None:
    given = intake(*BOTH, idle_after=10)
    heard(given, told(0, 10, clock=100), told(1, 10, clock=50))
    assert (given.clock, [channel.last for channel in given.channels.values()]) == (100, [100, 100])
    assert (given.has_seen(100), given.has_seen(101)) == (True, False)


# Urgent rows ---------------------------------------------------------------------------------------------------------


def test_urgent_rows_come_apart_and_the_others_are_not_copied_for_them() -> None:
    first = replace(batch([(1, 2), (3, 4)], ids=[1, 2]), priority=np.array([5, 7]))
    both = replace(batch([(1, 2), (3, 4)], ids=[5, 6]), priority=np.array([0, 7]))
    others = rows(0, 8, 9)
    packets = [Packet(0, 0, "rows", first.to_table()), others, Packet(0, 1, "rows", both.to_table())]
    arrived = intake(*BOTH).take(packets)
    assert {number: ids(each) for number, each in arrived.urgent.items()} == {0: [1, 2], 1: [6]}
    assert {number: ids(each) for number, each in arrived.batches.items()} == {0: [8, 9], 1: [5]}
    assert all(each.priority is None for each in arrived.batches.values())
    assert np.shares_memory(arrived.batches[0].ts, others.table["__sj_ts"].to_numpy())
    alone = intake(*BOTH).take(packets[:1])
    assert (list(alone.urgent), list(alone.batches)) == ([0], [])
