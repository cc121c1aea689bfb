"""Results: members side by side, their validity, and NULLs where a member is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators import Results
from streamjoin.operators.contract import null_rows, side_by_side
from streamjoin.state import table_from_bytes, table_to_bytes


def some() -> Results:
    return Results(pa.table({"0.a": [1, 2, 3, 4]}), np.array([5, 3, 3, 9]), np.array([9, 9, 4, 10]))


def test_results_are_sorted_by_start_then_end() -> None:
    assert some().sorted().payload["0.a"].to_pylist() == [3, 2, 1, 4]


def test_taking_by_position_and_by_mask() -> None:
    assert some().take(np.array([3, 0])).payload["0.a"].to_pylist() == [4, 1]
    assert some().take(np.array([True, False, False, True])).ts.tolist() == [5, 9]
    assert len(some().take(np.zeros(4, np.bool_))) == 0


def test_results_survive_the_way_through_a_table() -> None:
    back = Results.from_table(some().to_table())
    assert back.payload.equals(some().payload)
    assert (back.ts.tolist(), back.te.tolist()) == (some().ts.tolist(), some().te.tolist())


def test_concatenation() -> None:
    whole = Results.concat([some(), some().take(np.array([1]))])
    assert whole.payload["0.a"].to_pylist() == [1, 2, 3, 4, 2]
    assert whole.te.tolist() == [9, 9, 4, 10, 9]
    one = some()
    assert Results.concat([one]) is one


def changes() -> Results:
    return replace(some(), holder=np.array([4, 5, 6, 7]), sign=np.array([1, -1, 1, 1], np.int8))


def test_plus_and_minus_tuples_stay_what_they_are() -> None:
    whole = Results.concat([changes(), changes().take(np.array([1]))])
    assert whole.sign.tolist() == [1, -1, 1, 1, -1]
    assert whole.holder.tolist() == [4, 5, 6, 7, 5]
    back = Results.from_table(table_from_bytes(table_to_bytes(changes().to_table())))
    assert (back.sign.dtype, back.sign.tolist()) == (np.int8, [1, -1, 1, 1])
    assert changes().sorted().sign.tolist() == [1, -1, 1, 1]
    with pytest.raises(AssertionError, match="with and without `sign`"):
        Results.concat([some(), changes()])


def test_results_with_unknown_ends_go_with_those_whose_ends_are_known() -> None:
    held = replace(some(), holder=np.array([4, -1, 6, 7]))
    assert Results.concat([some(), held]).holder.tolist() == [-1, -1, -1, -1, 4, -1, 6, 7]


def test_what_is_retracted_stays_retracted_and_is_never_mixed_with_what_is_not() -> None:
    retracted = replace(some(), retracted=True)
    assert retracted.take(np.array([1])).retracted
    assert Results.concat([retracted, retracted]).retracted
    assert Results.from_table(table_from_bytes(table_to_bytes(retracted.to_table()))).retracted
    with pytest.raises(AssertionError, match="differ in `retracted`"):
        Results.concat([some(), retracted])


def test_payload_may_have_the_names_of_columns() -> None:
    named = Results(pa.table({"ts": ["a"], "holder": ["b"]}), np.array([5]), np.array([9]), holder=np.array([3]))
    back = Results.from_table(named.to_table())
    assert back.payload.to_pydict() == {"ts": ["a"], "holder": ["b"]}
    assert (back.ts.tolist(), back.holder.tolist()) == ([5], [3])


def test_members_of_the_same_names_stand_side_by_side() -> None:
    table = side_by_side([pa.table({"a": [1], "b": ["x"]}), pa.table({"a": [2.5]})])
    assert table.to_pydict() == {"0.a": [1], "0.b": ["x"], "1.a": [2.5]}


def test_null_rows_keep_the_types_and_may_be_null() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), ("s", pa.struct([("x", pa.int8())]))])
    table = null_rows(schema, 2)
    assert table.to_pydict() == {"a": [None, None], "s": [None, None]}
    assert table.schema.types == schema.types
    assert null_rows(schema, 0).num_rows == 0
