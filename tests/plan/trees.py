"""Trees for the tests of plans, over two streams of the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Range, Window
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Relation, Stream
from streamjoin.plan.types import Typing
from streamjoin.runtime.lateness import Lateness
from tests.in_process import source
from tests.interpreter import PlainTyping

SCHEMA = pa.schema([
    ("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64()), ("j", pa.int64()), ("n", pa.int32()), ("s", pa.string()),
    ("v", pa.float64()), ("lo", pa.float64()), ("hi", pa.float64()), ("x", pa.float64()), ("until", pa.int64()),
])  # fmt: skip
NAMES = tuple(SCHEMA.names)


def stream(name: str, window: Window | None = Range(5), *columns: str, time: str | None = "ts") -> Stream:  # noqa: B008
    """A stream whose columns have its name before theirs; by default all of them."""
    reads = tuple((f"{name}.{column}", column) for column in columns or NAMES)
    return Stream(name, reads, time if window is not None else None, window)


def infos(lateness: Mapping[str, Lateness | int | None] | int | None = None, **options: Any) -> dict[str, SourceInfo]:
    """What is known of the frames R, S, T and of frames with numbers; by default they are batches."""
    slack = lateness if isinstance(lateness, Mapping) else dict.fromkeys("RST01", lateness)
    return {name: source(name, SCHEMA, slack.get(name), prefix=f"{name}.", **_own(options, name)) for name in "RST01"}


def _own(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {option: each[name] if isinstance(each, dict) else each for option, each in options.items()}


def lowered(
    relation: Relation,
    buckets: int = 4,
    lateness: Mapping[str, Lateness | int | None] | int | None = None,
    *,
    typing: Typing | None = None,
    sources: Mapping[str, Any] | None = None,
    **leaving: Any,
) -> PhysicalPlan:
    """The plan of a tree. `sources`: further options of the frames, for all of them, or by name."""
    told = Leaving(buckets=buckets, **leaving)
    return lower(relation, infos(lateness, **(sources or {})), typing or PlainTyping(), told)


def configs(plan: PhysicalPlan) -> list[Any]:
    """The configurations of all operators, in order."""
    return [node.config for stage in plan.stages for node in stage.nodes]


def kinds(plan: PhysicalPlan) -> list[list[str]]:
    """The operators of each stage, by the names of their classes."""
    return [[type(node.config).__name__ for node in stage.nodes] for stage in plan.stages]
