"""The outlet of a stage: what leaves when, and in which form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results, Rows
from streamjoin.runtime import target as targets
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.elements import elements_of, reports_of
from streamjoin.runtime.naming import OutputColumn, Shape
from streamjoin.runtime.outlet import Outlet, RunningOutlet, ToCourt, ToFrame, ToStage, ToUser
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.target import Target
from streamjoin.state import Batch, Ends
from tests.state.making import batch
from tests.state.storing import Store

SCHEMA = pa.schema([("a", pa.int64())])
USER = ToUser(
    9, Shape((OutputColumn("a", ("a",), pa.int64()),), ("from", "to"), time_type=pa.int64(), flags=("_late",))
)


def results(*some: tuple[int, int, int], holders: list[int] | None = None, signs: list[int] | None = None) -> Results:
    """Elements (a, ts, te)."""
    a, ts, te = (np.array(column, np.int64) for column in zip(*some, strict=True))
    holder = None if holders is None else np.array(holders, np.int64)
    return Results(pa.table({"a": a}), ts, te, holder=holder, sign=None if signs is None else np.array(signs, np.int8))


def ends(*pairs: tuple[int, int]) -> Ends:
    return Ends(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))


def outlet(leaves: Any = "settled", way: Any = USER, **options: Any) -> RunningOutlet:
    return RunningOutlet(Outlet(way, leaves, **options), 1)


def shown(packets: Any) -> list[tuple]:
    """What the user sees: a, from and to."""
    return [tuple(row.values())[:3] for packet in packets for row in packet.table.to_pylist()]


# When ----------------------------------------------------------------------------------------------------------------


def test_what_leaves_a_query_has_its_end() -> None:
    given = outlet()
    assert shown(given.send(results((1, 0, 5), (2, 0, FOREVER), holders=[-1, 7]))) == [(1, 0, 5)]
    assert given.footprint.rows == 1
    assert shown(given.send(ends((7, 4), (8, 3)))) == [(2, 0, 4)]
    assert (given.footprint.rows, given.rows_out) == (0, 2)


def test_what_is_never_valid_does_not_leave() -> None:
    given = outlet()
    assert shown(given.send(results((1, 3, FOREVER), holders=[7]))) == []
    assert shown(given.send(ends((7, 3)))) == []


def test_plus_and_minus_tuples_leave_as_elements() -> None:
    given = outlet()
    assert shown(given.send(results((1, 0, FOREVER), (2, 0, FOREVER), holders=[7, 8], signs=[1, 1]))) == []
    assert shown(given.send(results((1, 6, FOREVER), holders=[7], signs=[-1]))) == [(1, 0, 6)]
    assert shown(given.end()) == [(2, 0, None)]


def test_to_another_operator_everything_goes_at_once_and_ends_follow() -> None:
    given = outlet("passed on", ToCourt(4, 2))
    (rows,) = given.send(results((1, 0, FOREVER), holders=[7]))
    assert (rows.kind, Batch.from_table(rows.table).holder.tolist()) == ("rows", [7])
    told = [(packet.bucket, packet.kind) for packet in given.send(ends((7, 4)))]
    assert told == [(rows.bucket, "ends")] == [(1, "ends")], "in the other bucket nobody has the row"
    assert given.footprint.rows == 0


def test_a_changelog_is_told_as_it_comes() -> None:
    shape = Shape((OutputColumn("a", ("a",), pa.int64()),), None, "at", pa.int64(), change=True)
    given = outlet("told", ToUser(9, shape))
    (said,) = given.send(results((1, 0, FOREVER), (2, 6, FOREVER), holders=[7, 8], signs=[1, -1]))
    assert said.table.to_pylist() == [{"a": 1, "_change": "insert", "at": 0}, {"a": 2, "_change": "retract", "at": 6}]


def test_in_order_a_result_waits_until_nothing_earlier_can_come() -> None:
    given = outlet(ordered=True)
    assert shown(given.send(results((1, 3, 9), (2, 3, 5), (3, 1, 2), (4, 8, 9)))) == []
    assert shown(given.move(3, 0)) == [(3, 1, 2)], "another one at 3 may come"
    assert shown(given.move(4, 0)) == [(2, 3, 5), (1, 3, 9)]
    assert (shown(given.end()), given.footprint.rows) == ([(4, 8, 9)], 0)


def test_in_order_nobody_overtakes_a_result_whose_end_is_not_known() -> None:
    given = outlet(ordered=True)
    assert shown(given.send(results((1, 2, FOREVER), (2, 3, 5), holders=[7, -1]))) == []
    assert shown(given.move(100, 0)) == []
    assert shown(given.send(ends((7, 50)))) == []
    assert shown(given.move(101, 0)) == [(1, 2, 50), (2, 3, 5)]


def test_the_end_lets_everything_go() -> None:
    given = outlet(ordered=True)
    assert shown(given.send(results((1, 2, FOREVER), (2, 1, 5), holders=[7, -1]))) == []
    assert shown(given.end()) == [(2, 1, 5), (1, 2, None)]


def test_progress_is_said_once_and_again_at_the_end() -> None:
    given = outlet("passed on", ToCourt(4, 1))
    said = [packet.report for time in (5, 5, 6) for packet in given.move(time, 0)]
    assert said == [{"bucket": 1, "progress": 5}, {"bucket": 1, "progress": 6}]
    assert [packet.report["progress"] for packet in given.end()] == [FOREVER]


@pytest.mark.parametrize("ordered", [False, True])
def test_contract_a_restored_outlet_goes_on_alike(ordered: bool) -> None:
    given, store = outlet(ordered=ordered), Store()
    list(given.send(results((1, 2, FOREVER), (2, 3, 5), holders=[7, -1])))
    list(given.move(3, 3))
    store.save(given.snapshot())
    again = outlet(ordered=ordered)
    again.restore(store.load())
    assert (again.footprint.rows, again.said) == (given.footprint.rows, (3, 3))
    for one in (given, again):
        left = shown(one.send(ends((7, 9)))) + shown(one.end())
        assert left == ([(1, 2, 9), (2, 3, 5)] if ordered else [(1, 2, 9)])


# In which form -------------------------------------------------------------------------------------------------------


def test_to_a_stage_rows_go_where_they_belong_and_reports_everywhere() -> None:
    target = Target(4, RowBinding(("a",), placed_by=("a",)), Partitioning(3))
    way = ToStage(target)
    rows = list(way.results(1, results(*((number, 0, 5) for number in range(20)))))
    assert {packet.bucket for packet in rows} == {0, 1, 2}
    assert sorted(a for packet in rows for a in Batch.from_table(packet.table).payload["a"].to_pylist()) == [*range(20)]
    assert [packet.bucket for packet in way.tell(1, "progress", {"bucket": 1, "progress": 5})] == [0, 1, 2]
    assert [packet.bucket for packet in way.tell(1, "ends", ends((7, 4)).to_table())] == [0, 1, 2]
    (late,) = way.shown(4, Packet(4, 0, "late", pa.table({"a": [1]})))
    assert (late.bucket, late.channel, late.kind) == (1, 0, "late"), "to be shown once, and whose it is"


def test_to_a_court_rows_stay_in_their_bucket() -> None:
    (rows,) = ToCourt(4, 3).results(2, results((1, 0, 5)))
    assert (rows.bucket, rows.channel, rows.kind) == (2, 4, "rows")


def test_where_spark_computes_reports_are_rows_among_elements() -> None:
    way = ToFrame(4, SCHEMA)
    said = {"bucket": 1, "progress": 5}
    packets = [
        *way.results(1, results((1, 0, 5))),
        *way.tell(1, "progress", said),
        *way.tell(1, "ends", ends((7, 4)).to_table()),
    ]
    assert {packet.kind for packet in packets} == {"final"}
    table = pa.concat_tables([packet.table for packet in packets])
    assert elements_of(table, ("a",)).payload.to_pydict() == {"a": [1]}
    progress, known = reports_of(table)
    assert (progress.kind, progress.channel, progress.report) == ("progress", 4, said)
    assert Ends.from_table(known.table).te.tolist() == [4]


def test_the_user_sees_rows_that_only_pass_marked_and_without_a_validity() -> None:
    given = outlet()
    (late,) = given.shown(Packet(1, 0, "late", pa.table({"a": [3], "other": ["x"]})))
    assert late.table.to_pylist() == [{"a": 3, "from": None, "to": None, "_late": True}]
    assert given.rows_out == 1
    with pytest.raises(AssertionError, match="has its end"):
        list(USER.tell(1, "ends", ends((7, 4)).to_table()))


def test_word_of_rows_with_copies_goes_where_all_that_is_said_of_them_comes() -> None:
    given = outlet(
        "passed on",
        ToCourt(4, 2),
        testimony=(targets.Testimony(5, "witness", 0, 2), targets.Testimony(6, "witness", 1, 2)),
    )
    some = batch([(1, 2)] * 4, origin=[10, 11, 10, 13])
    said = list(given.send(Rows("witness", 1, some)))
    assert {packet.channel for packet in said} == {6}
    where = {origin: packet.bucket for packet in said for origin in Batch.from_table(packet.table).origin.tolist()}
    assert set(where) == {10, 11, 13}
    told = [(packet.channel, packet.bucket, packet.report["progress"]) for packet in given.move(9, 3)]
    assert told == [(4, 0, 9), (4, 1, 9), (5, 0, 3), (5, 1, 3), (6, 0, 3), (6, 1, 3)]
