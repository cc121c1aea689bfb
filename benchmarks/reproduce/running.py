"""All experiments in one run: a page, written anew after each, and a table of all that differs."""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.reporting import circumstances, progress
from benchmarks.reproduce import (
    best_cost,
    best_window,
    life_share,
    life_throughput,
    prio_buffers,
    prio_formula,
    qjoin_data,
    qjoin_rivals,
    qjoin_sweep,
    sweep_order,
    sweep_pages,
    sweep_rates,
)
from benchmarks.reproduce.documents import DOCUMENTS
from benchmarks.reproduce.experiment import Effort, Experiment, Findings, Say
from benchmarks.text_table import text_table
from streamjoin.reporting.page import Part, Section, page

EXPERIMENTS: Final[tuple[Experiment, ...]] = tuple(
    module.EXPERIMENT
    for module in (
        sweep_pages, sweep_rates, sweep_order, life_throughput, life_share, qjoin_data, qjoin_sweep, qjoin_rivals,
        prio_buffers, prio_formula, best_window, best_cost,
    )
)  # fmt: skip
FOLDER: Final = ROOT / "build" / "reproduce"
COLUMNS: Final = (("claim", 28), ("measured here", 34), ("as claimed", 9), ("why", 29))  # and their shares of the width
TOO_SMALL: Final = "A quick run is too small to compare."


@dataclass(frozen=True)
class Done:
    """An experiment that has been run, or what came in between."""

    experiment: Experiment
    findings: Findings | None
    seconds: float
    error: str = ""

    @property
    def failed(self) -> list[str]:
        """What must hold and does not."""
        if self.findings is None:
            return [self.error]
        return [check.words for check in self.findings.checks if not check.held]


def chosen(only: Sequence[str]) -> list[Experiment]:
    """Those that were asked for: by name, or all of a document by its name."""
    words = {word.lower() for word in only}
    names = {word for each in EXPERIMENTS for word in _words(each)}
    if words - names:
        names_there = ", ".join([each.name for each in DOCUMENTS] + [each.name for each in EXPERIMENTS])
        raise BenchmarkError(f"there is no experiment {min(words - names)!r}", hint=f"choose from {names_there}")
    return [each for each in EXPERIMENTS if not words or words & _words(each)]


def _words(experiment: Experiment) -> set[str]:
    return {experiment.name, experiment.document.name.lower()}


def run(console: Console, *, quick: bool, only: Sequence[str], to: Path | None) -> bool:
    """`streamjoin reproduce`: whether every experiment ran and every check held."""
    asked, done = chosen(only), list[Done]()
    path = to or (FOLDER / "quick" if quick else FOLDER) / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    around = circumstances([])
    total = sum(each.minutes for each in asked)
    if quick:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    else:
        console.print(f"{len(asked)} experiments, about {total:.0f} minutes on two cores.", highlight=False)
    with progress(console) as say, tempfile.TemporaryDirectory(prefix="streamjoin-reproduce-") as folder:
        for experiment in asked:
            done.append(_one(experiment, quick, Path(folder) / experiment.name, say))
            _tell(console, done[-1])
            path.write_text(page_of(done, around, quick=quick))  # every time: nothing is lost with what comes later
            path.with_suffix(".json").write_text(json.dumps(to_json(done, around, quick=quick), indent=2) + "\n")
    console.print(f"page: {path}; {sum(each.seconds for each in done) / 60:.1f} minutes in all", highlight=False)
    return not any(each.failed for each in done)


def _one(experiment: Experiment, quick: bool, folder: Path, say: Say) -> Done:
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        findings = experiment.measure(Effort(quick, folder, say))
    except Exception as error:  # of this one, whatever it is: the others still run, and the run has failed
        if not isinstance(error, BenchmarkError):
            traceback.print_exc()  # nobody has foreseen it, so its words alone would not be enough
        return Done(experiment, None, time.monotonic() - start, str(error) or type(error).__name__)
    if quick:
        lines = [replace(line, why=TOO_SMALL) if line.claimed and line.why else line for line in findings.lines]
        findings = replace(findings, lines=lines)
    return Done(experiment, findings, time.monotonic() - start)


def _tell(console: Console, done: Done) -> None:
    if done.findings is None:
        console.print(f"{done.experiment.name}: {done.error}", style="red", markup=False, highlight=False)
        return
    claims = [line for line in done.findings.lines if line.claimed]
    console.print(
        f"{done.experiment.name}: {sum(line.agrees for line in claims)} of {len(claims)} claims as in the document, "
        f"{done.seconds:.0f} s",
        highlight=False,
    )
    for words in done.failed:
        console.print(f"  does not hold: {words}", style="red", markup=False, highlight=False)


def page_of(done: Sequence[Done], around: dict[str, Any], *, quick: bool) -> str:
    """The page: what was found of each document, claim by claim."""
    lines = [line for each in done if each.findings for line in each.findings.lines if line.claimed]
    lead: list[Part] = []
    if quick:
        lead.append("Quick run: sizes are so small that nothing here is a measurement.")
    lead += [
        f"{len(done)} experiments of {len({each.experiment.document for each in done})} documents, "
        f"{sum(line.agrees for line in lines)} of {len(lines)} claims as the document has them; every figure is from "
        "this run.",
        f"{around['machine']}; Python {around['python']}; streamjoin at {around['commit']}; "
        f"started {around['started']}; {sum(each.seconds for each in done) / 60:.1f} minutes.",
    ]
    sections = []
    for document in DOCUMENTS:
        for each in done:
            if each.experiment.document == document:
                sections.append(_section(each))
    return page("The experiments of the documents, run again", sections, lead)


def _section(done: Done) -> Section:
    experiment, findings = done.experiment, done.findings
    document = experiment.document
    parts: list[Part] = [f"{document.title} ({document.source}), {experiment.where}. {done.seconds:.0f} s."]
    if findings is None:
        return Section(f"{document.name}: {experiment.title}", [*parts, f"It failed: {done.error}"])
    if findings.shortened:
        parts.append(f"Shortened: {findings.shortened}")
    if findings.different:
        parts.append(f"Different: {findings.different}")
    told = [(line.claim, line.measured, line.verdict, line.why) for line in findings.lines]
    parts.append(text_table(COLUMNS, told))
    parts += findings.plots
    parts += [f"{'Holds' if check.held else 'DOES NOT HOLD'}: {check.words}." for check in findings.checks]
    return Section(f"{document.name}: {experiment.title}", parts)


def to_json(done: Sequence[Done], around: dict[str, Any], *, quick: bool) -> dict[str, Any]:
    """All that was found."""
    return {
        **around,
        "quick": quick,
        "experiments": {
            each.experiment.name: {
                "document": each.experiment.document.name,
                "where": each.experiment.where,
                "seconds": each.seconds,
                "error": each.error,
                **({} if each.findings is None else _plain(each.findings)),
            }
            for each in done
        },
    }


def _plain(findings: Findings) -> dict[str, Any]:
    return {
        "shortened": findings.shortened,
        "different": findings.different,
        "findings": [asdict(line) | {"agrees": line.agrees} for line in findings.lines],
        "checks": [{"words": check.words, "held": bool(check.held)} for check in findings.checks],
        "figures": findings.figures,
    }
