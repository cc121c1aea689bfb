"""Judging: results pass, and rows are decided when all testimony about them has been given."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Band
from streamjoin.errors import SnapshotError
from streamjoin.operators import Judging, Output, Results, Rows, TemporalJoin, Verdict
from streamjoin.operators.contract import side_by_side
from streamjoin.operators.judging import RunningJudging
from streamjoin.state import Batch, Ends, Matching
from tests.contract import seen
from tests.operators.driving import SCHEMAS, end, micro_batch, results, rows
from tests.operators.subjects import COPIED
from tests.state.making import PAYLOAD

RESULTS, CLAIMANTS, WITNESSES = 0, 1, 2


def judging(*, ordered: bool = False) -> RunningJudging:
    return Judging((Verdict(0, SCHEMAS, "left"),), ordered).build()


def claimants(*some: tuple[int, int, int]) -> Batch:
    return replace(rows(*some), origin=np.array([number for number, *_ in some], np.int64))


def witnesses(*some: tuple[int, int, int]) -> Batch:
    return replace(claimants(*some), payload=pa.table({}))


def pair(ts: int, te: int, holder: int = -1) -> Batch:
    member = rows((7, ts, te))
    return replace(member, payload=side_by_side([member.payload] * 2), holder=np.array([holder]))


def put(running: RunningJudging, number: int, batch: Batch) -> list[tuple]:
    return results(running.on_batch(number, batch))


def progress(running: RunningJudging, *times: int | None) -> list[tuple]:
    told = [(number, time) for number, time in enumerate(times) if time is not None]
    return [result for number, time in told for result in results(running.on_progress(number, time))]


def test_nothing_is_decided_before_all_testimony_has_been_given() -> None:
    running = judging()
    put(running, CLAIMANTS, claimants((1, 0, 5), (2, 0, 5)))
    put(running, WITNESSES, witnesses((1, 0, 5)))
    assert progress(running, 9, 9) == [], "the one witness may still come"
    assert progress(running, None, None, 4) == []
    assert running.footprint.rows == 3
    assert running.progress == 0, "a row at 0 is undecided"
    assert progress(running, None, None, 5) == [(2, None, 0, 5)]
    assert (running.footprint.rows, running.figures) == (0, {"rows_in": 3, "results": 1})
    assert running.progress == 9


def test_results_pass_at_once_unless_they_must_be_in_order() -> None:
    assert put(judging(), RESULTS, pair(3, 9)) == [(7, 7, 3, 9)]
    running = judging(ordered=True)
    assert put(running, RESULTS, pair(3, 9)) == []
    assert put(running, RESULTS, pair(2, 4)) == []
    put(running, CLAIMANTS, claimants((1, 1, 6)))
    assert progress(running, 3, 5, 5) == [], "row 1 is undecided, and begins before both"
    assert running.progress == 1
    assert progress(running, None, 6, 6) == [(1, None, 1, 6), (7, 7, 2, 4)]
    assert running.progress == 3
    assert end(running) == [(7, 7, 3, 9)]
    assert running.progress == FOREVER


def test_the_end_decides_everything() -> None:
    running = judging()
    put(running, CLAIMANTS, claimants((1, 0, FOREVER)))
    assert end(running) == [(1, None, 0, FOREVER)]
    assert running.state_rows == 0


def test_unknown_ends_go_through() -> None:
    running = judging()
    (passed,) = running.on_batch(RESULTS, pair(3, FOREVER, holder=11))
    assert isinstance(passed, Results)
    assert passed.holder.tolist() == [11]
    ends = Ends(np.array([11]), np.array([8]))
    assert [one.te.tolist() for one in running.on_ends(RESULTS, ends)] == [[8]]
    assert list(running.on_ends(CLAIMANTS, ends)) == [], "claimants have ends"


def test_a_result_that_waits_takes_its_end_here() -> None:
    running = judging(ordered=True)
    put(running, RESULTS, pair(3, FOREVER, holder=11))
    put(running, RESULTS, pair(5, FOREVER, holder=12))
    (other,) = running.on_ends(RESULTS, Ends(np.array([11, 99]), np.array([8, 9])))
    assert (other.holder.tolist(), other.te.tolist()) == ([99], [9]), "of a result that has left"
    (out,) = running.on_end()
    assert (out.ts.tolist(), out.te.tolist(), out.holder.tolist()) == ([3, 5], [8, FOREVER], [-1, 12])


def test_plus_and_minus_tuples_go_through() -> None:
    signed = replace(pair(3, FOREVER, holder=11), sign=np.array([-1], np.int8))
    (passed,) = judging().on_batch(RESULTS, signed)
    assert passed.sign.tolist() == [-1]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_snapshot_belongs_to_the_same_verdicts(ordered: bool) -> None:
    running = judging(ordered=ordered)
    others = [judging(ordered=not ordered), Judging((Verdict(1, SCHEMAS, "left"),), ordered).build()]
    for other in others:
        with pytest.raises(SnapshotError, match="made by another join"):
            other.restore(running.snapshot())


@pytest.mark.parametrize("outer", ["row", "snapshot"])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_differential_judging_decides_as_one_bucket_does(seed: int, ordered: bool, outer: str) -> None:
    """What two buckets of a full join say of rows that both of them have. Each bucket's progress is its own; pairs meet
    twice, and whatever is decided is decided once.
    """
    rng = random.Random(seed)
    options: dict[str, Any] = {"how": "full", "outer": outer, "emit": "ordered" if ordered else "eager"}
    matching = Matching(Band("v", "v", 0.1, 0.3))
    join = TemporalJoin(matching, SCHEMAS, replicated=(True, True), **options)
    alone = TemporalJoin(matching, SCHEMAS, **options).build()
    running = Judging(tuple(Verdict(number, SCHEMAS, "full", outer) for number in (0, 1)), ordered).build()
    buckets, sides = [join.build(), join.build()], COPIED(rng, 3)
    expected: list[tuple] = []
    found: list[tuple] = []
    position = 0
    while position < max(map(len, sides)):
        taken = range(position, position + rng.randint(1, 5))
        position = taken.stop
        arrived = [side.take(np.array([row for row in taken if row < len(side)], np.int64)) for side in sides]
        reached = [int(side.take(np.arange(min(position, len(side)))).ts.max()) - 3 for side in sides]
        for bucket, operator in enumerate(buckets):
            # A row that is at home in bucket 0 is abroad in 1.
            mine = {n: replace(some, home=some.home if bucket == 0 else ~some.home) for n, some in enumerate(arrived)}
            found += _judged(micro_batch(operator, mine, *reached), running)
        for number in range(running.inputs):
            least = min(each.joined if number else each.progress for each in buckets)
            found += seen(list(running.on_progress(number, least)))
        plain = {number: replace(some, home=None, origin=None) for number, some in enumerate(arrived)}
        expected += seen(list(micro_batch(alone, plain, *reached)))
    for operator in buckets:
        found += _judged(operator.on_end(), running)
    found += seen(list(running.on_end()))
    expected += seen(list(alone.on_end()))
    assert expected, "the example itself is wrong: nothing leaves"
    pairs = [row for row in expected if _is_pair(row)]
    assert Counter(found) == Counter([*expected, *pairs]), f"seed {seed}"
    if ordered:
        assert [row[1:3] for row in found] == sorted(row[1:3] for row in found), f"seed {seed}"


def _judged(outputs: Iterator[Output], running: RunningJudging) -> list[tuple]:
    """What leaves the second stage at once, of what a bucket of the first one says."""
    found = []
    for output in outputs:
        if isinstance(output, Rows):
            number = 1 + 2 * output.input + (output.name == "witness")
            assert list(running.on_batch(number, output.batch)) == []
        else:
            assert isinstance(output, Results)
            group = np.zeros(len(output), np.int64)
            found += seen(list(running.on_batch(0, Batch(output.payload, output.ts, output.te, group))))
    return found


def _is_pair(row: tuple) -> bool:
    content = row[3]
    return content[0] is not None and content[len(PAYLOAD)] is not None
