"""Rows that live in several buckets: each bucket testifies, none decides alone."""

from __future__ import annotations

from streamjoin.operators import Results, Rows
from streamjoin.operators.contract import CLAIMANT
from tests.operators.driving import named, results, rows, temporal


def split(outputs: list) -> tuple[list, list]:
    return results(one for one in outputs if isinstance(one, Results)), named(
        one for one in outputs if isinstance(one, Rows)
    )


def test_a_lonely_row_is_a_claimant_where_it_is_at_home_only() -> None:
    join = temporal(how="left", replicated=(True, False))
    list(join.on_batch(0, rows((1, 0, 5), (2, 0, 5), origin=[11, 12], home=[True, False])))
    assert split(list(join.on_end())) == ([], [(CLAIMANT, 0, [11])])


def test_a_row_that_meets_someone_abroad_is_witnessed_once() -> None:
    join = temporal(how="left", replicated=(True, False))
    list(join.on_batch(0, rows((1, 0, 5), (2, 0, 5), origin=[11, 12], home=[True, False])))
    found, said = split(list(join.on_batch(1, rows((7, 0, 5)))))
    assert (found, said) == ([(1, 7, 0, 5), (2, 7, 0, 5)], [("witness", 0, [12])])
    assert split(list(join.on_batch(1, rows((8, 0, 5))))) == ([(1, 8, 0, 5), (2, 8, 0, 5)], [])
    assert split(list(join.on_end())) == ([], [])


def test_a_semi_row_leaves_at_home_and_is_witnessed_abroad() -> None:
    join = temporal(how="semi", replicated=(True, False))
    list(
        join.on_batch(
            0, rows((1, 0, 5), (2, 0, 5), (3, 0, 5), group=[1, 1, 2], origin=[11, 12, 13], home=[True, False, True])
        )
    )
    assert split(list(join.on_batch(1, rows((7, 0, 5), group=[1])))) == ([(1, None, 0, 5)], [("witness", 0, [12])])
    assert split(list(join.on_end())) == ([], [(CLAIMANT, 0, [13])])


def test_by_snapshot_every_replica_says_which_parts_it_saw_and_home_brings_the_row() -> None:
    join = temporal(how="left", outer="snapshot", replicated=(True, False))
    list(join.on_batch(0, rows((1, 0, 9), (2, 0, 9), origin=[11, 12], home=[True, False])))
    list(join.on_batch(1, rows((7, 2, 4))))
    witness, claimant = list(join.on_end())
    assert named([witness, claimant]) == [("witness", 0, [11, 12]), (CLAIMANT, 0, [11])]
    assert [column.tolist() for column in witness.batch.values] == [[2, 2], [4, 4]]
    assert witness.batch.payload.num_columns == 0, "a witness needs no payload"
    assert claimant.batch.payload["id"].to_pylist() == [1]


def test_a_row_that_can_match_nothing_is_settled_at_home_without_a_verdict() -> None:
    for outer in ("row", "snapshot"):
        join = temporal(how="anti", outer=outer, replicated=(True, False))
        copies = rows((1, 0, 5), (2, 0, 5), origin=[11, 12], home=[True, False], matchable=[False, False])
        assert split(list(join.on_batch(0, copies))) == ([], []), outer
        assert split(list(join.on_progress(1, 1))) == ([(1, None, 0, 5)], []), f"{outer}: input 1 is as far"
        assert split(list(join.on_end())) == ([], []), outer


def test_testimony_is_not_held_back_by_ordered_emission() -> None:
    join = temporal(how="left", emit="ordered", replicated=(True, False))
    list(join.on_batch(0, rows((1, 0, 5), origin=[11], home=[False])))
    assert split(list(join.on_batch(1, rows((7, 0, 5))))) == ([], [("witness", 0, [11])])
