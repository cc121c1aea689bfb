"""Names: which columns a result has, in which order, and how a call refers to columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj


@pytest.fixture(scope="module")
def left(spark: SparkSession) -> DataFrame:
    rows = [(10, 1, 1.0, "x"), (20, 2, 2.0, "y")]
    return spark.createDataFrame(rows, "ts long, k int, v double, only_left string").coalesce(1)


@pytest.fixture(scope="module")
def right(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(11, 1.5, 1, True)], "ts long, v double, k int, only_right boolean").coalesce(1)


def _rows(frame: DataFrame, *columns: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.select(*columns).collect())


# -- the result's columns ----------------------------------------------------------------------------------------------


def test_keys_come_first_and_once_then_left_then_right_then_the_validity(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], time="ts", window=sj.Range(5), by="k")
    names = ["k", "ts", "v", "only_left", "ts_right", "v_right", "only_right", "valid_from", "valid_to"]
    assert joined.columns == names
    assert joined.collect() == [Row(1, 10, 1.0, "x", 11, 1.5, True, 11, 15)]


def test_keys_come_in_the_order_of_by(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], by=["v", "k"])
    assert joined.columns == ["v", "k", "ts", "only_left", "ts_right", "only_right"]


def test_keys_of_both_inputs_stay_with_left_by_and_right_by(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], left_by="k", right_by="k")
    assert joined.columns == [*left.columns, "ts_right", "v_right", "k_right", "only_right"]
    assert _rows(joined, "k", "k_right") == Counter([(1, 1)])


def test_equals_keeps_both_keys_too(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], where=sj.equals("k"))
    assert joined.columns == [*left.columns, "ts_right", "v_right", "k_right", "only_right"]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_joins_have_the_left_columns_only(left: DataFrame, right: DataFrame, how: str) -> None:
    assert sj.join([left, right], left_by="k", right_by="k", how=how).columns == left.columns
    joined = sj.join([left, right], time="ts", window=sj.Now(), by="k", how=how)
    assert joined.columns == ["k", "ts", "v", "only_left", "valid_from", "valid_to"]


def test_a_join_without_validity_adds_no_columns(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join_interval(left, right, on="ts", lower=0, upper=5, by="k")
    assert joined.columns == ["k", "ts", "v", "only_left", "ts_right", "v_right", "only_right"]


def test_invalid_rows_are_marked_in_a_last_column(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], time="ts", window=sj.Now(), by="k", invalid="output")
    assert joined.columns[-3:] == ["valid_from", "valid_to", "_invalid"]


def test_the_suffix_can_be_chosen(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], by="k", suffix=" of right")
    assert joined.columns == ["k", "ts", "v", "only_left", "ts of right", "v of right", "only_right"]
    assert _rows(joined, "`v of right`") == Counter([(1.5,)])


def test_the_validity_can_be_named(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], time="ts", window=sj.Range(5), validity=("since", "until"))
    assert joined.columns[-2:] == ["since", "until"]
    assert _rows(joined, "since", "until") == Counter([(11, 15)])


# -- names that collide ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["left", "right"])
def test_a_suffixed_name_that_exists_is_refused(left: DataFrame, right: DataFrame, on: str) -> None:
    inputs = [left, right]
    number = 0 if on == "left" else 1
    inputs[number] = inputs[number].withColumn("V_right", F.lit(0))
    with pytest.raises(sj.CallError) as refused:
        sj.join(inputs, by="k")
    assert refused.value.message == (
        "the result would have two columns 'v_right': 'v' of input 1 with the suffix '_right', and another one"
    )
    assert refused.value.hint == "choose another suffix=, or rename a column"
    assert sj.join(inputs, by="k", suffix="_2").columns[-1] in ("only_right", "V_right")


def test_a_semi_join_has_no_right_names_that_could_collide(left: DataFrame, right: DataFrame) -> None:
    crowded = left.withColumn("v_right", F.lit(0))
    assert sj.join([crowded, right], left_by="k", right_by="k", how="semi").columns == crowded.columns


@pytest.mark.parametrize("name", ["valid_to", "VALID_TO"])
def test_a_validity_that_collides_is_refused(left: DataFrame, right: DataFrame, name: str) -> None:
    crowded = left.withColumn(name, F.lit(0))
    with pytest.raises(sj.CallError) as refused:
        sj.join([crowded, right], time="ts", window=sj.Now())
    assert refused.value.message == (
        "the result would have two columns 'valid_to': an input's, and the one that this join adds"
    )
    assert refused.value.hint == 'name the result\'s validity with validity=("from", "to"), or rename the column'


@pytest.mark.parametrize("names", ["ab", ("a",), ("a", "b", "c"), ("a", "A"), (1, 2), None])
def test_a_validity_has_two_different_names(left: DataFrame, right: DataFrame, names: Any) -> None:
    with pytest.raises(sj.CallError) as refused:
        sj.join([left, right], time="ts", window=sj.Now(), validity=names)
    assert refused.value.message == f"validity takes two different names, got {names!r}"


def test_a_suffix_that_is_no_text_is_refused(left: DataFrame, right: DataFrame) -> None:
    with pytest.raises(sj.CallError, match="suffix must be text, got None"):
        sj.join([left, right], by="k", suffix=None)


def test_two_columns_of_one_name_in_an_input_are_refused(left: DataFrame, right: DataFrame) -> None:
    with pytest.raises(sj.CallError, match=r"input 0 has two columns 'k'\. Hint: rename one with toDF or alias"):
        sj.join([left.select("k", F.col("ts").alias("k")), right], by="k")


def test_names_of_our_own_are_refused(left: DataFrame, right: DataFrame) -> None:
    with pytest.raises(sj.CallError, match="column names must not begin with '__sj', got '__sj_x'"):
        sj.join([left.withColumn("__sj_x", F.lit(0)), right], by="k")
    named: dict[str, Callable[[str], Any]] = {
        "an alias": lambda name: sj.cql(
            left.sparkSession, f"SELECT DISTINCT k AS {name} FROM R [UNBOUNDED]", R=left, time="ts"
        ),
        "an alias inside": lambda name: sj.cql(
            left.sparkSession,
            f"SELECT q.{name} AS k FROM (SELECT DISTINCT k AS {name} FROM R [NOW]) q",
            R=left,
            time="ts",
        ),
        "an aggregate": lambda name: sj.aggregate(left, {name: "count"}, by="k", time="ts", window=sj.Unbounded()),
        "a validity": lambda name: sj.distinct(left, time="ts", window=sj.Unbounded(), validity=(name, "b")),
        "a priority": lambda name: sj.join(
            [left.withColumn("p", F.lit(1)), right], by="k", priority=["p", None], priority_as=name
        ),
    }
    for call in named.values():
        with pytest.raises(sj.CallError, match="column names must not begin with '__sj', got '__sj_n'"):
            call("__sj_n")


# -- upper and lower case ----------------------------------------------------------------------------------------------


def test_names_do_not_tell_upper_from_lower_case(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], time="TS", window=sj.Range(5), by="K", where=sj.band("V", below=1, above=1))
    assert joined.columns[0] == "k"
    assert _rows(joined, "k", "v", "v_right") == Counter([(1, 1.0, 1.5)])


def test_a_key_of_other_case_on_the_right_appears_once_under_its_left_name(left: DataFrame, right: DataFrame) -> None:
    shouting = right.withColumnRenamed("k", "K")
    for how in ("inner", "right", "full"):
        joined = sj.join([left, shouting], by="k", how=how)
        assert joined.columns == ["k", "ts", "v", "only_left", "ts_right", "v_right", "only_right"]
    assert _rows(joined, "k", "only_right") == Counter([(1, True), (2, None)])
    theta = sj.join([left, shouting], by="k", where=sj.theta("r.K = 1 AND l.k < 5"), how="left")
    assert _rows(theta, "k", "only_right") == Counter([(1, True), (2, None)])


def test_names_that_differ_by_case_alone_get_the_suffix(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right.withColumnRenamed("v", "V")], by="k")
    assert joined.columns == ["k", "ts", "v", "only_left", "ts_right", "V_right", "only_right"]


# -- odd names ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    rows = [(1, 5, "x", 9), (2, 6, "y", 8)]
    return spark.createDataFrame(rows, "`the key` int, `a.b` long, `back``quote` string, `select` int").coalesce(1)


def test_names_with_dots_spaces_and_backquotes_survive(odd: DataFrame) -> None:
    joined = sj.join([odd, odd], by="the key", how="full")
    names = ["the key", "a.b", "back`quote", "select"]
    assert joined.columns == [*names, *(f"{name}_right" for name in names[1:])]
    assert Counter(joined.collect()) == Counter([Row(1, 5, "x", 9, 5, "x", 9), Row(2, 6, "y", 8, 6, "y", 8)])


def test_odd_names_can_be_times_values_and_keys(odd: DataFrame) -> None:
    joined = sj.join(
        [odd, odd],
        time="a.b",
        window=sj.Range(5),
        left_by="back`quote",
        right_by="back`quote",
        where=sj.band("select", below=0, above=0) & sj.theta("l.`the key` = r.`the key` AND l.`back``quote` <> 'y'"),
    )
    assert _rows(joined, "`the key`", "valid_from") == Counter([(1, 5)])


@pytest.mark.parametrize("name", ["`a.b`", "a.b", "`A.B`"])
def test_a_name_may_be_written_in_backquotes(odd: DataFrame, name: str) -> None:
    joined = sj.join([odd, odd], by=name)
    assert joined.columns[:2] == ["a.b", "the key"]
    assert joined.count() == 2


# -- fields and expressions --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "SELECT * FROM VALUES "
        "(1, named_struct('at', timestamp'2024-01-01 00:00:00', 'x', named_struct('y', 7)), named_struct('z', 0)), "
        "(2, named_struct('at', timestamp'2024-01-01 00:00:02', 'x', named_struct('y', NULL)), NULL) AS t(id, s, `o.s`)"
    )


def test_fields_of_structs_can_be_times_keys_and_values(nested: DataFrame) -> None:
    joined = sj.join([nested, nested], time="s.at", window=sj.Range("1 second"), left_by="s.x.y", right_by="S.X.Y")
    assert joined.columns == [*nested.columns, "id_right", "s_right", "o.s_right", "valid_from", "valid_to"]
    assert _rows(joined, "id", "id_right") == Counter([(1, 1)])
    banded = sj.join_band(nested, nested, left_on="s.x.y", right_on="`o.s`.z", below=7, above=0)
    assert _rows(banded, "id", "id_right") == Counter([(1, 1)])
    theta = sj.join([nested, nested], where=sj.theta("l.s.x.y > r.`o.s`.z"), how="left")
    assert _rows(theta, "id", "id_right") == Counter([(1, 1), (2, None)])


def test_a_field_that_is_missing_is_refused_at_the_call(nested: DataFrame) -> None:
    with pytest.raises(sj.CallError, match=r"input 0 cannot evaluate .*s.*nope.*No such struct field `nope`"):
        sj.join([nested, nested], left_by="s.nope", right_by="id")


def test_a_field_is_a_key_that_does_not_appear(nested: DataFrame) -> None:
    joined = sj.join([nested, nested], by="s.at")
    assert joined.columns == [*nested.columns, *(f"{name}_right" for name in nested.columns)]
    assert _rows(joined, "id", "id_right") == _rows(
        sj.join([nested, nested], left_by="s.at", right_by="s.at"), "id", "id_right"
    )


def test_expressions_can_be_keys(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], left_by=F.col("k") % 2, right_by=right.k)
    assert joined.columns == [*left.columns, "ts_right", "v_right", "k_right", "only_right"]
    assert _rows(joined, "k", "k_right") == Counter([(1, 1)])
    equal = sj.join([left, right], where=sj.equals(F.col("k") - 1, "k"))
    assert _rows(equal, "k", "k_right") == Counter([(2, 1)])


def test_expressions_can_be_values(left: DataFrame, right: DataFrame) -> None:
    band = sj.join_band(left, right, left_on=F.col("v") * 10, right_on=F.col("v") * 10, below=0, above=5)
    assert _rows(band, "v", "v_right") == Counter([(1.0, 1.5)])
    near = sj.join_within(left, right, on=(F.col("v"), F.abs("k")), radius=0.5)
    assert _rows(near, "v", "v_right") == Counter([(1.0, 1.5)])
    ends = (F.col("v"), F.col("v") + 0.75)
    assert _rows(sj.join_overlap(left, right, on=ends), "v", "v_right") == Counter([(1.0, 1.5), (2.0, 1.5)])


def test_expressions_can_be_times(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join([left, right], time=[F.col("ts") + 100, F.col("ts") + 100], window=sj.Range(5))
    assert _rows(joined, "ts", "valid_from", "valid_to") == Counter([(10, 111, 115)])
    own = sj.join([left, right], window=sj.Validity("ts", F.col("ts") + 5))
    assert _rows(own, "ts", "valid_from", "valid_to") == Counter([(10, 11, 15)])
    interval = sj.join_interval(left, right, on=F.timestamp_seconds("ts"), lower="0 s", upper="1 s")
    assert _rows(interval, "ts", "ts_right") == Counter([(10, 11)])


@pytest.mark.parametrize("expression", ["nope + 1", "max(k)"])
def test_an_expression_that_a_row_does_not_have_is_refused_at_the_call(
    left: DataFrame, right: DataFrame, expression: str
) -> None:
    with pytest.raises(sj.CallError, match="input 0 cannot evaluate Column<"):
        sj.join([left, right], left_by=F.expr(expression), right_by="k")
