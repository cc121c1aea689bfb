"""Races against joins of Spark's own. No Spark is started here; `./sj bench asof --quick --only spark` does that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import asof, spark_rivals, workloads
from benchmarks.digest import Digest
from benchmarks.errors import UnequalResultsError
from benchmarks.spark_rivals import Rival
from benchmarks.worker import Measurement
from benchmarks.workloads import Workload


class FakeSpark:
    """In the place of a contender's process: ours takes a second, the rival a minute."""

    asked: list[tuple[str, str]]
    rival_finds: Callable[[str], Digest]

    def __init__(self, python: str, module: str, root: Path) -> None:
        assert python == sys.executable

    def __enter__(self) -> FakeSpark:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load(self, name: str, folder: Path) -> None:
        assert len(Workload.read(folder)) == int(name)

    def run(self, name: str, job: str) -> Measurement:
        FakeSpark.asked.append((name, job))
        found = FakeSpark.rival_finds(name) if job != "ours" else Digest(int(name), 7)
        return Measurement(1.0 if job == "ours" else 60.0, 0.0, 0.0, found)


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> type[FakeSpark]:
    FakeSpark.asked = []
    FakeSpark.rival_finds = staticmethod(lambda name: Digest(int(name), 7))
    monkeypatch.setattr(spark_rivals, "Worker", FakeSpark)
    return FakeSpark


class TestRivals:
    slow = Rival("asof", "asof_in_spark", "joinAsOf", 2000, 10.0, at_most=2)

    def measured(self, rival: Rival, folder: Path, *, quick: bool = False) -> spark_rivals.SparkRace:
        return spark_rivals.measure("as-of", rival, quick, 5, folder, lambda _: None)

    def test_a_slow_rival_is_warmed_up_on_tiny_frames_and_runs_seldom(
        self, tmp_path: Path, fake_spark: type[FakeSpark]
    ) -> None:
        outcome = self.measured(self.slow, tmp_path)
        assert fake_spark.asked.count(("300", "joinAsOf")) == 2
        assert fake_spark.asked.count(("2000", "joinAsOf")) == 2
        assert fake_spark.asked.count(("2000", "ours")) == 6
        assert [len(contender.measured) for contender in outcome.contenders] == [5, 2]
        assert (outcome.verdict.measured, outcome.verdict.met) == (60.0, True)
        assert spark_rivals.table_of(outcome).row_count == 2
        assert outcome.to_json()["rows"] == 2000

    def test_a_fast_one_takes_turns_as_everybody_does(self, tmp_path: Path, fake_spark: type[FakeSpark]) -> None:
        fast = Rival("asof", "asof_in_spark", "ASOF SQL", 2000, 1.0)
        self.measured(fast, tmp_path)
        assert fake_spark.asked == [("2000", "ours"), ("2000", "ASOF SQL")] * 6

    def test_a_quick_run_is_small(self, tmp_path: Path, fake_spark: type[FakeSpark]) -> None:
        assert self.measured(self.slow, tmp_path, quick=True).rows == spark_rivals.QUICK_ROWS

    @pytest.mark.parametrize("wrong", ["300", "2000"])
    def test_no_ratio_of_unequal_results_at_either_size(
        self, tmp_path: Path, fake_spark: type[FakeSpark], wrong: str
    ) -> None:
        fake_spark.rival_finds = staticmethod(lambda name: Digest(int(name), 8 if name == wrong else 7))
        with pytest.raises(UnequalResultsError, match="joinAsOf delivered other results"):
            self.measured(self.slow, tmp_path)

    @pytest.mark.parametrize("rival", asof.RIVALS, ids=lambda rival: rival.job)
    def test_who_forms_all_pairs_runs_seldom(self, rival: Rival) -> None:
        assert (rival.at_most is None) == (rival.job == "ASOF SQL")
        assert workloads.make(rival.workload, 100, rival.per_row).name == rival.workload
