"""Urgent results to a function of the user's, in the worker, as soon as they are made.

Spark's sinks see the rows of a micro-batch when its task is over, or later. A handler need not wait for that: it is
called when urgent results leave the last operator: those of urgent rows before the others are even joined, those with a
partner among these after its operator's turn. So it hears of them *at least once*: a task that fails is run again. And
the rows are in the frame too, like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.runtime.outlet import ToUser
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import Stage

# Of a table of results, the number of the micro-batch, and that of the bucket.
Handler: TypeAlias = Callable[[pa.Table, int, int], Any]


def telling(packets: Iterable[Packet], stage: Stage, handler: Handler | None, batch: int) -> Iterator[Packet]:
    """What leaves a stage; on its way a handler hears of urgent results. Late rows that are shown are none."""
    way = stage.outlet.way
    if handler is None or not isinstance(way, ToUser) or way.shape.priority is None:
        yield from packets
        return
    for packet in packets:
        if packet.kind == "final":
            which = pc.greater(packet.table[way.shape.priority], 0)
            for flag in way.shape.flags:
                which = pc.and_not(which, packet.table[flag])
            urgent = packet.table.filter(which)
            if urgent.num_rows:
                handler(urgent, batch, packet.bucket)
        yield packet
