"""Names: which columns a result has, in which order, and from which columns of the inputs each comes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import CallError
from streamjoin.plan.naming import name_columns
from streamjoin.runtime.naming import OutputColumn

INT, TEXT = pa.int64(), pa.string()
LEFT = {"v": TEXT, "k": INT, "a": TEXT}
RIGHT = {"k": INT, "v": INT, "b": TEXT}


def named(left: dict = LEFT, right: dict = RIGHT, **options: object) -> tuple[OutputColumn, ...]:
    options = {"by": (), "how": "inner", "suffix": "_right", "validity": None, **options}
    return name_columns([list(left), list(right)], [left, right], **options)


def names(*sides: dict, **options: object) -> list[str]:
    return [column.name for column in named(*sides, **options)]


def test_columns_of_the_left_then_of_the_right_doubles_with_a_suffix() -> None:
    assert names() == ["v", "k", "a", "k_right", "v_right", "b"]
    assert names(suffix="2") == ["v", "k", "a", "k2", "v2", "b"]


def test_columns_come_from_one_input_each() -> None:
    sources = [column.sources for column in named()]
    assert sources == [("0.v",), ("0.k",), ("0.a",), ("1.k",), ("1.v",), ("1.b",)]


def test_keys_come_first_and_once() -> None:
    assert names(by=("k",)) == ["k", "v", "a", "v_right", "b"]
    both = {"x": INT, "k": INT, "j": TEXT}
    assert names(both, both, by=("j", "k")) == ["j", "k", "x", "x_right"]


def test_every_column_has_the_type_of_its_source() -> None:
    assert [column.type for column in named(by=("k",))] == [INT, TEXT, TEXT, INT, TEXT]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_joins_have_the_left_columns_only(how: str) -> None:
    assert names(how=how) == ["v", "k", "a"]
    assert names(how=how, by=("k",)) == ["k", "v", "a"]
    assert named(how=how, by=("k",))[0].sources == ("0.k",)


@pytest.mark.parametrize("how", ["inner", "left", "full", "right"])
def test_merged_keys_ask_the_side_first_that_is_always_there(how: str) -> None:
    """As in Spark: of a right join that is the right one."""
    one = {"k": INT}
    (key,) = named(one, one, by=("k",), how=how)
    assert key.sources == (("1.k", "0.k") if how == "right" else ("0.k", "1.k"))


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
    assert len(names(left, right, suffix="_r")) == 3


def test_a_suffix_of_nothing_is_refused_where_it_is_needed() -> None:
    with pytest.raises(CallError, match="the result would have two columns 'v'"):
        named(suffix="", by=("k",))
    assert names({"a": INT}, {"b": INT}, suffix="") == ["a", "b"]


@pytest.mark.parametrize("name", ["a", "b", "v_right", "A", "V_Right", "from", "FROM"])
def test_a_validity_that_has_the_name_of_a_column_is_refused(name: str) -> None:
    with pytest.raises(CallError, match=f"two columns '{name}': an input's, and the one that this join adds"):
        named(validity=("from", name))


def test_a_column_with_the_name_of_the_mark_is_refused() -> None:
    with pytest.raises(CallError, match="two columns '_invalid'"):
        named({"_invalid": INT}, RIGHT, flags=("_invalid",))
    assert "_invalid" in names({"_invalid": INT}, RIGHT)


def test_an_end_of_the_validity_cannot_be_the_mark() -> None:
    with pytest.raises(CallError, match="two columns '_invalid'"):
        named(validity=("from", "_Invalid"), flags=("_invalid",))


def test_names_do_not_tell_upper_from_lower_case() -> None:
    assert names({"v": INT}, {"V": INT}) == ["v", "V_right"]
    with pytest.raises(CallError, match="two columns 'V_RIGHT': 'V' of input 1 with the suffix '_RIGHT'"):
        named({"v": INT, "v_right": INT}, {"V": INT}, suffix="_RIGHT")
    with pytest.raises(CallError, match="two columns 'v_right'"):
        named({"v": INT}, {"v": INT, "V_Right": INT})


def test_a_column_with_the_name_of_the_change_is_refused() -> None:
    with pytest.raises(CallError, match="two columns '_change'"):
        named({"_Change": INT}, RIGHT, changelog=True)
    assert "_change" in names({"_change": INT}, RIGHT)
