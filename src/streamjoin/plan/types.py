"""Column types as plans see them: Arrow's, and what Spark calls it, which knows more (collations, char, varchar).

What an expression's type is only Spark knows. So plans ask a `Typing`: Spark's own analysis, or, in tests, one that
knows columns by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import dumps, loads
from typing import Any, Final, Protocol

import pyarrow as pa

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.expression import Expression

RESERVED: Final = "__sj"  # what travels beside a row's columns is named so


def check_name(name: str) -> None:
    """Refuse the name of a column that could be taken for one of those beside it; in whatever case, as Spark does."""
    if name.lower().startswith(RESERVED):
        raise CallError(f"column names must not begin with {RESERVED!r}, got {name!r}", hint="rename it")


@dataclass(frozen=True)
class Type:
    """A column's type: in Arrow, as Spark shows it to people, and as Spark writes it in JSON; where it is collated, in
    that of a struct with the column alone, because only a field has the collations.
    """

    arrow: pa.DataType
    text: str
    json: str

    @property
    def collated(self) -> bool:
        """Whether strings in it that differ in bytes may be equal."""
        return any(each.startswith(_COLLATED) for each in _scalars(self.json))

    @property
    def padded(self) -> bool:
        """Whether strings in it have a length that Spark pads them to, or checks (CHAR, VARCHAR)."""
        return any(each.startswith(("char(", "varchar(")) for each in _scalars(self.json))


@dataclass(frozen=True)
class Field:
    """A column of a relation."""

    name: str
    type: Type


Fields = tuple[Field, ...]


def names_of(fields: Fields) -> tuple[str, ...]:
    """Their names."""
    return tuple(field.name for field in fields)


def arrow_schema(fields: Fields) -> pa.Schema:
    """The columns in Arrow."""
    return pa.schema([pa.field(field.name, field.type.arrow) for field in fields])


def type_of(fields: Fields, name: str) -> Type:
    """The type of a column that is there."""
    return next(field.type for field in fields if field.name == name)


class Typing(Protocol):
    """What plans ask about expressions."""

    def computed(self, fields: Fields, columns: Sequence[tuple[str, str]]) -> Fields:
        """The columns that expressions over these ones give, by name and text."""
        ...

    def check(self, fields: Fields, condition: str) -> None:
        """Refuse a condition that cannot be evaluated over these columns."""
        ...

    def common(self, one: Type, two: Type) -> Type | None:
        """The type in which two columns are compared; None when there is none."""
        ...

    def agree(self, expression: Expression, inputs: Sequence[Fields]) -> None:
        """Refuse an expression that would be evaluated in another way here than by Spark."""
        ...


_COLLATED: Final = "string collate "
_COLLATIONS: Final = "__COLLATIONS"  # where Spark's JSON has them: beside the field, by the place of the string in it


@lru_cache(maxsize=10_000)
def _scalars(json: str) -> tuple[str, ...]:
    """The scalar types in a type, as Spark writes them; names of fields are none.

    >>> _scalars(plain_type(pa.list_(pa.string())).json)
    ('string',)
    """
    return tuple(_within(loads(json)))


def _within(kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
        return
    for name in ("elementType", "keyType", "valueType", "sqlType"):
        if name in kind:
            yield from _within(kind[name])
    for field in kind.get("fields", ()):
        yield from (_COLLATED + name for name in field["metadata"].get(_COLLATIONS, {}).values())
        yield from _within(field["type"])


_ARRAY: Final = '{"containsNull":true,"elementType":"%s","type":"array"}'
_PLAIN: Final = {
    pa.list_(pa.string()): ("array<string>", _ARRAY % "string"),
    pa.list_(pa.int64()): ("array<bigint>", _ARRAY % "long"),
    pa.int64(): ("bigint", '"long"'),
    pa.int32(): ("int", '"integer"'),
    pa.int16(): ("smallint", '"short"'),
    pa.int8(): ("tinyint", '"byte"'),
    pa.float64(): ("double", '"double"'),
    pa.float32(): ("float", '"float"'),
    pa.string(): ("string", '"string"'),
    pa.bool_(): ("boolean", '"boolean"'),
    pa.date32(): ("date", '"date"'),
    pa.timestamp("us", "UTC"): ("timestamp", '"timestamp"'),
    pa.timestamp("us"): ("timestamp_ntz", '"timestamp_ntz"'),
    pa.binary(): ("binary", '"binary"'),
}


def plain_type(arrow: pa.DataType) -> Type:
    """The type of a plain Arrow column.

    >>> plain_type(pa.int64()).text, plain_type(pa.decimal128(5, 2)).text
    ('bigint', 'decimal(5,2)')
    """
    if pa.types.is_decimal(arrow):
        text = f"decimal({arrow.precision},{arrow.scale})"
        return Type(arrow, text, f'"{text}"')
    if arrow not in _PLAIN:
        raise UnsupportedError(f"{arrow} is no plain type")
    return Type(arrow, *_PLAIN[arrow])


def struct_type(fields: Fields) -> Type:
    """The type of whole rows with these columns.

    >>> struct_type((Field("a", plain_type(pa.int64())),)).text
    'struct<a:bigint>'
    """
    members = [_member(each) for each in fields]
    text = ",".join(f"{each.name}:{each.type.text}" for each in fields)
    arrow = pa.struct([pa.field(each.name, each.type.arrow) for each in fields])
    json = {"fields": members, "type": "struct"}
    if any(each.type.collated for each in fields):  # written as a field's, as those of columns are
        json = {"fields": [{"metadata": {}, "name": "c", "nullable": True, "type": json}], "type": "struct"}
    return Type(arrow, f"struct<{text}>", dumps(json))


def _member(field: Field) -> dict[str, Any]:
    kind, metadata = loads(field.type.json), {}
    if field.type.collated:
        (own,) = kind["fields"]
        found = own["metadata"].get(_COLLATIONS, {})
        places = {field.name + place.removeprefix(own["name"]): name for place, name in found.items()}
        kind, metadata = own["type"], {_COLLATIONS: places} if places else {}
    return {"metadata": metadata, "name": field.name, "nullable": True, "type": kind}
