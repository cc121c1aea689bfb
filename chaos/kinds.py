"""What a case runs: a call by name, made with streaming and with batch frames alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from chaos import data

BUCKETS: Final = 4  # more than Spark's partitions here, and a square: a matrix then copies both sides


@dataclass(frozen=True)
class Kind:
    """A join or a query by name, and what it is given."""

    name: str
    call: Callable[[DataFrame, DataFrame], DataFrame]
    late: bool = False  # some rows of its data come too late
    waits: bool = False  # and its lateness waits for them: none is missing
    table: bool = False  # its right side is no stream
    distinct: bool = False  # no two rows of a key have the same time
    most_files: int = 12  # of one side: fewer where a batch takes longer
    finished: bool = False  # its data have no closing row: `sj.finish` gives the rest
    spills: bool = False  # its state does not fit into the memory that it may use

    def stream(self, spark: SparkSession, inputs: Path) -> DataFrame:
        """The call as a query makes it."""
        left, right = data.frames(spark, inputs, streaming=True)
        if self.table:
            _, right = data.frames(spark, inputs, streaming=False)
        return self.call(left, right)
