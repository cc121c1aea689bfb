"""`streamjoin bench list`, `bench all` and `bench table`: all questions, and what came out.

Each question runs as its own command does, in a process of its own, so one that fails or hangs is told and the others
go on. Those with times in their answers have the machine for themselves; the others run side by side afterwards. What a
question gave is stored as soon as it is there; run again, `all` asks only what is missing: an answer stands as long as
the files that it was measured of (`benchmarks.measured_code`), and if there are times in it on the machine that it was
found on, unless those of others shall do (`--elsewhere`): each is a ratio of one run. Wins and losses are stored and
shown alike, and so is what had no answer: nobody shall take silence for a result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from benchmarks.asking.command import Command, Question
from benchmarks.asking.registry import COMMANDS
from benchmarks.bench_table import Stored, insert, listed, markdown, minutes_of, page_of, summary
from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.loaded_files import fold, noted, noting, unfold
from benchmarks.measured_code import DIRTY, Code, Tree, code_now, measured_of, tree_now
from benchmarks.reporting import circumstances, questions_of
from benchmarks.side_by_side import Together

STORED: Final = ROOT / "docs" / "benchmarks.json"
QUICK_STORED: Final = ROOT / "build" / "bench" / "quick.json"
FOLDER: Final = ROOT / "build" / "bench"
RUN: Final = ["-m", "benchmarks"]
PATIENCE: Final = 5.0  # times the minutes that a question takes, before it counts as hanging
LEAST_PATIENCE: Final = 20.0  # minutes

Chosen = list[tuple[Command, Question]]


def chosen(only: Sequence[str], *, earlier: bool) -> Chosen:
    """All questions, or those of `only`: commands, or `command.question`. Some have an answer only beside an earlier
    state of the code.

    >>> [question.name for _, question in chosen(["lanes", "asof.best"], earlier=False)]
    ['best', 'overload', 'task']
    """
    every = [(command, question) for command in COMMANDS.values() for question in command.questions]
    questions_of(only, [name for each in every for name in (each[0].name, _key(*each))])
    return [
        (command, question)
        for command, question in every
        if not only or {command.name, _key(command, question)} & set(only)
        if earlier or not question.earlier or _key(command, question) in only
    ]


def _key(command: Command, question: Question) -> str:
    return f"{command.name}.{question.name}"


def list_questions(console: Console) -> None:
    """`streamjoin bench list`: minutes are those of the last full run, if there was one, and guesses otherwise."""
    stored, standing = read(STORED), Standing.now(quick=False)
    left = [
        (command, question)
        for command, question in chosen([], earlier=False)
        if not standing.has(stored.get(_key(command, question)), timed=question.timed)
    ]
    console.print(listed(list(COMMANDS.values()), stored, left))


def run_all(
    console: Console, *, quick: bool, only: Sequence[str], json_path: Path | None, again: bool, against: str,
    at_once: int | None = None, elsewhere: bool = False,
) -> bool:  # fmt: skip
    """`streamjoin bench all`: whether every question had an answer. Missed goals are answers. `elsewhere`: answers of
    other machines stand, too.
    """
    path = json_path or (QUICK_STORED if quick else STORED)
    asked = chosen(only, earlier=bool(against))
    stored, standing = read(path), Standing.now(quick, against, elsewhere=elsewhere)
    left = [each for each in asked if again or not standing.has(stored.get(_key(*each)), timed=each[1].timed)]
    still = _Still.of(left, stored, quick, min(2, os.cpu_count() or 1) if at_once is None else at_once)
    if quick:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    console.print(f"{len(asked)} questions, {still}.", highlight=False)
    for there in (_key(*each) for each in asked if each not in left):
        console.print(f"{there}: there already", style="dim", highlight=False)
    with Together() as together:
        for timed, at_once in ((True, 1), (False, still.at_once)):
            these = [each for each in left if each[1].timed == timed]
            jobs = [partial(_answer, *each, quick, against, together) for each in these]
            for key, found in together.all(jobs, at_once, partial(_begin, console, these, still)):
                stored[key] = found
                write(path, stored, quick=quick)
                _tell(console, key, found)
                still.minutes.pop(key)
    console.print(*summary(stored), sep="\n", markup=False, highlight=False, soft_wrap=True)
    console.print(f"figures: {path}; page: {_page(path)}", highlight=False, soft_wrap=True)
    return not any(stored[_key(*each)].get("error") for each in asked)


@dataclass(frozen=True)
class _Still:
    """What is still to be asked: minutes of those that are timed, and of those of which some run at once."""

    minutes: dict[str, float]
    timed: frozenset[str]
    at_once: int
    quick: bool

    @staticmethod
    def of(left: Chosen, stored: Stored, quick: bool, at_once: int) -> _Still:
        minutes = {_key(*each): minutes_of(stored.get(_key(*each)), each[1].minutes) for each in left}
        return _Still(minutes, frozenset(_key(*each) for each in left if each[1].timed), at_once, quick)

    def __str__(self) -> str:
        """Minutes are those of full runs: quick ones take one or two."""
        alone = sum(minutes for key, minutes in self.minutes.items() if key in self.timed)
        others = [minutes for key, minutes in self.minutes.items() if key not in self.timed]
        beside = max(sum(others) / self.at_once, *others) if others else 0.0
        return f"{len(self.minutes)} left" + ("" if self.quick else f", about {alone + beside:.0f} minutes")


def _begin(console: Console, these: Chosen, still: _Still, number: int) -> None:
    console.print(f"{_key(*these[number])} ... ({still})", style="dim", highlight=False)


def _answer(
    command: Command, question: Question, quick: bool, against: str, together: Together
) -> tuple[str, dict[str, Any]]:
    """One question, and of what and when it was asked."""
    around, before, code = circumstances([]), tree_now(ROOT), code_now(ROOT)
    found = ask(command, question, quick=quick, against=against, together=together)
    loaded = found.pop("loaded", [])
    after = tree_now(ROOT)
    if code_now(ROOT) != code:  # while it was measured: nobody knows of what
        code = None
    known: dict[str, Any] = {"code": code}
    if loaded and before is not None and after is not None:
        files = before.deciding(loaded)
        content = before.content(files)
        if content is not None and after.content(files) == content:
            known = {"files": files, "content": content}
    # What no figure depends on may be changed: that does not make the commit another one.
    commit = around["commit"] if known == {"code": None} else around["commit"].removesuffix(DIRTY)
    return _key(command, question), {**around, "commit": commit, **known, **found}


@dataclass(frozen=True)
class Standing:
    """What an answer must be of, so that a question need not be asked again."""

    code: Code | None
    tree: Tree | None
    machine: str
    quick: bool
    against: str = ""
    elsewhere: bool = False

    @staticmethod
    def now(quick: bool, against: str = "", *, elsewhere: bool = False) -> Standing:
        """Here, of what lies here."""
        return Standing(code_now(ROOT), tree_now(ROOT), str(circumstances([])["machine"]), quick, against, elsewhere)

    def has(self, found: dict[str, Any] | None, *, timed: bool) -> bool:
        """Whether it was asked of this code, on such a machine if there are times in it. What is not committed has no
        name, so nobody knows what was asked of it. An answer beside an earlier state is one without it too, but not the
        other way round.
        """
        if found is None or found.get("error") or found["quick"] != self.quick:
            return False
        if timed and not self.elsewhere and found["machine"] != self.machine:
            return False
        if self.against and found.get("against", "") != self.against:
            return False
        if found.get("files"):
            return self.tree is not None and self.tree.content(found["files"]) == found["content"]
        return self.code is not None and measured_of(found, ROOT) == self.code


def ask(
    command: Command, question: Question, *, quick: bool, against: str = "", together: Together | None = None
) -> dict[str, Any]:
    """One question, in a process of its own: its verdicts, minutes, an error if there was one, and the files that its
    processes loaded.
    """
    together = together or Together()
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{command.name}.{question.name}.log"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streamjoin-bench-all-") as folder:
        figures = Path(folder) / "figures.json"
        run = [sys.executable, *RUN, command.name]
        run += ["--json", str(figures)]
        run += ["--only", question.name] if len(command.questions) > 1 else []
        run += ["--quick"] if quick else []
        run += ["--repetitions", "1"] if quick and command.repeated else []
        run += ["--against", against] if against and command.name == "house" else []
        patience = 60 * max(LEAST_PATIENCE, PATIENCE * question.minutes)
        notes = Path(folder) / "loaded"
        with log.open("w") as output:
            environment = noting(notes, ROOT, _environment())
            process = together.start(run, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment)
            code = together.wait(process, patience)
        found = json.loads(figures.read_text()) if figures.is_file() else {}
        loaded = noted(notes)
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    result = {
        "quick": quick, "minutes": (time.monotonic() - start) / 60, "verdicts": found.get("verdicts", []),
        "peers": found.get("peers", []), "error": "", "against": against if command.name == "house" else "",
        "loaded": loaded,
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
            f"  {key}: [red]failed: {escape(found['error'])}[/] (build/bench/{key}.log)",
            highlight=False,
            soft_wrap=True,
        )
    met = sum(verdict["met"] for verdict in found["verdicts"])
    console.print(
        f"  {key}: {met} of {len(found['verdicts'])} goals met, {found['minutes']:.1f} minutes", highlight=False
    )


def read(path: Path) -> Stored:
    """What is stored, or nothing."""
    if not path.is_file():
        return {}
    told = json.loads(path.read_text())
    return unfold(told["questions"], told.get("files", {}))


def write(path: Path, stored: Stored, *, quick: bool) -> None:
    """The figures, in the order of the registry, and the page beside them."""
    order = [_key(command, question) for command in COMMANDS.values() for question in command.questions]
    ordered = {key: stored[key] for key in order if key in stored}
    path.parent.mkdir(parents=True, exist_ok=True)
    questions, files = fold(ordered)
    path.write_text(json.dumps({"questions": questions, "files": files}, indent=1) + "\n")
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
