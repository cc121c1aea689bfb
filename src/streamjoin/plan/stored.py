"""A join as JSON: what is stored beside its state, so that the state can be read without the program that made it.

The values of a call are frozen dataclasses, enums, Arrow types and plain values; each is written with its class, and
only classes named here are read back.
"""

from __future__ import annotations

import base64
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import (
    Aggregate,
    AsOf,
    Band,
    BestOf,
    Equals,
    Fixed,
    Grace,
    Near,
    NearestOf,
    Now,
    Overlaps,
    Range,
    Rows,
    TimeAxis,
    Unbounded,
    Validity,
    Within,
)
from streamjoin.errors import SnapshotError
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, IntervalBounds, JoinNode
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Query,
    Selection,
    Stream,
    Union,
)
from streamjoin.runtime import Arrivals

_CLASSES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        JoinNode, InputNode, IntervalBounds, Band, Overlaps, Within, Range, Fixed, Now, Unbounded, Validity, Grace,
        Arrivals, AsOf, BestOf, Near, NearestOf, Equals, Rows, Aggregate, Stream, Selection, Projection, Union,
        Distinct, Difference, Intersection, Join, AsOfJoin, BestMatchJoin, Aggregation, Query,
    )
}  # fmt: skip
_KIND: Final = "@"


def to_stored(value: Any) -> Any:
    """A value of a call as JSON.

    >>> to_stored(Range(5))
    {'@': 'Range', 'size': 5, 'slide': None}
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple):
        return {_KIND: "tuple", "items": [to_stored(item) for item in value]}
    if isinstance(value, Decimal):
        return {_KIND: "Decimal", "text": str(value)}
    if isinstance(value, TimeAxis):
        return {_KIND: "TimeAxis", "name": value.name}
    if isinstance(value, Expression):
        return {_KIND: "Expression", "text": value.text}
    if isinstance(value, pa.Schema):
        return {_KIND: "Schema", "arrow": base64.b64encode(value.serialize().to_pybytes()).decode()}
    if isinstance(value, pa.DataType):
        return {_KIND: "DataType", "of": to_stored(pa.schema([("type", value)]))}
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        members = {field.name: to_stored(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, **members}
    if callable(value):
        return {_KIND: "function", "name": getattr(value, "__name__", "?")}
    raise TypeError(f"{type(value).__name__} is no value of a call")


def from_stored(stored: Any) -> Any:
    """The inverse of `to_stored`.

    >>> from_stored({"@": "Range", "size": 5, "slide": None})
    Range(size=5, slide=None)
    """
    if not isinstance(stored, dict):
        return stored
    members = {name: item for name, item in stored.items() if name != _KIND}
    match stored[_KIND]:
        case "tuple":
            return tuple(from_stored(item) for item in members["items"])
        case "TimeAxis":
            return TimeAxis[members["name"]]
        case "Decimal":
            return Decimal(members["text"])
        case "Schema":
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(members["arrow"])))
        case "DataType":
            return from_stored(members["of"]).field("type").type
        case "function":
            raise SnapshotError(
                f"the stored join calls the function {members['name']!r}, which is not in the checkpoint",
                hint="end the inputs with a last row far beyond the others: then the query itself lets everything go",
            )
        case "JoinNode":
            return _join_node(members)
        case kind if kind in _CLASSES:
            return _CLASSES[kind](**{name: from_stored(item) for name, item in members.items()})
        case kind:
            raise SnapshotError(
                f"the stored join has a {kind!r}, which this version does not know",
                hint="it was made by a newer version of streamjoin: use that one",
            )


def _join_node(members: dict[str, Any]) -> JoinNode:
    # An expression is stored as its text, and read again against the user's columns.
    theta = members.pop("theta")
    values = {name: from_stored(item) for name, item in members.items()}
    expression = None
    if theta is not None:
        user_schemas = [pa.schema([part.schema.field(name) for name in part.columns]) for part in values["inputs"]]
        expression = Expression.parse(theta["text"], user_schemas)
    return JoinNode(**values, theta=expression)
