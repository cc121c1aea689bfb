"""Maps in the columns of a relation: what compares whole rows cannot take them, in Spark neither.

DISTINCT, UNION without ALL, EXCEPT and INTERSECT ask which rows are the same, and two maps are never compared.

Here only that the complaint can point at the place: a map is found in a stream's column, also inside of structs and
arrays, and where a function is known to make one. The lowering asks Spark for the types, and refuses the others.
"""

from __future__ import annotations

import pyarrow as pa

from streamjoin.errors import UnsupportedError
from streamjoin.language.complaint import refused
from streamjoin.plan.column_types import Schemas, has_map
from streamjoin.plan.condition import bare, call
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.relation import Difference, Intersection, Projection, Relation, Stream, Union

_MAP_FUNCTIONS = """
    map map_from_arrays map_from_entries map_concat map_filter map_zip_with transform_keys transform_values str_to_map
"""
_MAKE_MAPS = frozenset(_MAP_FUNCTIONS.split())
_HOLD_ARGUMENTS = frozenset(("array", "struct", "named_struct", "coalesce", "nvl", "ifnull", "if"))
_A_MAP = pa.map_(pa.string(), pa.string())  # of whatever

_Kinds = dict[str, pa.DataType | None]


def column_with_map(relation: Relation, schemas: Schemas) -> str | None:
    """The first column of a relation that is a map, or has one inside.

    >>> stream = Stream("R", (("a", "a"), ("s", "s")), "ts", None)
    >>> kind = pa.struct({"m": pa.map_(pa.string(), pa.int32())})
    >>> column_with_map(stream, {"R": pa.schema({"a": pa.int32(), "s": kind})})
    's'
    """
    return next((name for name, kind in _kinds(relation, schemas).items() if kind is not None and has_map(kind)), None)


def no_maps(text: str, at: int, name: str, what: str) -> UnsupportedError:
    """The complaint about a column with a map in it."""
    return refused(
        text,
        at,
        f"{what} asks which rows are the same, but column {name!r} has a map in it, and maps are not compared",
        f"leave it out, or compare its entries: array_sort(map_entries({name}))",
    )


def _kinds(relation: Relation, schemas: Schemas) -> _Kinds:
    """The columns of a relation in Arrow's types, as far as it matters for maps."""
    if isinstance(relation, Stream):
        schema = schemas[relation.source]
        return {name: schema.field(column).type for name, column in relation.reads}
    below = [_kinds(child, schemas) for child in relation.children]
    if isinstance(relation, Projection):
        return {name: _kind(text, below[0]) for name, text in relation.computed}
    if isinstance(relation, Union | Difference | Intersection):
        # Parts agree by position; where one is not known, another may be.
        places = zip(*(part.values() for part in below), strict=True)
        return {
            name: next((kind for kind in place if kind is not None), None)
            for name, place in zip(relation.columns, places, strict=True)
        }
    known = {name: kind for part in below for name, kind in part.items()}
    return {name: known.get(name) for name in relation.columns}


def _kind(text: str, below: _Kinds) -> pa.DataType | None:
    called = call(text)
    if called is not None:
        if called[0] in _MAKE_MAPS:
            return _A_MAP
        inner = [_kind(argument, below) for argument in called[1]] if called[0] in _HOLD_ARGUMENTS else []
        return _A_MAP if any(kind is not None and has_map(kind) for kind in inner) else None
    first, *fields = tokens(bare(text)) or (None,)
    kind = below.get(first.name or "") if first is not None and first.kind == "quoted" else None
    for dot, field in zip(fields[::2], fields[1::2], strict=False):
        if dot.text != "." or kind is None or not pa.types.is_struct(kind):
            return None
        found = [one.type for one in kind if one.name.lower() == (field.name or "").lower()]
        kind = found[0] if len(found) == 1 else None
    return kind if len(fields) % 2 == 0 else None
