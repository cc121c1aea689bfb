"""Trees as the functions for two frames make them: sources are called 0 and 1, and their columns begin so."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from streamjoin.algebra import AsOf, Band, BestOf, Equals, NearestOf, Overlaps, Range, Within
from streamjoin.plan.lowering import Leaving, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import AsOfJoin, BestMatchJoin, IntervalJoin, Join, NearestJoin, Relation, Stream
from streamjoin.runtime.lateness import Lateness
from streamjoin.runtime.naming import OutputColumn
from tests.in_process import source
from tests.interpreter import PlainTyping

SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("id", "ts", "k")] + [(name, pa.float64()) for name in ("v", "lo", "hi")]
)
SLACK = 4
WINDOWS = (Range(5), Range(5))
KEYS, TIMES = (Equals("0.k", "1.k"),), ("0.ts", "1.ts")


def band(name: str, below: Any, above: Any, closed: Any = "both") -> Band:
    return Band(f"0.{name}", f"1.{name}", below, above, closed)


def overlap() -> Overlaps:
    return Overlaps(("0.lo", "0.hi"), ("1.lo", "1.hi"))


def within(radius: float, *names: str) -> Within:
    return Within(tuple(f"0.{name}" for name in names), tuple(f"1.{name}" for name in names), radius)


def as_of(choice: AsOf, keys: tuple[Any, ...] = ()) -> dict[str, Any]:
    chosen = {"direction": choice.direction, "exact": choice.exact, "tolerance": choice.tolerance}
    return {"join": AsOfJoin, "times": TIMES, "keys": keys, "tie_break": choice.tie_break, **chosen}


SHAPES: dict[str, dict[str, Any]] = {
    "keys": {"predicates": KEYS},
    "time": {},
    "band": {"predicates": (band("v", 1, 2),)},
    "overlap": {"predicates": (overlap(),)},
    "overlap in cells": {"predicates": (overlap(),), "cell": 3.0},
    "within": {"predicates": (within(1.5, "v", "lo"),)},
    "theta": {"theta": "`0.v` < `1.v`"},
    "interval": {"join": IntervalJoin, "times": TIMES, "lower": -2, "upper": 3, "predicates": KEYS},
    "interval without keys": {"join": IntervalJoin, "times": TIMES, "lower": 0, "upper": 2},
    "as of": as_of(AsOf(), (("0.k", "1.k"),)),
    "as of, ahead": as_of(AsOf("forward", exact=False), (("0.k", "1.k"),)),
    "as of, near, without keys": as_of(AsOf("nearest", tolerance=2)),
    "best match": {
        "join": BestMatchJoin, "dimensions": (("0.ts", "1.ts", 3), ("0.v", "1.v", 2)), "keys": (("0.k", "1.k"),),
    },
    "best match without keys": {"join": BestMatchJoin, "dimensions": (("0.ts", "1.ts", 3), ("0.v", "1.v", 1))},
    "nearest": {"join": NearestJoin, "within": within(2.0, "v", "lo"), "choice": NearestOf(2, 3), "times": TIMES},
}  # fmt: skip


def stream(number: int, window: Any, schema: pa.Schema = SCHEMA) -> Stream:
    reads = tuple((f"{number}.{name}", name) for name in schema.names)
    return Stream(str(number), reads, None if window is None else "ts", window)


def tree(shape: str, *, windows: Any = WINDOWS, schema: pa.Schema = SCHEMA, **options: Any) -> Relation:
    """The tree of a shape; options are those of its node."""
    form = SHAPES[shape] | options
    join = form.pop("join", Join)
    if join is Join and form.get("timed", True):
        form.setdefault("outer", "row")
    elif join is Join:
        form, windows = {"outer": "row"} | form, (None, None)
    else:
        windows = (None, None)
        form.pop("outer", None)
    if join is BestMatchJoin:
        form.setdefault("choice", BestOf())
    joined: Relation = join(stream(0, windows[0], schema), stream(1, windows[1], schema), **form)
    return joined


def named(relation: Relation, schema: pa.Schema = SCHEMA) -> tuple[OutputColumn, ...]:
    """The result's columns as functions name them: those of the right frame with a suffix."""
    kinds = {f"{number}.{field.name}": field.type for number in (0, 1) for field in schema}
    return tuple(
        OutputColumn(name[2:] + ("_right" if name[0] == "1" else ""), (name,), kinds[name]) for name in relation.columns
    )


def plan_of(
    relation: Relation,
    lateness: Mapping[str, Lateness | int | None] | None = None,
    *,
    schema: pa.Schema = SCHEMA,
    late: tuple[Any, Any] = ("drop", "drop"),
    **leaving: Any,
) -> PhysicalPlan:
    """The plan of such a tree."""
    known = lateness or {}
    infos = {
        str(number): source(
            str(number), schema, known.get(str(number)), label=f"input {number}", prefix=f"{number}.", late=late[number]
        )
        for number in (0, 1)
    }
    timed = isinstance(relation, Join) and relation.timed
    default = Leaving(columns=named(relation, schema), flagged=True)
    if not timed:
        default = replace(default, validity=None)
    return lower(relation, infos, PlainTyping(), replace(default, **leaving))


def rows(rng: random.Random, count: int, disorder: int = SLACK) -> list[dict[str, Any]]:
    """Rows whose times are at most so much out of order."""
    made = []
    for number in range(count):
        lo = rng.randint(0, 6)
        made.append({"id": number, "ts": rng.randint(0, 40), "k": rng.randint(0, 2), "v": rng.randint(0, 5)})
        made[-1] |= {"lo": lo, "hi": lo + rng.randint(0, 3)}
    return sorted(made, key=lambda row: row["ts"] + rng.randint(0, disorder))


def table(some: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(some, schema=SCHEMA)
