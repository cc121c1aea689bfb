"""What crosses into Spark's state: a stage of a plan in `transformWithStateInPandas`.

Spark starts a Python process for every stateful operator of a query, only to ask which state variables it has, and
waits for it. So nothing is imported here that takes long, and the stage travels as bytes; the work is done by `bucket`,
which is loaded when rows come.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamjoin.spark.stored.pages import KEY, VALUE

if TYPE_CHECKING:
    import pandas as pd

    from streamjoin.runtime.stage import Stage
    from streamjoin.spark.stored.bucket import Bucket

Clock = Callable[[], int]  # processing time, in milliseconds


@dataclass(frozen=True)
class StateVariables:
    """What Spark keeps of each bucket."""

    handle: Any
    blobs: Any
    manifest: Any
    call: Any


class StageProcessor(StatefulProcessor):
    """A stage of a streaming plan; see `Bucket`. `labels` are those of the buckets that its packets are for."""

    def __init__(
        self,
        stage: Stage,
        labels: tuple[int, ...],
        call: dict[str, Any],
        identity: dict[str, str],
        idle_timer: int | None = None,
        urgent: Any = None,
        work_timer: int | None = None,
    ) -> None:
        # A query that is started again may ask for another lateness or function, and meet a worker that has the old.
        self.name = uuid.uuid4().hex
        self.stage = cloudpickle.dumps(stage)  # type: ignore[no-untyped-call]
        self.labels, self.idle_timer, self.work_timer = labels, idle_timer, work_timer
        self.call = json.dumps({**call, "stage": stage.number, "identity": identity})
        self.identity = identity
        self.urgent = cloudpickle.dumps(urgent)  # type: ignore[no-untyped-call]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state variables."""
        self.variables = StateVariables(
            handle,
            handle.getMapState("blobs", KEY, VALUE),
            handle.getValueState("manifest", "json string"),
            handle.getValueState("call", "json string"),
        )
        self.loaded: Bucket | None = None

    def _bucket(self) -> Bucket:
        from streamjoin.spark.stored.bucket import Bucket  # see the head of this file

        if self.loaded is None:
            stage = pickle.loads(self.stage)
            call, identity = self.call, self.identity
            urgent = pickle.loads(self.urgent)
            self.loaded = Bucket(
                self.name, stage, self.labels, call, identity, self.idle_timer, self.variables, urgent, self.work_timer
            )
        return self.loaded

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        """One micro-batch of one bucket."""
        yield from self._bucket().take(rows, timerValues.getCurrentProcessingTimeInMs)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N803
        """Rows of a static input, before the first micro-batch."""
        self._bucket().put(initialState)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        """Nothing has come for a while."""
        yield from self._bucket().tick(timerValues.getCurrentProcessingTimeInMs)

    def close(self) -> None:
        """Nothing to close: what is remembered is meant to outlive the task."""
