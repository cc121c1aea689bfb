"""Where a query stands, read from files as Spark would have left them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.checkpoint import Checkpoint, Where


def leave(folder: Path, *names: str) -> Checkpoint:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return Checkpoint(folder)


def offsets(count: int) -> list[str]:
    return [f"checkpoint/offsets/{number}" for number in range(count)]


def commits(count: int) -> list[str]:
    return [f"checkpoint/commits/{number}" for number in range(count)]


def outputs(count: int) -> list[str]:
    return [f"out/_spark_metadata/{number}" for number in range(count)]


CASES: dict[str, tuple[list[str], Where]] = {
    "nothing yet": ([], "between"),
    "all over": ([*offsets(3), *commits(3), *outputs(3)], "between"),
    "begun": ([*offsets(3), *commits(2), *outputs(2), "checkpoint/state/0/0/2.changelog"], "inside"),
    "state": ([*offsets(3), *commits(2), *outputs(2), "checkpoint/state/0/1/3.changelog"], "state"),
    "snapshot": ([*offsets(3), *commits(2), *outputs(2), "checkpoint/state/0/0/3.zip"], "state"),
    "named state": ([*offsets(3), *commits(2), *outputs(2), "checkpoint/state/1/0/3_ab-cd.changelog"], "state"),
    "half a state": ([*offsets(3), *commits(2), *outputs(2), "checkpoint/state/0/0/.3.changelog.ab.tmp"], "inside"),
    "sink": ([*offsets(3), *commits(2), *outputs(3), "checkpoint/state/0/0/3.changelog"], "sink"),
    "compacted sink": ([*offsets(3), *commits(2), *outputs(2), "out/_spark_metadata/2.compact"], "sink"),
    "half a commit": ([*offsets(3), *commits(2), *outputs(3), "checkpoint/commits/.2.ab.tmp"], "sink"),
}


@pytest.mark.parametrize("name", CASES)
def test_where(tmp_path: Path, name: str) -> None:
    names, where = CASES[name]
    assert leave(tmp_path, *names).where() == where


def test_how_far(tmp_path: Path) -> None:
    checkpoint = leave(tmp_path, *offsets(4), *commits(3), *outputs(2), "checkpoint/commits/.3.crc")
    assert (checkpoint.begun(), checkpoint.committed(), checkpoint.delivered()) == (4, 3, 2)


def test_before_the_query_there_is_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "nowhere")
    assert (checkpoint.begun(), checkpoint.committed(), checkpoint.delivered()) == (0, 0, 0)
    assert list(checkpoint.state_files(0)) == []
