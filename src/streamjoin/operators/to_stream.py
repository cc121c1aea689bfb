"""From a relation back to a stream: what appears, what disappears, or all that is there.

| operator | at `t` |
|---|---|
| ISTREAM | each payload as often as it is there more often than just before |
| DSTREAM | each payload as often as it is there less often than just before |
| RSTREAM | every payload as often as it is there, at each `t` at which anything has changed |

A payload that ends and begins again at one instant has not changed: only the difference counts. What leaves are events,
valid for one tick. Cost: a sort of the events that are due; RSTREAM also what it says, which may be much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Times, saturating_add
from streamjoin.algebra.policy import ToStream
from streamjoin.operators.contract import ALONE, Configuration, Context, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.lifetimes import Members, RunningLifetimes
from streamjoin.state import Batch, Catalogue
from streamjoin.state.batch import Indices


@dataclass(frozen=True)
class StreamOf(Configuration):
    """The stream of a relation with this schema. `build()` makes the running operator."""

    kind: ToStream
    schema: pa.Schema
    producer: int = 0
    bucket: int = 0
    inputs: int = 1

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((self.kind, described([self.schema]), self.producer))

    def build(self, context: Context = ALONE) -> RunningStreamOf:
        """The running operator, empty."""
        return RunningStreamOf(self, Catalogue(self.schema), context)


@dataclass
class RunningStreamOf(RunningLifetimes):
    """The stream of a relation at work."""

    config: StreamOf

    def __post_init__(self) -> None:
        super().__post_init__()
        self.there = Members()  # how often each payload is there now

    def _rows(self, number: int, batch: Batch) -> pa.Table:
        return pa.table({"code": self.catalogue.codes(batch.payload, len(batch))})

    def _sweep(self, times: Times, rows: pa.Table) -> Iterator[Output]:
        code, time, change = _net(rows["code"].to_numpy(), times, rows["sign"].to_numpy())
        if self.config.kind == "rstream":
            yield from self._snapshots(code, time, change)
            return
        wanted = change if self.config.kind == "istream" else -change
        there = np.flatnonzero(wanted > 0)
        order = there[np.argsort(time[there], kind="stable")]
        order = np.repeat(order, wanted[order])
        yield from self._events(code[order], time[order])

    def _snapshots(self, code: Indices, time: Times, change: Indices) -> Iterator[Output]:
        if not len(time):  # all changes have cancelled each other
            return
        order = np.argsort(time, kind="stable")
        code, time, change = code[order], time[order], change[order]
        first = np.ones(len(time), np.bool_)
        first[1:] = time[1:] != time[:-1]
        starts = np.flatnonzero(first).tolist()
        for start, stop in zip(starts, [*starts[1:], len(time)], strict=True):
            for sign in (1, -1):
                some = change[start:stop] * sign > 0
                self.there.add(np.repeat(code[start:stop][some], change[start:stop][some] * sign), sign)
            living = np.flatnonzero(self.there.count > 0)
            payloads = np.repeat(living, self.there.count[living])
            yield from self._events(payloads, np.full(len(payloads), time[start]))

    def _events(self, code: Indices, time: Times) -> Iterator[Output]:
        if len(code):
            self.figures["results"] += len(code)
            yield Results(self.catalogue.take(code), time, saturating_add(time, 1))

    def _finish(self) -> Iterator[Output]:
        self.there = Members()
        yield from ()

    def _own_parts(self) -> dict[str, Any]:
        return {"there": self.there}


def _net(code: Indices, time: Times, sign: Any) -> tuple[Indices, Times, Indices]:
    """Changes of one payload at one instant taken together; those that cancel each other are gone."""
    order = np.lexsort((time, code))
    code, time, sign = code[order], time[order], sign[order].astype(np.int64)
    first = np.concatenate([[True], (code[1:] != code[:-1]) | (time[1:] != time[:-1])])
    starts = np.flatnonzero(first)
    change = np.add.reduceat(sign, starts)
    left = change != 0
    return code[starts][left], time[starts][left], change[left]
