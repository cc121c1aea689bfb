"""`streamjoin bench list`, `bench all` and `bench table`: all questions, one after another, and what came out.

Each question runs as its own command does, in a process of its own, so one that fails or hangs is told and the others
go on. What it gave is stored as soon as it is there; run again, `all` asks only what is missing: an answer stands on
the machine that it was found on, as long as the code that it was measured of (`benchmarks.measured_code`). Wins and
losses are stored and shown alike, and so is what had no answer: nobody shall take silence for a result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from benchmarks.asking.command import Command, Question
from benchmarks.asking.registry import COMMANDS
from benchmarks.bench_table import Stored, insert, listed, markdown, minutes_of, page_of, summary
from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.measured_code import DIRTY, Code, code_now, measured_of
from benchmarks.reporting import circumstances, questions_of

STORED: Final = ROOT / "docs" / "benchmarks.json"
QUICK_STORED: Final = ROOT / "build" / "bench" / "quick.json"
FOLDER: Final = ROOT / "build" / "bench"
RUN: Final = ["-c", "from streamjoin.cli import main; main()"]
PATIENCE: Final = 5.0  # times the minutes that a question takes, before it counts as hanging
LEAST_PATIENCE: Final = 20.0  # minutes


def chosen(only: Sequence[str], *, earlier: bool) -> list[tuple[Command, Question]]:
    """All questions, or those of `only`: commands, or `command.question`. Some have an answer only beside an earlier
    state of the code.

    >>> [question.name for _, question in chosen(["lanes", "asof.best"], earlier=False)]
    ['best', 'overload', 'task']
    """
    names = [name for command in COMMANDS.values() for name in (command.name, *map(_dotted(command), command.names))]
    questions_of(only, names)
    return [
        (command, question)
        for command in COMMANDS.values()
        for question in command.questions
        if not only or {command.name, _dotted(command)(question.name)} & set(only)
        if earlier or not question.earlier or _dotted(command)(question.name) in only
    ]


def _dotted(command: Command) -> Any:
    return lambda name: f"{command.name}.{name}"


def list_questions(console: Console) -> None:
    """`streamjoin bench list`: minutes are those of the last full run, if there was one, and guesses otherwise."""
    stored, standing = read(STORED), Standing(code_now(ROOT), _machine(), quick=False)
    left = [
        (command, question)
        for command, question in chosen([], earlier=False)
        if not standing.has(stored.get(_dotted(command)(question.name)))
    ]
    console.print(listed(list(COMMANDS.values()), stored, left))


def run_all(
    console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None, again: bool, against: str
) -> bool:
    """`streamjoin bench all`: whether every question had an answer. Missed goals are answers."""
    path = json_path or (QUICK_STORED if quick else STORED)
    asked = chosen(only, earlier=bool(against))
    stored, standing = read(path), Standing(code_now(ROOT), _machine(), quick, against)
    every = {_dotted(command)(question.name): question.minutes for command, question in asked}
    left = {
        key: minutes_of(stored.get(key), minutes)
        for key, minutes in every.items()
        if again or not standing.has(stored.get(key))
    }
    if quick:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    console.print(f"{len(asked)} questions, {_left(left, quick)}.", highlight=False)
    for number, (command, question) in enumerate(asked, 1):
        key = _dotted(command)(question.name)
        if key not in left:
            console.print(f"{number}/{len(asked)} {key}: there already", style="dim", highlight=False)
            continue
        console.print(f"{number}/{len(asked)} {key} ... ({_left(left, quick)})", style="dim", highlight=False)
        around = _around()
        stored[key] = {**around, **ask(command, question, quick=quick, against=against)}
        if code_now(ROOT) != around["code"]:  # while it was measured: nobody knows of what
            stored[key]["code"] = None
        write(path, stored, quick=quick)
        _tell(console, key, stored[key])
        left.pop(key)
    console.print(*summary(stored), sep="\n", markup=False, highlight=False, soft_wrap=True)
    console.print(f"figures: {path}; page: {_page(path)}", highlight=False, soft_wrap=True)
    return not any(stored[_dotted(command)(question.name)].get("error") for command, question in asked)


def _left(left: Mapping[str, float], quick: bool) -> str:
    """What is still to be asked. Minutes are those of full runs: quick ones take one or two."""
    return f"{len(left)} left" + ("" if quick else f", about {sum(left.values()):.0f} minutes")


@dataclass(frozen=True)
class Standing:
    """What an answer must be of, so that a question need not be asked again."""

    code: Code | None
    machine: str
    quick: bool
    against: str = ""

    def has(self, found: dict[str, Any] | None) -> bool:
        """Whether it was asked of this code, on such a machine. What is not committed has no name, so nobody knows what
        was asked of it. An answer beside an earlier state is one without it too, but not the other way round.
        """
        if found is None or found.get("error") or found["quick"] != self.quick or found["machine"] != self.machine:
            return False
        if self.against and found.get("against", "") != self.against:
            return False
        return self.code is not None and measured_of(found, ROOT) == self.code


def _machine() -> str:
    return str(circumstances([])["machine"])


def _around() -> dict[str, Any]:
    """The circumstances of the next question. Changes that no figure depends on do not make the commit another one."""
    around, code = circumstances([]), code_now(ROOT)
    commit = around["commit"]
    return {**around, "commit": commit if code is None else commit.removesuffix(DIRTY), "code": code}


def ask(command: Command, question: Question, *, quick: bool, against: str = "") -> dict[str, Any]:
    """One question, in a process of its own: its verdicts, minutes, and an error if there was one."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{command.name}.{question.name}.log"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streamjoin-bench-all-") as folder:
        figures = Path(folder) / "figures.json"
        run = [sys.executable, *RUN, "bench", command.name]
        run += ["--json", str(figures)]
        run += ["--only", question.name] if len(command.questions) > 1 else []
        run += ["--quick"] if quick else []
        run += ["--repetitions", "1"] if quick and command.repeated else []
        run += ["--against", against] if against and command.name == "house" else []
        patience = 60 * max(LEAST_PATIENCE, PATIENCE * question.minutes)
        with log.open("w") as output:
            process = subprocess.Popen(
                run, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=_environment()
            )
            try:
                code = process.wait(timeout=patience)
            except BaseException as error:  # Ctrl-C too: it is not told of that, in a session of its own
                os.killpg(process.pid, signal.SIGKILL)  # it and what it has started
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = None
        found = json.loads(figures.read_text()) if figures.is_file() else {}
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    result = {
        "quick": quick, "minutes": (time.monotonic() - start) / 60, "verdicts": found.get("verdicts", []),
        "peers": found.get("peers", []), "error": "", "against": against if command.name == "house" else "",
    }  # fmt: skip
    if code is None:
        result["error"] = f"no answer after {patience / 60:.0f} minutes"
    elif code:
        result["error"] = lines[-1] if lines else f"exit code {code}"
    elif not found:  # its data are not there, say: it ran to its end all the same
        result["error"] = "; ".join(["no figures", *lines[-1:]])
    else:
        result["error"] = "; ".join(_absent(found))
    return result


