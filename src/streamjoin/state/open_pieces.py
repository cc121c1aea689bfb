"""How often each payload is there, and the pieces of the result that are open: what set operators remember.

A piece has a start and an id. The open pieces of a payload are a list, the youngest first, in a pool of places that all
payloads share; free places are a list too.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Times
from streamjoin.kernels import multiplicity_sweep
from streamjoin.state.batch import Indices
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes

_NOBODY: Final = -1


@dataclass(frozen=True)
class Opened:
    """Pieces that have been opened."""

    code: Indices
    start: Times
    id: Indices


@dataclass(frozen=True)
class Closed:
    """Pieces that have been closed."""

    code: Indices
    start: Times
    id: Indices
    end: Times


class OpenPieces:
    """Multiplicities of payloads, by their codes, and open pieces."""

    def __init__(self, operator: int, next_id: int) -> None:
        self.operator, self.next_id = operator, next_id
        self._build(np.zeros((0, 2), np.int64), *(np.empty(0, np.int64) for _ in range(3)))

    def _build(self, counts: Any, code: Indices, start: Times, piece: Indices) -> None:
        """From counts and open pieces, those of one code together, the oldest first."""
        self.counts = counts
        self.note = uuid.uuid4().hex
        self.open_count = len(code)
        follows = np.zeros(len(code), np.bool_)
        follows[1:] = code[1:] == code[:-1]
        older = np.where(follows, np.arange(len(code)) - 1, _NOBODY)
        self.pool = np.stack([older, start, piece])  # the next older piece, or the next free place
        self.free = _NOBODY
        self.newest = np.full(len(counts), _NOBODY)
        self.newest[code] = np.arange(len(code))  # the last one assigned is the youngest

    def sweep(self, events: tuple[Any, Any, Any, Any]) -> tuple[Opened, Closed]:
        """Go through events (code, time, input, sign), sorted by code and time.

        >>> pieces = OpenPieces(0, next_id=100)
        >>> opened, closed = pieces.sweep(tuple(np.array(column) for column in ([0, 0], [3, 8], [0, 0], [1, -1])))
        >>> opened.id.tolist(), closed.end.tolist()
        ([100], [8])
        """
        self._make_room(int(events[0].max()) + 1, len(events[0]))
        opened, closed, self.free = multiplicity_sweep(
            self.operator, events, self.counts, self.newest, self.pool, self.free, self.next_id
        )
        self.next_id += opened.shape[1]
        self.open_count += opened.shape[1] - closed.shape[1]
        self.note = uuid.uuid4().hex
        return Opened(*opened), Closed(*closed)

    def _make_room(self, codes: int, events: int) -> None:
        missing = codes - len(self.newest)
        if missing > 0:
            more = max(missing, len(self.newest))
            self.counts = np.concatenate([self.counts, np.zeros((more, 2), np.int64)])
            self.newest = np.concatenate([self.newest, np.full(more, _NOBODY)])
        size = self.pool.shape[1]
        if size - self.open_count >= events:
            return
        new = max(events, size)
        places = np.zeros((3, new), np.int64)
        places[0] = np.arange(size + 1, size + new + 1)
        places[0, -1] = self.free
        self.pool, self.free = np.concatenate([self.pool, places], axis=1), size

    def open(self) -> tuple[Indices, Times, Indices]:
        """Code, start and id of all open pieces, by code and age, the oldest first."""
        at, codes, places = self.newest.copy(), [], []
        while (there := np.flatnonzero(at >= 0)).size:  # as many rounds as the longest list has pieces
            codes.append(there)
            places.append(at[there])
            at[there] = self.pool[0][at[there]]
        age = np.repeat(np.arange(len(codes)), [len(part) for part in codes])
        empty = np.empty(0, np.int64)
        code, place = np.concatenate([empty, *codes]), np.concatenate([empty, *places])
        order = np.lexsort((-age, code))
        code, place = code[order], place[order]
        return code, self.pool[1][place], self.pool[2][place]

    def snapshot(self, name: str) -> Snapshot:
        """To be stored."""
        code, start, piece = self.open()
        counts = pa.table({"m": self.counts[:, 0].copy(), "n": self.counts[:, 1].copy()})
        pieces = pa.table({"code": code, "start": start, "id": piece})
        names = [f"{name}/{self.note}/counts", f"{name}/{self.note}/pieces"]
        makers = {names[0]: partial(table_to_bytes, counts), names[1]: partial(table_to_bytes, pieces)}
        return Snapshot({"names": names, "next_id": self.next_id, "note": self.note}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        counts, pieces = (table_from_bytes(snapshot.blobs[name]) for name in snapshot.manifest["names"])
        both = np.column_stack([counts["m"].to_numpy(), counts["n"].to_numpy()])
        self._build(both, *(pieces[column].to_numpy() for column in ("code", "start", "id")))
        self.next_id, self.note = snapshot.manifest["next_id"], snapshot.manifest["note"]
