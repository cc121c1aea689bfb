"""What tasks do between stages: rows of a source to packets, and elements that Spark has computed with to packets.

    frame --(Spark computes)--> rows --SourceTask--> packets for the buckets of a stage
    stage --> rows of elements --(Spark computes)--> EdgeTask --> packets for the buckets of the next stage

Tables in, packets out, lazily; nobody in here knows who delivers the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np
import pyarrow as pa

from streamjoin.algebra import NEVER, Rows
from streamjoin.algebra.interval import Mask
from streamjoin.operators import Results
from streamjoin.plan.physical import Edge, Source
from streamjoin.plan.types import arrow_schema, names_of
from streamjoin.runtime.elements import element_rows, elements_of, report_rows, reports_of
from streamjoin.runtime.intake import ARRIVAL, KEEP, WHOLE, unfolded
from streamjoin.runtime.naming import Shape
from streamjoin.runtime.packets import Packet, Report
from streamjoin.runtime.reading import Read
from streamjoin.state import Batch
from streamjoin.state.batch import Priorities, with_columns


@dataclass(frozen=True)
class SourceTask:
    """Rows of a source to packets, and how far it is to every bucket; without a target, to elements."""

    source: Source

    @property
    def schema(self) -> pa.Schema:
        """What it reads."""
        return arrow_schema(self.source.handed_over)

    def packets(
        self, tables: Iterable[pa.Table], first: int = 0, clock: Callable[[], int | None] | None = None
    ) -> Iterator[Packet]:
        """Packets of rows, a report, and figures. `first` is the number of the first row, where rows are stamped;
        `clock` says what time it is, when all rows have been seen.

        A task without rows says nothing.
        """
        source, target = self.source, self.source.target
        assert target is not None
        began, measuring = perf_counter_ns(), source.lateness.measure()
        figures = {"rows_in": 0, "invalid": 0, "ghosts": 0}
        urgency = Urgency() if source.reading.priority is not None else None
        for read in self._read(tables, first):
            elements, invalid = read.elements, read.invalid
            figures["rows_in"] += len(elements) + invalid.num_rows
            figures["invalid"] += invalid.num_rows
            if invalid.num_rows and source.reading.invalid == "output":
                yield self._shown(invalid)
            if urgency is not None:
                urgency.awake(invalid.num_rows, source.reading.priorities(invalid))
            batch = target.binding.bind(elements)
            if target.binding.timeless or target.binding.ordered:  # without time a row is kept, and takes nobody
                figures["invalid"] += int((batch.ts == NEVER).sum())
            keep, ghosts = self._goes_on(elements)
            if urgency is None:
                measuring.see(batch, keep)
            else:  # only rows that are not urgent say how far a source is
                measuring.see(*urgency.others(batch, keep))
            figures["ghosts"] += ghosts
            if keep is not None and not keep.all():
                elements, batch = elements.take(keep), batch.take(keep)
            yield from target.placed(elements, batch)
        if not figures["rows_in"]:
            return
        if source.reports:
            now = None if clock is None else clock()
            report = measuring.report() | ({} if now is None else {"clock": now})
            report |= {} if urgency is None else urgency.report()
            yield from target.everywhere("progress", report)
        figures |= {} if urgency is None else {"urgent": urgency.rows}
        # Includes the time that Spark takes to deliver the rows: the two cannot be told apart from in here.
        figures["pack_us"] = (perf_counter_ns() - began) // 1000
        yield Packet(0, source.channel, "figures", figures)

    def rows(self, tables: Iterable[pa.Table], first: int = 0) -> Iterator[Results]:
        """The elements that go on, with all that was read of them."""
        for read in self._read(tables, first):
            yield self._going(read)

    def elements(self, tables: Iterable[pa.Table], *, told: bool = False) -> Iterator[pa.Table]:
        """Rows of elements, of a source that no stage reads; if that is to be `told`, also figures, as a report."""
        names, prioritised = names_of(self.source.fields), self.source.prioritised
        began, figures = perf_counter_ns(), {"rows_in": 0, "invalid": 0, "ghosts": 0}
        for read in self._read(tables, 0):
            figures["rows_in"] += len(read.elements) + read.invalid.num_rows
            figures["invalid"] += read.invalid.num_rows
            if read.invalid.num_rows and self.source.reading.invalid == "output":
                yield report_rows(arrow_schema(self.source.fields), self._shown(read.invalid), prioritised=prioritised)
            keep, ghosts = self._goes_on(read.elements)
            figures["ghosts"] += ghosts
            elements = read.elements if keep is None else read.elements.take(keep)
            payload = elements.payload.select(names) if names else pa.table({})
            yield element_rows(replace(elements, payload=payload), prioritised=prioritised)
        if told and figures["rows_in"]:
            figures["pack_us"] = (perf_counter_ns() - began) // 1000
            packet = Packet(0, self.source.channel, "figures", figures)
            yield report_rows(arrow_schema(self.source.fields), packet, prioritised=prioritised)

    def _shown(self, invalid: pa.Table) -> Packet:
        """Invalid rows as they are shown: whole, or with the columns that go on."""
        whole = WHOLE in invalid.column_names
        shown = unfolded(invalid[WHOLE]) if whole else invalid.select(names_of(self.source.fields))
        return Packet(0, self.source.channel, "invalid", shown)

    def _read(self, tables: Iterable[pa.Table], first: int) -> Iterator[Read]:
        for table in tables:
            if self.source.stamped:
                table = with_columns(table, **{ARRIVAL: first + np.arange(table.num_rows)})
                first += table.num_rows
            yield self.source.reading.read(table)

    def _going(self, read: Read) -> Results:
        keep, _ = self._goes_on(read.elements)
        return read.elements if keep is None else read.elements.take(keep)

    def _goes_on(self, elements: Results) -> tuple[Mask | None, int]:
        """Which rows go on, None for all; and how many are ghosts, which do not."""
        window = self.source.reading.window
        if isinstance(window, Rows):  # they count in the window
            return None, 0
        keep, ghosts = None, 0
        if window is not None:
            alive = elements.ts < elements.te
            ghosts = int(len(alive) - alive.sum())
            keep = alive if ghosts else None
        if KEEP in elements.payload.column_names:
            marked = np.asarray(elements.payload[KEEP].to_numpy(zero_copy_only=False), np.bool_)
            keep = marked if keep is None else keep & marked
        return keep, ghosts


class Urgency:
    """Looks at how urgent the rows of one task are. A source that brings nothing but urgent ones may be idle; any other
    row shows that it is not, though it be invalid, and so says nothing else.
    """

    def __init__(self) -> None:
        self.rows, self.newest, self.alone = 0, NEVER, True

    def others(self, batch: Batch, keep: Mask | None) -> tuple[Batch, Mask | None]:
        """The rows that are not urgent, and which of them go on."""
        self.awake(len(batch), batch.priority)
        if batch.priority is None:
            return batch, keep
        urgent = batch.priority > 0
        self.rows += int(urgent.sum())
        self.newest = max(self.newest, int(batch.ts[urgent].max()))
        return batch.take(~urgent), None if keep is None else keep[~urgent]

    def awake(self, rows: int, priority: Priorities | None) -> None:
        """So many rows have come, with these priorities if any of them is urgent."""
        self.alone = self.alone and (not rows if priority is None else bool((priority > 0).all()))

    def report(self) -> Report:
        """What every bucket is told: how far urgent rows are, and whether there were others."""
        newest = {} if self.newest == NEVER else {"newest": self.newest}
        return newest | ({"urgent": True} if self.alone else {})


@dataclass(frozen=True)
class SinkTask:
    """Rows of elements that leave to rows as the user sees them, and those that travelled among them to be shown."""

    edge: Edge
    shape: Shape

    def rows(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """What leaves."""
        for table in tables:
            for packet in reports_of(table):
                if packet.kind in ("late", "invalid"):
                    yield self.shape.assemble_marked(packet.kind, packet.channel, packet.table)
            elements = elements_of(table, names_of(self.edge.result))
            if self.shape.validity is not None:
                elements = elements.take(elements.ts < elements.te)
            if len(elements):
                yield self.shape.assemble(elements)


@dataclass(frozen=True)
class EdgeTask:
    """Elements that Spark has computed with to packets; reports go on as what they were."""

    edge: Edge

    def packets(self, tables: Iterable[pa.Table], *, told: bool = False) -> Iterator[Packet]:
        """Packets of elements, and those that travelled among them; if that is to be `told`, also how many rows."""
        target, rows = self.edge.target, 0
        assert target is not None
        for table in tables:
            for packet in reports_of(table):
                if packet.kind in ("late", "invalid"):
                    rows += packet.table.num_rows
                    yield packet
                else:
                    yield from target.everywhere(packet.kind, packet.content)
            elements = elements_of(table, names_of(self.edge.result))
            if len(elements):
                rows += len(elements)
                yield from target.rows(elements)
        if told and rows:
            yield Packet(0, self.edge.channel, "figures", {"rows_on": rows})