def _absent(found: dict[str, Any]) -> Iterator[str]:
    """Rivals that did not take part, and why: without them it is not what was asked."""
    for outcome in found.get("questions", {}).values():
        for rival, why in outcome.get("missing", {}).items():
            yield f"{rival} {why}"


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def _tell(console: Console, key: str, found: dict[str, Any]) -> None:
    if found["error"]:
        console.print(
            f"  [red]failed: {escape(found['error'])}[/] (build/bench/{key}.log)", highlight=False, soft_wrap=True
        )
    met = sum(verdict["met"] for verdict in found["verdicts"])
    console.print(f"  {met} of {len(found['verdicts'])} goals met, {found['minutes']:.1f} minutes", highlight=False)


def read(path: Path) -> Stored:
    """What is stored, or nothing."""
    if not path.is_file():
        return {}
    stored: Stored = json.loads(path.read_text())["questions"]
    return stored


def write(path: Path, stored: Stored, *, quick: bool) -> None:
    """The figures, in the order of the registry, and the page beside them."""
    order = {_dotted(command)(name): None for command in COMMANDS.values() for name in command.names}
    ordered = {key: stored[key] for key in order if key in stored}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"questions": ordered}, indent=1) + "\n")
    _page(path).parent.mkdir(parents=True, exist_ok=True)
    _page(path).write_text(page_of(list(COMMANDS.values()), ordered, quick=quick))


def _page(path: Path) -> Path:
    return FOLDER / ("quick.html" if path == QUICK_STORED else f"{path.stem}.html")


def show_table(console: Console, *, json_path: Path | None, into: Path | None) -> None:
    """`streamjoin bench table`: the stored figures as Markdown, printed or put into a file between its marks."""
    path = json_path or STORED
    stored = read(path)
    if not stored:
        raise BenchmarkError(f"there are no figures in {path}", hint="make them with ./sj bench all")
    text = markdown(list(COMMANDS.values()), stored)
    if into is None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        into.write_text(insert(into.read_text(), text, into.name))
        console.print(f"{into}: {len(text.splitlines())} lines", highlight=False)
