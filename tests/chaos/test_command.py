"""`streamjoin chaos`, as far as it needs no kills."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from chaos.cases import Outcome
from chaos.catalog import KINDS, kinds_of
from chaos.commands import Chaos, deal, failure_lines, outcome_table, summary
from chaos.comparison import compare
from chaos.joins import JOINS
from chaos.queries import QUERIES
from streamjoin.cli import app, checkout

ALL = list(KINDS.values())


@pytest.mark.parametrize("kills", [1, 4, len(ALL), len(ALL) + 1, 50])
def test_all_kills_are_dealt_out_evenly(kills: int) -> None:
    shares = deal(kills, ALL, seed=3)
    assert sum(share for _, share in shares) == kills
    assert max(share for _, share in shares) - min(share for _, share in shares) <= 1
    assert len(shares) == min(kills, len(ALL))


def test_the_seed_says_who_is_killed_when_there_are_few_kills() -> None:
    dealt = {tuple(kind.name for kind, _ in deal(3, ALL, seed=seed)) for seed in range(20)}
    assert len(dealt) > 1


def chaos_with(*outcomes: Outcome) -> Chaos:
    chaos = Chaos(kills=4, seed=7, kinds=ALL)
    chaos.outcomes = list(outcomes)
    return chaos


def outcome(delivered: str = "abb", failure: str | None = None) -> Outcome:
    difference = None if failure else compare(Counter("abb"), Counter(delivered))
    return Outcome(KINDS["band-semi"], 7, 2, Counter(["inside", "sink"]), 2, difference, None, failure)


def test_a_good_run_is_summed_up() -> None:
    skipped = Outcome(KINDS["theta-left"], 7, 2, skipped="not there yet")
    chaos = chaos_with(outcome(), skipped)
    assert chaos.good
    assert summary(chaos) == (
        "2 of 4 kills of drivers, 1 queries compared, 3 rows, 0 lost, 0 too many, 0 failed, 1 skipped; seed 7"
    )
    chaos.outcomes[0].files_unchecked = True
    assert summary(chaos).endswith(", 1 skipped, left files of 1 not checked; seed 7")
    console = Console(width=140, record=True, quiet=True)
    console.print(outcome_table(chaos))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (outcome("ab"), "1 rows lost"),
        (outcome("aabb"), "1 rows repeated"),
        (outcome("abbc"), "1 rows invented"),
        (outcome(failure="the driver failed with 1"), "the driver failed with 1"),
    ],
)
def test_a_bad_run_says_what_and_how_to_see_it_again(bad: Outcome, words: str, tmp_path: Path) -> None:
    assert not chaos_with(outcome(), bad).good
    lines = "\n".join(failure_lines(bad, tmp_path, executors=True))
    assert words in lines
    assert "./sj chaos --kills 2 --seed 7 --joins band-semi --executors" in lines


def test_without_kills_nothing_is_proven() -> None:
    assert not chaos_with().good


def test_unknown_joins_are_one_sentence() -> None:
    result = CliRunner().invoke(app, ["chaos", "--joins", "window-left,theta-iner"])
    assert result.exit_code == 1
    assert "there is no join or query 'window-left'. Hint: did you mean window-left-ordered." in result.output
    assert "Traceback" not in result.output


def test_no_names_are_all_joins_and_queries() -> None:
    assert kinds_of([]) == ALL
    assert set(ALL) == {*JOINS, *QUERIES}


def test_queries_are_chosen_and_killed_as_joins_are() -> None:
    names = ["cql-groups", "window-anti", "cql-istream"]
    assert [kind.name for kind in kinds_of(names)] == names
    dealt = {kind.name for seed in range(20) for kind, _ in deal(20, ALL, seed)}
    assert dealt == set(KINDS)


def test_outside_a_checkout_it_says_where_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "lib" / "streamjoin" / "cli" / "checkout.py"))
    result = CliRunner().invoke(app, ["chaos"])
    assert result.exit_code == 2
    assert "run ./sj chaos in a checkout" in result.output
