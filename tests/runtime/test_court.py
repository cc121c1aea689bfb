"""The court: a second stage hears every bucket of the first one, and decides when all have passed a row's end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Equals, Range, Rows
from streamjoin.operators import Judging
from streamjoin.operators.contract import side_by_side
from streamjoin.plan.identity import identity_of
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Stream
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.outlet import ToCourt
from streamjoin.runtime.packets import Packet
from streamjoin.state import Batch
from tests.in_process import plan_of
from tests.interpreter import InProcess
from tests.joins import JoinCall
from tests.operators.driving import rows
from tests.state.storing import Store, moved

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


def planned(*, buckets: int = 2, ordered: bool = False) -> PhysicalPlan:
    """A left join by a condition: left rows have copies in all buckets."""
    call = JoinCall(
        (SCHEMA, SCHEMA), windows=(Range(5), Range(5)), theta="l.id < r.id", how="left", buckets=buckets,
        emit="ordered" if ordered else "eager", lateness=(Slack(0), Slack(0)),
    )  # fmt: skip
    plan = call.plan()
    assert isinstance(plan.stages[1].nodes[0].config, Judging)
    return plan


class Court:
    """The second stage in bucket 0, fed by hand."""

    def __init__(self, *, buckets: int = 2, ordered: bool = False) -> None:
        self.stage = planned(buckets=buckets, ordered=ordered).stages[1]
        self.running = self.stage.build(0)
        self.results, self.claimants, self.witnesses = (each.channels[0].number for each in self.stage.inputs)

    def take(self, *packets: Packet) -> list[tuple]:
        return shown(self.running.take(packets))

    def told(self, bucket: int, joined: int, to_come: int) -> list[Packet]:
        """A bucket has joined all that ends by `joined`, and no result before `to_come` leaves it any more."""
        times = {self.results: to_come, self.claimants: joined, self.witnesses: joined}
        return [Packet(0, number, "progress", {"bucket": bucket, "progress": time}) for number, time in times.items()]

    def claimant(self, *some: tuple[int, int, int]) -> Packet:
        return Packet(0, self.claimants, "rows", _originals(*some).to_table())

    def witness(self, *some: tuple[int, int, int]) -> Packet:
        return Packet(0, self.witnesses, "rows", replace(_originals(*some), payload=pa.table({})).to_table())

    def pair(self, ts: int, te: int) -> Packet:
        members = [_rows((7, ts, te), number=number).payload for number in (0, 1)]
        batch = Batch(side_by_side(members), np.array([ts]), np.array([te]), np.zeros(1, np.int64))
        return Packet(0, self.results, "rows", batch.to_table())


def _rows(*some: tuple[int, int, int], number: int = 0) -> Batch:
    batch = rows(*some)
    columns = {f"{number}.id": batch.payload["id"], f"{number}.ts": pa.array(batch.ts)}
    return replace(batch, payload=pa.table(columns))


def _originals(*some: tuple[int, int, int]) -> Batch:
    return replace(_rows(*some), origin=np.array([number for number, *_ in some], np.int64))


def shown(packets: Any) -> list[tuple]:
    """What the user sees, as `(left id, right id, from, to)`."""
    names = ("id", "id_right", "valid_from", "valid_to")
    found = [row for packet in packets if packet.kind == "final" for row in packet.table.to_pylist()]
    return [tuple(row[name] for name in names) for row in found]


def test_nothing_is_decided_before_every_bucket_has_passed_it() -> None:
    court = Court()
    said = [court.claimant((1, 0, 5), (2, 0, 5)), court.witness((1, 0, 5))]
    assert court.take(*said, *court.told(0, 9, 9)) == []
    assert court.running.figures()["state_rows"] == 3
    assert court.take(*court.told(1, 4, 4)) == [], "bucket 1 may still hold the one witness"
    assert court.take(*court.told(1, 5, 5)) == [(2, None, 0, 5)]
    figures = court.running.figures()
    assert (figures["state_rows"], figures["rows_out"]) == (0, 1)
    assert court.take() == [], "there are no news"


def test_results_pass_at_once_unless_they_must_be_in_order() -> None:
    court = Court()
    assert court.take(court.pair(3, 9)) == [(7, 7, 3, 9)]
    court = Court(ordered=True)
    assert court.take(court.pair(3, 9)) == []
    assert court.take(court.pair(2, 4)) == []
    said = court.claimant((1, 1, 6))
    first = [*court.told(0, 5, 3), *court.told(1, 5, 3)]
    assert court.take(said, *first) == [], "row 1 is undecided, and begins before both"
    assert court.take(*court.told(0, 6, 3)) == [], "by bucket 1 it may have met someone"
    assert court.take(*court.told(1, 6, 3)) == [(1, None, 1, 6), (7, 7, 2, 4)]
    assert shown(court.running.end()) == [(7, 7, 3, 9)]


def test_the_end_decides_everything() -> None:
    court = Court()
    assert court.take(court.claimant((1, 0, FOREVER))) == []
    assert shown(court.running.end()) == [(1, None, 0, None)]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_court_goes_on_from_its_snapshot(ordered: bool) -> None:
    court = Court(ordered=ordered)
    said = [court.claimant((1, 0, 5), (2, 0, 5)), court.witness((2, 0, 5))]
    court.take(court.pair(3, 9), *said, *court.told(0, 7, 7))
    again = moved(court.running, court.stage.build(0), Store(), name=None)
    both = [shown(one.take(court.told(1, 5, 4))) for one in (court.running, again)]
    assert both[0] == both[1] != []
    assert again.intake.snapshot() == court.running.intake.snapshot()
    assert [each.reached for each in again.intake.channels.values()] == [{0: 7, 1: 4}, {0: 7, 1: 5}, {0: 7, 1: 5}]
    assert shown(again.end()) == shown(court.running.end())


def test_a_court_over_other_buckets_is_another_one() -> None:
    two, three = (planned(buckets=buckets) for buckets in (2, 3))
    assert identity_of(two, two.stages[1])["buckets"] != identity_of(three, three.stages[1])["buckets"]


def test_an_end_comes_once_to_whoever_reads_a_court() -> None:
    """Each bucket of the first stage says the ends of its own results: its own bucket of the court hands them on."""
    columns = pa.schema([(name, pa.int64()) for name in ("id", "ts")])

    def stream(name: str, window: Any) -> Stream:
        return Stream(name, ((f"{name}.id", "id"),), "ts", window)

    def left_join(one: Any, two: Any, *predicates: Any) -> Join:
        return Join(one, two, predicates, None, "left", "row")

    first = left_join(stream("R", Rows(1, drain=True)), stream("S", Range(9)))
    relation = left_join(first, stream("T", Range(9)), Equals("R.id", "T.id"))
    leaving = Leaving(validity=("from", "to"), buckets=2)
    running = InProcess(plan_of(relation, dict.fromkeys("RST", columns), dict.fromkeys("RST", 0), leaving))
    assert [isinstance(stage.outlet.way, ToCourt) for stage in running.plan.stages] == [False, True, False, False]
    some = {name: [pa.table({"id": [number], "ts": [5]}, columns)] for name, number in (("R", 1), ("S", 2))}
    left = [*running.micro_batch(some), *running.end()]
    found = [tuple(row[name] for name in ("R.id", "S.id", "T.id", "from", "to")) for t in left for row in t.to_pylist()]
    assert found == [(1, 2, None, 5, 6)]
