"""All questions in one place: they are listed, asked one after another, and told in a table."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from dataclasses import replace
from functools import partial
from inspect import signature
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
from benchmarks.commands import command_of
from benchmarks.errors import BenchmarkError
from benchmarks.measured_code import Tree, code_of
from benchmarks.race import Verdict
from streamjoin.cli import app, bench
from tests.benchmarks.asking_all import AROUND, ask_all


def answer(*verdicts: Verdict, error: str = "", quick: bool = False) -> dict[str, Any]:
    found = {"quick": quick, "minutes": 3.0, "verdicts": [each.to_json() for each in verdicts], "peers": []}
    return {**AROUND, **found, "error": error}


def unchanged(root: Path) -> Tree:
    """As if all that lies there were committed."""
    return Tree({str(file.relative_to(root)): "as it is" for file in root.glob("*/**/*.py")}, frozenset())


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

    def test_each_has_a_module_of_its_own_and_as_many_repetitions_as_the_command_line_says(self) -> None:
        for name, command in COMMANDS.items():
            assert command_of(name) is command
            told = signature(getattr(bench, name)).parameters.get("repetitions")
            assert told is None or told.default == command.repetitions, name

    def test_questions_whose_answers_have_no_times_are_known(self) -> None:
        """Those of virtual time and of counts, all but what says otherwise of itself."""
        untimed = {name for name, command in COMMANDS.items() if not all(each.timed for each in command.questions)}
        assert untimed == {"recall", "replay", "enough", "sweep", "priority"}
        timed = {f"{name}.{each.name}" for name in untimed for each in COMMANDS[name].questions if each.timed}
        assert timed == {"recall.cost", "sweep.pmj"}

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

    def test_answers_are_stored_as_they_come_and_a_question_that_fails_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "code_now", partial(code_of, "HEAD"))  # as if nothing had been changed
        monkeypatch.setattr(all_questions, "tree_now", unchanged)
        unknown = Question("nothing", "a question that the command refuses", "nobody", "none", 1)
        broken = replace(COMMANDS["recall"], questions=(unknown, Question("ends", "both ends", "exact", "equal", 1)))
        monkeypatch.setitem(COMMANDS, "recall", broken)
        path = tmp_path / "figures.json"
        done, printed = ask_all(path, "recall")
        stored = json.loads(path.read_text())["questions"]
        assert not done
        assert "there is no question 'nothing'" in stored["recall.nothing"]["error"]
        assert "No answer: recall.nothing" in printed
        found = stored["recall.ends"]
        assert found["error"] == ""
        assert found["verdicts"][0]["question"] == "exp: results that a target of 1 loses"
        assert {"machine", "commit", "started", "minutes"} <= set(found)
        loaded = all_questions.read(path)["recall.ends"]["files"]
        assert {"benchmarks/recall_replay.py", "src/streamjoin/operators/recall/model.py"} <= set(loaded)
        assert not {"benchmarks/sweep.py", "benchmarks/all_questions.py", "src/streamjoin/cli/bench.py"} & set(loaded)
        assert "recall ends: exp: results that a target of 1 loses" in (tmp_path / "build" / "figures.html").read_text()
        done, printed = ask_all(path, "recall.ends")
        assert done
        assert "recall.ends: there already" in printed

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

    @pytest.mark.parametrize(
        ("written", "error"),
        [
            ("", "no figures; d-1: its file is not there"),
            ('{"questions": {"peers": {"missing": {"Flink": "failed: no Java"}}}}', "Flink failed: no Java"),
            ('{"questions": {"peers": {"missing": {}}}}', ""),
        ],
    )
    def test_what_ran_to_its_end_without_what_was_asked_for_is_no_answer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, error: str
    ) -> None:
        script = "import pathlib, sys; print('d-1: its file is not there')\n"
        script += f"if {written!r}: pathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text({written!r})"
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "RUN", ["-c", script])
        assert all_questions.ask(COMMANDS["recall"], COMMANDS["recall"].questions[0], quick=True)["error"] == error

    def test_errors_are_told_as_they_are(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        found = {"quick": True, "minutes": 0.1, "verdicts": [], "peers": [], "error": "no file [/path] there"}
        monkeypatch.setattr(all_questions, "ask", lambda *_, **__: found)
        done, printed = ask_all(tmp_path / "figures.json", "recall.ends")
        assert not done
        assert printed.count("no file [/path] there") == 2, "at once, and in the summary"


class TestStanding:
    """How long an answer stands, in a repository of its own; asking takes no time."""

    @pytest.fixture(autouse=True)
    def _repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.figures, self.asked = tmp_path, tmp_path / "docs" / "figures.json", list[str]()
        for folder in ("src", "benchmarks", "docs"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "file").write_text("old")
        (tmp_path / "requirements.lock").write_text("old")
        self.git("init", "-q")
        self.first = self.commit()
        monkeypatch.setattr(all_questions, "ROOT", tmp_path)
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "circumstances", lambda _: {**AROUND, "commit": self.described()})
        monkeypatch.setattr(all_questions, "ask", self.ask)

    def git(self, *arguments: str) -> str:
        told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(told, cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def described(self) -> str:
        return self.git("describe", "--always", "--dirty")

    def commit(self) -> str:
        self.git("add", ".")
        self.git("commit", "-qm", "one more")
        return self.described()

    def ask(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked.append(self.described())
        return {"quick": False, "minutes": 7.0, "verdicts": [], "peers": [], "error": ""}

    def run(self, only: str = "recall.ends", **options: Any) -> str:
        _, printed = ask_all(self.figures, only, quick=False, **options)
        return printed

    def stored(self, key: str = "recall.ends") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.figures.read_text())["questions"][key]
        return found

    def test_it_stands_whatever_is_committed_beside_the_code(self) -> None:
        assert "1 questions, 1 left, about" in self.run()
        (self.root / "docs" / "file").write_text("new")  # not committed: no figure depends on it
        assert "1 questions, 0 left, about 0 minutes" in self.run()
        self.commit()  # the figures too
        self.run()
        assert self.asked == [self.first]
        assert self.stored()["commit"] == self.first

    @pytest.mark.parametrize("path", ["src/streamjoin/cli/run.py", "benchmarks/reproduce/page.py"])
    def test_it_stands_where_only_what_shows_figures_has_changed(self, path: str) -> None:
        self.run()
        (self.root / path).parent.mkdir(parents=True)
        (self.root / path).write_text("new")  # not committed
        assert "0 left" in self.run()
        self.commit()
        assert "0 left" in self.run()

    def test_it_stands_by_its_commit_where_its_name_was_made_in_another_way(self) -> None:
        self.run()
        found = {**self.stored(), "code": {"src": "a tree", "benchmarks": "another"}}
        self.figures.write_text(json.dumps({"questions": {"recall.ends": found}}))
        assert "0 left" in self.run()
        self.figures.write_text(json.dumps({"questions": {"recall.ends": {**found, "commit": "0123abc"}}}))
        assert "1 left" in self.run(), "nobody knows that commit"

    @pytest.mark.parametrize("path", ["src/file", "benchmarks/file", "requirements.lock"])
    def test_other_code_is_asked_anew_and_once(self, path: str) -> None:
        self.run()
        (self.root / path).write_text("new")
        second = self.commit()
        assert "1 left, about 7 minutes" in self.run(), "as long as the last time"
        self.run()
        assert self.asked == [self.first, second]
        assert self.stored()["commit"] == second

    @pytest.fixture
    def elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It has been asked, and the next time on another machine."""
        self.run()
        self.run(only="recall.cost")
        elsewhere = {**AROUND, "machine": "four cores", "commit": self.first}
        monkeypatch.setattr(all_questions, "circumstances", lambda _: elsewhere)

    @pytest.mark.usefixtures("elsewhere")
    def test_without_times_it_stands_on_every_machine(self) -> None:
        assert "0 left" in self.run()
        assert self.stored()["machine"] == "two cores"

    @pytest.mark.usefixtures("elsewhere")
    def test_with_times_it_stands_on_its_own_machine_unless_those_of_others_shall_do(self) -> None:
        assert "0 left" in self.run(only="recall.cost", elsewhere=True)
        assert self.stored("recall.cost")["machine"] == "two cores"
        assert "1 left" in self.run(only="recall.cost")
        assert self.stored("recall.cost")["machine"] == "four cores"

    def test_beside_an_earlier_state_it_stands_for_that_state_alone(self) -> None:
        self.run()
        assert "1 left" in self.run(against="abc"), "asked without it"
        found = {**self.stored(), "against": "abc"}
        self.figures.write_text(json.dumps({"questions": {"recall.ends": found}}))
        assert "0 left" in self.run(against="abc")
        assert "0 left" in self.run(), "what was asked beside it was asked"
        assert "1 left" in self.run(against="def")

    def test_changes_that_are_not_committed_have_no_name(self) -> None:
        self.run()
        (self.root / "src" / "another").write_text("new")
        self.run()
        self.run()
        assert len(self.asked) == 3
        assert self.stored()["code"] is None

    def test_code_that_changes_while_it_is_measured_has_none_either(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(*_: Any, **__: Any) -> dict[str, Any]:
            (self.root / "src" / "file").write_text("new")
            self.commit()
            return self.ask()

        monkeypatch.setattr(all_questions, "ask", ask)
        self.run()
        assert self.stored()["code"] is None

    @pytest.mark.parametrize(("commit", "stands"), [("", True), ("0123abc", False), ("-dirty", False)])
    def test_an_answer_with_nothing_but_a_commit_has_the_code_of_that_commit(self, commit: str, stands: bool) -> None:
        self.run()
        found = self.stored()
        del found["code"]
        found["commit"] = commit if commit.isalnum() else self.first + commit
        self.figures.write_text(json.dumps({"questions": {"recall.ends": found}}))
        self.run()
        assert len(self.asked) == (1 if stands else 2)

    def test_the_list_says_what_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def told(what: str) -> int:
            printed = StringIO()
            all_questions.list_questions(Console(file=printed, width=600))
            text = " ".join(printed.getvalue().replace("│", " ").split())
            found = re.search(rf"{what}: (\d+)", text)
            assert found is not None
            return int(found.group(1))

        left, standing = "without an answer for this state of the code", "with an answer that stands"
        monkeypatch.setattr(all_questions, "STORED", self.figures)
        before = told(left)
        assert told(standing) == 0
        self.run()
        assert (told(left), told(standing)) == (before - 1, 1)


class TestTable:
    commands = (COMMANDS["kernels"], COMMANDS["spill"])
    stored: ClassVar = {
        "kernels.overlap": answer(WON),
        "spill.band": answer(LOST),
        "spill.restore": answer(error="it died"),
    }

    def test_wins_and_losses_are_lines_alike_and_so_is_what_had_no_answer(self) -> None:
        lines = [line for command in self.commands for line in rows_of(command, self.stored)]
        assert {line[0] for line in lines if line[4] == "not asked"} == {
            f"{command.name} {question.name}: {question.asks}"
            for command in self.commands
            for question in command.questions
            if f"{command.name}.{question.name}" not in self.stored
        }
        assert [(line[0], *line[3:]) for line in lines if line[4] != "not asked"] == [
            ("kernels: overlap", "at least 1.5", "yes", "2026-01-02, abc, 3.0 min"),
            ("spill: band, memory", "at most 4", "**no**", "2026-01-02, abc, 3.0 min"),
            ("spill restore", COMMANDS["spill"].questions[-1].goal, "no answer", "2026-01-02, abc, 3.0 min"),
        ]

    def test_a_question_without_a_goal_has_a_line_too(self) -> None:
        sorting = next(each for each in COMMANDS["lifetimes"].questions if each.name == "sorting")
        lines = [each for each in rows_of(COMMANDS["lifetimes"], {"lifetimes.sorting": answer()}) if each[-1]]
        shown = "shown by ./sj bench lifetimes --only sorting"
        assert lines == [
            (
                f"lifetimes sorting: {sorting.asks}",
                sorting.rivals,
                shown,
                "none: shown",
                "not judged",
                "2026-01-02, abc, 3.0 min",
            ),
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

    def test_of_several_machines_each_line_tells_its_own(self) -> None:
        elsewhere = {**self.stored["spill.band"], "machine": "four cores"}
        text = markdown(self.commands, {**self.stored, "spill.band": elsewhere})
        assert "machine 1: two cores; machine 2: four cores; 2026-01-02" in text
        assert "min, machine 2 |" in text
        assert "min, machine 1 |" in text

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


def test_the_table_of_the_readme_is_that_of_the_stored_figures() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    made = markdown(list(COMMANDS.values()), all_questions.read(all_questions.STORED))
    assert insert(text, made, "README.md") == text, "make it with ./sj bench table --into README.md"
