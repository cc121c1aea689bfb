"""Checkpoints that other versions have made: this one goes on with them, or says why it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import streamjoin as sj
from streamjoin.spark.stored import formats
from streamjoin.state import Snapshot
from streamjoin.state.snapshot import FORMAT
from tests.data.checkpoints.make import FAR, HERE, QUERIES, asked, left_of, unpack, write_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARCHIVES = sorted(HERE.glob("format-*.tar.xz"))


def before_the_end(rows: list[list[Any]]) -> list[list[Any]]:
    """Without what only the last rows are in: results begin when they are valid."""
    return sorted((row for row in rows if row[-2] < FAR), key=str)


def rows_of(frame: DataFrame) -> list[list[Any]]:
    return [list(row) for row in frame.collect()]


def test_there_is_a_checkpoint_of_every_format_that_is_read() -> None:
    assert [archive.name for archive in ARCHIVES] == [
        f"format-{number}.tar.xz" for number in sorted({*formats.READERS, FORMAT})
    ]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_differential_a_query_goes_on_where_another_version_stopped(
    spark: SparkSession, tmp_path: Path, archive: Path
) -> None:
    unpacked = tmp_path / "unpacked"
    inputs = unpacked / "inputs"
    unpack(archive, unpacked)
    write_inputs(inputs, range(2))  # as they were, times too
    earlier = {name: json.loads((unpacked / name / "left.json").read_text()) for name in QUERIES}

    # What it holds is read without the program that made it: from the plan that was stored then.
    untouched = tmp_path / "untouched"
    unpack(archive, untouched)
    rest = rows_of(sj.finish(untouched / "equality" / "checkpoint", spark))
    assert rest, "something was held"
    whole = rows_of(asked(spark, inputs, "equality", streaming=False))
    assert sorted(earlier["equality"] + rest, key=str) == sorted(whole, key=str)

    write_inputs(inputs, range(2, 3))
    for name in QUERIES:
        later = left_of(asked(spark, inputs, name, streaming=True), unpacked / name / "checkpoint")
        assert later, f"{name} has read nothing"
        whole = rows_of(asked(spark, inputs, name, streaming=False))
        assert before_the_end(earlier[name] + later) == before_the_end(whole), name


@pytest.mark.parametrize("number", [FORMAT + 1, 0, None])
def test_another_format_is_refused_with_what_to_do(number: int | None) -> None:
    with pytest.raises(
        sj.StreamjoinError, match=rf"has format {number}, and this version of streamjoin reads .*{FORMAT}"
    ) as told:
        formats.readable(Snapshot({"format": number}))
    assert "end the query with that version" in str(told.value)


def test_an_older_format_is_read_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def reader(stored: Snapshot) -> Snapshot:
        manifest = stored.manifest
        return Snapshot({**manifest, "format": manifest["format"] + 1, "by": [*manifest["by"], manifest["format"]]})

    monkeypatch.setattr(formats, "READERS", {FORMAT - 2: reader, FORMAT - 1: reader})
    found = formats.readable(Snapshot({"format": FORMAT - 2, "by": []}))
    assert found.manifest == {"format": FORMAT, "by": [FORMAT - 2, FORMAT - 1]}
