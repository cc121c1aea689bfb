"""The rules of comparing two states of the code, without a JVM. `./sj bench house --quick` runs the contenders."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from benchmarks import checkouts, house, house_restore, house_start, house_tables, streaming
from benchmarks.checkouts import THIS, Checkout, Earlier
from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError, ContenderError, UnequalResultsError
from benchmarks.house import House
from benchmarks.streaming import Track
from streamjoin.cli import app

BEFORE = Checkout("before", Path("/before"), Path("/kernels"))
PACKAGE = "src/streamjoin/__init__.py"


def shown(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Stage:
    """Takes the place of contenders: answers with the seconds of (query, state), and remembers who was asked."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self.other: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []

    def __call__(
        self, _: object, module: str, root: Path, request: dict[str, Any], *__: object, **environment: str
    ) -> tuple[Any, float]:
        folder = Path(environment["PYTHONPATH"].split(os.pathsep)[0]).parent
        query = "floor" if module.endswith("floor") else request["query"]
        who = (query, "before" if folder == BEFORE.folder else "this")
        self.asked.append(who)
        seconds = self.seconds.get(who, 1.0)
        answered: dict[str, Any] = {"code": [str(folder / PACKAGE)]}
        if request["do"] == "start":
            start = {"seconds": seconds, "call": 0.5, "to_trigger": 0.25, "trigger": seconds - 0.75, "steps": {}}
            start["parts"] = {"addBatch": 0.125, "newPart": 0.0625}
            answered |= {"starts": [start, start], "totals": [{"results": 3, "checksum": 7}] * 2}
        else:
            files = len(list((Path(request["folder"]) / "left").iterdir()))
            size = house.QUICK if query in ("plain", "grouped", "floor") or files == 6 else house.QUICK_SMALL
            batch = {"rows": size.rows, "seconds": seconds, "parts": {}, "results": size.rows // 2, "checksum": 1}
            answered["batches"] = [batch] * (files // 2)
            if query in ("plain", "grouped", "query"):
                answered["rest"] = {"results": 2, "checksum": 5}
            if query in ("plain", "grouped"):
                answered["weight"] = 1000
        return answered | self.other.get(who, {}), 1.0


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    acting = Stage()
    monkeypatch.setattr(streaming, "ask", acting)
    return acting


@pytest.fixture
def home(tmp_path: Path, stage: Stage) -> House:
    return House(Track(tmp_path, lambda _: None), [Checkout(THIS, ROOT), BEFORE], rounds=2)


class TestQuestions:
    def test_every_second_round_goes_backwards(self, home: House, stage: Stage) -> None:
        house.measure_equality(home, quick=True)
        turn = [("equality", "this"), ("equality", "before"), ("floor", "this")]
        assert stage.asked == [*turn, *reversed(turn)]

    def test_equality_is_against_before_and_above_the_floor(self, home: House, stage: Stage) -> None:
        stage.seconds = {("equality", "before"): 2.0, ("floor", "this"): 0.5}
        outcome = house.measure_equality(home, quick=True)
        assert [(verdict.measured, verdict.met) for verdict in outcome.verdicts] == [(2.0, True), (100.0, False)]
        assert "2.00 times as fast" in shown(house_tables.house_table(outcome))

    def test_group_is_against_the_join_alone_and_before(self, home: House, stage: Stage) -> None:
        stage.seconds = {("grouped", "this"): 1.5, ("grouped", "before"): 3.0}
        outcome = house.measure_group(home, quick=True)
        assert [(verdict.measured, verdict.met) for verdict in outcome.verdicts] == [(1.5, False), (2.0, True)]

    def test_small_is_a_query_and_a_join(self, home: House, stage: Stage) -> None:
        stage.seconds = {("query", "before"): 1.25, ("equality", "this"): 2.0}
        outcome = house.measure_small(home, quick=True)
        assert [(verdict.measured, verdict.met) for verdict in outcome.verdicts] == [(1.25, False), (0.5, False)]

    def test_start_has_its_parts_and_spark_beside_it(self, home: House, stage: Stage) -> None:
        stage.seconds = {("query", "before"): 4.0, ("query", "this"): 2.0, ("native", "this"): 1.5}
        first, again = house_start.measure(home, quick=True)
        assert [(verdict.measured, verdict.met) for verdict in first.verdicts] == [(1.0, False), (2.0, True)]
        assert "Spark's own join: 1.50 s" in first.verdicts[0].text
        assert again.verdicts == []
        table = shown(house_tables.start_table(first))
        assert all(part in table for part in ("addBatch", "newPart", "0.062", "the call"))

    def test_a_first_round_of_starts_does_not_count(self, home: House) -> None:
        first, _ = house_start.measure(home, quick=False)
        assert {len(start.told) for start in first.starts} == {home.rounds + house.ROUNDS_MORE}

    @pytest.mark.parametrize("question", house.MEASURES)
    def test_without_an_earlier_state_there_is_nothing_about_one(
        self, home: House, stage: Stage, question: str
    ) -> None:
        alone = House(home.track, home.checkouts[:1], rounds=1)
        outcome = house.MEASURES[question](alone, True)
        assert {who for _, who in stage.asked} == {"this"}
        assert not any("before" in verdict.text for verdict in outcome.verdicts)
        assert "times as fast" not in shown(house_tables.house_table(outcome))
        assert house_start.measure(alone, quick=True)[0].verdicts == []

    def test_everything_can_be_written_down(self, home: House) -> None:
        for outcome in (house.measure_small(home, quick=True), *house_start.measure(home, quick=True)):
            assert {"contenders", "verdicts"} <= outcome.to_json().keys()


class TestEqualResults:
    def test_a_call_must_deliver_the_same_in_every_micro_batch(self, home: House, stage: Stage) -> None:
        batch = {"rows": 20_000, "seconds": 1.0, "parts": {}, "results": 10_000, "checksum": 2}
        stage.other = {("equality", "before"): {"batches": [batch] * 3}}
        with pytest.raises(UnequalResultsError, match="equality, before delivered other results"):
            house.measure_equality(home, quick=True)

    def test_a_query_may_deliver_the_same_later(self, home: House, stage: Stage) -> None:
        batches = [
            {"rows": 1000, "seconds": 1.0, "parts": {}, "results": results, "checksum": checksum}
            for results, checksum in ((500, 1), (500, 1), (500, 1), (500, 1), (480, 0))
        ]
        stage.other = {("query", "before"): {"batches": batches, "rest": {"results": 22, "checksum": 6}}}
        assert house.measure_small(home, quick=True).verdicts[0].measured == 1.0

    @pytest.mark.parametrize("rest", [{"results": 3, "checksum": 5}, {"results": 2, "checksum": 4}])
    def test_but_not_others(self, home: House, stage: Stage, rest: dict[str, int]) -> None:
        stage.other = {("query", "before"): {"rest": rest}}
        with pytest.raises(UnequalResultsError, match="query, before delivered other results"):
            house.measure_small(home, quick=True)

    def test_groups_must_count_the_pairs_of_the_join(self, home: House, stage: Stage) -> None:
        stage.other = {("grouped", state): {"weight": 999} for state in ("this", "before")}
        with pytest.raises(UnequalResultsError, match="does not count the pairs"):
            house.measure_group(home, quick=True)

    def test_starts_must_deliver_what_spark_does(self, home: House, stage: Stage) -> None:
        stage.other = {("native", "this"): {"totals": [{"results": 3, "checksum": 8}] * 2}}
        with pytest.raises(UnequalResultsError, match="times cannot be compared"):
            house_start.measure(home, quick=True)

    def test_other_code_than_asked_for_is_noticed(self, home: House, stage: Stage) -> None:
        stage.other = {("equality", "before"): {"code": [str(ROOT / PACKAGE)]}}
        with pytest.raises(ContenderError, match="before was to run the code in /before, but ran"):
            house.measure_equality(home, quick=True)


class TestRestore:
    def test_parts_are_in_order_and_times_follow_each_other(self, tmp_path: Path) -> None:
        house_restore.write(1000, 7, tmp_path / "parts")
        group, ts, offsets = (np.load(tmp_path / "parts" / f"{name}.npy") for name in ("group", "ts", "offsets"))
        assert sorted(ts.tolist()) == list(range(1000))
        for start, end in itertools.pairwise(offsets):
            keys = list(zip(group[start:end].tolist(), ts[start:end].tolist(), strict=True))
            assert keys == sorted(keys)
            assert (ts[start:end].min(), ts[start:end].max()) == (start, end - 1)

    def test_both_jobs_are_raced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(house_restore, "QUICK_ROWS", 2000)
        states = [Checkout(THIS, ROOT), Checkout("the same", ROOT)]
        area, merge = house_restore.measure(states, True, 1, tmp_path / "restore")
        assert [len(outcome.verdicts) for outcome in (area, merge)] == [1, 1]
        assert area.notes == dict.fromkeys((THIS, "the same"), "16 parts stored")
        assert area.contenders[0].digest != merge.contenders[0].digest
        assert "the same" in shown(house_tables.restore_table(area))
        assert merge.to_json()["contenders"][0]["count"] == 2000


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


class TestCheckouts:
    @pytest.fixture
    def repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A checkout with a commit, and a change since."""
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        folder = tmp_path / "repository"
        (folder / "src" / "streamjoin").mkdir(parents=True)
        (folder / PACKAGE).write_text("state = 'before'\n")
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "first")
        (folder / PACKAGE).write_text("state = 'now'\n")
        monkeypatch.setattr(checkouts, "ROOT", folder)
        return folder

    def test_a_commit_is_checked_out_for_as_long_as_it_is_needed(self, repository: Path, tmp_path: Path) -> None:
        earlier = checkouts.named("HEAD")
        assert earlier == Earlier(git(repository, "rev-parse", "--short", "HEAD"))
        with checkouts.checkouts(earlier, tmp_path) as (this, before):
            assert (this.folder, before.folder.parent) == (repository, tmp_path)
            told = [self.imported(state) for state in (this, before)]
        assert told == ["now", "before"]
        assert not before.folder.exists()
        assert git(repository, "worktree", "list").count("\n") == 0

    def test_it_goes_also_when_something_fails(self, repository: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="oh"), checkouts.checkouts(checkouts.named("HEAD"), tmp_path):
            raise ValueError("oh")
        assert git(repository, "worktree", "list").count("\n") == 0

    def test_a_folder_stays_as_it_is(self, repository: Path, tmp_path: Path) -> None:
        earlier = checkouts.named(str(repository))
        assert earlier is not None
        assert earlier.name.endswith("-dirty")
        with checkouts.checkouts(earlier, tmp_path) as (_, before):
            assert before.folder == repository
            assert "NUMBA_CACHE_DIR" in before.environment
        assert (repository / PACKAGE).exists()

    def test_nothing_earlier(self, repository: Path, tmp_path: Path) -> None:
        assert checkouts.named("") is None
        with checkouts.checkouts(None, tmp_path) as states:
            assert [state.label for state in states] == [THIS]
            assert "NUMBA_CACHE_DIR" not in states[0].environment

    def test_what_is_neither_is_refused(self, repository: Path, tmp_path: Path) -> None:
        for neither in ("nobody", str(tmp_path)):
            with pytest.raises(BenchmarkError, match="neither a commit"):
                checkouts.named(neither)

    @staticmethod
    def imported(state: Checkout) -> str:
        command = [sys.executable, "-c", "import streamjoin; print(streamjoin.state)"]
        environment = {**os.environ, **state.environment}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [(["--only", "start,stop"], "no question 'stop'"), (["--against", "no such commit"], "neither a commit")],
    )
    def test_a_wrong_call_is_one_sentence(self, arguments: list[str], message: str) -> None:
        result = CliRunner().invoke(app, ["bench", "house", *arguments])
        assert result.exit_code == 1
        assert message in result.output
