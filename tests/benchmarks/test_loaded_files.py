"""What the processes of a question load is noted, and its answer stands as long as that is the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import all_questions, loaded_files
from benchmarks.environments import ROOT
from benchmarks.loaded_files import WATCHED, fold, noted, noting, unfold
from benchmarks.measured_code import tree_now
from tests.benchmarks.asking_all import AROUND, ask_all


class Folder:
    """A small project in a repository of its own; its command is `python -m benchmarks`, as ours is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("requirements.lock", "one==1")
        for package in ("benchmarks", "src/ours"):
            self.write(f"{package}/__init__.py", "")
        self.write(".gitignore", "__pycache__/")  # as the project's own has it
        self.write("benchmarks/peers.txt", "peer==1")
        self.write("benchmarks/commands.py", "import ours.used")
        self.write("benchmarks/other.py", "")
        self.write("src/ours/used.py", "")
        self.write("src/ours/unused.py", "")
        self.write("src/ours/by_child.py", "")
        self.write("src/ours/by_forked.py", "")
        self.write(
            "benchmarks/__main__.py",
            "import json, os, subprocess, sys, benchmarks.commands\n"
            "subprocess.run([sys.executable, 'benchmarks/script.py'], check=True)\n"
            "open(sys.argv[sys.argv.index('--json') + 1], 'w').write(json.dumps({'questions': {'a': {}}}))\n",
        )
        self.write(
            "benchmarks/script.py",
            "import os, ours.by_child\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    import ours.by_forked\n"
            "    os._exit(0)\n"  # without a word, as Spark's workers
            "os.waitpid(child, 0)\n",
        )
        self.git("init", "-q")
        self.commit()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def git(self, *arguments: str) -> str:
        told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(told, cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", ".")
        self.git("commit", "-qm", "one more")
        return self.git("describe", "--always")


LOADED = [
    "benchmarks/__init__.py", "benchmarks/__main__.py", "benchmarks/commands.py", "benchmarks/script.py",
    "src/ours/__init__.py", "src/ours/by_child.py", "src/ours/by_forked.py", "src/ours/used.py",
]  # fmt: skip


class TestStanding:
    @pytest.fixture(autouse=True)
    def _project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.figures = Folder(tmp_path / "project"), tmp_path / "figures.json"
        self.first = self.project.git("describe", "--always")

        def around(_: object) -> dict[str, Any]:
            return {**AROUND, "commit": self.project.git("describe", "--always", "--dirty")}

        monkeypatch.setattr(all_questions, "ROOT", self.project.root)
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "circumstances", around)

    def left(self) -> int:
        """How many questions were asked, of one."""
        done, printed = ask_all(self.figures, "recall.ends", quick=False)
        assert done, printed
        found = re.search(r"1 questions, (\d) left", printed)
        assert found is not None
        return int(found.group(1))

    def stored(self) -> dict[str, Any]:
        return all_questions.read(self.figures)["recall.ends"]

    def test_its_files_are_those_of_all_its_processes_and_what_is_not_python(self) -> None:
        assert self.left() == 1
        assert self.stored()["files"] == sorted([*LOADED, "benchmarks/peers.txt", "requirements.lock"])
        assert self.left() == 0

    @pytest.mark.parametrize("path", ["src/ours/unused.py", "benchmarks/other.py", "src/ours/new.py", "docs/page.md"])
    def test_it_stands_whatever_happens_to_other_files(self, path: str) -> None:
        self.left()
        self.project.write(path, "changed = 1")
        assert self.left() == 0
        self.project.commit()
        assert self.left() == 0
        assert self.stored()["commit"] == self.first

    @pytest.mark.parametrize("path", [*LOADED, "benchmarks/peers.txt", "requirements.lock"])
    def test_it_does_not_where_one_of_them_has_changed(self, path: str) -> None:
        self.left()
        before = (self.project.root / path).read_text()
        self.project.write(path, f"{before}\n# changed")
        self.project.commit()
        assert self.left() == 1
        assert self.left() == 0, "asked of the new ones"

    def test_it_does_not_while_one_of_them_has_changes_that_are_in_no_commit(self) -> None:
        self.left()
        self.project.write("src/ours/used.py", "changed = 1")
        assert self.left() == 1
        assert self.stored()["code"] is None
        assert self.stored()["commit"].endswith("-dirty")
        assert self.left() == 1

    def test_it_has_the_name_of_its_commit_where_only_others_have_such_changes(self) -> None:
        self.project.write("src/ours/unused.py", "changed = 1")
        self.left()
        assert self.stored()["commit"] == self.first
        assert self.left() == 0

    def test_one_of_them_that_is_in_no_commit_has_no_name(self) -> None:
        self.project.write("src/ours/used.py", "import ours.new")
        self.project.commit()
        self.project.write("src/ours/new.py", "")
        assert [self.left(), self.left()] == [1, 1]
        self.project.commit()
        assert [self.left(), self.left()] == [1, 0]

    def test_a_file_that_goes_makes_it_fall(self) -> None:
        self.left()
        self.project.write("benchmarks/commands.py", "")
        (self.project.root / "src/ours/used.py").unlink()
        self.project.commit()
        assert self.left() == 1

    def test_files_that_change_while_it_is_asked_have_none(self) -> None:
        text = "import pathlib, ours.used\npathlib.Path('src/ours/used.py').write_text('changed = 1')"
        self.project.write("benchmarks/commands.py", text)
        self.project.commit()
        self.left()
        assert self.stored()["code"] is None
        assert "files" not in self.stored()

    def test_where_nothing_was_noted_it_stands_as_long_as_all_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(all_questions, "noting", lambda notes, root, environment: environment)
        self.left()
        assert "files" not in self.stored()
        assert self.left() == 0
        self.project.write("src/ours/unused.py", "changed = 1")
        self.project.commit()
        assert self.left() == 1

    def test_answers_share_their_list(self) -> None:
        self.left()
        files = ["src/ours/used.py", "src/ours/deep/er.py", "requirements.lock"]
        answers = {"a": {"files": sorted(files)}, "b": {"files": sorted(files)}, "c": {"minutes": 1.0}}
        folded, lists = fold(answers)
        assert unfold(folded, lists) == answers
        assert len(lists) == 1
        assert folded["a"] == folded["b"]
        assert set(json.loads(self.figures.read_text())["files"]) == {
            json.loads(self.figures.read_text())["questions"]["recall.ends"]["files"]
        }


