"""Batches: rows keep together what belongs to them, whatever is done to the batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.state import Batch, table_from_bytes, table_to_bytes
from streamjoin.state.row_table import declared
from tests.state.making import batch, ids, same

PROOF = pa.table({"k": ["a", None, "c"], "n": [1, 2, 3]})


def full() -> Batch:
    """Rows that have every column there is."""
    rows = batch(
        [(0, 5), (-3, 2), (7, 9)],
        group=[5, -5, 0],
        values=[[1.5, np.inf, -0.0], [1, 2**62, -3]],
        matchable=[True, False, True],
        origin=[10, 11, 12],
        home=[True, False, False],
        proof=PROOF,
    )
    contents = pa.table({"0": [["a", "b"], None, []], "1": ["Ä", "", None]})
    more = {"sign": np.array([1, -1, 1], np.int8), "contents": contents, "priority": np.array([0, 9, 1])}
    return replace(rows, holder=np.array([7, -1, 9]), **more)


def test_the_example_has_every_column() -> None:
    assert all(getattr(full(), each.name) is not None for each in declared(Batch))


VARIANTS = {
    "full": full(),
    "plain": batch([(0, 5), (1, 2)]),
    "values": batch([(0, 5), (1, 2)], values=[[0.5, 1.5]]),
    "many values": batch([(0, 5)], values=[[float(number)] for number in range(12)]),
    "no rows": full().empty(),
    "one row": full().take(np.array([1])),
}


@pytest.mark.parametrize("rows", VARIANTS.values(), ids=VARIANTS)
def test_a_batch_survives_the_way_through_bytes(rows: Batch) -> None:
    back = Batch.from_table(table_from_bytes(table_to_bytes(rows.to_table())))
    assert same(back, rows)
    assert len(back) == len(rows)


@pytest.mark.parametrize("rows", VARIANTS.values(), ids=VARIANTS)
def test_rows_can_have_memory_of_their_own(rows: Batch) -> None:
    """Part of a batch keeps all of it in memory; what it owns does not."""
    part = Batch.concat([rows, rows]).part(1, 1 + len(rows))
    own = part.owned()
    assert same(own, part)
    both = zip(own.arrays(), part.arrays(), strict=True)
    assert not any(np.shares_memory(mine, theirs) for (_, mine), (_, theirs) in both)
    if len(rows):
        assert own.payload.get_total_buffer_size() < part.payload.get_total_buffer_size()


def test_a_batch_without_payload_columns_still_has_its_rows() -> None:
    rows = Batch(pa.table({}), np.array([1, 2, 3]), np.array([4, 5, 6]), np.zeros(3, np.int64), origin=np.arange(3))
    back = Batch.from_table(rows.to_table())
    assert same(back, rows)
    assert back.payload.num_columns == 0
    assert len(back.take(np.array([True, False, True]))) == 2
    together = Batch.concat([back, rows.take(np.array([2]))])
    assert (together.ts.tolist(), together.origin.tolist()) == ([1, 2, 3, 3], [0, 1, 2, 2])


def test_a_table_in_many_chunks_becomes_one_piece_of_memory() -> None:
    table = full().to_table()
    back = Batch.from_table(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
    assert same(back, full())
    assert all(column.num_chunks == 1 for column in back.payload.columns)


@pytest.mark.parametrize("positions", [[2, 0], [1, 1, 1], [], [0, 1, 2]])
def test_taking_rows_takes_all_that_belongs_to_them(positions: list[int]) -> None:
    rows, wanted = full(), np.array(positions, np.int64)
    taken = rows.take(wanted)
    assert ids(taken) == positions
    assert taken.ts.tolist() == rows.ts[wanted].tolist()
    assert taken.group.tolist() == rows.group[wanted].tolist()
    assert [column.tolist() for column in taken.values] == [column[wanted].tolist() for column in rows.values]
    assert taken.proof["k"].to_pylist() == [PROOF["k"].to_pylist()[position] for position in positions]
    assert taken.origin.tolist() == [10 + position for position in positions]
    assert taken.home.tolist() == [position == 0 for position in positions]
    assert taken.matchable.tolist() == [position != 1 for position in positions]
    assert taken.holder.tolist() == [[7, -1, 9][position] for position in positions]
    assert taken.sign.tolist() == [[1, -1, 1][position] for position in positions]


@pytest.mark.parametrize("mask", [[True, False, True], [False, False, False], [True, True, True]])
def test_splitting_parts_the_rows(mask: list[bool]) -> None:
    rows = full()
    yes, no = rows.split(np.array(mask))
    assert ids(yes) == [number for number, flag in enumerate(mask) if flag]
    assert ids(no) == [number for number, flag in enumerate(mask) if not flag]
    assert yes.values[0].dtype == no.values[0].dtype == rows.values[0].dtype


def test_splitting_off_nothing_copies_nothing() -> None:
    rows = full()
    assert rows.split(np.ones(3, np.bool_))[0] is rows
    assert rows.split(np.zeros(3, np.bool_))[1] is rows


def test_concatenation_keeps_order_and_everything() -> None:
    rows = full()
    parts = [rows.take(np.array([0])), rows.take(np.array([], np.int64)), rows.take(np.array([1, 2]))]
    assert same(Batch.concat(parts), rows)
    assert Batch.concat([rows]) is rows


def test_concatenation_takes_a_missing_mark_for_all_can_match() -> None:
    marked, plain = batch([(0, 1), (1, 2)], matchable=[True, False]), batch([(2, 3)], ids=[2])
    assert Batch.concat([plain, marked]).matchable.tolist() == [True, True, False]
    assert Batch.concat([marked, plain]).matchable.tolist() == [True, False, True]
    assert Batch.concat([plain, plain]).matchable is None


def test_concatenation_takes_a_missing_holder_for_known_ends() -> None:
    held, plain = replace(batch([(0, 1)]), holder=np.array([5])), batch([(2, 3)], ids=[2])
    assert Batch.concat([plain, held]).holder.tolist() == [-1, 5]
    assert Batch.concat([plain, plain]).holder is None


@pytest.mark.parametrize("name", ["origin", "home", "sign", "proof"])
def test_rows_with_and_without_a_column_that_has_no_default_are_not_put_together(name: str) -> None:
    with pytest.raises(AssertionError, match="cannot be put together"):
        Batch.concat([full(), replace(full(), **{name: None})])


def test_concatenation_does_not_ask_who_may_be_null() -> None:
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    rows = batch([(0, 1)])
    both = [rows, replace(rows, payload=rows.payload.cast(strict))]
    assert ids(Batch.concat(both)) == [0, 0]


def test_keys_to_verify_are_told_by_place() -> None:
    stored = Batch.from_table(full().to_table())
    assert Batch.concat([full(), stored]).proof.to_pydict() == {
        "__sj_proof0": ["a", None, "c"] * 2,
        "__sj_proof1": [1, 2, 3] * 2,
    }


def test_concatenation_copies_into_arrays_that_can_be_written() -> None:
    frozen = Batch.from_table(table_from_bytes(table_to_bytes(full().to_table())))
    assert Batch.concat([frozen, frozen]).te.flags.writeable


def test_without_matchable_forgets_only_the_mark() -> None:
    rows = full().without_matchable()
    assert rows.matchable is None
    assert same(rows, Batch(**{**vars(full()), "matchable": None}))


def test_bytes_are_counted_with_the_arrays() -> None:
    rows = batch([(0, 1)] * 10, values=[[1.0] * 10])
    assert rows.nbytes == rows.payload.nbytes + 4 * 80
    assert rows.empty().nbytes < rows.nbytes
    assert replace(rows, holder=rows.ts, proof=rows.payload).nbytes == 2 * rows.payload.nbytes + 5 * 80
