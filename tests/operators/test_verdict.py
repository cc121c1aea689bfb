"""The verdict: claimants and witnesses of a row, brought together by its origin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators import Verdict
from streamjoin.operators.verdict import RunningVerdict
from streamjoin.state import Batch
from tests.operators.driving import SCHEMAS, end, progress, put, results


def verdict(how: str, outer: str = "row", number: int = 0) -> RunningVerdict:
    return Verdict(number, SCHEMAS, how, outer).build()


def witnessed(
    operator: RunningVerdict, *words: tuple[int, int, int], parts: list[tuple[int, int]] | None = None
) -> None:
    """Witnesses `(origin, ts, te)`, by snapshot with the part of the validity that each has seen covered."""
    origin, ts, te = (np.array(column, np.int64) for column in zip(*words, strict=True))
    values = () if parts is None else tuple(np.array(column, np.int64) for column in zip(*parts, strict=True))
    word = Batch(pa.table({}), ts, te, np.zeros(len(ts), np.int64), values, origin=origin)
    assert results(operator.on_batch(1, word)) == []


@pytest.mark.parametrize(
    ("how", "number", "expected"),
    [
        ("left", 0, [(2, None, 0, 5)]),
        ("right", 1, [(None, 2, 0, 5)]),
        ("full", 1, [(None, 2, 0, 5)]),
        ("anti", 0, [(2, None, 0, 5)]),
        ("semi", 0, [(1, None, 0, 5)]),
    ],
)
def test_a_claimant_without_a_witness_met_nobody(how: str, number: int, expected: list) -> None:
    operator = verdict(how, number=number)
    assert put(operator, 0, (1, 0, 5), (2, 0, 5), origin=[11, 12]) == []
    witnessed(operator, (11, 0, 5), (11, 0, 5))
    assert end(operator) == expected
    assert operator.state_rows == 0
    assert operator.figures == {"rows_in": 4, "results": 1}


def test_a_row_is_decided_when_both_inputs_have_passed_its_end() -> None:
    operator = verdict("left")
    put(operator, 0, (1, 0, 5), origin=[11])
    assert progress(operator, 5, 4) == []
    assert operator.progress == 0
    assert progress(operator, 5, 5) == [(1, None, 0, 5)]
    assert operator.progress == 5


def test_a_witness_may_come_before_its_claimant_or_after() -> None:
    operator = verdict("left")
    witnessed(operator, (11, 0, 5))
    put(operator, 0, (1, 0, 5), (2, 0, 5), origin=[11, 12])
    witnessed(operator, (12, 0, 5))
    assert progress(operator, 9, 9) == []
    assert operator.state_rows == 0, "witnesses are forgotten with their claimants"


def test_a_witness_whose_row_is_no_claimant_is_forgotten_at_its_end() -> None:
    """The replica at home has met someone itself."""
    operator = verdict("left")
    witnessed(operator, (11, 0, 5))
    assert progress(operator, 9, 9) == []
    assert operator.state_rows == 0


def test_by_snapshot_the_parts_of_all_buckets_count_together() -> None:
    seen = [(2, 4), (3, 6), (6, 7), (12, 14)]
    for how, expected in {
        "left": [(1, None, 0, 2), (1, None, 7, 12), (1, None, 14, 20), (2, None, 0, 9)],
        "anti": [(1, None, 0, 2), (1, None, 7, 12), (1, None, 14, 20), (2, None, 0, 9)],
        "semi": [(1, None, 2, 7), (1, None, 12, 14)],
    }.items():
        operator = verdict(how, "snapshot")
        put(operator, 0, (2, 0, 9), (1, 0, 20), origin=[12, 11])
        witnessed(operator, *[(11, 0, 20)] * 4, parts=seen)
        assert sorted(end(operator)) == expected, how


def test_by_snapshot_without_any_witness() -> None:
    operator = verdict("anti", "snapshot")
    put(operator, 0, (1, 0, 5), origin=[11])
    assert end(operator) == [(1, None, 0, 5)]
    operator = verdict("semi", "snapshot")
    put(operator, 0, (1, 0, 5), origin=[11])
    assert end(operator) == []


def test_equal_rows_that_share_an_origin_share_their_fate() -> None:
    operator = verdict("left", "snapshot")
    put(operator, 0, (1, 0, 9), (1, 0, 9), (2, 0, 9), origin=[11, 11, 12])
    witnessed(operator, (11, 0, 9), (11, 0, 9), parts=[(0, 4), (3, 6)])
    assert sorted(end(operator)) == [(1, None, 6, 9), (1, None, 6, 9), (2, None, 0, 9)]


def test_equal_origins_of_different_validities_are_different_rows() -> None:
    operator = verdict("anti")
    put(operator, 0, (1, 0, 5), (2, 1, 5), origin=[11, 11])
    witnessed(operator, (11, 0, 5))
    assert end(operator) == [(2, None, 1, 5)]


def test_rows_are_told_apart_by_origin_not_by_content() -> None:
    operator = verdict("left")
    put(operator, 0, (1, 0, 5), (1, 0, 5), origin=[11, 12])
    witnessed(operator, (12, 0, 5))
    assert end(operator) == [(1, None, 0, 5)]


def test_nothing_comes_of_nothing() -> None:
    operator = verdict("left")
    assert put(operator, 0) == []
    assert end(operator) == []


def test_the_fingerprint_tells_verdicts_apart() -> None:
    kinds = [(0, "left", "row"), (1, "full", "row"), (0, "full", "row"), (0, "left", "snapshot"), (0, "anti", "row")]
    prints = {Verdict(number, SCHEMAS, how, outer).fingerprint for number, how, outer in kinds}
    prints.add(Verdict(0, (SCHEMAS[0], pa.schema([("x", pa.int8())])), "left").fingerprint)
    assert len(prints) == len(kinds) + 1


def test_rows_that_share_origin_and_validity_have_the_same_partners_and_the_same_fate() -> None:
    operator = verdict("semi")
    put(operator, 0, (1, 0, 5), (2, 0, 5), (3, 0, 6), origin=[11, 11, 11])
    witnessed(operator, (11, 0, 5))
    assert end(operator) == [(1, None, 0, 5), (2, None, 0, 5)], "row 3 has another validity: another row"


def test_by_snapshot_each_of_several_equal_rows_gets_all_parts() -> None:
    operator = verdict("anti", "snapshot")
    put(operator, 0, (1, 0, 9), (2, 0, 9), (3, 0, 8), origin=[11, 11, 11])
    witnessed(operator, (11, 0, 9), (11, 0, 9), (11, 0, 8), parts=[(2, 4), (6, 7), (0, 8)])
    wanted = [(number, None, *part) for number in (1, 2) for part in ((0, 2), (4, 6), (7, 9))]
    assert sorted(end(operator)) == wanted
