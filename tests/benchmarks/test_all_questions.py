"""All questions in one place: they are listed, asked one after another, and told in a table."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import all_questions, bench_table
from benchmarks.asking.command import Question
from benchmarks.asking.registry import COMMANDS
from benchmarks.bench_table import BEGIN, END, insert, markdown, rows_of, summary
from benchmarks.errors import BenchmarkError
from benchmarks.race import Verdict
from streamjoin.cli import app, bench

AROUND = {"machine": "two cores", "started": "2026-01-02 03:04:05", "commit": "abc", "python": "3.11", "load": 0.0}


def answer(*verdicts: Verdict, error: str = "", quick: bool = False) -> dict[str, Any]:
    found = {"quick": quick, "minutes": 3.0, "verdicts": [each.to_json() for each in verdicts], "peers": []}
    return {**AROUND, **found, "error": error}


WON = Verdict("overlap", 2.0, 1.5, "2.00 times as fast as DuckDB")
LOST = Verdict("band, memory", 9.0, 4.0, "9 MB | a pipe", at_most=True)


class TestRegistry:
    def test_every_command_of_the_command_line_is_there_and_has_questions(self) -> None:
        of_typer = {command.name or command.callback.__name__ for command in bench.app.registered_commands}  # type: ignore[union-attr]
        assert of_typer - {"list", "all", "table"} == set(COMMANDS)
        assert all(command.questions for command in COMMANDS.values())

    def test_questions_say_what_they_ask_beside_whom_and_their_goal(self) -> None:
        for command in COMMANDS.values():
            assert len(set(command.names)) == len(command.names)
            for question in command.questions:
                assert question.asks, (command.name, question.name)
                assert question.rivals, (command.name, question.name)
                assert question.goal, (command.name, question.name)
                assert question.minutes > 0, (command.name, question.name)

    def test_the_list_shows_all_of_them_and_their_minutes(self) -> None:
        printed = CliRunner().invoke(app, ["bench", "list"]).output
        for command in COMMANDS.values():
            assert command.name in printed
            assert all(name in printed for name in command.names)

    def test_some_are_chosen_by_command_or_by_question(self) -> None:
        def names(*only: str, earlier: bool = False) -> list[str]:
            return [
                f"{command.name}.{question.name}" for command, question in all_questions.chosen(only, earlier=earlier)
            ]

        assert names("lanes", "asof.best") == ["asof.best", "lanes.overload", "lanes.task"]
        assert "house.start" not in names()
        assert "house.start" in names(earlier=True)
        assert names("house.start") == ["house.start"]
        with pytest.raises(BenchmarkError, match="no question 'asof"):
            names("asof.worst")


class TestAll:
    """With questions that take a second, in processes of their own as always."""

    def run(self, path: Path, only: str, **options: Any) -> tuple[bool, str]:
        printed = StringIO()
        usual = {"quick": True, "json_path": path, "again": False, "against": ""}
        done = all_questions.run_all(Console(file=printed, width=200), only=[only], **usual | options)
        return done, printed.getvalue()

    def test_answers_are_stored_as_they_come_and_a_question_that_fails_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "circumstances", lambda _: dict(AROUND))  # a commit without changes
        unknown = Question("nothing", "a question that the command refuses", "nobody", "none", 1)
        broken = replace(COMMANDS["recall"], questions=(unknown, Question("ends", "both ends", "exact", "equal", 1)))
        monkeypatch.setitem(COMMANDS, "recall", broken)
        path = tmp_path / "figures.json"
        done, printed = self.run(path, "recall")
        stored = json.loads(path.read_text())["questions"]
        assert not done
        assert "there is no question 'nothing'" in stored["recall.nothing"]["error"]
        assert "No answer: recall.nothing" in printed
        found = stored["recall.ends"]
        assert found["error"] == ""
        assert found["verdicts"][0]["question"] == "exp: results that a target of 1 loses"
        assert {"machine", "commit", "started", "minutes"} <= set(found)
        assert "recall ends: exp: results that a target of 1 loses" in (tmp_path / "build" / "figures.html").read_text()
        done, printed = self.run(path, "recall.ends")
        assert done
        assert "recall.ends: there already" in printed

    def test_figures_of_a_commit_with_changes_do_not_stand_for_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def git(*arguments: str) -> str:
            told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
            return subprocess.run(told, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

        figures, code = tmp_path / "figures.json", tmp_path / "code.py"
        git("init", "-q")
        figures.write_text('{"questions": {}}')
        code.write_text("old")
        git("add", ".")
        git("commit", "-qm", "all")
        commit = git("describe", "--always", "--dirty")
        monkeypatch.setattr(all_questions, "ROOT", tmp_path)
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(
            all_questions, "circumstances", lambda _: {**AROUND, "commit": git("describe", "--always", "--dirty")}
        )
        asked = list[str]()

        def ask(*_: Any, **__: Any) -> dict[str, Any]:
            asked.append(git("describe", "--always", "--dirty"))
            return {"quick": True, "minutes": 0.1, "verdicts": [], "peers": [], "error": ""}

        monkeypatch.setattr(all_questions, "ask", ask)
        self.run(figures, "recall.ends")
        self.run(figures, "recall.ends")
        assert asked == [commit], "figures that have been written are no other code"
        code.write_text("new")
        self.run(figures, "recall.ends")
        self.run(figures, "recall.ends")
        assert asked == [commit, f"{commit}-dirty", f"{commit}-dirty"]

    def test_a_question_that_is_interrupted_leaves_no_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started = list[subprocess.Popen[bytes]]()

        class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
            def wait(self, timeout: float | None = None) -> int:
                if not started:
                    started.append(self)
                    raise KeyboardInterrupt
                return super().wait(timeout)

        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(subprocess, "Popen", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            all_questions.ask(COMMANDS["recall"], COMMANDS["recall"].questions[0], quick=True)
        try:
            assert started[0].poll() == -signal.SIGKILL
        finally:
            started[0].kill()

    def test_errors_are_told_as_they_are(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        found = {"quick": True, "minutes": 0.1, "verdicts": [], "peers": [], "error": "no file [/path] there"}
        monkeypatch.setattr(all_questions, "ask", lambda *_, **__: found)
        done, printed = self.run(tmp_path / "figures.json", "recall.ends")
        assert not done
        assert printed.count("no file [/path] there") == 2, "at once, and in the summary"


class TestTable:
    commands = (COMMANDS["kernels"], COMMANDS["spill"])
    stored: ClassVar = {
        "kernels.overlap": answer(WON),
        "spill.band": answer(LOST),
        "spill.restore": answer(error="it died"),
    }

    def test_wins_and_losses_are_lines_alike_and_so_is_what_had_no_answer(self) -> None:
        lines = [line for command in self.commands for line in rows_of(command, self.stored)]
        assert [(line[0], line[3], line[4]) for line in lines] == [
            ("kernels: overlap", "at least 1.5", "yes"),
            ("spill: band, memory", "at most 4", "**no**"),
            ("spill restore", COMMANDS["spill"].questions[-1].goal, "no answer"),
        ]

    def test_a_question_without_a_goal_has_a_line_too(self) -> None:
        sorting = next(each for each in COMMANDS["lifetimes"].questions if each.name == "sorting")
        lines = list(rows_of(COMMANDS["lifetimes"], {"lifetimes.sorting": answer()}))
        shown = "shown by ./sj bench lifetimes --only sorting"
        assert lines == [
            (f"lifetimes sorting: {sorting.asks}", sorting.rivals, shown, "none: shown", "not judged"),
        ]

    def test_the_summary_names_what_was_missed(self) -> None:
        first, missed, unanswered = summary(self.stored)
        assert first == "1 of 2 goals met."
        assert missed.startswith("Missed: spill.band: band, memory, 9 MB")
        assert unanswered == "No answer: spill.restore (it died)."

    def test_markdown_tells_the_machine_the_date_and_the_commit(self) -> None:
        text = markdown(self.commands, self.stored)
        assert "two cores; 2026-01-02; commit abc" in text
        assert "9 MB \\| a pipe" in text
        assert "Quick run" not in text
        assert "Quick run" in markdown(self.commands, {"kernels.overlap": answer(WON, quick=True)})

    def test_it_goes_between_the_marks_of_a_file_and_nowhere_else(self, tmp_path: Path) -> None:
        file = tmp_path / "README.md"
        file.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nrest\n")
        figures = tmp_path / "figures.json"
        figures.write_text(json.dumps({"questions": self.stored}))
        arguments = ["bench", "table", "--json", str(figures), "--into", str(file)]
        for _ in (0, 1):  # the second time changes nothing
            assert CliRunner().invoke(app, arguments).exit_code == 0
            text = file.read_text()
            assert text.startswith("# Title\n\n")
            assert text.endswith("\n\nrest\n")
            assert "old" not in text
            assert text.count("| kernels: overlap |") == 1

    def test_a_file_without_marks_or_figures_is_refused_with_the_way_out(self, tmp_path: Path) -> None:
        with pytest.raises(BenchmarkError, match="has no place for the table"):
            insert("nothing here", "table", "README.md")
        refused = CliRunner().invoke(app, ["bench", "table", "--json", str(tmp_path / "none.json")])
        assert refused.exit_code == 1
        assert "./sj bench all" in " ".join(refused.output.split())


def test_the_examples_of_docstrings() -> None:
    import doctest

    assert doctest.testmod(bench_table).failed == doctest.testmod(all_questions).failed == 0


def test_the_readme_has_a_place_for_the_table() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    assert insert(text, "table\n", "README.md").count("table\n") >= 1
