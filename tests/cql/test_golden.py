"""Golden files: a query, its tree as bound, and its tree as optimised.

Each file in `golden/` has sections that begin with a line `-- name`. The query is written by hand; `bound` and
`optimised` are written by `STREAMJOIN_REWRITE=1 pytest tests/cql/test_golden.py`, to be looked at in the diff. Other
sections, such as `result`, are kept as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamjoin.language import parse_cql
from streamjoin.plan.picture import explain_relation
from streamjoin.plan.relation import Query
from streamjoin.plan.rules import optimise
from tests.cql.streams import SCHEMAS, TIMES

FILES = sorted((Path(__file__).parent / "golden").glob("*.txt"))


def sections(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-- ") and line[3:].isidentifier():
            name = line[3:]
            found[name] = ""
        else:
            found[name] += line + "\n"
    return {name: content.strip("\n") for name, content in found.items()}


def written(parts: dict[str, str]) -> str:
    return "\n".join(f"-- {name}\n{content}\n" for name, content in parts.items())


def shown(query: Query) -> str:
    return (f"{query.to_stream}\n" if query.to_stream else "") + explain_relation(query.relation)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    parts = sections(path.read_text())
    query = parse_cql(parts["query"], SCHEMAS, times=TIMES)
    optimised = Query(optimise(query.relation, SCHEMAS), query.to_stream)
    new = parts | {"bound": shown(query), "optimised": shown(optimised)}
    if os.environ.get("STREAMJOIN_REWRITE"):
        path.write_text(written(new))
    assert new == parts
    assert optimised.relation.columns == query.relation.columns


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_optimising_twice_changes_nothing(path: Path) -> None:
    once = optimise(parse_cql(sections(path.read_text())["query"], SCHEMAS, times=TIMES).relation, SCHEMAS)
    assert optimise(once, SCHEMAS) == once


def test_there_are_golden_files() -> None:
    assert len(FILES) > 50
