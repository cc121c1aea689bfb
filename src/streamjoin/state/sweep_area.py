"""A sweep area: what one input keeps for the others to find (after the PIPES library's sweep areas).

Three operations: `insert` a batch as a run, `probe` with a run of another input, `purge` by progress. And four laws:

1. A row with end `e` is removed when `e <= P`, P the progress of the inputs that could still meet it. Removed rows are
   never found again, wherever they physically lie until the next merge.
2. Runs are immutable. What changes lies beside them: which rows have met a partner, how far expiry has come.
3. Runs merge geometrically: after a purge each run is more than twice as large as all younger ones together, so there
   are O(log n) runs, and a row is copied O(log n) times in its life. A merge leaves the expired behind. It happens in
   memory only: what has been stored of a row stays where it is (see `layout`).
4. A run whose last end is behind progress is dropped whole, and one of which half has expired is made anew without it:
   copying the other half is paid for by what goes. So at most half of what is kept is expired, and after progress has
   passed everything, nothing is kept.

Ends may be unknown when a row comes (see `holders`): such a row is kept, and found, as one that never ends. `settle`
puts ends in their place; they wait to be reached in a queue of their own, unsorted until then. What is stored of a row
stays as it is, so ends are stored beside it.

Rows that must know their fate (outer, semi, anti joins) are *tracked*: `purge` hands out the removed ones together with
whether they had a partner. Cost of a purge: O(log n) per run when nothing expires, O(expired) when rows are tracked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import FOREVER, NEVER, Mask, Times
from streamjoin.kernels import expired_mask
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.layout import LateEnds, Layout
from streamjoin.state.matching import Matching
from streamjoin.state.run import Run, merged_order
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.time_queue import TimeQueue

Pieces = tuple[Indices, Times, Times]
# The same with the holder of the end, -1 where it is known.
HeldPieces = tuple[Indices, Times, Times, Indices]
_NOTHING: Indices = np.empty(0, np.int64)
NO_PIECES: Pieces = (_NOTHING, _NOTHING, _NOTHING)


@dataclass(frozen=True)
class Decided:
    """Rows that have left a tracked area, whether each met anyone, and the pieces `(row, from, to)` where it did."""

    rows: Batch
    matched: Mask
    pieces: Pieces = NO_PIECES


@dataclass
class Kept:
    """A run and what has happened to its rows since."""

    run: Run
    matched: Mask | None = None
    expired: int = 0  # how many rows, in order of their ends, have been handed out
    fresh: bool = True  # came after the last purge: nothing of it has been removed, not even what is behind progress
    layout: Layout | None = None  # where its rows are stored; None as long as nobody has asked
    cut: int = NEVER  # rows of its parts that end here or earlier have been left behind
    heard: int = 0  # how many times the area had heard of ends by then
    pieces: list[HeldPieces] = field(default_factory=list)
    # Names what has been noted beside the run: new with every change, and with every attempt at it, so that two
    # attempts at one micro-batch can never take each other's notes for their own.
    notes: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.expiry: TimeQueue | None = None  # of rows whose ends are known, where there are others
        holder = self.run.rows.holder
        if holder is not None:
            self.index = HolderIndex(holder)
            self.expiry = TimeQueue()
            self._expect(np.flatnonzero((holder < 0) | (self.run.rows.te < FOREVER)))

    def _expect(self, rows: Indices) -> None:
        assert self.expiry is not None
        self.expiry.add(self.run.rows.te[rows], pa.table({"row": rows}))

    def settle(self, ends: Ends) -> Indices:
        """Ends of rows become known; the rows."""
        if self.expiry is None:
            return _NOTHING
        rows, te = self.index.find(ends)
        self.run.rows.te[rows] = te
        self._expect(rows)
        return rows

    def note(self) -> None:
        """What lies beside the run has changed."""
        self.notes = uuid.uuid4().hex

    def parts(self) -> Layout:
        """Where the rows are stored."""
        if self.layout is None:
            self.layout = Layout.whole(len(self.run))
        return self.layout

    def all_pieces(self) -> HeldPieces:
        """The pieces of all rows, in one."""
        if len(self.pieces) > 1:
            row, start, end, holder = (np.concatenate(columns) for columns in zip(*self.pieces, strict=True))
            self.pieces = [(row, start, end, holder)]
        return self.pieces[0] if self.pieces else (_NOTHING, _NOTHING, _NOTHING, _NOTHING)

    def settle_pieces(self, ends: Ends) -> None:
        """Ends of partners become known, and with them those of pieces."""
        row, start, end, holder = self.all_pieces()
        places, te = HolderIndex(holder).find(ends)
        if len(places):
            end, holder = end.copy(), holder.copy()
            end[places], holder[places] = np.minimum(end[places], te), -1
            self.pieces = [(row, start, end, holder)]
            self.note()


@dataclass
class SweepArea:
    """The rows of one input that can still find a partner.

    `tracked`: rows are told apart by whether they met a partner. `covered`: also which parts of their validity did.
    """

    matching: Matching
    tracked: bool = False
    covered: bool = False
    progress: int = NEVER
    removed: int = 0  # rows that have physically gone
    kept: list[Kept] = field(default_factory=list)
    heard: int = 0  # how many times ends have become known
    late_ends: list[LateEnds] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows kept, the expired ones that still lie in runs included."""
        return sum(len(kept.run) for kept in self.kept)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        expiry = sum(kept.expiry.nbytes for kept in self.kept if kept.expiry is not None)
        found_by = sum(kept.index.nbytes for kept in self.kept if kept.run.rows.holder is not None)
        return sum(kept.run.rows.nbytes for kept in self.kept) + expiry + found_by

    @property
    def holder_nbytes(self) -> int:
        """Those of holders, and of what finds rows by them."""
        held = [kept for kept in self.kept if kept.run.rows.holder is not None]
        return sum(len(kept.run) * 8 + kept.index.nbytes for kept in held)

    def insert(self, run: Run) -> Kept:
        """Keep a run. Runs are merged when the area is purged, not here, so that marks can be made beside this one."""
        kept = Kept(run, np.zeros(len(run), np.bool_) if self.tracked else None)
        self.kept.append(kept)
        return kept

    def settle(self, ends: Ends) -> None:
        """Ends of rows that came without become known."""
        for kept in self.kept:
            rows = kept.settle(ends)
            if len(rows) and kept.layout is not None:
                part_of = kept.layout.part_of
                parts = np.unique(part_of[rows]) if part_of is not None else [0]
                names = frozenset(kept.layout.names[part] for part in parts)
                holder = kept.run.rows.holder
                assert holder is not None
                late = Ends(holder[rows], kept.run.rows.te[rows])
                self.late_ends.append(LateEnds(uuid.uuid4().hex, late, names, self.heard))
        self.heard += 1

    def alive(self, kept: Kept) -> Mask | None:
        """Which rows of a run are still there; None when all are."""
        if kept.fresh or (kept.expiry is None and kept.run.first_end > self.progress):
            return None
        return expired_mask(kept.run.rows.te, self.progress)[0]

    def first_undecided(self, *, unmatched_only: bool) -> int | None:
        """The smallest `ts` among rows whose fate is open; None when there is none."""
        smallest: int | None = None
        for kept in self.kept:
            assert kept.matched is not None
            open_rows = kept.run.rows.te > self.progress
            if unmatched_only:
                open_rows &= ~kept.matched
            if open_rows.any():
                least = int(kept.run.rows.ts[open_rows].min())
                smallest = least if smallest is None else min(smallest, least)
        return smallest

    def purge(self, progress: int) -> Iterator[Decided]:
        """Remove every row that ends at or before `progress` (a tracked area hands them out), then merge the rest."""
        self.progress = max(self.progress, progress)
        for kept in self.kept:
            kept.fresh = False
            if kept.expiry is not None or (self.tracked and kept.run.first_end <= self.progress):
                expired = self._expired(kept)
                if self.tracked and len(expired):
                    yield self._hand_out(kept, expired)
        before = self.rows
        self.kept = [
            self._merge([kept]) if self._half_expired(kept) else kept
            for kept in self.kept
            if not self._all_expired(kept)
        ]
        self._merge_geometrically()
        self.removed += before - self.rows

    def _half_expired(self, kept: Kept) -> bool:
        if kept.expiry is not None:
            return 2 * kept.expired >= len(kept.run)
        return kept.run.first_end <= self.progress and kept.run.half_end <= self.progress

    def _all_expired(self, kept: Kept) -> bool:
        return kept.expired == len(kept.run) if kept.expiry is not None else kept.run.last_end <= self.progress

    def _expired(self, kept: Kept) -> Indices:
        """The rows that have expired since they were last asked for."""
        if kept.expiry is not None:
            due = kept.expiry.take_up_to(self.progress)
            rows = _NOTHING if due is None else due[1]["row"].to_numpy()
            if self.progress == FOREVER:  # at the end also those that never end
                rows = np.concatenate([rows, np.flatnonzero(kept.run.rows.te == FOREVER)])
            kept.expired += len(rows)
            return np.sort(rows)
        run = kept.run
        reached = int(np.searchsorted(run.rows.te[run.by_end], self.progress, side="right"))
        rows, kept.expired = run.by_end[kept.expired : reached], reached
        return np.sort(rows)

    def _hand_out(self, kept: Kept, positions: Indices) -> Decided:
        run = kept.run
        assert kept.matched is not None
        pieces = NO_PIECES
        if self.covered:
            new_row = np.full(len(run), -1, np.int64)
            new_row[positions] = np.arange(len(positions))
            row, start, end, holder = kept.all_pieces()
            mine = new_row[row] >= 0
            # A piece whose end is unknown lasts as long as the row; one may have turned out to be empty.
            until = np.minimum(end, run.rows.te[row])
            real = mine & (start < until)
            pieces = (new_row[row[real]], start[real], until[real])
            kept.pieces = [(row[~mine], start[~mine], end[~mine], holder[~mine])]
            kept.note()
        return Decided(run.rows.take(positions), kept.matched[positions], pieces)

    def _merge_geometrically(self) -> None:
        # The oldest run that is not more than twice as large as all younger ones together; several runs may have come
        # since the last purge, so a large one in between does not end the search.
        first, younger = len(self.kept), 0
        for position in reversed(range(len(self.kept))):
            size = len(self.kept[position].run)
            if size <= 2 * younger:
                first = position
            younger += size
        if first < len(self.kept) - 1:
            merged = self._merge(self.kept[first:])
            self.kept[first:] = [merged] if len(merged.run) else []

    def _merge(self, parts: list[Kept]) -> Kept:
        everything = Batch.concat([part.run.rows for part in parts])
        order = self.matching.in_tie_order(everything, merged_order([part.run for part in parts]))
        alive, gone = expired_mask(self.matching.ends(everything, order), self.progress)
        if gone:
            order = order[alive]
        # Where each run follows the one before nothing need be moved. Ends are written in place: only into a copy.
        copied = len(parts) > 1 and everything.te.flags.writeable
        stays = copied and not gone and bool((order == np.arange(len(order))).all())
        run = self.matching.run_of(_known(everything if stays else everything.take(order)))
        layout = Layout.merged([self._layout(part) for part in parts], [len(part.run) for part in parts], order)
        layout = layout.tidied(run.rows.nbytes / max(1, len(run)))
        if not self.tracked:
            return Kept(run, fresh=False, layout=layout, cut=self.progress, heard=self.heard)
        matched = np.concatenate([part.matched for part in parts if part.matched is not None])[order]
        new_row = np.full(len(everything), -1, np.int64)
        new_row[order] = np.arange(len(order))
        pieces, offset = [], 0
        for part in parts:
            row, start, end, holder = part.all_pieces()
            moved = new_row[row + offset]
            there = moved >= 0
            pieces.append((moved[there], start[there], end[there], holder[there]))
            offset += len(part.run)
        return Kept(run, matched, 0, False, layout, self.progress, self.heard, pieces if self.covered else [])

    def _layout(self, kept: Kept) -> Layout:
        """Where a run is stored, or will be: of one that is not stored yet, what has expired never will."""
        return kept.layout or Layout.whole(len(kept.run) - expired_mask(kept.run.rows.te, self.progress)[1])

    def snapshot(self, name: str) -> Snapshot:
        """What is kept; every part of a run under its own name."""
        runs: list[dict[str, Any]] = []
        makers: dict[str, Callable[[], bytes]] = {}
        for kept in self.kept:
            layout = kept.parts()
            stored = [f"{name}/run/{part}" for part in layout.names]
            makers |= {part: partial(_part_bytes, kept, layout, number) for number, part in enumerate(stored)}
            names: dict[str, Any] = {"run": stored}
            if kept.matched is not None:
                names["matched"] = f"{name}/matched/{kept.run.id}/{kept.notes}"
                makers[names["matched"]] = partial(_mask_bytes, kept.matched.copy())
            if self.covered:
                names["pieces"] = f"{name}/pieces/{kept.run.id}/{kept.notes}"
                makers[names["pieces"]] = partial(_pieces_bytes, kept.all_pieces())
            figures = {"id": kept.run.id, "rows": len(kept.run), "expired": kept.expired, "fresh": kept.fresh}
            stored_as = {"cut": kept.cut, "heard": kept.heard, "parts": layout.names, "stored_rows": layout.stored_rows}
            runs.append({**figures, **stored_as, "notes": kept.notes, "names": names})
        stored_parts = {part for kept in self.kept for part in kept.parts().names}
        self.late_ends = [late for late in self.late_ends if late.parts & stored_parts]
        ends = []
        for late in self.late_ends:
            blob = f"{name}/ends/{late.id}"
            makers[blob] = partial(_ends_bytes, late.ends)
            ends.append({"id": late.id, "name": blob, "parts": sorted(late.parts), "number": late.number})
        manifest = {"progress": self.progress, "removed": self.removed, "heard": self.heard, "runs": runs, "ends": ends}
        return Snapshot(manifest, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.progress = snapshot.manifest["progress"]
        self.removed, self.heard = snapshot.manifest["removed"], snapshot.manifest["heard"]
        self.late_ends = []
        for entry in snapshot.manifest["ends"]:
            late = Ends.from_table(table_from_bytes(snapshot.blobs[entry["name"]]))
            self.late_ends.append(LateEnds(entry["id"], late, frozenset(entry["parts"]), entry["number"]))
        self.kept = []
        for entry in snapshot.manifest["runs"]:
            names = entry["names"]
            run, layout = self._read_run(entry, [snapshot.blobs[part] for part in names["run"]])
            kept = Kept(
                run, None, entry["expired"], entry["fresh"], layout, entry["cut"], entry["heard"], notes=entry["notes"]
            )
            if self.tracked:
                bits = np.frombuffer(snapshot.blobs[names["matched"]], np.uint8)
                kept.matched = np.unpackbits(bits, count=entry["rows"]).astype(np.bool_)
            if self.covered:
                table = table_from_bytes(snapshot.blobs[names["pieces"]])
                kept.pieces = [tuple(table[column].to_numpy() for column in ("row", "from", "to", "holder"))]
            if kept.expiry is not None and not kept.fresh:
                # The run itself may have had no holders any more, and have counted in another way.
                due = kept.expiry.take_up_to(self.progress)
                kept.expired = 0 if due is None else len(due[0])
            self.kept.append(kept)

    def _read_run(self, entry: dict[str, Any], blobs: Sequence[bytes]) -> tuple[Run, Layout]:
        """A run from its parts."""
        stored = [Batch.from_table(table_from_bytes(blob)) for blob in blobs]
        layout = Layout(tuple(entry["parts"]), tuple(entry["stored_rows"]))
        if len(stored) == 1 and len(stored[0]) == entry["rows"]:
            return replace(self.matching.run_of(self._with_late_ends(stored[0])), id=entry["id"]), layout
        # Who was left behind is told by the ends that were known then: one learned later may lie before the cut.
        parts = [self.matching.run_of(self._with_late_ends(part, until=entry["heard"])) for part in stored]
        everything = Batch.concat([part.rows for part in parts])
        order = self.matching.in_tie_order(everything, merged_order(parts))
        order = order[expired_mask(self.matching.ends(everything, order), entry["cut"])[0]]
        if len(parts) > 1:
            label = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
            layout = replace(layout, part_of=label[order])
        run = self.matching.run_of(self._with_late_ends(everything.take(order)))
        return replace(run, id=entry["id"]), layout

    def _with_late_ends(self, rows: Batch, until: int | None = None) -> Batch:
        """Rows as they were stored, with the ends that were learned afterwards, until the area had heard so often."""
        if rows.holder is None:
            return rows
        index = HolderIndex(rows.holder)
        rows = replace(rows, te=rows.te.copy())
        for late in self.late_ends:
            if until is None or late.number < until:
                positions, te = index.find(late.ends)
                rows.te[positions] = te
        return rows


def _known(rows: Batch) -> Batch:
    """The same rows, without holders when all ends are known."""
    if rows.holder is None or ((rows.holder >= 0) & (rows.te == FOREVER)).any():
        return rows
    return replace(rows, holder=None)


def _ends_bytes(ends: Ends) -> bytes:
    return table_to_bytes(ends.to_table())


def _part_bytes(kept: Kept, layout: Layout, part: int) -> bytes:
    which, rows = layout.rows_of(part), kept.run.rows
    rows = rows if which is None else rows.take(which)
    if rows.holder is not None:
        # An end before the cut has been learned since: it is among the late ones, and the row is still there.
        since = (rows.holder >= 0) & (rows.te <= kept.cut)
        rows = replace(rows, te=np.where(since, FOREVER, rows.te))
    return table_to_bytes(rows.to_table())


def _mask_bytes(mask: Mask) -> bytes:
    return np.packbits(mask).tobytes()


def _pieces_bytes(pieces: HeldPieces) -> bytes:
    return table_to_bytes(pa.table(dict(zip(("row", "from", "to", "holder"), pieces, strict=True))))
