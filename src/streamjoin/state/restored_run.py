"""A run from its parts, into a store: never all of them in memory.

    parts     o o o o o o o o o o o      as they were stored, read one at a time
    packets   [       ] [       ] [ ]    as many as fit are sorted together, and written
    run       [                     ]    packets are merged, sixteen at a time

The order is that of a merge in memory of all parts: equal rows stay in the order of the parts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamjoin.kernels import sort_order
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.layout import Labels
from streamjoin.state.matching import Matching
from streamjoin.state.spilled_merge import PageWriter
from streamjoin.state.spilled_run import SpilledRun, reach_of
from streamjoin.state.spilling import Spilling
from streamjoin.state.stores import StoredRun
from streamjoin.state.streamed_merge import StreamedMerge

AT_A_TIME: Final = 16


@dataclass
class Restoring:
    """Makes a run of parts. `cut`: rows that end there or earlier were left behind when it was merged."""

    spilling: Spilling
    matching: Matching
    cut: int

    def run(self, run_id: str, parts: Iterable[Batch]) -> StoredRun:
        """The run of these parts, under its name; with the number of its part for each row."""
        packets: list[StoredRun] = []
        try:
            waiting: list[tuple[int, Batch]] = []
            for number, part in enumerate(parts):
                if not len(part):  # all of a history's part may have gone in a merge; the others keep their numbers
                    continue
                waiting.append((number, part))
                if sum(rows.nbytes for _, rows in waiting) > self.spilling.share:
                    packets.append(self._packet(waiting))
                    waiting = []
            if waiting:
                packets.append(self._packet(waiting))
            while len(packets) > AT_A_TIME:
                # As few as make all later merges full, and the smallest of them: what is merged now is copied twice.
                few = (len(packets) - 2) % (AT_A_TIME - 1) + 2
                at = min(range(len(packets) - few + 1), key=lambda at: sum(map(len, packets[at : at + few])))
                packets[at : at + few] = [self._merged(uuid.uuid4().hex, packets[at : at + few])]
            found = self._merged(run_id, packets)
            packets = []
            return found
        finally:
            for packet in packets:
                self.spilling.store.delete(packet)

    def _packet(self, parts: Sequence[tuple[int, Batch]]) -> StoredRun:
        """Some parts that follow one another, sorted anew: as quick for many as for a few."""
        rows = Batch.concat([part for _, part in parts])
        labels = np.repeat([number for number, _ in parts], [len(part) for _, part in parts]).astype(np.int32)
        order = self.matching.in_tie_order(rows, sort_order(self.matching.run_of(rows).sort_columns))
        run = self.matching.run_of(rows.take(order))
        store, width = self.spilling.store, rows.nbytes / max(1, len(rows))
        writer = store.writer(run.id, len(run))
        writer.page_rows = max(1, min(store.page_rows, int(self.spilling.share / (2 * AT_A_TIME * max(1.0, width)))))
        try:
            writer.write(run, reach_of(self.matching, run), labels[order])
            return writer.close()
        except BaseException:
            writer.abandon()
            raise

    def _merged(self, run_id: str, packets: Sequence[StoredRun]) -> StoredRun:
        runs = [SpilledRun.of(packet, self.matching) for packet in packets]
        store, rows = self.spilling.store, sum(map(len, packets))
        page_rows = self.spilling.page_rows(sum(packet.nbytes for packet in packets) / max(1, rows))
        writer = store.writer(run_id, rows)
        ranked = any(run.rows.priority is not None for run in runs)
        pages = PageWriter(writer, self.matching, page_rows, holders=False, ranked=ranked)
        try:
            for chunk in StreamedMerge(runs, self.matching, self.cut, page_rows).chunks():
                pages.add(chunk.rows, _labels(packets, chunk.number, chunk.where))
            found = pages.close()
        except BaseException:
            writer.abandon()
            raise
        assert found is not None, "a run that is stored has rows"
        for packet in packets:
            store.delete(packet)
        return found


def _labels(packets: Sequence[StoredRun], number: Indices, where: Indices) -> Labels:
    found = np.empty(len(where), np.int32)
    for each, packet in enumerate(packets):
        mine = np.flatnonzero(number == each)
        assert packet.labels is not None
        found[mine] = packet.labels[where[mine]]
    return found
