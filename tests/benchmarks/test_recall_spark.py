"""Streams of every kind through Spark, against the same plan in this process; and the figures of the guide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import enough, recall_spark
from benchmarks.disorder import DATA, SECOND
from benchmarks.recall_replay import Replay
from streamjoin.cli import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, data in DATA.items() if not data.real])
def test_every_kind_is_row_for_row_as_in_this_process(spark: SparkSession, tmp_path: Path, name: str) -> None:
    replayed = recall_spark.measure(spark, name, 2, True, tmp_path / name, lambda _: None)
    assert replayed.differ == 0
    assert replayed.found > 0
    assert replayed.batches > 5


def test_rows_that_differ_are_counted() -> None:
    pairs: Any = np.array([[1, 2], [3, 4]])
    assert recall_spark._differ(pairs, pairs) == 0
    assert recall_spark._differ(pairs, pairs[:1]) == 1
    assert recall_spark._differ(pairs, np.array([[1, 2], [1, 2], [3, 5]])) == 3


def test_kept_rows_are_those_of_the_replay() -> None:
    replay = Replay(DATA["exp"].draw(3, 60), SECOND, 2 * SECOND, 10 * SECOND)
    for slack in (0, SECOND, 9 * SECOND):
        progress = replay.fixed((slack, 2 * slack))
        assert enough.kept_rows(replay, progress).mean() == pytest.approx(replay.kept(progress))


def test_what_the_guide_says_is_measured(tmp_path: Path) -> None:
    """At a small size: more slack keeps more and misses less, and the plot has all of it."""
    path = tmp_path / "enough.json"
    result = CliRunner().invoke(app, ["bench", "enough", "--quick", "--only", "exp", "--json", str(path)])
    assert result.exit_code == 0, result.output
    ways = json.loads(path.read_text())["questions"]["exp"]["ways"]
    graces = ways[: len(enough.GRACES)]
    kept, missed = ([way[what] for way in graces] for what in ("kept", "missed"))
    assert kept == sorted(kept)
    assert missed == sorted(missed, reverse=True)
    assert missed[0] > 0.05 > missed[-1] == 0
    told = [enough.Way(**way) for way in ways]
    at = len(graces)
    plot = enough.plot_of(enough.Enough("exp", told[:at], told[at], told[at + 1 :]))
    assert plot.count('aria-roledescription="line mark"') == 3


def test_the_guide_shows_the_plot_that_the_command_makes() -> None:
    guide = (enough.PLOT.parent / "recall.md").read_text()
    assert "./sj bench enough" in guide
    assert f"]({enough.PLOT.name})" in guide
    assert enough.PLOT.read_text().startswith("<svg")
