"""State in files that are changed, cut or lost, through the processors that ship: then the query goes on."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import SpillError
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.spark.stored import bucket, local_runs
from tests.function_trees import plan_of, rows, table, tree
from tests.plane import Plane, own_cache

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
PIECES, ROWS = 4, 30


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    local_runs.scratch.cache_clear()
    yield tmp_path
    local_runs.scratch.cache_clear()


def plan(memory: int | None) -> PhysicalPlan:
    lowered = plan_of(tree("band"), {"0": 50, "1": 50}, buckets=1)
    return replace(lowered, stages=tuple(replace(stage, memory=memory) for stage in lowered.stages))


def piece(number: int) -> dict[str, Any]:
    drawn = random.Random(number)
    return {str(side): table(rows(drawn, ROWS)) for side in (0, 1)}


def ids(tables: Any) -> Counter[tuple[int, int]]:
    return Counter((row["id"], row["id_right"]) for part in tables for row in part.to_pylist())


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8] ^= 255
    path.write_bytes(bytes(content))


TROUBLE: dict[str, Callable[[Path], None]] = {
    "changed": change,
    "cut": lambda path: os.truncate(path, 20),
    "vanished": lambda path: path.unlink(),
}


# A page is compared with its checksum once by each worker.
CASES = [
    ("another", "changed", "keys"), ("another", "changed", "rows"), ("another", "cut", "keys"),
    ("another", "vanished", "rows"), ("the same", "cut", "rows"), ("the same", "vanished", "keys"),
]  # fmt: skip


@pytest.mark.parametrize(("worker", "trouble", "suffix"), CASES)
def test_a_query_goes_on_from_what_is_stored(local: Path, trouble: str, suffix: str, worker: str) -> None:
    """It may take an error for each file; who starts it again, in the same application, finds that one no more."""
    whole = Plane(plan(None), random.Random(0))
    expected = [ids(whole.micro_batch(piece(number))) for number in range(PIECES)]
    plane, found, errors = Plane(plan(6000), random.Random(0)), [], list[str]()
    files: list[Path] = []
    for number in range(PIECES):
        if number == PIECES - 2:
            files = list(local.rglob(f"*.{suffix}"))
            assert files, "nothing is in files: the budget is not small enough"
            if worker == "another":
                bucket._remembered.clear()
            for file in files:
                TROUBLE[trouble](file)
        before = {label: store.copy() for label, store in plane.stores[0].items()}
        while len(found) == number and len(errors) <= len(files):
            try:
                found.append(ids(plane.micro_batch(piece(number))))
            except SpillError as error:
                errors.append(str(error))
                bucket._remembered.clear()
                plane.stores[0].update({label: store.copy() for label, store in before.items()})
    assert found == expected
    assert bool(errors) == (trouble == "changed" or (trouble == "cut" and worker == "the same"))
    assert all("start the query again" in each for each in errors)
