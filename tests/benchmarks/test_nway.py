"""Four inputs at once: the data are as declared, and nobody is compared who delivers something else.

No peers are installed or started here; `./sj bench nway --quick` does that.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import commands, nway
from benchmarks.asking import nway as asking
from benchmarks.contenders import nway_cascade, nway_ours
from benchmarks.digest import digest_of
from benchmarks.nway_data import INPUTS, SHIFT, make, write
from benchmarks.worker import Loaded
from streamjoin.cli import app


def brute_force(question: str, inputs: list[dict[str, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """All results of small inputs, by definition."""
    at = np.indices([len(each["id"]) for each in inputs]).reshape(INPUTS, -1)
    low, high, key, number = (
        np.stack([each[name][members] for each, members in zip(inputs, at, strict=True)])
        for name in ("lo", "hi", "key", "id")
    )
    match = low.max(axis=0) < high.min(axis=0)
    if question == "equality":
        match &= key.min(axis=0) == key.max(axis=0)
    a, b, c, d = number[:, match]
    return [((a << SHIFT) + b, (c << SHIFT) + d)]


@pytest.mark.parametrize("dangling", nway.DANGLING)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_intermediate_results_are_as_declared_in_any_order(dangling: int, order: tuple[int, ...]) -> None:
    inputs = make("equality", 100_000, dangling)
    places = 1 + max(int(each["key"].max()) for each in inputs)
    there = [np.bincount(inputs[number]["key"], minlength=places) for number in order]
    pairs, triples, results = (int(np.prod(there[:most], axis=0).sum()) for most in (2, 3, 4))
    assert (pairs + triples) / results == pytest.approx(dangling, rel=0.1)
    for each in inputs:
        assert len(each["id"]) == pytest.approx(100_000, rel=0.01)


@pytest.mark.parametrize("question", nway.QUESTIONS)
@pytest.mark.parametrize("load", [nway_ours.load, nway_cascade.load], ids=["at once", "cascade"])
def test_oracle_our_contenders_find_the_declared_results(
    question: str, load: Callable[[Path], Loaded], tmp_path: Path
) -> None:
    inputs = make(question, 20, 1)
    write(question, inputs, tmp_path / "data")
    expected = digest_of(brute_force(question, inputs))
    assert expected.count > 0
    assert digest_of(load(tmp_path / "data").jobs["pairs"]()) == expected  # type: ignore[arg-type]


def test_the_quick_run_races_prints_and_judges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In processes of their own, as always; the peers stay at home."""
    measure = nway.measure
    monkeypatch.setattr(nway, "DANGLING", (10,))
    monkeypatch.setattr(nway, "measure", lambda *given: measure(*given, peers={}))
    monkeypatch.setattr(asking, "peers_python", lambda *_: Path(sys.executable))
    printed = io.StringIO()
    console = Console(file=printed, width=140)
    json = tmp_path / "all.json"
    verdicts = commands.run(console, "nway", quick=True, repetitions=1, only=["equality"], json_path=json)
    assert [(each.question, each.target) for each in verdicts] == [("equality, 10 dangling, our own cascade", 5.0)]
    text = printed.getvalue()
    assert "Not a measurement" in text
    assert f"{INPUTS} x {nway.QUICK_ROWS:,} rows" in text
    assert '"count": 2' in json.read_text()


def test_targets() -> None:
    assert [nway.target("overlap", peer, 1) for peer in ("DuckDB", nway.CASCADE)] == [8.0, 2.5]
    assert [nway.target("equality", "DuckDB", dangling) for dangling in nway.DANGLING] == [0.9, 1.3, 1.3, 1.3]


def test_a_question_that_is_not_there_is_refused_with_those_that_are() -> None:
    result = CliRunner().invoke(app, ["bench", "nway", "--only", "bands"])
    assert result.exit_code == 1
    assert "choose from overlap, equality, batch, streaming, document" in result.output
