"""The shape of what leaves: results, what is a result no longer, and rows that are only shown."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results
from streamjoin.runtime.naming import MarkedColumn, OutputColumn, Shape, time_column

INT, TEXT = pa.int64(), pa.string()
COLUMNS = (
    OutputColumn("k", ("0.k", "1.k"), INT), OutputColumn("v", ("0.v",), TEXT), OutputColumn("a", ("0.a",), TEXT),
    OutputColumn("v_right", ("1.v",), INT), OutputColumn("b", ("1.b",), TEXT),
)  # fmt: skip
SHAPE = Shape(COLUMNS, ("from", "to"), None, INT, ("_invalid", "_late"))
PAIR = pa.table({"0.v": ["x"], "0.k": [1], "0.a": ["p"], "1.k": [None], "1.v": [None], "1.b": ["q"]}, schema=pa.schema(
    [("0.v", TEXT), ("0.k", INT), ("0.a", TEXT), ("1.k", INT), ("1.v", INT), ("1.b", TEXT)]
))  # fmt: skip


def results(payload: pa.Table, ts: int = 3, te: int = FOREVER, **options: object) -> Results:
    rows = payload.num_rows
    return Results(payload, np.full(rows, ts), np.full(rows, te), **options)


def test_columns_then_validity_then_marks() -> None:
    stamp = pa.timestamp("us", "UTC")
    schema = replace(SHAPE, time_type=stamp).schema
    assert schema.names == ["k", "v", "a", "v_right", "b", "from", "to", "_invalid", "_late"]
    assert schema.types == [INT, TEXT, TEXT, INT, TEXT, stamp, stamp, pa.bool_(), pa.bool_()]


def test_what_changes_is_said_before_its_time() -> None:
    schema = Shape(COLUMNS[:1], None, "_time", INT, change=True).schema
    assert schema.names == ["k", "_change", "_time"]
    assert schema.types == [INT, TEXT, INT]


@pytest.mark.parametrize(
    ("sources", "keys"), [(("0.k", "1.k"), [1, 5, 7]), (("1.k", "0.k"), [2, 5, 7]), (("0.k",), [1, None, 7])]
)
def test_merged_keys_are_the_first_that_is_not_null(sources: tuple[str, ...], keys: list) -> None:
    """1 against 2 cannot happen by equality; it shows which side is asked first."""
    payload = pa.table({"0.k": pa.array([1, None, 7]), "1.k": pa.array([2, 5, None])})
    table = Shape((OutputColumn("k", sources, INT),)).assemble(results(payload))
    assert table.to_pydict() == {"k": keys}


def test_a_result_is_assembled_from_both_members() -> None:
    table = SHAPE.assemble(results(PAIR))
    assert table.to_pydict() == {
        "k": [1], "v": ["x"], "a": ["p"], "v_right": [None], "b": ["q"], "from": [3], "to": [None],
        "_invalid": [False], "_late": [False],
    }  # fmt: skip
    assert table.schema == SHAPE.schema


def test_a_semi_result_needs_no_right_member() -> None:
    table = Shape(COLUMNS[:3]).assemble(results(PAIR.select(["0.v", "0.k", "0.a"])))
    assert table.to_pydict() == {"k": [1], "v": ["x"], "a": ["p"]}


def test_a_result_without_columns_still_has_its_times() -> None:
    empty = Results(pa.table({}), np.array([1, 2]), np.array([3, 4]))
    assert Shape((), ("from", "to"), None, INT).assemble(empty).to_pydict() == {"from": [1, 2], "to": [3, 4]}


def test_results_appear_and_disappear() -> None:
    shape = Shape(COLUMNS[:1], None, "_time", INT, change=True)
    two = pa.concat_tables([PAIR, PAIR])
    said = {
        "insert": shape.assemble(results(PAIR)), "retract": shape.assemble(results(PAIR, retracted=True)),
    }  # fmt: skip
    for change, table in said.items():
        assert table.to_pydict() == {"k": [1], "_change": [change], "_time": [3]}
    signed = shape.assemble(results(two, sign=np.array([1, -1], np.int8)))
    assert signed["_change"].to_pylist() == ["insert", "retract"]


@pytest.mark.parametrize("mark", ["invalid", "late"])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"0.v": ["x"], "0.k": [1], "0.a": ["p"]}, {"k": [1], "v": ["x"], "a": ["p"], "v_right": [None], "b": [None]}),
        ({"1.k": [1], "1.v": [2], "1.b": ["q"]}, {"k": [1], "v": [None], "a": [None], "v_right": [2], "b": ["q"]}),
    ],
)
def test_rows_that_are_only_shown_appear_unjoined_and_marked(mark: str, rows: dict, expected: dict) -> None:
    table = SHAPE.assemble_marked(mark, 0, pa.table(rows))
    marks = {"_invalid": [mark == "invalid"], "_late": [mark == "late"]}
    assert table.to_pydict() == {**expected, "from": [None], "to": [None], **marks}
    assert table.schema == SHAPE.schema


def test_they_are_no_change_and_have_no_time() -> None:
    shape = Shape(COLUMNS[:1], None, "_time", INT, ("_invalid",), change=True)
    table = shape.assemble_marked("invalid", 0, pa.table({"0.k": [1]}))
    assert table.to_pydict() == {"k": [1], "_invalid": [True], "_change": [None], "_time": [None]}


def test_invalid_rows_of_a_join_without_validity() -> None:
    table = Shape(COLUMNS, flags=("_invalid",)).assemble_marked("invalid", 1, pa.table({"1.k": [1], "1.b": ["q"]}))
    assert table.to_pydict()["_invalid"] == [True]
    assert table.num_columns == 6


def test_where_the_result_has_other_columns_whole_rows_are_shown_in_one_of_their_own() -> None:
    kind = pa.struct([("x", INT), ("s", TEXT)])
    marked = (MarkedColumn("R_late", "late", (4,), kind), MarkedColumn("S_late", "late", (5,), kind))
    shape = Shape(COLUMNS[:1], ("from", "to"), None, INT, marked=marked)
    rows = pa.table({"x": [1, 2], "s": ["p", None]})
    assert shape.assemble_marked("late", 5, rows).to_pylist() == [
        {"k": None, "from": None, "to": None, "R_late": None, "S_late": row} for row in rows.to_pylist()
    ]
    assert shape.assemble_marked("invalid", 5, rows)["S_late"].null_count == 2
    assert shape.assemble(results(PAIR)).to_pylist() == [
        {"k": 1, "from": 3, "to": None, "R_late": None, "S_late": None}
    ]


def test_ticks_become_times_and_for_ever_becomes_null() -> None:
    ticks = np.array([0, 1, FOREVER])
    day, moment = datetime.date, datetime.datetime
    assert time_column(ticks, INT).to_pylist() == [0, 1, None]
    assert time_column(ticks, pa.int32()).to_pylist() == [0, 1, None]
    assert time_column(ticks, pa.date32()).to_pylist() == [day(1970, 1, 1), day(1970, 1, 2), None]
    stamps = time_column(ticks, pa.timestamp("us")).to_pylist()
    assert stamps == [moment(1970, 1, 1), moment(1970, 1, 1, 0, 0, 0, 1), None]
