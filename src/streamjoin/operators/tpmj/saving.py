"""How a merge tree is saved: its groups by their parts, how far results have left, and where a merge stands.

    rows<input>/<part>    rows, as they were when they were first stored

Pages are not saved. Whoever restores a tree on the same host finds its runs in files, by their ids. A run that is not
there, or whose pages are too large or too small for the memory that there is now, is made again: parts are sorted, what
the run's last merge left behind is left behind, and they are merged. A merge that was under way is begun again and
taken as many steps as it had come, before anything else happens: then it stands where it stood, page by page, with the
results found so far.

Law: with the memory that it had, a merge stands at the same page and row of every run. Otherwise a micro-batch that is
run again could give other rows, so that is an error. With another memory a step takes another portion.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamjoin.errors import SnapshotError
from streamjoin.operators.tpmj.groups import Group, Parts, RowsOfParts, StoredRun, labelled
from streamjoin.operators.tpmj.lists import blob_name, rows_from_bytes, rows_to_bytes, thinned
from streamjoin.operators.tpmj.merge import Merge
from streamjoin.operators.tpmj.tiers import Tiers
from streamjoin.state import Batch, Blobs, Snapshot

if TYPE_CHECKING:
    from streamjoin.operators.tpmj.tree import Tree

SORTING: Final = 3  # times that rows are in memory while they are sorted: as they came, together, and in order


def tree_snapshot(tree: Tree) -> Snapshot:
    """What a tree needs to go on elsewhere."""
    makers: dict[str, Any] = {}
    groups = []
    for group in tree.groups:
        runs = []
        for number, run in enumerate(group.runs):
            rows = RowsOfParts(run)
            makers |= {
                blob_name(number, part): partial(_part_bytes, rows, label) for label, part in enumerate(run.parts.names)
            }
            entry = {
                "parts": list(run.parts.names), "stored": list(run.parts.stored), "rows": run.rows,
                "width": run.width, "page_rows": run.pages.page_rows,
            }  # fmt: skip
            if run.pages.id is not None:
                entry |= {"id": run.pages.id, "part_of": run.parts.of.tolist()}
            runs.append(entry)
        groups.append({"e": group.e, "cut": group.cut, "level": group.level, "runs": runs})
    merge = None
    if tree.merge is not None:
        merge = {
            "block": list(tree.block), "steps": tree.merge.steps, "ahead": tree.merge.ahead,
            "positions": _positions(tree.merge),
        }  # fmt: skip
    manifest = {"s": tree.s, "credit": tree.credit, "load": tree.load, "groups": groups, "merge": merge}
    return Snapshot(manifest, Blobs(makers))


def _positions(merge: Merge) -> list[list[int]]:
    """Of each run: its input, the next page, and the first row in memory that has not been taken."""
    return [[cursor.number, cursor.page, cursor.at] for phase in merge.phases for cursor in phase]


def _part_bytes(rows: RowsOfParts, number: int) -> bytes:
    return rows_to_bytes(rows.of(number))


def restore_tree(tree: Tree, snapshot: Snapshot) -> None:
    """The inverse of `tree_snapshot`."""
    manifest = snapshot.manifest
    tree.s, tree.credit, tree.load = manifest["s"], manifest["credit"], manifest["load"]
    tree.redoing = True
    found = {run["id"]: _found(tree, run) for entry in manifest["groups"] for run in entry["runs"] if "id" in run}
    # Other files are of whoever ran the bucket before.
    tree.store.keep_only({name for name, run in found.items() if run is not None})
    tree.groups = []
    for entry in manifest["groups"]:
        runs = tuple(
            found.get(run.get("id")) or _remade(tree, number, run, entry["cut"], snapshot)
            for number, run in enumerate(entry["runs"])
        )
        tree.groups.append(Group(runs, entry["e"], entry["cut"], entry["level"]))
    tree.merge = None
    if manifest["merge"] is not None:
        first, behind = manifest["merge"]["block"]
        tree.start((first, behind))
        assert tree.merge is not None
        for _ in range(manifest["merge"]["steps"]):
            if tree.merge.done:  # with more memory than before a step gets further
                break
            tree.merge.step()
        _check_place(tree, manifest)
    tree.redoing = False


def _check_place(tree: Tree, manifest: dict[str, Any]) -> None:
    """That a merge stands where it was saved, if its pages are as large as then and as many are read at a time."""
    assert tree.merge is not None
    saved, block = manifest["merge"], slice(*tree.block)
    sizes = [run["page_rows"] for group in manifest["groups"][block] for run in group["runs"]]
    made = [run.pages.page_rows for group in tree.groups[block] for run in group.runs]
    # Earlier releases did not save how many pages are read at a time: nothing can be said of theirs.
    if saved.get("ahead") == tree.merge.ahead and sizes == made and saved["positions"] != _positions(tree.merge):
        tree.merge.abandon()
        raise SnapshotError(
            f"a merge of sorted runs was taken {saved['steps']} steps again, and does not stand where it was saved: "
            f"input, page and row of its runs are {_positions(tree.merge)} instead of {saved['positions']}",
            hint="go on with the version of streamjoin that it was saved by, or begin anew, with another checkpoint",
        )


def _found(tree: Tree, entry: dict[str, Any]) -> StoredRun | None:
    """A run as it lies in files of this host; None where it does not, or in pages of another size than they have now.

    Its rows have the labels with which they were written, so it is said again which part each of these is in.
    """
    width = entry["width"]
    if entry["page_rows"] != tree.page_rows(width):
        return None
    pages = tree.store.find(entry["id"], entry["page_rows"])
    if pages is None or pages.rows != entry["rows"]:
        return None
    return StoredRun(pages, Parts(tuple(entry["parts"]), tuple(entry["stored"]), np.array(entry["part_of"])), width)


def _remade(tree: Tree, number: int, entry: dict[str, Any], cut: int, snapshot: Snapshot) -> StoredRun:
    """A run from its parts. As many of them as may be in memory are sorted together; few of what becomes of them are
    open at a time. Pages are as large as memory allows now, whatever they were.
    """
    order, page_rows, shares = tree.join.order, tree.page_rows(entry["width"]), tree.shares
    parts = Parts.plain(entry["parts"], entry["stored"])
    tiers = Tiers(tree.store, order.columns, number, max(1, shares.pages // tree.page_bytes))
    waiting: list[Batch] = []
    try:
        for label, part in enumerate(parts.names):
            rows, _ = thinned(labelled(rows_from_bytes(snapshot.blobs[blob_name(number, part)]), label), cut)
            waiting += [] if rows is None or not len(rows) else [rows]
            if sum(map(len, waiting)) * entry["width"] * SORTING > shares.pages:
                tiers.add(tree.store.write(order.sorted(number, Batch.concat(waiting)), page_rows))
                waiting = []
        if waiting:
            tiers.add(tree.store.write(order.sorted(number, Batch.concat(waiting)), page_rows))
        run = tiers.one()
    except BaseException:
        tiers.forget()  # a full disk: whoever starts again needs the room
        raise
    return StoredRun(tree.store.writer(page_rows, 0).close() if run is None else run, parts, entry["width"])
