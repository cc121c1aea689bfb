"""The process that workers are forked from begins anew where it had to compile kernels, and chooses their allocator."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.spark import daemon
from streamjoin.state import giving_back


def test_a_daemon_that_has_compiled_becomes_the_same_program_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: begun.append((program, arguments)))
    monkeypatch.setattr(sys, "argv", ["daemon", "pyspark.worker"])
    monkeypatch.setattr(os, "environ", dict(os.environ))
    daemon.begin_anew()
    assert begun == [(sys.executable, [sys.executable, "-m", "streamjoin.spark.daemon", "pyspark.worker"])]
    assert daemon._BEGUN_ANEW in os.environ, "and does not do so a second time"


def _pools(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.record_batch({"pool": [pa.default_memory_pool().backend_name]})


def test_workers_take_what_arrow_needs_from_the_heap(spark: SparkSession) -> None:
    told = spark.range(4, numPartitions=2).mapInArrow(_pools, "pool string").distinct().collect()
    assert [row.pool for row in told] == ["system"]


@pytest.mark.parametrize("gives_back", [True, False])
def test_a_heap_that_gives_nothing_back_is_left_alone(*, gives_back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_back, "_heap_trim", lambda: (lambda _: 1) if gives_back else None)
    before = pa.default_memory_pool()
    try:
        giving_back.take_from_heap()
        taken = pa.default_memory_pool().backend_name
    finally:
        pa.set_memory_pool(before)
    assert taken == ("system" if gives_back else before.backend_name)
