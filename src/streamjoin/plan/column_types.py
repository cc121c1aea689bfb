"""The types of a relation's columns, as far as they are known without Spark.

Rules ask before they turn a condition into a predicate: an equality of an int and a string is Spark's business, because
Spark casts. Unknown is a type, too: None, and whoever asks must leave the condition as it is.

What it does not do: know all of Spark's functions. Types of expressions are those of the declared subset (see
`expression`), and of some functions whose type does not depend on their arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streamjoin.algebra import TimeAxis
from streamjoin.errors import CallError
from streamjoin.plan.condition import call, column_places
from streamjoin.plan.expression import grammar
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    MAX_DIGITS,
    STRING,
    TIMESTAMP_NTZ,
    SqlType,
    from_arrow,
)
from streamjoin.plan.expression.tree import Field, Outside
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Intersection,
    Projection,
    Relation,
    Stream,
    Union,
)

Schemas = Mapping[str, pa.Schema]
Types = dict[str, SqlType | None]

_STRING_FUNCTIONS = """
    upper lower ucase lcase trim ltrim rtrim substring_index initcap replace translate regexp_replace regexp_extract md5
    sha sha1 sha2 hex date_format
"""
_INT_FUNCTIONS = """
    year month day dayofmonth dayofweek hour minute quarter length char_length ascii hash levenshtein
"""
_DOUBLE_FUNCTIONS = "sqrt exp ln log10 sin cos tan atan atan2 pow power degrees radians distance similar double"
_BOOLEAN_FUNCTIONS = "overlaps isnull isnotnull isnan startswith endswith contains"
_FUNCTIONS: dict[str, SqlType] = {
    **dict.fromkeys(_STRING_FUNCTIONS.split(), STRING),
    **dict.fromkeys(_INT_FUNCTIONS.split(), INT),
    **dict.fromkeys(_DOUBLE_FUNCTIONS.split(), DOUBLE),
    **dict.fromkeys(_BOOLEAN_FUNCTIONS.split(), BOOLEAN),
    **dict.fromkeys(("to_date", "date_add", "date_sub", "last_day", "date"), DATE),
    **dict.fromkeys(("crc32", "unix_seconds", "unix_millis", "unix_micros", "xxhash64", "bigint"), BIGINT),
}
_CASTS = {kind.name.upper(): kind for kind in (STRING, BOOLEAN, INT, BIGINT, DOUBLE, DATE, TIMESTAMP_NTZ)}
_OF_THEIR_ARGUMENTS = frozenset(("coalesce", "nvl", "ifnull", "greatest", "least", "concat"))
_OF_STRINGS = frozenset(("concat", "substring", "substr", "left", "right", "lpad", "rpad"))


def time_axis(kind: pa.DataType) -> TimeAxis | None:
    """The axis that a column of this type counts on; None where it is no time.

    >>> time_axis(pa.timestamp("us")), time_axis(pa.int32()), time_axis(pa.string())
    (<TimeAxis.TIMESTAMP: 'timestamp'>, <TimeAxis.INTEGER: 'integer'>, None)
    """
    if pa.types.is_timestamp(kind):
        return TimeAxis.TIMESTAMP
    if pa.types.is_date(kind):
        return TimeAxis.DATE
    return TimeAxis.INTEGER if pa.types.is_integer(kind) else None


def column_types(relation: Relation, schemas: Schemas) -> Types:
    """The type of each column of a relation; None where it is not known.

    >>> stream = Stream("R", (("R.x", "x"),), "ts", None)
    >>> types = column_types(Projection(stream, (("y", "`R.x` * 1.5D"), ("z", "unheard_of(`R.x`)"))), {
    ...     "R": pa.schema({"x": pa.int32()})
    ... })
    >>> {name: str(kind) for name, kind in types.items()}
    {'y': 'double', 'z': 'None'}
    """
    if isinstance(relation, Stream):
        schema = schemas[relation.source]
        return {name: from_arrow(schema.field(column).type) for name, column in relation.reads}
    parts = [column_types(child, schemas) for child in relation.children]
    below: Types = {name: kind for part in parts for name, kind in part.items()}
    if isinstance(relation, Projection):
        return {name: type_of(text, below) for name, text in relation.computed}
    if isinstance(relation, Aggregation):
        made = {each.name: _aggregate_type(each.function, below.get(each.column or "")) for each in relation.aggregates}
        return {key: below.get(key) for key in relation.keys} | made
    if isinstance(relation, Union | Difference | Intersection):
        # By position: Spark casts to a common type, which is known where all parts have it.
        kinds = zip(relation.columns, zip(*(part.values() for part in parts), strict=True), strict=True)
        return {name: own[0] if len(set(own)) == 1 else None for name, own in kinds}
    return {name: below.get(name) for name in relation.columns}


def type_of(text: str, types: Mapping[str, SqlType | None]) -> SqlType | None:
    """The type of an expression over columns of these types; None where it is not known.

    >>> str(type_of("`a` + 1 > 3", {"a": INT})), str(type_of("upper(`a`)", {"a": STRING}))
    ('boolean', 'string')
    """
    pieces = tokens(text)
    fields: dict[int, tuple[Field | None, int]] = {}
    for at in column_places(pieces):
        name = pieces[at].name or ""
        kind = types.get(name)
        fields[pieces[at].start] = (None if kind is None else Field(kind, 0, name), pieces[at].end)
    try:
        return grammar.read(pieces, fields).type
    except (Outside, CallError):
        whole = call(text)
        return None if whole is None else _call_type(*whole, types)


def _call_type(name: str, arguments: tuple[str, ...], types: Mapping[str, SqlType | None]) -> SqlType | None:
    if name in ("cast", "try_cast"):
        words = arguments[0].upper().split()
        return _CASTS.get(words[-1]) if len(words) > 2 and words[-2] == "AS" else None
    if name in _OF_THEIR_ARGUMENTS:
        kinds = {type_of(argument, types) for argument in arguments}
        kind = kinds.pop() if len(kinds) == 1 else None
        return kind if kind == STRING or name not in _OF_STRINGS else None
    if name in _OF_STRINGS:
        return STRING if arguments and type_of(arguments[0], types) == STRING else None
    return _FUNCTIONS.get(name)


def _aggregate_type(function: str, kind: SqlType | None) -> SqlType | None:
    if function == "count":
        return BIGINT
    if function == "stddev":
        return DOUBLE
    if kind is None or function in ("min", "max"):
        return kind
    if kind in (FLOAT, DOUBLE):
        return DOUBLE
    if kind in INTEGERS:
        return BIGINT if function == "sum" else DOUBLE
    if kind.name == "decimal" and function == "sum":
        return SqlType("decimal", min(MAX_DIGITS, kind.digits + 10), kind.scale)
    return None


def has_map(kind: pa.DataType) -> bool:
    """Whether a type is a map, or has one inside.

    >>> has_map(pa.list_(pa.struct({"m": pa.map_(pa.string(), pa.int32())}))), has_map(pa.list_(pa.int32()))
    (True, False)
    """
    if pa.types.is_map(kind):
        return True
    if pa.types.is_list(kind):
        return has_map(kind.value_type)
    return bool(pa.types.is_struct(kind)) and any(has_map(field.type) for field in kind)
