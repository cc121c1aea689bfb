"""The temporal join by hand: who meets whom, and what becomes of those who meet nobody."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Band
from streamjoin.errors import CallError
from streamjoin.operators import Results, TemporalJoin
from streamjoin.state import Matching, ValueTest
from tests.operators.driving import SCHEMAS, end, progress, put, results, rows, temporal


def test_a_pair_leaves_when_its_later_member_arrives_with_the_intersection() -> None:
    join = temporal()
    assert put(join, 0, (1, 0, 10)) == []
    assert put(join, 1, (7, 4, 20)) == [(1, 7, 4, 10)]
    assert put(join, 0, (2, 5, 6)) == [(2, 7, 5, 6)]


def test_each_pair_is_made_once_whoever_comes_first() -> None:
    for first, second in ((0, 1), (1, 0)):
        join = temporal()
        assert put(join, first, (1, 0, 5)) == []
        assert put(join, second, (1, 0, 5)) == [(1, 1, 0, 5)]
        assert end(join) == []


def test_validities_that_only_touch_do_not_match() -> None:
    join = temporal()
    put(join, 0, (1, 0, 5), (2, 9, 12))
    assert put(join, 1, (7, 5, 9)) == []


def test_only_equal_groups_meet() -> None:
    join = temporal()
    put(join, 0, (1, 0, 5), (2, 0, 5), group=[1, 2])
    assert put(join, 1, (7, 0, 5), group=[2]) == [(2, 7, 0, 5)]


def test_a_ghost_is_in_no_snapshot_it_is_dropped_and_counted() -> None:
    for how in ("inner", "full", "anti"):
        join = temporal(how=how)
        assert put(join, 0, (1, 5, 5), (2, 6, 4)) == []
        assert put(join, 1, (7, 0, 9)) == []
        assert join.figures["never_valid"] == 2
        assert [result for result in end(join) if result[0] is not None] == []


def test_rows_that_can_match_nothing_wait_only_until_the_other_input_is_as_far() -> None:
    join = temporal(how="left")
    assert put(join, 0, (1, 3, FOREVER), (2, 0, 5), matchable=[False, True]) == []
    assert put(join, 1, (7, 0, 5), matchable=[False]) == []
    assert progress(join, 0, 3) == [], "a result of 3 could still come"
    assert progress(join, 0, 4) == [(1, None, 3, FOREVER)]
    assert join.state_rows == 1
    assert put(join, 1, (8, 4, 5)) == [(2, 8, 4, 5)]
    assert join.figures["unmatchable"] == 2
    assert end(join) == []


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        ("inner", [], []),
        ("left", [(1, None, 0, 5)], []),
        ("right", [], [(None, 7, 20, 25)]),
        ("full", [(1, None, 0, 5)], [(None, 7, 20, 25)]),
        ("semi", [], []),
        ("anti", [(1, None, 0, 5)], []),
    ],
)
def test_who_leaves_alone_in_each_join_type(how: str, left: list, right: list) -> None:
    join = temporal(how=how)
    put(join, 0, (1, 0, 5))
    put(join, 1, (7, 20, 25))
    assert sorted(end(join), key=str) == sorted(left + right, key=str)


def test_a_left_row_is_padded_exactly_when_progress_proves_it() -> None:
    join = temporal(how="left")
    put(join, 0, (1, 0, 5))
    assert progress(join, 100, 4) == [], "a right row with ts = 4 could still come"
    assert progress(join, 100, 5) == [(1, None, 0, 5)]
    assert progress(join, 100, 100) == [], "once"


def test_its_own_input_proves_nothing_about_a_row() -> None:
    join = temporal(how="left")
    put(join, 0, (1, 0, 5))
    assert progress(join, 10**9) == []
    assert join.progress == NEVER


def test_a_row_that_met_someone_is_never_padded() -> None:
    join = temporal(how="full")
    put(join, 0, (1, 0, 50))
    assert put(join, 1, (7, 3, 4)) == [(1, 7, 3, 4)]
    assert progress(join, 60, 60) == []
    assert join.state_rows == 0


def test_padding_has_the_types_of_the_missing_side() -> None:
    join = temporal(how="left")
    put(join, 0, (1, 0, 5))
    (padded,) = join.on_end()
    assert isinstance(padded, Results)
    assert padded.payload.schema.names == ["0.id", "0.note", "1.id", "1.note"]
    assert padded.payload.schema.field("1.note").type == pa.string()
    assert padded.payload["1.id"].to_pylist() == [None]


def test_a_semi_row_leaves_once_at_its_first_partner_with_its_own_validity() -> None:
    join = temporal(how="semi")
    put(join, 0, (1, 0, 50), (2, 0, 50))
    assert put(join, 1, (7, 10, 12), group=[0]) == [(1, None, 0, 50), (2, None, 0, 50)]
    assert put(join, 1, (8, 20, 22)) == []
    assert put(join, 0, (3, 11, 30)) == [(3, None, 11, 30)], "a partner that was there before"
    assert end(join) == []


def test_a_row_with_many_partners_in_one_batch_leaves_a_semi_join_once() -> None:
    join = temporal(Matching(chunk=1), how="semi")
    put(join, 1, (7, 0, 5), (8, 1, 5), (9, 2, 5))
    assert put(join, 0, (1, 0, 9)) == [(1, None, 0, 9)]


def test_by_snapshot_the_parts_without_a_partner_are_padded() -> None:
    join = temporal(how="left", outer="snapshot")
    put(join, 0, (1, 0, 20))
    assert put(join, 1, (7, 3, 5), (8, 4, 9), (9, 15, 30)) == [(1, 7, 3, 5), (1, 8, 4, 9), (1, 9, 15, 20)]
    assert progress(join, 19, 19) == []
    assert progress(join, 20, 20) == [(1, None, 0, 3), (1, None, 9, 15)]


def test_by_snapshot_semi_keeps_the_maximal_parts_with_a_partner() -> None:
    join = temporal(how="semi", outer="snapshot")
    put(join, 0, (1, 0, 20))
    assert put(join, 1, (7, 3, 5), (8, 5, 9), (9, 15, 30)) == [], "parts are known at the end of the row only"
    assert end(join) == [(1, None, 3, 9), (1, None, 15, 20)]


def test_by_snapshot_anti_keeps_the_rest() -> None:
    join = temporal(how="anti", outer="snapshot")
    put(join, 0, (1, 0, 20), (2, 30, 40))
    put(join, 1, (7, 3, 5), (8, 5, 9), (9, 15, 30))
    assert end(join) == [(1, None, 0, 3), (1, None, 9, 15), (2, None, 30, 40)]


def test_by_snapshot_both_sides_of_a_full_join_fall_into_parts() -> None:
    join = temporal(how="full", outer="snapshot")
    put(join, 0, (1, 0, 10))
    put(join, 1, (7, 5, 15))
    assert end(join) == [(1, None, 0, 5), (None, 7, 10, 15)]


def test_an_event_join_has_no_validity() -> None:
    """0 <= right - left <= 3: a left row can be forgotten when the right input is past left + 3."""
    band = Matching(Band("ts", "ts", 0, 3), timed=False)
    join = temporal(band, how="left", validity=False)
    put(join, 0, (1, 10, 14), (2, 20, 24), values=[[10, 20]])
    assert put(join, 1, (7, 13, 14), values=[[13]]) == [(1, 7, 13, 13)]
    assert put(join, 1, (8, 14, 15), values=[[14]]) == []
    assert progress(join, 30, 23) == []
    assert progress(join, 30, 24) == [(2, None, 20, 24)]


def test_progress_of_the_output_waits_for_rows_whose_fate_is_open() -> None:
    join = temporal(how="left")
    put(join, 0, (1, 3, 50), (2, 8, 60))
    progress(join, 20, 20)
    assert join.progress == 3
    put(join, 1, (7, 20, 51))
    assert join.progress == 20, "both have met someone"
    assert temporal().progress == NEVER


def test_state_is_forgotten_as_progress_moves() -> None:
    join = temporal()
    put(join, 0, (1, 0, 5), (2, 0, 50), (3, 0, 50))
    put(join, 1, (7, 0, 5))
    progress(join, 0, 5)
    assert join.state_rows == 4, "one row of the left run has gone, but lies in its run until the next merge"
    progress(join, 5, 50)
    assert join.state_rows == 0
    assert join.figures == {"rows_in": 4, "results": 3, "late": 0, "never_valid": 0, "unmatchable": 0}


def test_results_come_in_chunks() -> None:
    join = temporal(Matching(chunk=10))
    put(join, 0, *((number, 0, 5) for number in range(10)))
    outputs = list(join.on_batch(1, rows(*((number, 0, 5) for number in range(10)))))
    assert [len(output) for output in outputs] == [10] * 10
    assert len(set(results(outputs))) == 100


def test_the_fingerprint_tells_joins_apart_that_keep_different_things() -> None:
    base = TemporalJoin(Matching(), SCHEMAS)
    others = [
        TemporalJoin(Matching(Band("v", "v", 1, 1)), SCHEMAS),
        TemporalJoin(Matching(tests=(ValueTest(Band("v", "v", 1, 1), 0),)), SCHEMAS),
        TemporalJoin(Matching(timed=False), SCHEMAS),
        TemporalJoin(Matching(), (SCHEMAS[0], pa.schema([("id", pa.int32())]))),
        *(TemporalJoin(Matching(), SCHEMAS, how=how) for how in ("left", "right", "full", "semi", "anti")),
        TemporalJoin(Matching(), SCHEMAS, outer="snapshot"),
        TemporalJoin(Matching(), SCHEMAS, emit="ordered"),
        TemporalJoin(Matching(), SCHEMAS, hold="inputs"),
        TemporalJoin(Matching(), SCHEMAS, late=("drop", "join")),
        TemporalJoin(Matching(), SCHEMAS, validity=False),
        TemporalJoin(Matching(), SCHEMAS, replicated=(True, False)),
    ]
    assert len({one.fingerprint for one in [base, *others]}) == len(others) + 1
    assert TemporalJoin(Matching(chunk=5), SCHEMAS).fingerprint == base.fingerprint


def test_by_snapshot_needs_validity() -> None:
    with pytest.raises(CallError, match='outer="snapshot" needs validity, and an event join has none'):
        TemporalJoin(Matching(), SCHEMAS, outer="snapshot", validity=False)
