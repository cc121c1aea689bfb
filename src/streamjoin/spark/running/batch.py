"""A plan over batch frames: a batch is a stream that ends. Everything is there: one micro-batch, then the end.

All stages are `mapInArrow`: public DataFrame calls, lazy, recovered by Spark like any other stage. Nothing is
collected, and no job runs when the call is made.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from streamjoin.runtime.outlet import ToCourt, ToStage
from streamjoin.runtime.stage import Stage
from streamjoin.spark.running.interpreter import Interpreter
from streamjoin.spark.running.packed import PACKED_SCHEMA
from streamjoin.spark.running.tasks import OperateAtOnce
from streamjoin.spark.told import knowing


class BatchInterpreter(Interpreter):
    """Runs every stage at once."""

    def operated(self, stage: Stage, packed: list[int]) -> DataFrame:
        return self.operated_at_once(stage, packed)

    def operated_at_once(self, stage: Stage, packed: list[int]) -> DataFrame:
        """A stage of which everything is there."""
        to_stage = isinstance(stage.outlet.way, ToStage | ToCourt)
        schema: Any = PACKED_SCHEMA if to_stage else self.row_schema(stage)
        exchanged = knowing(self.united(packed).repartition(stage.buckets, "label"), PACKED_SCHEMA)
        return exchanged.mapInArrow(OperateAtOnce(stage, self.labels_after(stage)), schema)
