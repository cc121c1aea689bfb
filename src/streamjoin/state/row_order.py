"""What a row window knows of its elements: their places by (time stamp, arrival), and so their ends.

Elements get numbers when they arrive, one after the other. Those that progress has reached take their places among the
newest n of their group (`RowRings`), and end whom they push out. The others wait: an earlier one may still come.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import FOREVER, NEVER, saturating_add
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.catalogue import Catalogue
from streamjoin.state.holders import Ends
from streamjoin.state.row_rings import RowRings
from streamjoin.state.snapshot import Snapshot, part_snapshots, restore_parts
from streamjoin.state.time_queue import TimeQueue


class RowOrder:
    """The elements of a window over the newest `size`, of each group by the columns `by` of their proof.

    `drain`: when the input ends, the last elements end one tick after its last time stamp, instead of never.
    """

    def __init__(self, size: int, by: pa.Schema, drain: bool) -> None:
        self.drain, self.last = drain, NEVER
        self.groups = Catalogue(by)
        self.rings = RowRings(size)
        self.unordered = TimeQueue()  # time stamps that progress has not reached

    @property
    def rows(self) -> int:
        """Elements whose ends are not known."""
        return self.rings.rows + len(self.unordered)

    @property
    def ghosts(self) -> int:
        """Elements that have turned out to end where they begin, since this was built."""
        return self.rings.ghosts

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return self.rings.nbytes + self.unordered.nbytes + self.groups.nbytes

    def add(self, batch: Batch, holder: Indices) -> None:
        """Elements arrive, with these numbers."""
        columns = {"holder": holder}
        if self.groups.schema.names:
            assert batch.proof is not None
            columns["group"] = self.groups.codes(batch.proof, len(batch))
        self.unordered.add(batch.ts, pa.table(columns))
        self.seen(int(batch.ts.max()))

    def seen(self, largest: int) -> None:
        """The input has shown this time stamp, perhaps where others are."""
        self.last = max(self.last, largest)

    def reach(self, time: int) -> Ends:
        """Progress has reached `time`: what ends thereby. At the end of the input everything does."""
        ends = Ends.none()
        due = self.unordered.take_up_to(time)
        if due is not None:
            ts, rows = due
            # Numbers are given out in the order of arrival.
            group = rows["group"].to_numpy() if self.groups.schema.names else None
            ends = self.rings.follow(group, ts, rows["holder"].to_numpy())
        if time < FOREVER:
            return ends
        left = self.rings.drain()
        end = int(saturating_add(np.array([self.last]), 1)[0]) if self.drain else FOREVER
        return Ends.concat([ends, Ends(left, np.full(len(left), end))])

    def _parts(self) -> dict[str, Catalogue | RowRings | TimeQueue]:
        return {"groups": self.groups, "rings": self.rings, "unordered": self.unordered}

    def snapshot(self, name: str) -> Snapshot:
        """What is kept, to be stored."""
        snapshot = part_snapshots(self._parts())
        return Snapshot({"parts": snapshot.manifest["parts"], "last": self.last}, snapshot.blobs)

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.last = snapshot.manifest["last"]
        restore_parts(self._parts(), snapshot)
