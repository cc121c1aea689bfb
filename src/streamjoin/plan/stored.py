"""A plan as JSON: what is stored beside the state of a query, so that the state can be read without the program.

A plan is made of frozen dataclasses, enums, Arrow types and plain values; each is written with its class, and only
classes named here are read back.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from streamjoin import algebra, operators
from streamjoin.algebra import TimeAxis
from streamjoin.errors import SnapshotError
from streamjoin.operators.judging import Judging
from streamjoin.plan import physical, types
from streamjoin.plan.lowering.joining import ExpressionTest
from streamjoin.runtime import binding, fragment, intake, lateness, naming, outlet, placing, reading, stage, target
from streamjoin.state import GridAxis, KeyTest, Matching, ValueTest

_CLASSES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        algebra.Aggregate, algebra.AsOf, algebra.Band, algebra.BestOf, algebra.Equals, algebra.Fixed, algebra.Near,
        algebra.NearestOf, algebra.Now, algebra.Overlaps, algebra.Range, algebra.Rows, algebra.Unbounded,
        algebra.Validity, algebra.Within,
        operators.Aggregating, operators.AsofJoin, operators.BestMatchJoin, operators.Multiplicity,
        operators.NearestJoin, operators.NegativeJoin, operators.NegativeWindow, operators.Passing,
        operators.RowWindow, operators.StreamOf, operators.TemporalJoin, operators.Verdict, Judging,
        GridAxis, KeyTest, Matching, ValueTest, ExpressionTest,
        binding.RowBinding, fragment.Entry, fragment.Inner, fragment.Node, intake.Channel, intake.StageInput,
        lateness.Slack, lateness.Complete, lateness.Timeless, naming.OutputColumn, naming.MarkedColumn, naming.Shape,
        outlet.ToStage, outlet.ToCourt, outlet.ToFrame, outlet.ToUser, outlet.Outlet, placing.Partitioning,
        placing.HomePartitioning, placing.ReferencePartitioning, placing.MatrixPartitioning, reading.Reading,
        stage.Stage, target.Target, target.Testimony,
        types.Type, types.Field, physical.Computed, physical.Compute, physical.Filter, physical.Mark, physical.Fold,
        physical.Source, physical.Edge, physical.Sink, physical.PhysicalPlan,
    )
}  # fmt: skip
_KIND: Final = "@"


def to_stored(value: Any) -> Any:
    """A value of a plan as JSON.

    >>> to_stored(algebra.Range(5))
    {'@': 'Range', 'size': 5, 'slide': None}
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
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        members = {field.name: to_stored(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, **members}
    if callable(value):
        return {_KIND: "function", "name": getattr(value, "__name__", "?")}
    raise TypeError(f"{type(value).__name__} is no value of a plan")


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
        case kind if kind in _CLASSES:
            return _CLASSES[kind](**{name: from_stored(item) for name, item in members.items()})
        case kind:
            raise SnapshotError(
                f"the stored join has a {kind!r}, which this version does not know",
                hint="it was made by a newer version of streamjoin: use that one",
            )


def plan_name(stored: Any) -> str:
    """A name for a stored plan. It is the same with other lateness, with which a query may go on."""
    return hashlib.sha256(json.dumps(_without_lateness(stored), sort_keys=True).encode()).hexdigest()


def _without_lateness(stored: Any) -> Any:
    if isinstance(stored, dict):
        kept = stored.keys() - {"lateness", "idle_after"}
        return {name: _without_lateness(stored[name]) for name in sorted(kept)}
    return [_without_lateness(item) for item in stored] if isinstance(stored, list) else stored
