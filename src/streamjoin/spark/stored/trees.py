"""The merge trees of joins in sorted runs (TPMJ), from the checkpoint of a query: groups, and where a merge stands.

Only manifests are read, a small json text per bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.algebra import TimeAxis
from streamjoin.errors import CallError
from streamjoin.operators import Tpmj
from streamjoin.spark.stored.finish import state_variable, stored_stages
from streamjoin.spark.stored.formats import readable
from streamjoin.state import Snapshot


@dataclass(frozen=True)
class StoredGroup:
    """A group of runs: rows of each input, pages, about how many bytes, and up to where it knows everything."""

    rows: tuple[int, ...]
    pages: int
    bytes: int
    level: int
    until: int


@dataclass(frozen=True)
class StoredTree:
    """The merge tree of one bucket, the oldest group first. `left`: results that begin before have left.

    `merging`: from which group to before which a merge is under way, and how many steps it has made. `waiting`: rows of
    each input that are not in a group yet.
    """

    operator: int
    bucket: int
    left: int
    groups: tuple[StoredGroup, ...]
    merging: tuple[int, int, int] | None
    waiting: tuple[int, ...]
    figures: dict[str, int]
    axis: TimeAxis


def stored_trees(spark: SparkSession, checkpoint: str) -> list[StoredTree]:
    """The merge trees of a query, by operator and bucket."""
    trees: list[StoredTree] = []
    for stage in stored_stages(spark, checkpoint):
        plan = stage.plan()
        merged = [at for at, node in enumerate(plan.stages[stage.number].nodes) if isinstance(node.config, Tpmj)]
        if not merged:
            continue
        manifests = state_variable(spark, checkpoint, stage.operator, "manifest")
        for (text,) in manifests.selectExpr("value.json").collect():
            manifest = readable(Snapshot(json.loads(text))).manifest
            trees += trees_of(stage.operator, manifest, merged, plan.axis or TimeAxis.INTEGER)
    if not trees:
        raise CallError(
            f"the query of {checkpoint} has no join in sorted runs", hint='only joins with algorithm="tpmj" have a tree'
        )
    return sorted(trees, key=lambda tree: (tree.operator, tree.bucket))


def trees_of(operator: int, manifest: dict[str, Any], merged: list[int], axis: TimeAxis) -> Iterator[StoredTree]:
    """The trees in the manifest of a bucket; `merged`: which of its operators have one."""
    for at in merged:
        mine = manifest["operators"][at]
        tree = mine["tree"]
        groups = tuple(
            StoredGroup(
                tuple(run["rows"] for run in group["runs"]),
                sum(-(-run["rows"] // run["page_rows"]) for run in group["runs"]),
                int(sum(run["rows"] * run["width"] for run in group["runs"])),
                group["level"],
                group["e"],
            )
            for group in tree["groups"]
        )
        merge = tree["merge"]
        merging = None if merge is None else (*merge["block"], merge["steps"])
        waiting = tuple(sum(part["rows"] for part in parts) for parts in mine["lists"]["waiting"])
        yield StoredTree(operator, manifest["bucket"], tree["s"], groups, merging, waiting, mine["figures"], axis)
