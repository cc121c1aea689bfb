"""A few kills of real drivers and executors. `./sj chaos` does more of it; `-m "not chaos and not long"` does none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.cases import Case, Outcome
from chaos.catalog import KINDS
from chaos.data import Shape
from streamjoin.kernels.warm import load_kernels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc"),
]
SMALL = Shape(files=4, rows=60)
# Long enough for rows to be late.
LATE = Shape(files=6, rows=200)
# Whose state is in files from the first micro-batch on.
WIDE = Shape(files=4, rows=320)
# Bounds for what hangs, not what is expected.
DRIVERS_SECONDS = 600
EXECUTORS_SECONDS = 600


@pytest.fixture(scope="module", autouse=True)
def _compiled_kernels() -> None:
    """Otherwise every driver would begin to compile them, and be killed while it does."""
    load_kernels()


@pytest.fixture
def said() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    print("\n".join(lines))


def check(outcome: Outcome, kills: int) -> None:
    assert outcome.failure is None, outcome.failure
    assert outcome.difference is not None
    assert outcome.difference.equal, "\n".join(outcome.difference.describe())
    assert outcome.kills == kills, "the query ended before its kills"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param("window-full-snapshot", SMALL, marks=pytest.mark.long),
        ("spilled-equality", WIDE),
        # In the usual run the command line is killed with a recall target (`tests/cli/test_replay.py`).
        pytest.param("late-recall", LATE, marks=pytest.mark.long),
    ],
)
def test_differential_a_killed_driver_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path, said: list[str], name: str, shape: Shape
) -> None:
    deadline = time.monotonic() + DRIVERS_SECONDS
    case = Case(KINDS[name], 1, tmp_path, deadline, shape, say=said.append)
    outcome = case.kill_drivers(spark, kills=2)
    check(outcome, kills=2)
    assert outcome.restarts == 2


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("interval-full", SMALL),
        # State in files of the executor that is killed: others make it anew, and none of its files is left.
        pytest.param("spilled-equality", WIDE, marks=pytest.mark.long),
        pytest.param("spilled-tpmj", WIDE, marks=pytest.mark.long),
    ],
)
def test_differential_a_killed_executor_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path, said: list[str], name: str, shape: Shape
) -> None:
    deadline = time.monotonic() + EXECUTORS_SECONDS
    case = Case(KINDS[name], 1, tmp_path, deadline, shape, say=said.append)
    outcome = case.kill_executors(spark, kills=1)
    check(outcome, kills=1)
    assert outcome.restarts == 0, "Spark starts executors again, not the driver"
