"""What chaos feeds to its queries: the same for a seed, in order but for the slack, and late only where it says so."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chaos import data
from chaos.data import BEGIN, CLOSING_ID, SLACK_SECONDS, Row, Shape

SLACK = SLACK_SECONDS * 1_000_000
SEEDS = [str(seed) for seed in range(5)]


def newest(files: list[list[Row]]) -> int:
    return max((row["ts"] for file in files for row in file), default=BEGIN - SLACK)


def test_a_seed_and_a_side_make_one_input() -> None:
    one, again, other_side, other_seed = (
        data.draw_side(seed, side, Shape(3, 20), late=False) for seed, side in (("1", 0), ("1", 0), ("1", 1), ("2", 0))
    )
    assert one == again
    assert one != other_side
    assert one != other_seed


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_out_of_order_and_never_late(seed: str) -> None:
    files = data.draw_side(seed, 0, Shape(6, 40), late=False)
    disorder = 0
    for number, file in enumerate(files):
        before = newest(files[:number])
        disorder += sum(row["ts"] < before for row in file)
        assert all(row["ts"] >= before - SLACK and not row["late"] for row in file)
    assert disorder > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_late_rows_are_late_even_if_files_fall_into_one_batch(seed: str) -> None:
    files = data.draw_side(seed, 0, Shape(8, 60), late=True)
    late = 0
    for number, file in enumerate(files):
        for row in file:
            late += row["late"]
            if row["late"]:
                assert row["ts"] < newest(files[: number - 2]) - SLACK
            else:
                assert row["ts"] >= newest(files[:number]) - SLACK
    assert late > 0


def test_the_closing_row_is_alone_last_and_far_away() -> None:
    left, right = (data.draw_side("1", side, Shape(2, 10), late=False) for side in (0, 1))
    for files in (left, right):
        assert [row["id"] for row in files[-1]] == [CLOSING_ID]
        assert files[-1][0]["ts"] > newest(files[:-1]) + 3600 * 1_000_000
    assert left[-1][0]["k"] != right[-1][0]["k"]


def test_without_a_closing_row_there_is_the_same_but_for_it() -> None:
    shape = Shape(2, 10, closing=False)
    closed, open_ = (data.draw_side("1", 0, some, late=False) for some in (Shape(2, 10), shape))
    assert open_ == closed[:-1]
    assert len(open_) == shape.batches


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_key_have_times_of_their_own_on_request(seed: str) -> None:
    for distinct in (False, True):
        files = data.draw_side(seed, 0, Shape(), late=False, distinct=distinct)
        rows = [row for file in files for row in file]
        assert (len({(row["k"], row["ts"]) for row in rows}) == len(rows)) == distinct
        assert len({row["ts"] for row in rows}) < len(rows) / 2, "keys share their times"
        for number, file in enumerate(files):
            assert all(row["ts"] >= newest(files[:number]) - SLACK and row["te"] > row["ts"] for row in file)


def test_files_have_times_in_their_order(tmp_path: Path) -> None:
    shape = Shape(files=4, rows=5)
    data.write(tmp_path / "in", "1", shape, late=False)
    for side in data.SIDES:
        files = sorted((tmp_path / "in" / side).glob("*.parquet"), key=lambda file: file.stat().st_mtime)
        assert [file.name for file in files] == [f"{number:03d}.parquet" for number in range(shape.batches)]
        assert len({file.stat().st_mtime for file in files}) == shape.batches
        assert pq.read_table(files[0]).num_rows == shape.rows
