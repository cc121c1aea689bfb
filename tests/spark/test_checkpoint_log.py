"""The logs of a checkpoint: what was begun, what is over, and what was ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.spark.stored.checkpoint_log import FINISHED, CheckpointLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT: Any = object()  # a session that shows nothing of the JVM


def server(reader: Any) -> Any:
    """A session of which only the server sees the files."""
    return SimpleNamespace(read=reader)


def checkpoint(folder: Path, *, begun: int, over: int) -> CheckpointLog:
    for name, count in (("offsets", begun), ("commits", over)):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / str(number)).write_text("v1\n{}")
            (folder / name / f".{number}.crc").touch()
    return CheckpointLog(CONNECT, str(folder))


def test_a_query_is_over_when_its_last_micro_batch_is(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, begun=12, over=12)
    log.check_over()
    assert not log.is_finished
    log.mark_finished()
    log.mark_finished()
    assert log.is_finished
    log.check_over()
    assert (tmp_path / "offsets" / "12").read_text().startswith(FINISHED)
    assert not (tmp_path / "offsets" / "13").exists(), "it is marked once"


@pytest.mark.parametrize("over", [0, 2])
def test_a_micro_batch_that_was_begun_and_is_not_over(tmp_path: Path, over: int) -> None:
    log = checkpoint(tmp_path, begun=3, over=over)
    with pytest.raises(CallError, match=r"micro-batch 2 of the query of .* was begun and is not over"):
        log.check_over()


def test_where_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="there is no log of a query"):
        CheckpointLog(CONNECT, str(tmp_path)).check_over()
    assert not CheckpointLog(CONNECT, str(tmp_path)).is_finished


def test_names_of_local_folders(tmp_path: Path) -> None:
    checkpoint(tmp_path / "a #1", begun=1, over=1).check_over()
    CheckpointLog(CONNECT, f"file://{tmp_path}/a%20%231").check_over()
    with pytest.raises(UnsupportedError, match="Spark Connect cannot mark it as finished"):
        CheckpointLog(server(None), "hdfs://somewhere/checkpoint").check_can_be_marked()


def test_what_only_a_server_sees_is_read_as_data(spark: SparkSession, tmp_path: Path) -> None:
    log = CheckpointLog(server(spark.read), str(tmp_path / "new"))
    assert not log.has_committed
    assert not log.is_finished
    checkpoint(tmp_path / "new", begun=2, over=2).mark_finished()
    assert log.has_committed
    assert log.is_finished
    with pytest.raises(UnsupportedError, match="cannot mark it as finished"):
        log.check_can_be_marked()
