"""Names: which columns a result has, in which order, and from which member each value comes."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.errors import CallError
from streamjoin.plan.naming import OutputNaming, name_columns, time_column

INT, TEXT = pa.int64(), pa.string()
LEFT = {"v": TEXT, "k": INT, "a": TEXT}
RIGHT = {"k": INT, "v": INT, "b": TEXT}


def named(left: dict = LEFT, right: dict = RIGHT, **options: object) -> OutputNaming:
    options = {"by": (), "how": "inner", "suffix": "_right", "validity": None, "time_type": None, **options}
    return name_columns([list(left), list(right)], [left, right], **options)


def test_columns_of_the_left_then_of_the_right_doubles_with_a_suffix() -> None:
    assert named().schema.names == ["v", "k", "a", "k_right", "v_right", "b"]
    assert named(suffix="2").schema.names == ["v", "k", "a", "k2", "v2", "b"]


def test_keys_come_first_and_once() -> None:
    assert named(by=("k",)).schema.names == ["k", "v", "a", "v_right", "b"]
    both = {"x": INT, "k": INT, "j": TEXT}
    assert named(both, both, by=("j", "k")).schema.names == ["j", "k", "x", "x_right"]


def test_every_column_has_the_type_of_its_source() -> None:
    assert named(by=("k",)).schema.types == [INT, TEXT, TEXT, INT, TEXT]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_joins_have_the_left_columns_only(how: str) -> None:
    assert named(how=how).schema.names == ["v", "k", "a"]
    assert named(how=how, by=("k",)).schema.names == ["k", "v", "a"]


def test_validity_comes_last_in_the_type_of_the_time_axis() -> None:
    stamp = pa.timestamp("us", "UTC")
    schema = named(by=("k",), validity=("from", "to"), time_type=stamp).schema
    assert schema.names[-2:] == ["from", "to"]
    assert schema.types[-2:] == [stamp, stamp]


def test_the_mark_of_invalid_rows_comes_very_last() -> None:
    schema = named(validity=("from", "to"), time_type=INT, flags=("_invalid",)).schema
    assert (schema.names[-1], schema.types[-1]) == ("_invalid", pa.bool_())


@pytest.mark.parametrize(
    ("how", "keys"),
    [
        ("inner", [1, 5, 7]),
        ("left", [1, 5, 7]),
        ("full", [1, 5, 7]),
        ("right", [2, 5, 7]),  # as in Spark: the key of the side that is always there
    ],
)
def test_merged_keys_are_the_first_that_is_not_null(how: str, keys: list[int]) -> None:
    """1 against 2 cannot happen by equality; it shows which side is asked first."""
    payload = pa.table({"0.k": pa.array([1, None, 7]), "1.k": pa.array([2, 5, None])})
    one = {"k": INT}
    table = named(one, one, by=("k",), how=how).assemble(payload, np.zeros(3, np.int64), np.zeros(3, np.int64))
    assert table.to_pydict() == {"k": keys}


def test_a_result_is_assembled_from_both_members() -> None:
    nothing = pa.array([None], INT)
    payload = pa.table({"0.v": ["x"], "0.k": [1], "0.a": ["p"], "1.k": nothing, "1.v": nothing, "1.b": ["q"]})
    naming = named(by=("k",), validity=("from", "to"), time_type=INT, flags=("_invalid",))
    table = naming.assemble(payload, np.array([3]), np.array([FOREVER]))
    assert table.to_pydict() == {
        "k": [1], "v": ["x"], "a": ["p"], "v_right": [None], "b": ["q"], "from": [3], "to": [None], "_invalid": [False],
    }  # fmt: skip
    assert table.schema == naming.schema


def test_a_semi_result_needs_no_right_member() -> None:
    payload = pa.table({"0.v": ["x"], "0.k": [1], "0.a": ["p"]})
    table = named(how="semi", by=("k",)).assemble(payload, np.array([0]), np.array([1]))
    assert table.to_pydict() == {"k": [1], "v": ["x"], "a": ["p"]}


@pytest.mark.parametrize(
    ("number", "rows", "expected"),
    [
        (0, {"v": ["x"], "k": [1], "a": ["p"]}, {"k": [1], "v": ["x"], "a": ["p"], "v_right": [None], "b": [None]}),
        (1, {"k": [1], "v": [2], "b": ["q"]}, {"k": [1], "v": [None], "a": [None], "v_right": [2], "b": ["q"]}),
    ],
)
def test_invalid_rows_appear_unjoined_and_marked(number: int, rows: dict, expected: dict) -> None:
    naming = named(by=("k",), how="full", validity=("from", "to"), time_type=INT, flags=("_invalid",))
    table = naming.assemble_marked("_invalid", number, pa.table(rows))
    assert table.to_pydict() == {**expected, "from": [None], "to": [None], "_invalid": [True]}


def test_invalid_rows_of_a_join_without_validity() -> None:
    table = named(flags=("_invalid",)).assemble_marked("_invalid", 1, pa.table({"k": [1], "v": [2], "b": ["q"]}))
    assert table.to_pydict()["_invalid"] == [True]
    assert table.num_columns == 7


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": INT, "a_right": INT}, {"a": INT}),
        ({"a": INT}, {"a": INT, "a_right": INT}),
        ({"a": INT}, {"a_right": INT, "a": INT}),
    ],
)
def test_a_suffix_that_makes_two_columns_of_one_name_is_refused(left: dict, right: dict) -> None:
    with pytest.raises(CallError, match="the result would have two columns 'a_right': 'a' of input 1 with the suffix"):
        named(left, right)
    assert len(named(left, right, suffix="_r").schema.names) == 3


def test_a_suffix_of_nothing_is_refused_where_it_is_needed() -> None:
    with pytest.raises(CallError, match="the result would have two columns 'v'"):
        named(suffix="", by=("k",))
    assert named({"a": INT}, {"b": INT}, suffix="").schema.names == ["a", "b"]


@pytest.mark.parametrize("name", ["a", "b", "v_right", "A", "V_Right", "from", "FROM"])
def test_a_validity_that_has_the_name_of_a_column_is_refused(name: str) -> None:
    with pytest.raises(CallError, match=f"two columns '{name}': an input's, and the one that this join adds"):
        named(validity=("from", name), time_type=INT)


def test_a_column_with_the_name_of_the_mark_is_refused() -> None:
    with pytest.raises(CallError, match="two columns '_invalid'"):
        named({"_invalid": INT}, RIGHT, flags=("_invalid",))
    assert "_invalid" in named({"_invalid": INT}, RIGHT).schema.names


def test_an_end_of_the_validity_cannot_be_the_mark() -> None:
    with pytest.raises(CallError, match="two columns '_invalid'"):
        named(validity=("from", "_Invalid"), time_type=INT, flags=("_invalid",))


def test_names_do_not_tell_upper_from_lower_case() -> None:
    assert named({"v": INT}, {"V": INT}).schema.names == ["v", "V_right"]
    with pytest.raises(CallError, match="two columns 'V_RIGHT': 'V' of input 1 with the suffix '_RIGHT'"):
        named({"v": INT, "v_right": INT}, {"V": INT}, suffix="_RIGHT")
    with pytest.raises(CallError, match="two columns 'v_right'"):
        named({"v": INT}, {"v": INT, "V_Right": INT})


def test_ticks_become_times_and_for_ever_becomes_null() -> None:
    ticks = np.array([0, 1, FOREVER])
    day, moment = datetime.date, datetime.datetime
    assert time_column(ticks, INT).to_pylist() == [0, 1, None]
    assert time_column(ticks, pa.int32()).to_pylist() == [0, 1, None]
    assert time_column(ticks, pa.date32()).to_pylist() == [day(1970, 1, 1), day(1970, 1, 2), None]
    stamps = time_column(ticks, pa.timestamp("us")).to_pylist()
    assert stamps == [moment(1970, 1, 1), moment(1970, 1, 1, 0, 0, 0, 1), None]
