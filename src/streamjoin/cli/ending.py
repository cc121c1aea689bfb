"""When a query looks for rows, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamjoin import CallError
from streamjoin.algebra import TimeAxis
from streamjoin.api import made_by, uses_timers


@dataclass(frozen=True)
class Ending:
    """When a query looks for rows, and when it ends."""

    available_now: bool
    finish: bool
    trigger: str | None

    def __post_init__(self) -> None:
        if self.finish and not self.available_now:
            raise CallError(
                "--finish is for a query that comes to an end, and this one would run for ever",
                hint="add --available-now",
            )
        if self.trigger is not None and self.available_now:
            raise CallError(
                "--trigger says how often a query looks for files, and with --available-now it looks once",
                hint="leave one of the two out",
            )
        if self.trigger is not None and TimeAxis.TIMESTAMP.ticks(self.trigger, "--trigger") < 0:
            raise CallError(f"--trigger must not be negative, got {self.trigger!r}")

    @property
    def trigger_of_spark(self) -> dict[str, Any]:
        """The same for `DataStreamWriter.trigger`; empty for Spark's default, without a pause."""
        if self.available_now:
            return {"availableNow": True}
        if self.trigger is None:
            return {}
        return {"processingTime": f"{TimeAxis.TIMESTAMP.ticks(self.trigger, '--trigger')} microseconds"}

    def check(self, frame: Any, job: str) -> None:
        """Refuse a frame that cannot end like this."""
        if not frame.isStreaming:
            raise CallError(
                f"{job} returned a frame that is no stream, so there is nothing to keep running",
                hint="use its --stream inputs, or write the frame as a batch",
            )
        if self.available_now and uses_timers(frame.schema):
            raise CallError(
                f"the join of {job} has timers=True, and a query with timers never ends by itself",
                hint="leave out --available-now and stop it with Ctrl-C, or leave out timers",
            )
        if self.finish and made_by(frame) is None:
            raise CallError(
                f"--finish writes rows as the call holds them, and {job} changes them afterwards",
                hint="return the joined frame itself, or call sj.finish(checkpoint) and do the same to what it returns",
            )
