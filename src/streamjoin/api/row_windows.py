"""Joins whose rows are valid until a number of later rows has come: the same call as any other join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamjoin.algebra import Equals, Predicate, Rows, Theta, join_type
from streamjoin.algebra.predicate import conjuncts
from streamjoin.api.relations import check_window, per_input, run_numbered
from streamjoin.errors import CallError, UnsupportedError, unknown_column
from streamjoin.plan.expression import Expression
from streamjoin.plan.naming import name_columns
from streamjoin.plan.relation import Join, Projection, Stream
from streamjoin.spark.choices import listed
from streamjoin.spark.query import arrow_schema

_TAKEN = {
    "time", "window", "by", "left_by", "right_by", "where", "how", "outer", "emit", "lateness", "late", "invalid",
    "suffix", "validity", "buckets",
}  # fmt: skip


def has_row_window(options: dict[str, Any]) -> bool:
    """Whether one of the inputs has a row window."""
    window = options.get("window")
    return any(isinstance(each, Rows) for each in (window if isinstance(window, list | tuple) else [window]))


def join_with_row_windows(frames: Sequence[DataFrame], options: dict[str, Any]) -> DataFrame:
    """A join of two frames of which at least one has a row window."""
    wrong = sorted(name for name, value in options.items() if name not in _TAKEN and value not in (None, False, "auto"))
    if wrong:
        raise UnsupportedError(f"{wrong[0]}= does not go with a row window yet", hint="use a window of time")
    how = join_type(options.get("how", "inner"))
    if how != "inner" and options.get("outer", "row") != "snapshot":
        raise UnsupportedError(
            f"a {how} join by row is not there for row windows: whether a row met anybody may change while ends are "
            "unknown",
            hint='use outer="snapshot": the parts of its validity without a partner',
        )
    if not isinstance(frames, list | tuple) or len(frames) != 2:
        got = len(frames) if isinstance(frames, list | tuple) else 1
        raise CallError(f"a join with a row window takes two frames, got {got}", hint="sj.join([a, b], ...)")
    schemas = [arrow_schema(frame, f"input {number}") for number, frame in enumerate(frames)]
    times, windows = (per_input(options.get(name), 2, name) for name in ("time", "window"))
    sides = []
    for number, (schema, time, window) in enumerate(zip(schemas, times, windows, strict=True)):
        check_window(window, time)
        sides.append(Stream(str(number), tuple((f"{number}.{name}", name) for name in schema.names), time, window))
    by, keys = _keys(options, schemas)
    predicates, theta = _condition(options.get("where"), keys, schemas)
    kinds = [dict(zip(schema.names, schema.types, strict=True)) for schema in schemas]
    naming = name_columns(
        [schema.names for schema in schemas], kinds, by=by, how=how, suffix=options.get("suffix", "_right"),
        validity=None, time_type=None,
    )  # fmt: skip
    computed = tuple((column.name, _coalesced(column.sources)) for column in naming.columns)
    relation = Projection(Join(sides[0], sides[1], tuple(predicates), theta, how), computed)
    passed = ("lateness", "late", "invalid", "emit", "validity", "buckets")
    chosen = {name: options[name] for name in passed if name in options}
    if isinstance(chosen.get("late"), list | tuple):
        raise UnsupportedError("late= takes one value for both inputs with a row window", hint='late="drop" or "fail"')
    return run_numbered(frames, relation, chosen)


def _keys(options: dict[str, Any], schemas: Sequence[pa.Schema]) -> tuple[list[str], list[Predicate]]:
    """The keys that appear once in the result, and all keys as predicates."""
    by, left, right = (listed(options.get(name)) for name in ("by", "left_by", "right_by"))
    if by and (left or right):
        raise CallError("give either by= or left_by= and right_by=, not both")
    if len(left) != len(right):
        raise CallError(f"left_by and right_by must be equally many, got {len(left)} and {len(right)}")
    for key in by:
        if by.count(key) > 1:
            raise CallError(f"by has {key!r} twice", hint="name every key once")
    pairs = zip(by or left, by or right, strict=True)
    return by, [Equals(_numbered(one, 0, schemas), _numbered(two, 1, schemas)) for one, two in pairs]


def _condition(where: Any, keys: list[Predicate], schemas: Sequence[pa.Schema]) -> tuple[list[Predicate], str | None]:
    """Keys and `where`: the predicates over numbered columns, and the text of what is left."""
    if where is not None and not isinstance(where, Predicate):
        raise CallError(
            f"where must be a predicate, got {where!r}",
            hint='write where=sj.equals("k") & sj.band("v", below=1, above=1), or sj.theta("l.a < r.b")',
        )
    predicates, texts = list(keys), []
    for part in conjuncts(where):
        if isinstance(part, Theta):
            expression = Expression.parse(part.text, list(schemas))
            texts.append(f"({expression.spark_sql(lambda number, column: f'{number}.{column}')})")
        else:
            predicates.append(_over_both(part, schemas))
    return predicates, " AND ".join(texts) or None


def _over_both(predicate: Predicate, schemas: Sequence[pa.Schema]) -> Predicate:
    """The predicate over the columns of both inputs, side by side."""
    sides: dict[str, Any] = {}
    for number, side in enumerate(("left", "right")):
        columns = getattr(predicate, side)
        several = isinstance(columns, tuple)
        numbered = tuple(_numbered(name, number, schemas) for name in (columns if several else (columns,)))
        sides[side] = numbered if several else numbered[0]
    return replace(predicate, **sides)  # type: ignore[type-var]


def _numbered(name: Any, number: int, schemas: Sequence[pa.Schema]) -> str:
    """The name of an input's column beside those of the other input."""
    if not isinstance(name, str):
        raise UnsupportedError(
            "predicates of joins with row windows take names of columns", hint="make it a column of its own"
        )
    if name not in schemas[number].names:
        raise unknown_column(name, schemas[number].names, f"input {number}")
    return f"{number}.{name}"


def _coalesced(sources: Sequence[str]) -> str:
    quoted = [f"`{source}`" for source in sources]
    return quoted[0] if len(quoted) == 1 else f"coalesce({', '.join(quoted)})"
