"""A stage in one bucket: rows first, then progress; and that it goes on elsewhere as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER
from streamjoin.operators import RowWindow, TemporalJoin
from streamjoin.runtime.fragment import Entry, Node
from streamjoin.runtime.intake import Channel, StageInput
from streamjoin.runtime.lateness import Complete, Slack
from streamjoin.runtime.naming import OutputColumn, Shape
from streamjoin.runtime.outlet import Outlet, ToUser
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.stage import RunningStage, Stage, under, without
from streamjoin.state import Batch, Matching
from tests.state.making import PAYLOAD, batch
from tests.state.storing import Store

NAMES = ("l", "l note", "r", "r note")
SHAPE = Shape(tuple(OutputColumn(name, (name,), pa.int64()) for name in ("l", "r")), ("from", "to"), None, pa.int64())


def joining(*lateness: Any, ordered: bool = False, idle_after: int | None = None, **options: Any) -> Stage:
    """A join by time alone."""
    policies = lateness or (Slack(0), Slack(0))
    inputs = tuple(StageInput((Channel(at, policy),), Partitioning(1)) for at, policy in enumerate(policies))
    node = Node(TemporalJoin(Matching(), (PAYLOAD, PAYLOAD), **options), (Entry(0), Entry(1)), NAMES)
    return Stage(0, 1, inputs, (node,), Outlet(ToUser(9, SHAPE), "settled", ordered), idle_after)


def rows(channel: int, *some: tuple[int, int, int]) -> Packet:
    """Rows (id, ts, te)."""
    made = batch([(ts, te) for _, ts, te in some], ids=[number for number, _, _ in some])
    return Packet(0, channel, "rows", made.to_table())


def told(channel: int, largest: int, **more: int) -> Packet:
    return Packet(0, channel, "progress", {"largest": largest, **more})


def left(packets: Iterable[Packet]) -> list[tuple]:
    return [tuple(row.values()) for packet in packets for row in packet.table.to_pylist()]


def test_a_row_is_late_only_against_progress_that_earlier_micro_batches_made() -> None:
    stage = joining().build(0)
    first = [told(0, 100), told(1, 3), rows(0, (1, 0, 50), (2, 100, 150)), rows(1, (7, 3, 5))]
    assert left(stage.take(first)) == [(1, 7, 3, 5)]
    assert stage.figures()["late"] == 0
    assert left(stage.take([rows(0, (3, 4, 50))])) == []
    assert stage.figures()["late"] == 1


def test_rows_meet_those_of_their_own_micro_batch_before_anything_is_purged() -> None:
    stage = joining().build(0)
    both = [rows(1, (7, 0, 5)), rows(0, (1, 0, 5)), told(0, 1000), told(1, 1000)]
    assert left(stage.take(both)) == [(1, 7, 0, 5)]
    assert (stage.figures()["state_rows"], stage.figures()["rows_out"]) == (0, 1)


def test_progress_alone_lets_go_what_it_decides() -> None:
    stage = joining(how="left").build(0)
    assert left(stage.take([])) == []
    assert left(stage.take([rows(0, (1, 0, 5)), told(0, 9)])) == []
    assert left(stage.take([told(1, 9)])) == [(1, None, 0, 5)]


def test_the_end_lets_everything_go() -> None:
    stage = joining(ordered=True, how="full").build(0)
    assert left(stage.take([rows(0, (1, 5, 9)), rows(1, (7, 0, 3))])) == []
    assert left(stage.end()) == [(None, 7, 0, 3), (1, None, 5, 9)]
    assert stage.figures()["state_rows"] == 0


def test_nothing_comes_and_time_goes_on() -> None:
    stage = joining(idle_after=10, how="left").build(0)
    assert left(stage.take([rows(0, (1, 0, 5)), told(0, 9, clock=0)])) == []
    assert left(stage.tick(10)) == []
    assert left(stage.tick(11)) == [(1, None, 0, 5)], "input 1 is idle"


def test_figures_count_one_micro_batch_and_say_how_far_each_input_is() -> None:
    stage = joining(Slack(2), Slack(0)).build(0)
    list(stage.take([rows(0, (1, 0, 5)), told(0, 20), told(1, 30)]))
    figures = stage.figures()
    assert (figures["progress_0"], figures["lag_0"], figures["progress_1"], figures["lag_1"]) == (18, 12, 30, 0)
    assert (figures["rows_out"], figures["purged"], figures["state_rows"]) == (0, 1, 0)
    list(stage.take([]))
    assert stage.figures()["purged"] == 0


def test_merges_are_counted_in_the_micro_batch_that_makes_them_and_not_again_after_a_restart() -> None:
    config = joining(Slack(2), Slack(0))
    stage = config.build(0)
    merges = []
    for number in range(3):
        list(stage.take([rows(0, (number, number, 50)), told(0, number)]))
        merges.append(stage.figures()["merges"])
    assert merges == [0, 1, 1], "the second run joins the first, and the third both"
    again = config.build(0)
    again.restore(stage.snapshot())
    list(again.take([]))
    assert (again.figures()["merges"], again.figures()["spills"]) == (0, 0)


# What is there before ------------------------------------------------------------------------------------------------


def test_rows_that_are_put_aside_wait_for_the_first_micro_batch() -> None:
    stage, store = joining(Slack(0), Complete()).build(0), Store()
    stage.put([rows(1, (7, 0, 50))])
    store.save(stage.snapshot())
    again = joining(Slack(0), Complete()).build(0)
    again.restore(store.load())
    assert left(again.take([rows(0, (1, 5, 9)), told(0, 5)])) == [(1, 7, 5, 9)]
    store.save(again.snapshot())
    assert not any(name.startswith("aside/") for name in store.blobs), "they have been read"
    assert left(again.end()) == []


def test_the_end_reads_what_was_put_aside() -> None:
    stage = joining(Slack(0), Complete(), how="right").build(0)
    stage.put([rows(1, (7, 0, 50))])
    assert left(stage.end()) == [(None, 7, 0, 50)]


def test_the_last_time_stamp_of_what_is_there_is_heard_before_and_survives() -> None:
    """A drained window ends with it, though the row is in another bucket."""
    shape = Shape((OutputColumn("id", ("id",), pa.int64()),), ("from", "to"), None, pa.int64())
    node = Node(RowWindow(1, pa.schema([]), drain=True), (Entry(0, 0),), tuple(PAYLOAD.names))
    inputs = (StageInput((Channel(0, Complete()),), Partitioning(1)),)
    config = Stage(0, 1, inputs, (node,), Outlet(ToUser(9, shape), "settled"))
    stage, store = config.build(0), Store()
    stage.put([rows(0, (1, 5, FOREVER)), told(0, 20)])
    store.save(stage.snapshot())
    again = config.build(0)
    again.restore(store.load())
    assert left(again.end()) == [(1, 5, 21)]


def test_a_stage_is_complete_when_all_that_it_reads_is() -> None:
    assert joining(Complete(), Complete()).complete
    assert not joining(Complete(), Slack(0)).complete


def test_rows_of_a_batch_with_a_budget_go_on_as_they_come(tmp_path: Path) -> None:
    stage = replace(joining(Complete(), Complete(), how="left"), memory=1)
    heard: list[str] = []

    def packets() -> Iterator[Packet]:
        for name, packet in (
            ("first", rows(0, (1, 0, 9))),
            ("second", rows(1, (7, 5, 6))),
            ("third", rows(0, (2, 5, 9), (3, 20, 30))),
        ):
            heard.append(name)
            yield packet

    running = stage.build(0, str(tmp_path))
    taken = running.take(packets())
    assert left([next(taken)]) == [(1, 7, 5, 6)]
    assert heard == ["first", "second"], "what comes later is not asked for before results have left"
    assert sorted(left(taken) + left(running.end()), key=str) == [(2, 7, 5, 6), (3, None, 20, 30)]


def test_only_batches_whose_joins_take_rows_in_any_order_go_in_pieces() -> None:
    batch, stream = joining(Complete(), Complete()), joining(Complete(), Slack(0))
    assert not batch.in_pieces, "without a budget an input is one piece"
    assert replace(batch, memory=1).in_pieces
    assert not replace(stream, memory=1).in_pieces
    assert not replace(batch, memory=1, prioritised=True).in_pieces
    window = Node(RowWindow(1, pa.schema([])), (Entry(0, 0),), NAMES[:2])
    assert not replace(batch, memory=1, nodes=(window,)).in_pieces


# Saving --------------------------------------------------------------------------------------------------------------


def test_contract_a_restored_stage_goes_on_alike() -> None:
    config, rng = joining(Slack(3), Slack(1), ordered=True, how="full"), np.random.default_rng(4)
    steady, restarted, store, seen = config.build(0), config.build(0), Store(), 0
    for time in range(0, 60, 3):
        packets = []
        for channel in (0, 1):
            starts = [int(start) for start in rng.integers(time, time + 3, 3)]
            packets.append(rows(channel, *((100 * channel + start, start, start + 4) for start in starts)))
            packets.append(told(channel, max(starts)))
        both = [left(stage.take(packets)) for stage in (steady, restarted)]
        assert both[0] == both[1]
        seen += len(both[0])
        store.save(restarted.snapshot())
        restarted = _moved(config, store)
        assert restarted.figures()["state_rows"] == steady.figures()["state_rows"]
    assert left(steady.end()) == left(restarted.end())
    assert seen > 20


def _moved(config: Stage, store: Store) -> RunningStage:
    fresh = config.build(0)
    fresh.restore(store.load())
    return fresh


def test_blobs_of_parts_do_not_meet() -> None:
    blobs = {"run": b"1", "rest": b"2"}
    named = under("0:", blobs)
    assert (dict(named), len(named), "run" in named) == ({"0:run": b"1", "0:rest": b"2"}, 2, False)
    again = without("0:", {**named, "1:run": b"3"})
    assert (dict(again), len(again)) == (blobs, 2)


def test_a_batch_travels_as_a_table() -> None:
    some = Batch.from_table(rows(0, (1, 2, 3)).table)
    assert (some.ts.tolist(), some.te.tolist()) == ([2], [3])