class TestNoting:
    def run(self, folder: Path, program: str) -> tuple[list[str], str]:
        """What a program under a folder notes of it, and what it prints."""
        (folder / "main.py").write_text(program)
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = noting(folder / "notes", folder, {**inherited, "PYTHONPATH": str(folder)})
        command = [sys.executable, "-c", "import main"]
        ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return (folder / "notes").read_text().splitlines(), ran.stdout.strip()

    def test_another_sitecustomize_is_not_lost(self, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customised = 'yes'")
        files, printed = self.run(tmp_path, "print(customised)")
        assert printed == "yes"
        assert files == ["sitecustomize.py", "main.py"]

    def test_it_notes_nothing_where_nobody_asked(self, tmp_path: Path) -> None:
        (tmp_path / "main.py").write_text("")
        environment = {**os.environ, "PYTHONPATH": f"{WATCHED}{os.pathsep}{tmp_path}"}
        subprocess.run([sys.executable, "-c", "import main"], env=environment, check=True, cwd=tmp_path)
        assert {file.name for file in tmp_path.iterdir()} - {"__pycache__"} == {"main.py"}

    def test_what_was_compiled_before_is_noted_too(self, tmp_path: Path) -> None:
        (tmp_path / "other.py").write_text("")
        first, _ = self.run(tmp_path, "import other")
        (tmp_path / "notes").unlink()
        again, _ = self.run(tmp_path, "import other")
        assert list((tmp_path / "__pycache__").glob("other.*.pyc"))
        assert first == again == ["main.py", "other.py"]

    def test_packages_of_the_peers_are_no_files_of_ours(self, tmp_path: Path) -> None:
        notes = tmp_path / "notes"
        notes.write_text("benchmarks/commands.py\nbuild/peers-1/lib/a.py\n.venv/lib/b.py\nbenchmarks/commands.py\n")
        assert noted(notes) == ["benchmarks/commands.py"]
        notes.write_text("src/streamjoin/errors.py\n")
        assert noted(notes) == [], "not even the first one was noted"

    @pytest.mark.spark
    def test_workers_of_spark_note_what_they_load(self, tmp_path: Path) -> None:
        program = (
            "import streamjoin as sj\n"
            "spark = sj.session(master='local[1]')\n"
            "def load(batches):\n"
            "    import benchmarks.priority_room.clock\n"  # that nobody else loads
            "    yield from batches\n"
            "print(spark.range(3).mapInArrow(load, 'id long').count())\n"
        )
        environment = all_questions._environment()
        environment = noting(tmp_path / "notes", ROOT, environment)
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert ran.stdout.split()[-1] == "3"
        files = set((tmp_path / "notes").read_text().splitlines())
        assert "src/streamjoin/spark/daemon.py" in files
        assert "benchmarks/priority_room/clock.py" in files

    def test_no_benchmark_starts_a_process_without_its_own_environment(self) -> None:
        """Whoever is not told to note does not note, and an answer would stand though its file has changed."""
        given = [
            (file.name, text)
            for file in [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "src" / "streamjoin").rglob("*.py")]
            for text in re.findall(r"\benv=(.{0,40})", file.read_text())
        ]
        assert len(given) >= 5
        inherited = ("{**os.environ", "environment)", "env,")  # the last two are made of the first, in their files
        assert [each for each in given if not each[1].startswith(inherited)] == []


def test_dirty_and_missing_files_have_no_content(tmp_path: Path) -> None:
    project = Folder(tmp_path)
    tree = tree_now(tmp_path)
    assert tree is not None
    assert tree.content(["src/ours/used.py"]) is not None
    assert tree.content(["src/ours/used.py"]) != tree.content(["src/ours/unused.py"])
    assert tree.content(["src/ours/none.py"]) is None
    project.write("src/ours/used.py", "changed = 1")
    changed = tree_now(tmp_path)
    assert changed is not None
    assert changed.content(["src/ours/used.py"]) is None
    assert changed.content(["src/ours/unused.py"]) == tree.content(["src/ours/unused.py"])
    assert tree_now(tmp_path.parent) is None, "no repository"


def test_the_examples_of_docstrings() -> None:
    import doctest

    assert doctest.testmod(loaded_files).failed == 0
