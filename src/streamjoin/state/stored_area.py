"""How a sweep area is stored: every part of a run once, and beside it what changes.

    <name>/run/<part>             rows, as they were when they were first stored (see `layout`)
    <name>/matched/<run>/<notes>  which rows of a tracked run have met someone
    <name>/pieces/<run>/<notes>   and where that is asked, in which parts of their validity
    <name>/ends/<id>              ends of rows that had been stored without

A run comes back as it was, row by row: its parts are merged again, and what was left behind by the run's last merge is
left behind again. Who that was is told by the ends that were known then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.algebra.interval import FOREVER, NEVER
from streamjoin.state.batch import Batch
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.kept import Kept
from streamjoin.state.layout import LateEnds, Layout
from streamjoin.state.matching import Matching
from streamjoin.state.meetings import Meetings, marks_from_bytes, marks_to_bytes, pieces_from_bytes, pieces_to_bytes
from streamjoin.state.merging import merged_rows
from streamjoin.state.restored_run import Restoring
from streamjoin.state.run import Run
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.spilled_merge import spilled
from streamjoin.state.spilled_run import SpilledRun

if TYPE_CHECKING:
    from streamjoin.state.sweep_area import SweepArea

Makers = dict[str, Callable[[], bytes]]


def area_snapshot(area: SweepArea, name: str) -> Snapshot:
    """What an area keeps; every part of a run under its own name."""
    makers: Makers = {}
    runs = [_stored_run(kept, name, makers) for kept in area.kept]
    stored_parts = {part for kept in area.kept for part in kept.parts().names}
    area.late_ends = [late for late in area.late_ends if late.parts & stored_parts]
    ends = []
    for late in area.late_ends:
        blob = f"{name}/ends/{late.id}"
        makers[blob] = partial(_ends_bytes, late.ends)
        ends.append({"id": late.id, "name": blob, "parts": sorted(late.parts), "number": late.number})
    manifest = {"progress": area.progress, "removed": area.removed, "heard": area.heard, "runs": runs, "ends": ends}
    return Snapshot(manifest, Blobs(makers))


def _stored_run(kept: Kept, name: str, makers: Makers) -> dict[str, Any]:
    """The entry of a run in the manifest; `makers` gets what makes its blobs."""
    layout = kept.parts()
    stored = [f"{name}/run/{part}" for part in layout.names]
    makers |= {part: partial(_part_bytes, kept, layout, number) for number, part in enumerate(stored)}
    names: dict[str, Any] = {"run": stored}
    entry: dict[str, Any] = {"id": kept.run.id, "rows": len(kept.run), "expired": kept.expired, "fresh": kept.fresh}
    if isinstance(kept.run, SpilledRun):
        entry |= {"level": kept.run.level, "holders": kept.run.rows.holder is not None}
    entry |= {"cut": kept.cut, "heard": kept.heard, "parts": layout.names, "stored_rows": layout.stored_rows}
    noted = kept.meetings
    if noted is not None:
        entry["notes"] = noted.name
        names["matched"] = f"{name}/matched/{kept.run.id}/{noted.name}"
        makers[names["matched"]] = partial(bytes, marks_to_bytes(noted.met))  # as they are now
        if noted.covered:
            names["pieces"] = f"{name}/pieces/{kept.run.id}/{noted.name}"
            makers[names["pieces"]] = partial(pieces_to_bytes, noted.all_pieces())
    return {**entry, "names": names}


def restore_area(area: SweepArea, snapshot: Snapshot) -> None:
    """The inverse of `area_snapshot`."""
    manifest = snapshot.manifest
    area.progress, area.removed, area.heard = manifest["progress"], manifest["removed"], manifest["heard"]
    area.late_ends = []
    for entry in manifest["ends"]:
        late = Ends.from_table(table_from_bytes(snapshot.blobs[entry["name"]]))
        area.late_ends.append(LateEnds(entry["id"], late, frozenset(entry["parts"]), entry["number"]))
    area.kept = []
    for entry in manifest["runs"]:
        names = entry["names"]
        run, layout = _run_again(area, entry, snapshot.blobs)
        noted = None
        if area.tracked:
            met = marks_from_bytes(snapshot.blobs[names["matched"]], entry["rows"])
            pieces = [pieces_from_bytes(snapshot.blobs[names["pieces"]])] if area.covered else []
            noted = Meetings(met, area.covered, pieces, entry["notes"])
        reached = NEVER if entry["fresh"] else area.progress
        kept = Kept(run, noted, entry["expired"], entry["fresh"], layout, entry["cut"], entry["heard"], reached)
        if kept.expiry is not None and not kept.fresh:
            # The run itself may have had no holders any more, and have counted in another way.
            due = kept.expiry.take_up_to(area.progress)
            kept.expired = 0 if due is None else len(due[0])
        area.kept.append(kept)


def _run_again(area: SweepArea, entry: dict[str, Any], blobs: Mapping[str, bytes]) -> tuple[Run, Layout]:
    """A run as it was: from the store where it lies there still, or else from its parts."""
    layout = Layout(tuple(entry["parts"]), tuple(entry["stored_rows"]))
    spilling = area.spilling
    found = None if spilling is None or "level" not in entry else spilling.store.find(entry["id"])
    if found is not None and len(found) == entry["rows"]:
        if found.rows.holder is not None:
            _write_ends(found.rows, area.late_ends)
        return SpilledRun.of(found, area.matching, entry["level"]), replace(layout, part_of=found.labels)
    names = entry["names"]["run"]
    if spilling is None or "level" not in entry:
        return _read_run(area.matching, area.late_ends, entry, [blobs[part] for part in names])
    if not area.late_ends and not entry.get("holders", True):
        restoring = Restoring(spilling, area.matching, entry["cut"])
        made = restoring.run(entry["id"], (Batch.from_table(table_from_bytes(blobs[part])) for part in names))
        layout = layout if len(names) == 1 else replace(layout, part_of=made.labels)
        return SpilledRun.of(made, area.matching, entry["level"]), layout
    run, layout = _read_run(area.matching, area.late_ends, entry, [blobs[part] for part in names])
    return spilled(spilling.store, run, layout, area.matching, entry["level"])


def _read_run(
    matching: Matching, learned: Sequence[LateEnds], entry: dict[str, Any], blobs: Sequence[bytes]
) -> tuple[Run, Layout]:
    """A run from its parts."""
    stored = [Batch.from_table(table_from_bytes(blob)) for blob in blobs]
    layout = Layout(tuple(entry["parts"]), tuple(entry["stored_rows"]))
    if len(stored) == 1 and len(stored[0]) == entry["rows"]:
        return replace(matching.run_of(_with_late_ends(stored[0], learned)), id=entry["id"]), layout
    # Who was left behind is told by the ends that were known then: one learned later may lie before the cut.
    known = [late for late in learned if late.number < entry["heard"]]
    parts = [matching.run_of(_with_late_ends(part, known)) for part in stored]
    everything, order = merged_rows(parts, matching, entry["cut"])
    if len(parts) > 1:
        label = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        layout = replace(layout, part_of=label[order])
    run = matching.run_of(_with_late_ends(everything.take(order), learned))
    return replace(run, id=entry["id"]), layout


def _with_late_ends(rows: Batch, learned: Sequence[LateEnds]) -> Batch:
    """Rows as they were stored, with ends that were learned afterwards."""
    if rows.holder is None:
        return rows
    rows = replace(rows, te=rows.te.copy())
    _write_ends(rows, learned)
    return rows


def _write_ends(rows: Batch, learned: Sequence[LateEnds]) -> None:
    assert rows.holder is not None
    index = HolderIndex(rows.holder)
    for late in learned:
        positions, te = index.find(late.ends)
        rows.te[positions] = te


def _ends_bytes(ends: Ends) -> bytes:
    return table_to_bytes(ends.to_table())


def _part_bytes(kept: Kept, layout: Layout, part: int) -> bytes:
    kept.ensure_whole()
    which, rows = layout.rows_of(part), kept.run.rows
    rows = rows if which is None else rows.take(which)
    if rows.holder is not None:
        # An end before the cut has been learned since: it is among the late ones, and the row is still there.
        since = (rows.holder >= 0) & (rows.te <= kept.cut)
        rows = replace(rows, te=np.where(since, FOREVER, rows.te))
    return table_to_bytes(rows.to_table())
