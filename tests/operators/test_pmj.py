"""Joins of finite inputs in generations: the same as in memory, some of it early, whatever the budget is."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Overlaps, Within
from streamjoin.errors import SpillError
from streamjoin.operators import Context, Operator, Pmj, Results, TemporalJoin
from streamjoin.operators.pmj import Budget, RunningPmj
from streamjoin.operators.tpmj.lists import bytes_of
from streamjoin.state import Batch, KeyTest, Matching, ValueTest
from tests.state.making import PAYLOAD, batch

SCHEMAS = (PAYLOAD, PAYLOAD)
BAND, BOX = Band("v", "v", 0.5, 1.0), Overlaps(("lo", "hi"), ("lo", "hi"))
MATCHINGS = {
    "keys": Matching(),
    "keys without time": Matching(timed=False),
    "keys that are hashes": Matching(tests=(KeyTest(),)),
    "band": Matching(BAND),
    "one-sided band": Matching(replace(BAND, below=-0.5, closed="right"), timed=False),
    "overlap": Matching(BOX),
    "box": Matching(BOX, (ValueTest(BOX, 2),)),
    "distance": Matching(Within(("x", "y"), ("x", "y"), 1.0)),
    "distance on a line": Matching(Within(("x",), ("x",), 0.5), timed=False),
    "distance on Earth": Matching(Within(("x", "y"), ("x", "y"), 80_000.0, "haversine")),
}


def drawn(rng: np.random.Generator, rows: int) -> Batch:
    ts = rng.integers(0, 60, rows)
    low, other = rng.integers(0, 12, rows) / 2, rng.integers(0, 6, rows) / 2
    group = rng.integers(0, 2, rows)
    return batch(
        list(zip(ts.tolist(), (ts + rng.integers(0, 20, rows)).tolist(), strict=True)),
        group=group.tolist(),
        values=[low.tolist(), (low + 1.5).tolist(), other.tolist(), (other + 1.0).tolist()],
        matchable=(rng.random(rows) < 0.9).tolist(),
        proof=pa.table({"k": [f"key {number}" for number in group.tolist()]}),
    )


def all_of(operator: Operator, sides: list[Batch], pieces: int) -> Counter:
    """All results of inputs that come in so many pieces."""
    found: Counter = Counter()

    def take(outputs: object) -> None:
        for results in outputs:  # type: ignore[attr-defined]
            assert isinstance(results, Results)
            columns = [column.to_pylist() for column in results.payload.columns]
            found.update(zip(results.ts.tolist(), results.te.tolist(), *columns, strict=True))

    for piece in range(pieces):
        for number, rows in enumerate(sides):
            take(operator.on_batch(number, rows.take(np.array_split(np.arange(len(rows)), pieces)[piece])))
    take(operator.on_end())
    return found


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", list(MATCHINGS))
def test_differential_generations_and_memory(name: str, seed: int, tmp_path: Path) -> None:
    rng, matching = np.random.default_rng(seed), MATCHINGS[name]
    sides = [drawn(rng, int(rng.integers(1, 60))) for _ in range(2)]
    in_memory = TemporalJoin(matching, SCHEMAS, validity=matching.timed)
    page = int(rng.integers(1, 3))
    budget = Budget(int(rng.integers(2, 30)), page * int(rng.choice([1, 8, 40])), page, int(rng.choice([1, 10_000])))
    config = Pmj(matching, SCHEMAS, matching.timed, budget, row_bytes=1)
    operator = config.build(Context(scratch=str(tmp_path) if seed % 3 else None))
    found = all_of(operator, sides, 4)
    expected = all_of(in_memory.build(), sides, 1)
    assert found == expected
    figures = operator.figures
    assert figures["results"] == expected.total()
    assert 0 <= figures["early_results"] <= figures["results"]
    rows = sum(map(len, sides)) - figures["unmatchable"] - figures["never_valid"]
    assert figures["generations"] >= rows // budget.lists
    assert bool(figures["pages_written"]) == (seed % 3 > 0 and figures["generations"] > 1)
    assert not files_in(tmp_path), "files are left behind"


def numbers(rows: int, seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    return batch([(0, 10)] * rows, values=[rng.integers(0, rows, rows).tolist()])


def built(folder: Path, lists: int = 20) -> RunningPmj:
    config = Pmj(Matching(Band("v", "v", 1, 1)), SCHEMAS, budget=Budget(lists, 16, 2, 300), row_bytes=1)
    running: RunningPmj = config.build(Context(scratch=str(folder)))
    return running


def test_inputs_that_fit_are_never_written(tmp_path: Path) -> None:
    operator = built(tmp_path, lists=1000)
    assert all_of(operator, [numbers(40, 1), numbers(40, 2)], 3)
    assert operator.figures["generations"] == 1
    assert operator.figures["pages_written"] == 0
    assert not list(tmp_path.iterdir())


def test_results_leave_early_and_never_more_than_their_share_at_once(tmp_path: Path) -> None:
    operator = built(tmp_path)
    sides = [numbers(100, 1), numbers(100, 2)]
    early = [
        results
        for start in range(0, 100, 7)
        for number, rows in enumerate(sides)
        for results in operator.on_batch(number, rows.part(start, min(start + 7, 100)))
    ]
    late = list(operator.on_end())
    assert sum(map(len, early)) == operator.figures["early_results"] > 0
    assert sum(map(len, late)) > 0
    assert max(map(len, (*early, *late))) <= 300 // 20, "a payload of a row has at least twenty bytes"


def test_files_have_no_names_while_they_are_read(tmp_path: Path) -> None:
    operator = built(tmp_path)
    for number in (0, 1):
        list(operator.on_batch(number, numbers(100, number)))
    assert operator.footprint.spilled > 0
    assert not files_in(tmp_path), "whoever is killed now would leave them behind"
    leaving = operator.on_end()
    assert next(leaving)
    leaving.close()
    assert not files_in(tmp_path)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []

    def file_in(dir: Path) -> object:
        files.append(dir)
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr("streamjoin.operators.pmj.runs.tempfile.TemporaryFile", file_in)
    operator = built(tmp_path)
    with pytest.raises(SpillError, match=r"could not be written to .*: No space left on device"):
        list(operator.on_batch(0, numbers(100, 0)))
    assert files
    assert not files_in(tmp_path)


def test_a_folder_that_vanishes_is_made_again_and_one_that_cannot_be_is_said(tmp_path: Path) -> None:
    operator, folder = built(tmp_path / "here"), tmp_path / "here"
    list(operator.on_batch(0, numbers(50, 0)))
    os.rename(folder, tmp_path / "elsewhere")
    list(operator.on_batch(1, numbers(50, 1)))
    assert sum(map(len, operator.on_end())) > 0
    folder = tmp_path / "a file"
    folder.touch()
    operator = built(folder)
    with pytest.raises(SpillError, match="could not be written"):
        list(operator.on_batch(0, numbers(50, 0)))


def test_pages_are_as_large_as_wanted_whatever_came_last(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def rows(count: int, width: int) -> Batch:
        made = batch([(0, 10)] * count, values=[rng.random(count).tolist()])
        return replace(made, payload=pa.table({"id": np.arange(count), "note": ["x" * width] * count}, schema=PAYLOAD))

    wanted, lists = 10_000, bytes_of(rows(40, 700)) + bytes_of(rows(400, 3))
    config = Pmj(Matching(Band("v", "v", 0, 0)), SCHEMAS, budget=Budget(lists, 8 * wanted, wanted, 300))
    operator = config.build(Context(scratch=str(tmp_path)))
    for _ in range(20):  # each time the lists are full, and narrow rows have come last
        assert not list(operator.on_batch(0, rows(40, 700)))
        assert not list(operator.on_batch(0, rows(400, 3)))
    assert operator.figures["merges"] > 0
    for generation in operator.generations:
        run = generation.runs[0]
        assert run.nbytes / len(run.ends) <= 1.5 * wanted


def test_rows_are_as_large_as_what_is_compared_of_them() -> None:
    rows = batch([(0, 10)] * 3)
    texts, sets = pa.table({"0": ["a" * 100] * 3}), pa.table({"0": [[1, 2], [], [3]], "1": [[b"aa"], [], [b"b"]]})
    assert bytes_of(replace(rows, contents=texts)) == bytes_of(rows) + 16 * 300
    assert bytes_of(replace(rows, contents=sets)) == bytes_of(rows) + 3 * (8 + 16) + 3 + 2 * 16
