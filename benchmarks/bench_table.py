"""All questions as tables: what there is, what came out in Markdown between marks in a file, and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.table import Table as Shown

from benchmarks.asking.command import Command, Question
from benchmarks.errors import BenchmarkError
from benchmarks.text_table import text_table
from streamjoin.reporting.page import Part, Section, page

Stored = dict[str, dict[str, Any]]  # by `command.question`
BEGIN: Final = "<!-- benchmarks: made by `./sj bench table --into README.md` from docs/benchmarks.json -->"
END: Final = "<!-- benchmarks: end -->"
# Shares of the width. Answers stand for more than one commit, so each has its own.
COLUMNS: Final = (("workload", 25), ("beside", 18), ("measured", 30), ("goal", 11), ("met", 6), ("asked", 10))
HEADINGS: Final = tuple(heading for heading, _ in COLUMNS)


def minutes_of(found: dict[str, Any] | None, guess: float) -> float:
    """How long a question takes: as in its last full run, if it had an answer then."""
    return float(found["minutes"]) if _measured(found) and found is not None else guess


def _measured(found: dict[str, Any] | None) -> bool:
    return found is not None and not found["quick"] and not found["error"]


def listed(commands: Sequence[Command], stored: Stored, left: Sequence[tuple[Command, Question]]) -> Shown:
    """Every question: what it asks, beside whom, its goals and its minutes; and those that are `left` to be asked."""
    table = Shown(title="streamjoin bench COMMAND --only QUESTION; all of them: streamjoin bench all")
    for heading in ("command", "question", "what it asks", "beside", "goal"):
        table.add_column(heading, overflow="fold")
    table.add_column("minutes", justify="right")
    total, asked = 0.0, 0
    for command in commands:
        for number, question in enumerate(command.questions):
            found = stored.get(f"{command.name}.{question.name}")
            minutes = minutes_of(found, question.minutes)
            total += 0 if question.earlier else minutes
            asked += not question.earlier
            table.add_row(
                command.name if not number else "", question.name, question.asks, question.rivals, question.goal,
                f"{minutes:.1f}" if _measured(found) else f"~{minutes:g}",
            )  # fmt: skip
    table.add_row("", "", "all that need no earlier state of the code", "", "", f"{total:.0f}", style="bold")
    still = sum(minutes_of(stored.get(f"{one.name}.{other.name}"), other.minutes) for one, other in left)
    words = f"of them without an answer for this state of the code: {len(left)}"
    table.add_row("", "", words, "", "", f"{still:.0f}", style="bold")
    table.add_row("", "", f"of them with an answer that stands: {asked - len(left)}", "", "", "", style="bold")
    table.caption = "~: a guess for two cores; the others took so long in the last full run"
    return table


def summary(stored: Stored) -> list[str]:
    """How many goals were met, and which were not."""
    verdicts = [verdict for found in stored.values() for verdict in found["verdicts"]]
    failed = [f"{key} ({found['error']})" for key, found in stored.items() if found["error"]]
    missed = [
        f"{key}: {verdict['question']}, {verdict['text']}, goal {bound(verdict)}"
        for key, found in stored.items()
        for verdict in found["verdicts"]
        if not verdict["met"]
    ]
    lines = [f"{len(verdicts) - len(missed)} of {len(verdicts)} goals met."]
    lines += [f"Missed: {each}." for each in missed]
    return lines + [f"No answer: {each}." for each in failed]


def bound(verdict: dict[str, Any]) -> str:
    """A goal in words.

    >>> bound({"target": 1500.0, "at_most": True})
    'at most 1,500'
    """
    target = verdict["target"]
    number = f"{target:,.0f}" if abs(target) >= 1000 else f"{target:g}"
    return f"at {'most' if verdict['at_most'] else 'least'} {number}"


def markdown(commands: Sequence[Command], stored: Stored) -> str:
    """One table of all goals, what was measured, and whether they are met; missed ones are listed above it too."""
    lines = [*circumstances_of(stored), ""]
    first, *missed = summary(stored)
    there = sum(len(command.questions) for command in commands)
    lines += [f"{first} {len(stored)} of {there} questions have been asked.", ""]
    lines += [*(f"- {each}" for each in missed), ""] if missed else []
    rows = [cells for command in commands for cells in rows_of(command, stored)]
    goals = sum(len(found["verdicts"]) for found in stored.values())
    others = sum(not found["verdicts"] for found in stored.values())
    # Long: folded up where that is understood; what was missed stands above it.
    parts = [f"All {goals} goals", f"{others} questions without one", f"{there - len(stored)} that were not asked"]
    shown = [part for part, count in zip(parts, (goals, others, there - len(stored)), strict=True) if count]
    lines += [f"<details><summary>{', '.join(shown)}</summary>", ""]
    lines += [_row(HEADINGS), _row(["---"] * len(HEADINGS)), *map(_row, rows), "", "</details>"]
    return "\n".join(lines) + "\n"


def rows_of(command: Command, stored: Stored) -> Iterator[tuple[str, ...]]:
    """A line for each goal of a command's questions that have been asked; for a question that was not, that had no
    answer, or none that is judged.
    """
    machines = _each(stored, "machine")
    for question in command.questions:
        found = stored.get(f"{command.name}.{question.name}")
        if found is None:
            workload = f"{command.name} {question.name}: {question.asks}"
            yield workload, question.rivals, "", question.goal, "not asked", ""
            continue
        asked = f"{found['started'][:10]}, {found['commit']}, {found['minutes']:.1f} min"
        if len(machines) > 1:
            asked += f", machine {machines.index(str(found['machine'])) + 1}"
        for verdict in found["verdicts"]:
            yield (
                _workload(command, question, verdict["question"]),
                question.rivals,
                verdict["text"],
                bound(verdict),
                ("yes" if verdict["met"] else "**no**"),
                asked,
            )
        if found["error"]:
            yield f"{command.name} {question.name}", question.rivals, found["error"], question.goal, "no answer", asked
        elif not found["verdicts"]:
            # It ran, and there is nothing that could be met or missed: no goal, or too small a run to compare.
            only = f" --only {question.name}" if len(command.questions) > 1 else ""
            workload = f"{command.name} {question.name}: {question.asks}"
            shown = f"shown by ./sj bench {command.name}{only}"
            yield workload, question.rivals, shown, question.goal, "not judged", asked


def _workload(command: Command, question: Question, verdict: str) -> str:
    """Without saying the question twice."""
    return f"{command.name}: {verdict}" if question.name in verdict else f"{command.name} {question.name}: {verdict}"


def circumstances_of(stored: Stored) -> list[str]:
    """The machines, the dates and the commits of what is stored. Where there are several machines, lines below go by
    their numbers.
    """
    machines = _each(stored, "machine")
    if len(machines) > 1:
        machines = [f"machine {number}: {machine}" for number, machine in enumerate(machines, 1)]
    dates = sorted(found["started"][:10] for found in stored.values())
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    hours = sum(found["minutes"] for found in stored.values()) / 60
    quick = " Quick run: sizes are so small that nothing here is a measurement." if _any_quick(stored) else ""
    commits = ", ".join(_each(stored, "commit"))
    return [f"{'; '.join(machines)}; {when}; commit {commits}; {hours:.1f} hours in all.{quick}"]


def _each(stored: Stored, name: str) -> list[str]:
    """What stored answers have, each once."""
    return list(dict.fromkeys(str(found[name]) for found in stored.values()))


def _any_quick(stored: Stored) -> bool:
    return any(found["quick"] for found in stored.values())


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def insert(text: str, table: str, name: str) -> str:
    """Put the table between the marks of a file.

    >>> insert(f"a\\n{BEGIN}\\nold\\n{END}\\nb\\n", "new\\n", "README.md").splitlines()[2]
    'new'
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BenchmarkError(f"{name} has no place for the table", hint=f"put the lines {BEGIN} and {END} there")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}{END}{after}"


def page_of(commands: Sequence[Command], stored: Stored, *, quick: bool) -> str:
    """The same as a page, a section for each command."""
    lead: list[Part] = [*circumstances_of(stored), *summary(stored)]
    if quick:
        lead.insert(0, "Quick run: sizes are so small that nothing here is a measurement.")
    sections = []
    for command in commands:
        rows = [tuple(cell.replace("**", "") for cell in cells) for cells in rows_of(command, stored)]
        if any(key.startswith(f"{command.name}.") for key in stored):
            sections.append(Section(command.name, [text_table(COLUMNS, rows)]))
    return page("Benchmarks: every question, beside what users would pick instead", sections, lead)
