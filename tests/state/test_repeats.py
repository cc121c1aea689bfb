"""Columns that repeat others: left out where every number says so, and there again when they are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjoin.algebra.interval import FOREVER, NEVER
from streamjoin.state import Batch, table_from_bytes, table_to_bytes
from streamjoin.state.repeats import LEAST_ROWS, lean, whole

TIMES = np.arange(10, 10 + 3 * LEAST_ROWS)
BIG = st.integers(NEVER, FOREVER)


def rows(**columns: object) -> pa.Table:
    return pa.table({name: pa.array(column) for name, column in columns.items()})


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (rows(at=TIMES, __sj_ts=TIMES, __sj_te=TIMES + 5, __sj_group=TIMES[::-1]), ["at", "__sj_group"]),
        (rows(at=pa.array(TIMES, pa.timestamp("us", "UTC")), __sj_ts=TIMES), ["at"]),
        (rows(__sj_ts=TIMES, __sj_te=TIMES + 5), ["__sj_ts"]),
        # Payload is the user's: nobody looks into it, though it says the same twice.
        (rows(at=TIMES, again=TIMES), ["at", "again"]),
        # One number that differs, somewhere in the middle, and one that is missing.
        (rows(at=TIMES, __sj_ts=np.where(TIMES == 13, 0, TIMES)), ["at", "__sj_ts"]),
        (rows(at=[None, *TIMES[1:].tolist()], __sj_ts=TIMES), ["at", "__sj_ts"]),
        # What is to be added must fit into 64 bits, and so must each sum.
        (rows(at=np.full(9, NEVER), __sj_te=np.full(9, FOREVER)), ["at", "__sj_te"]),
        (rows(at=[0, *[NEVER] * 8], __sj_ts=[-1, *[FOREVER] * 8]), ["at", "__sj_ts"]),
        # Other types have other bits.
        (rows(at=TIMES.astype(np.float64), __sj_ts=TIMES), ["at", "__sj_ts"]),
        (rows(at=TIMES[: LEAST_ROWS - 1], __sj_ts=TIMES[: LEAST_ROWS - 1]), ["at", "__sj_ts"]),
    ],
)
def test_what_is_written_of_a_table(table: pa.Table, written: list[str]) -> None:
    assert lean(table).column_names == written
    assert whole(lean(table)).equals(table, check_metadata=True)
    assert table_from_bytes(table_to_bytes(table)).equals(table, check_metadata=True)


@given(st.lists(st.tuples(BIG, BIG), min_size=1, max_size=12), BIG, st.booleans())
def test_whatever_the_numbers_are_they_come_back(pairs: list[tuple[int, int]], far: int, shifted: bool) -> None:
    first, second = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    with np.errstate(over="ignore"):
        moved = first + np.int64(far) if shifted else first
    table = rows(at=first, __sj_ts=second, __sj_te=moved).replace_schema_metadata({"told": "something"})
    assert table_from_bytes(table_to_bytes(table)).equals(table, check_metadata=True)


@pytest.mark.parametrize("seed", range(20))
def test_rows_in_pieces_or_cut_from_others_come_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 3, 40)
    table = rows(at=times, k=rng.integers(0, 2, 40), __sj_ts=times, __sj_te=times + 7)
    start = int(rng.integers(0, 30))
    cut = table.slice(start, int(rng.integers(0, 40 - start)))
    for each in (cut, pa.concat_tables([cut, table]), pa.concat_tables([cut, table]).combine_chunks()):
        assert table_from_bytes(table_to_bytes(each)).equals(each)


def test_a_stored_row_is_little_larger_than_its_payload() -> None:
    at = np.arange(0, 10_000, 7)
    batch = Batch(rows(at=pa.array(at, pa.timestamp("us")), k=at % 13, v=at / 3), at, at + 50, at % 13, (at,))
    written = table_to_bytes(batch.to_table())
    assert len(written) < 1.05 * batch.payload.nbytes
    found = Batch.from_table(table_from_bytes(written))
    assert found.payload.equals(batch.payload)
    arrays = zip(found.arrays(), batch.arrays(), strict=True)
    assert all(name == other and (mine == yours).all() for (name, mine), (other, yours) in arrays)
    assert not found.te.flags.writeable, "whoever writes into rows that were read must copy them first"
