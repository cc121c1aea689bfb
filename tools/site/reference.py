"""The reference of the Python functions: a page made of their signatures and docstrings.

A docstring is Markdown, but for two things. A line that is followed by lines that are indented once, of a name, two
spaces or more, and what it is, opens a table of them; lines indented further go on with the last one. Lines that begin
with `>>>` open an example, up to the next empty line.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from typing import Any

import streamjoin as sj

WIDEST = 100  # a signature that is wider gets a line for each parameter
ENTRY = re.compile(r" {4}(?P<names>\S+(?:,? \S+)*?) {2,}(?P<text>\S.*)")
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
# Modules in the order of the page; those that are not named here come behind them, by name.
MODULES = ["api.joins", "api.choosing", "api.queries", "api.relations", "algebra.window", "algebra.predicate"]
MODULES += ["algebra.lateness", "spark.session", "api.watching", "api.prioritising"]


def reference() -> str:
    """The whole page: every public name, under a heading for the module that it comes from."""
    places: dict[str, list[str]] = defaultdict(list)
    for name in sj.__all__:
        places[getattr(sj, name).__module__.removeprefix("streamjoin.")].append(name)
    ordered = sorted(places, key=lambda place: (MODULES.index(place) if place in MODULES else len(MODULES), place))
    lines = [
        "# Python",
        "",
        "What `import streamjoin as sj` gives. Made from the docstrings, whose examples run as tests.",
    ]
    for place in ordered:
        lines += ["", f"## {heading(place)}"]
        for name in places[place]:
            lines += ["", *entry(name, getattr(sj, name))]
    return "\n".join(lines) + "\n"


def heading(place: str) -> str:
    """A module's first sentence, without its full stop."""
    told = inspect.getdoc(import_module(f"streamjoin.{place}"))
    assert told, f"streamjoin.{place} has no docstring"
    return re.split(r"\.(?:\s|$)", " ".join(told.split("\n\n")[0].split()))[0]


def entry(name: str, thing: Any) -> list[str]:
    """A public name: its heading, how it is called, and what it is."""
    told = inspect.getdoc(thing)
    assert told, f"sj.{name} has no docstring"
    lines = [f"### {name}", ""]
    if not (inspect.isclass(thing) and issubclass(thing, Exception)):
        lines += ["```python", *signature(name, thing), "```", ""]
    return [*lines, *markdown(told)]


def signature(name: str, thing: Any) -> list[str]:
    """How it is called, on one line, or on one for each parameter."""
    called = inspect.signature(thing)
    given = None if inspect.isclass(thing) else called.return_annotation
    answer = "" if given in (None, inspect.Signature.empty) else f" -> {_text(given)}"
    written: list[str] = []
    for parameter in called.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(each.startswith("*") for each in written):
            written.append("*")
        annotation = "" if parameter.annotation is parameter.empty else f": {_text(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        written.append(f"{STARS.get(parameter.kind, '')}{parameter.name}{annotation}{default}")
    short = f"sj.{name}({', '.join(written)}){answer}"
    return [short] if len(short) <= WIDEST else [f"sj.{name}(", *(f"    {each}," for each in written), f"){answer}"]


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def markdown(docstring: str) -> Iterator[str]:
    """A docstring as Markdown, line by line."""
    for block in docstring.split("\n\n"):
        yield from chain(_block(block.splitlines()), [""])


def _block(lines: list[str]) -> Iterator[str]:
    if lines[0].startswith(">>>"):
        yield from ["```pycon", *lines, "```"]
        return
    first = next((number for number, line in enumerate(lines) if ENTRY.fullmatch(line)), None)
    if first is None:
        indented = all(line.startswith("    ") for line in lines)
        yield from ["```text", *(line[4:] for line in lines), "```"] if indented else lines
        return
    if first:
        yield " ".join(line.strip() for line in lines[:first]).rstrip(".:") + ":"
        yield ""
    yield from ["| | |", "|---|---|"]
    for names, text in _entries(lines[first:]):
        yield f"| {', '.join(f'`{each}`' for each in names)} | {text} |"


def _entries(lines: list[str]) -> Iterator[tuple[list[str], str]]:
    names: list[str] = []
    text = ""
    for line in lines:
        found = ENTRY.fullmatch(line)
        if found is None:
            assert line.startswith(" " * 8), f"this line is neither a parameter nor part of one: {line!r}"
            text += f" {line.strip()}"
            continue
        if names:
            yield names, _cell(text)
        names, text = re.split(r", *", found["names"]), found["text"]
    yield names, _cell(text)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
