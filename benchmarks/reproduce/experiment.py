"""What every reproduced experiment is: a claim of a document, and a function that measures it.

A finding sets what the document says beside what was measured here. Where they differ it says why, in one sentence; it
may depend on what was measured, and is never the result itself. A check is something that must hold whatever the sizes
are (variants with equal results, a prediction near the truth): one that fails makes the run fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamjoin.reporting.charts import Plot

Say = Callable[[str], None]


@dataclass(frozen=True)
class Document:
    """One of the five documents."""

    name: str
    title: str
    source: str


@dataclass(frozen=True)
class Effort:
    """How much is run: all of it, or so little that it only shows that everything works."""

    quick: bool
    folder: Path
    say: Say


@dataclass(frozen=True)
class Finding:
    """One line: the document's words, what was measured, and why these differ, if they do.

    `claimed`: the document says so. What it does not say stands beside it, and agrees with nothing.
    """

    claim: str
    measured: str
    why: str = ""
    claimed: bool = True

    @property
    def agrees(self) -> bool:
        return self.claimed and not self.why

    @property
    def verdict(self) -> str:
        """As the page says it."""
        return ("yes" if self.agrees else "no") if self.claimed else "not claimed"


@dataclass(frozen=True)
class Check:
    """What must hold at any size."""

    words: str
    held: bool


@dataclass(frozen=True)
class Findings:
    """What an experiment gave.

    `shortened` says by how much it was made shorter than the document's, if it was; `different` what else is not as it
    was there, whatever is measured: a clock, data that are not to be had, values that were chosen.
    """

    lines: Sequence[Finding]
    plots: Sequence[Plot] = ()
    checks: Sequence[Check] = ()
    shortened: str = ""
    different: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """An experiment of a document: what it is called on the command line, and where the document has it."""

    name: str
    document: Document
    where: str
    title: str
    measure: Callable[[Effort], Findings]
    minutes: float = 1.0  # about so many on two cores, all of it


def beside(what: str, measured: str, why: str = "") -> Finding:
    """Something that the document does not say."""
    return Finding(what, measured, why, claimed=False)


def compared(claim: str, measured: str, holds: bool, why: str) -> Finding:
    """A finding that says why only where the claim does not hold.

    >>> compared("twice as fast", "2.1 times", True, "there is less to do").agrees
    True
    """
    return Finding(claim, measured, "" if holds else why)


def at_most_off(measured: float, document: float, share: float) -> bool:
    """Whether it is no farther from the document's figure than a share of that.

    >>> at_most_off(95, 100, 0.1), at_most_off(120, 100, 0.1)
    (True, False)
    """
    return abs(measured - document) <= share * abs(document)
