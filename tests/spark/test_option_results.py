"""Options that change a result, over a few rows, against what a brute force says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

SCHEMA = "id int, k int, v double, lo double, hi double, ts long"
# Rows have times of their own: who came first among equal ones nobody knows in a batch.
LEFT = [
    (1, 0, 0.0, 0.0, 1.0, 1), (2, 1, 0.5, 0.5, 2.0, 4), (3, 0, 5.0, 4.0, 6.0, 6), (4, 1, 1.0, 1.0, 1.5, 9),
    (5, 0, 9.0, 8.0, 9.0, 12), (6, 1, 0.0, 0.0, 3.0, 15),
]  # fmt: skip
RIGHT = [
    (11, 0, 0.5, 0.5, 1.5, 2), (12, 1, 7.0, 6.5, 7.0, 5), (13, 0, 1.0, 0.0, 4.5, 7), (14, 0, 5.5, 5.0, 5.5, 10),
    (15, 1, 0.0, 2.0, 2.5, 13),
]  # fmt: skip

Row = tuple[Any, ...]
Matches = Callable[[Row, Row], bool]
FOREVER = 10**9


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> list[DataFrame]:
    return [spark.createDataFrame(rows, SCHEMA).coalesce(1) for rows in (LEFT, RIGHT)]


def newest(rows: list[Row], size: int, by: int | None = None) -> list[tuple[Row, int, int]]:
    """Rows with their validity: each ends where the n-th later one begins, of its group."""
    found = []
    for row in rows:
        later = sorted(each[5] for each in rows if each[5] > row[5] and (by is None or each[by] == row[by]))
        found.append((row, row[5], later[size - 1] if len(later) >= size else FOREVER))
    return found


def ranges(rows: list[Row], size: int) -> list[tuple[Row, int, int]]:
    return [(row, row[5], row[5] + size) for row in rows]


def pairs(left: Any, right: Any, matches: Matches) -> Iterator[tuple[int, int, int, int]]:
    for one, start, end in left:
        for two, begin, stop in right:
            if matches(one, two) and max(start, begin) < min(end, stop):
                yield one[0], two[0], max(start, begin), min(end, stop)


def by_row(left: Any, right: Any, matches: Matches) -> Iterator[tuple[int | None, int | None, int, int]]:
    """A full join: the pairs, and whoever met nobody."""
    met = list(pairs(left, right, matches))
    yield from met
    yield from ((one[0], None, *when) for one, *when in left if all(one[0] != pair[0] for pair in met))
    yield from ((None, two[0], *when) for two, *when in right if all(two[0] != pair[1] for pair in met))


def found(joined: DataFrame) -> Counter[Any]:
    rows = joined.select("id", "id_right", "valid_from", "valid_to").collect()
    return Counter((one, two, start, FOREVER if end is None else end) for one, two, start, end in rows)


SHORT_FORMS: dict[str, tuple[Callable[..., DataFrame], dict[str, Any], Matches]] = {
    "band": (sj.join_band, {"on": "v", "below": 1, "above": 1}, lambda one, two: abs(one[2] - two[2]) <= 1),
    "overlap": (sj.join_overlap, {"on": ("lo", "hi")}, lambda one, two: max(one[3], two[3]) < min(one[4], two[4])),
    "within": (
        sj.join_within, {"on": ("v", "lo"), "radius": 1.5, "metric": "manhattan"},
        lambda one, two: abs(one[2] - two[2]) + abs(one[3] - two[3]) <= 1.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT_FORMS)
def test_oracle_a_short_form_of_the_newest_rows(frames: list[DataFrame], name: str) -> None:
    function, options, matches = SHORT_FORMS[name]
    joined = function(*frames, time="ts", window=sj.Rows(3), buckets=2, **options)
    expected = Counter(pairs(newest(LEFT, 3), newest(RIGHT, 3), matches))
    assert found(joined) == expected
    assert len(expected) > 2, "the case says nothing"


@pytest.mark.parametrize(("how", "group"), [("left", None), ("full", None), ("full", 1)])
def test_oracle_an_outer_join_by_row_of_the_newest_rows(frames: list[DataFrame], how: str, group: int | None) -> None:
    less = sj.theta("l.v < r.v")
    windows = [sj.Rows(2, by=None if group is None else F.col("k") + 1), sj.Range(3)]
    joined = sj.join(frames, time="ts", window=windows, by="k", where=less, how=how, buckets=2)
    expected = by_row(newest(LEFT, 2, group), ranges(RIGHT, 3), lambda a, b: a[1] == b[1] and a[2] < b[2])
    wanted = Counter(each for each in expected if how == "full" or each[0] is not None)
    assert found(joined) == wanted
    assert None in {each[1] for each in wanted}, "nobody is without a partner"


def test_oracle_a_left_join_of_a_query_without_keys_in_several_buckets(
    spark: SparkSession, frames: list[DataFrame]
) -> None:
    text = "SELECT R.id, S.id AS id_right FROM R [RANGE 4] LEFT JOIN S [RANGE 4] ON R.v < S.v"
    joined = found(sj.cql(spark, text, R=frames[0], S=frames[1], buckets=3))
    held = list(pairs(ranges(LEFT, 4), ranges(RIGHT, 4), lambda one, two: one[2] < two[2]))
    at = [Counter((one, two) for one, two, start, end in held if start <= t < end) for t in range(20)]
    for t in range(20):  # queries are by snapshot
        alone = [
            row[0] for row, start, end in ranges(LEFT, 4) if start <= t < end and row[0] not in {o for o, _ in at[t]}
        ]
        snapshot = Counter({each[:2]: n for each, n in joined.items() if each[2] <= t < each[3]})
        assert snapshot == at[t] + Counter((one, None) for one in alone)
    assert {two is None for _, two, *_ in joined} == {False, True}


def test_oracle_an_aggregate_by_a_time_that_is_an_expression_shows_invalid_rows(frames: list[DataFrame]) -> None:
    time = F.when(F.col("id") != 3, F.col("ts") * 10)
    counted = sj.aggregate(frames[0], {"n": "count"}, by="k", time=time, window=sj.Range(45), invalid="output")
    assert counted.columns == ["k", "n", "valid_from", "valid_to", "_invalid_0"]
    rows = counted.collect()
    assert [row._invalid_0.asDict() for row in rows if row._invalid_0] == [
        dict(zip(("id", "k", "v", "lo", "hi", "ts"), LEFT[2], strict=True))
    ]
    lives = [(row[1], row[5] * 10, row[5] * 10 + 45) for row in LEFT if row[0] != 3]
    for t in range(0, 200, 5):
        there = {(row.k, row.n) for row in rows if not row._invalid_0 and row.valid_from <= t < row.valid_to}
        assert there == set(Counter(key for key, start, end in lives if start <= t < end).items())


def test_a_query_shows_invalid_rows_of_each_stream_that_asks_for_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5), (2, None), (3, 7)], "id int, ts long")
    text = "SELECT R.id, S.id AS other FROM R [NOW], S [NOW] WHERE R.id = S.id AND R.id < 3"
    shown = sj.cql(spark, text, R=frame, S=frame, invalid={"R": "output", "S": "drop"}, buckets=2)
    assert shown.columns == ["id", "other", "valid_from", "valid_to", "_invalid_R"]
    rows = Counter(tuple(row) for row in shown.collect())
    assert rows == Counter([(1, 1, 5, 6, None), (None, None, None, None, (2, None))])


def test_all_columns_of_a_query_are_those_of_its_streams(spark: SparkSession, frames: list[DataFrame]) -> None:
    for time in (F.col("ts") + 1, sj.arrival()):
        window = "[5 SECONDS]" if isinstance(time, type(sj.arrival())) else "[RANGE 5]"
        query = sj.cql(spark, f"SELECT * FROM R {window}", R=frames[0], time=time)
        assert query.columns == [*frames[0].columns, "valid_from", "valid_to"]
