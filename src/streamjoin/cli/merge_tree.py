"""A merge tree on the screen: the oldest group first, brackets around those that are being merged."""

from __future__ import annotations

from collections.abc import Sequence

from rich.filesize import decimal
from rich.tree import Tree

from streamjoin.api import StoredTree
from streamjoin.cli.state_times import shown


def drawn(tree: StoredTree) -> Tree:
    """The tree of one bucket."""
    pages, written = tree.figures.get("pages_read", 0), tree.figures.get("pages_written", 0)
    root = Tree(
        f"join {tree.operator}, bucket {tree.bucket}: results before {shown(tree.left, tree.axis)} have left; "
        f"{tree.figures.get('merges', 0):,} merges, {pages:,} pages read, {written:,} written"
    )
    branch = root
    for number, group in enumerate(tree.groups):
        if tree.merging is not None and number == tree.merging[0]:
            kind = "flank merge" if number == 0 else "merge"
            branch = root.add(f"{kind} under way, after {tree.merging[2]:,} steps")
        if tree.merging is not None and number == tree.merging[1]:
            branch = root
        what = "flank" if number == 0 else f"group {number}"
        branch.add(
            f"{what}, level {group.level}: {_rows(group.rows)}, {decimal(group.bytes)} in {group.pages:,} pages, "
            f"complete before {shown(group.until, tree.axis)}"
        )
    root.add(f"in memory: {_rows(tree.waiting)}")
    return root


def _rows(rows: Sequence[int]) -> str:
    """Rows of each input.

    >>> _rows((1200, 3))
    '1,200 + 3 rows'
    """
    return " + ".join(f"{each:,}" for each in rows) + " rows"
