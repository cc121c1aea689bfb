"""A command of `streamjoin bench` and its questions, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.reporting import Outcomes


@dataclass(frozen=True)
class Question:
    """What is asked, beside whom, what should come out, and about how many minutes that takes on two cores.

    `earlier`: there is an answer only beside an earlier state of the code. `timed`: what else the machine does changes
    the answer; it does not where all figures are counts and virtual time.
    """

    name: str
    asks: str
    rivals: str = ""
    goal: str = ""
    minutes: float = 1.0
    earlier: bool = False
    timed: bool = True


@dataclass(frozen=True)
class Asked:
    """What somebody wants to know, and how well; what a command has no use for stays as it is."""

    console: Console
    names: Sequence[str]
    quick: bool = False
    repetitions: int = 5
    rows: int | None = None
    batches: str = ""
    against: str = ""
    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Described:
    """What a run says of itself before it begins: in words, and beside its figures."""

    how: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command: its questions, what is run for them, and what it says of itself.

    `peers`: requirements of systems that take part. `repeated`: too few repetitions are refused. `repetitions`:
    how many there are where nobody says. `expand`: of names that stand for several questions.
    """

    name: str
    questions: tuple[Question, ...]
    outcomes: Callable[[Asked, Path], Outcomes]
    describe: Callable[[Asked], Described]
    peers: Callable[[], Sequence[str]] = tuple
    repeated: bool = False
    repetitions: int = 5
    expand: Callable[[Sequence[str]], Sequence[str]] = list

    @property
    def names(self) -> list[str]:
        return [question.name for question in self.questions]


def repetitions(asked: Asked) -> Described:
    """How most comparisons are made."""
    return Described(f"{asked.repetitions} repetitions in turn, medians", {"repetitions": asked.repetitions})


def said(words: str) -> Callable[[Asked], Described]:
    """Nothing but words."""
    return lambda _: Described(words)


def say_plots(asked: Asked, where: Path) -> None:
    """Where what was drawn can be looked at."""
    asked.console.print(f"plots: {where}", highlight=False, soft_wrap=True)
