"""Questions side by side: as many as there may be, and none is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest

from benchmarks import all_questions
from benchmarks.side_by_side import Together
from tests.benchmarks.asking_all import ask_all

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


class TestTogether:
    def test_as_many_run_at_once_as_there_may(self) -> None:
        both, begun = Barrier(2, timeout=60), list[int]()  # nobody passes it alone
        with Together() as together:
            jobs = [both.wait] * 4
            assert sorted(together.all(jobs, 2, begun.append)) == [0, 0, 1, 1]
        assert begun == [0, 1, 2, 3]

    def test_never_more(self) -> None:
        running, most, lock = 0, 0, Lock()

        def job() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.02)
            with lock:
                running -= 1

        begun = list[int]()
        with Together() as together:
            for given, _ in enumerate(together.all([job] * 6, 2, begun.append)):
                assert len(begun) <= given + 2, "nobody is told that one begins that waits"
            assert len(begun) == 6
            assert most <= 2
            most = 0
            assert len(list(together.all([job] * 3, 1, lambda _: None))) == 3
        assert most == 1

    def test_all_that_were_started_end_when_somebody_stops_waiting(self) -> None:
        both, started = Barrier(3, timeout=60), list[subprocess.Popen[bytes]]()

        def job() -> int | None:
            started.append(together.start(SLEEP))
            both.wait()
            return together.wait(started[-1], 600)

        together = Together()
        with pytest.raises(KeyboardInterrupt), together:
            list(together.all([job, job, _interrupt(both)], 3, lambda _: None))
        assert [process.wait(60) for process in started] == [-signal.SIGKILL] * 2
        with pytest.raises(InterruptedError):
            together.start(SLEEP)

    def test_one_that_takes_too_long_is_ended_with_what_it_started(self, tmp_path: Path) -> None:
        child = tmp_path / "child"
        script = "import pathlib, subprocess, sys; child = subprocess.Popen([*sys.argv[2:]])\n"
        script += "pathlib.Path(sys.argv[1]).write_text(str(child.pid)); child.wait()"
        with Together() as together:
            process = together.start([sys.executable, "-c", script, str(child), *SLEEP])
            while not (child.is_file() and child.read_text()):
                time.sleep(0.01)
            assert together.wait(process, 0.01) is None
        assert process.returncode == -signal.SIGKILL
        assert _ends(int(child.read_text()))


def _interrupt(both: Barrier) -> Any:
    def job() -> None:
        both.wait()
        raise KeyboardInterrupt

    return job


def _ends(pid: int) -> bool:
    for _ in range(6000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # nobody asks for what became of it
        time.sleep(0.01)
    return False


class TestAllQuestions:
    @pytest.fixture(autouse=True)
    def _asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.figures = tmp_path / "figures.json"
        self.running, self.seen, self.lock = set[str](), dict[str, set[str]](), Lock()
        monkeypatch.setattr(all_questions, "FOLDER", tmp_path / "build")
        monkeypatch.setattr(all_questions, "ask", self.ask)

    def ask(self, command: Any, question: Any, **_: Any) -> dict[str, Any]:
        key = f"{command.name}.{question.name}"
        with self.lock:
            self.running.add(key)
            for each in self.running:
                self.seen.setdefault(each, set()).update(self.running)
        time.sleep(0.05)
        with self.lock:
            self.running.remove(key)
        return {"quick": False, "minutes": 1.0, "verdicts": [], "peers": [], "error": "", "against": ""}

    def test_those_with_times_have_the_machine_for_themselves(self) -> None:
        done, printed = ask_all(self.figures, "sweep", quick=False, at_once=3)
        assert done
        assert self.seen.pop("sweep.pmj") == {"sweep.pmj"}
        assert set(self.seen) == {"sweep.pages", "sweep.adaptivity", "sweep.traversal"}
        assert set(json.loads(self.figures.read_text())["questions"]) == {*self.seen, "sweep.pmj"}
        assert printed.index("sweep.pmj ...") < printed.index("sweep.pages ...")
        assert "4 questions, 4 left, about 5 minutes" in printed, "two alone, and the longest of three side by side"

    def test_several_with_times_run_one_after_another(self) -> None:
        ask_all(self.figures, "lanes", quick=False, at_once=3)
        assert self.seen == {"lanes.overload": {"lanes.overload"}, "lanes.task": {"lanes.task"}}

    def test_one_at_a_time_where_that_is_said(self) -> None:
        ask_all(self.figures, "sweep", quick=False, at_once=1)
        assert all(beside == {key} for key, beside in self.seen.items())
