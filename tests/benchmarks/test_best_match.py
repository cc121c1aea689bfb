"""The questions about best-match joins. `./sj bench asof --quick --only best` asks them on Spark too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import best_match, growth, workloads
from benchmarks.contenders import ours
from benchmarks.digest import digest_of
from benchmarks.workloads import Workload
from streamjoin.cli import app


def distances(workload: Workload) -> np.ndarray:
    """A vector for every left and right row."""
    return np.stack([abs(workload.left[name][:, None] - workload.right[name][None, :]) for name in "xyz"], axis=-1)


def undominated(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """The results by their definition in `workloads.py`."""
    vectors = distances(workload)
    pairs = []
    for row, near in enumerate((vectors <= workload.bounds["epsilon"]).all(axis=-1)):
        candidates = np.flatnonzero(near)
        mine = vectors[row, candidates]
        one, two = mine[:, None], mine[None, :]
        dominates = (one <= two).all(axis=-1) & (one < two).any(axis=-1)
        pairs += [(row, other) for other in candidates[~dominates.any(axis=0)]]
    i, j = np.array(pairs).T
    return workload.left["id"][i], workload.right["id"][j]


class TestWorkload:
    @pytest.mark.parametrize("per_row", [1, 5, 10])
    def test_candidates_per_row_are_as_declared_at_every_size(self, per_row: int) -> None:
        for rows in (1000, 2000):
            workload = workloads.make("best", rows, per_row)
            candidates = (distances(workload) <= workload.bounds["epsilon"]).all(axis=-1).sum()
            assert candidates / rows == pytest.approx(per_row, rel=0.15)

    def test_distances_are_exact_and_the_nearest_is_one(self) -> None:
        squares = (distances(workloads.make("best", 1000, 5)) ** 2).sum(axis=-1)
        nearest = squares.min(axis=1)
        assert (squares == nearest[:, None]).sum() == len(squares)
        # Also when they are computed in whole numbers, or added up in another order.
        vectors = distances(workloads.make("best", 1000, 5)).astype(np.int64)
        assert (nearest == (vectors**2)[..., ::-1].sum(axis=-1).min(axis=1)).all()


class TestGrowth:
    def test_oracle_the_operator_finds_the_declared_results(self) -> None:
        workload = workloads.make("best", 500, 5)
        found = digest_of(ours._QUESTIONS["best"](workload))
        assert found == digest_of([undominated(workload)])
        assert found.count > 500

    def test_the_largest_size_is_a_million(self) -> None:
        assert best_match.SMALLEST << growth.DOUBLINGS == 1_000_000

    def test_sizes_double_and_results_per_row_stay(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(growth, "DOUBLINGS", 1)
        grown = best_match.measure_growth(quick=True, repetitions=1, folder=tmp_path)
        assert grown.rows == [best_match.QUICK_SMALLEST, 2 * best_match.QUICK_SMALLEST]
        assert grown.results[1] / grown.results[0] == pytest.approx(2, rel=0.3)
        assert len(grown.contenders[1].seconds) == 1


def test_the_rival_is_asked_with_as_many_candidates_and_runs_seldom() -> None:
    rival = best_match.NEAREST
    assert (rival.workload, rival.per_row, rival.at_most) == ("best", best_match.CANDIDATES, 1)


def test_a_question_that_is_not_there_is_refused_with_those_that_are() -> None:
    result = CliRunner().invoke(app, ["bench", "asof", "--only", "nearest"])
    assert result.exit_code == 1
    assert "kernel, spark, stream, best" in " ".join(result.output.split())
