"""A plan as JSON: what is stored beside the state of a query, so that the state can be read without the program.

A plan is made of frozen dataclasses, enums, Arrow types and plain values. Each is written with the place of its class,
and only dataclasses of this package are read back.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import Field, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import TimeAxis
from streamjoin.errors import SnapshotError

_KIND: Final = "@"
_PACKAGE: Final = "streamjoin."


def to_stored(value: Any) -> Any:
    """A value of a plan as JSON.

    >>> from streamjoin.algebra import Range
    >>> to_stored(Range(5))
    {'@': 'algebra.window:Range', 'size': 5, 'slide': None}
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple):
        return {_KIND: "tuple", "items": [to_stored(item) for item in value]}
    if isinstance(value, Decimal | Fraction):
        return {_KIND: type(value).__name__, "text": str(value)}
    if isinstance(value, TimeAxis):
        return {_KIND: "TimeAxis", "name": value.name}
    if isinstance(value, pa.Schema):
        return {_KIND: "Schema", "arrow": base64.b64encode(value.serialize().to_pybytes()).decode()}
    if isinstance(value, pa.DataType):
        return {_KIND: "DataType", "of": to_stored(pa.schema([("type", value)]))}
    kind = type(value)
    if is_dataclass(value) and kind.__module__.startswith(_PACKAGE):
        told = [field.name for field in fields(value) if _is_told(value, field)]
        members = {name: to_stored(getattr(value, name)) for name in told}
        return {_KIND: f"{kind.__module__.removeprefix(_PACKAGE)}:{kind.__name__}", **members}
    if callable(value):
        return {_KIND: "function", "name": getattr(value, "__name__", "?")}
    raise TypeError(f"{type(value).__name__} is no value of a plan")


def _is_told(value: Any, field: Field[Any]) -> bool:
    """Whether a plan says a field: one that was added later, and has its default, it does not (`algebra.policy`)."""
    return not field.metadata.get("added") or getattr(value, field.name) != field.default


def from_stored(stored: Any) -> Any:
    """The inverse of `to_stored`.

    >>> from_stored({"@": "algebra.window:Range", "size": 5, "slide": None})
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
        case "Fraction":
            return Fraction(members["text"])
        case "Schema":
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(members["arrow"])))
        case "DataType":
            return from_stored(members["of"]).field("type").type
        case "function":
            raise SnapshotError(
                f"the stored join calls the function {members['name']!r}, which is not in the checkpoint",
                hint="end the inputs with a last row far beyond the others: then the query itself lets everything go",
            )
        case kind:
            return _class_of(kind)(**{name: from_stored(item) for name, item in members.items()})


def _class_of(kind: str) -> type:
    """The dataclass of this package that stands at a place."""
    module, _, name = kind.partition(":")
    try:
        found = getattr(import_module(_PACKAGE + module), name, None)
    except ImportError:
        found = None
    if not isinstance(found, type) or not is_dataclass(found):
        raise SnapshotError(
            f"the stored plan has a {kind!r}, which this version does not know",
            hint="it was made by another version of streamjoin: use that one",
        )
    return found


_MAY_CHANGE: Final = {"lateness", "idle_after", "made_by", "memory", "merge"}


def plan_name(stored: Any) -> str:
    """A name for a stored plan, or a part of one. It is the same with other lateness, with which a query may go on; not
    with a table instead of a stream.
    """
    return hashlib.sha256(json.dumps(_without_lateness(stored), sort_keys=True).encode()).hexdigest()


def _without_lateness(stored: Any) -> Any:
    if isinstance(stored, dict):
        kept = {name: _without_lateness(stored[name]) for name in stored.keys() - _MAY_CHANGE}
        policy = stored.get("lateness")
        return kept if policy is None else {**kept, "complete": policy[_KIND].endswith((":Complete", ":Timeless"))}
    return [_without_lateness(item) for item in stored] if isinstance(stored, list) else stored
