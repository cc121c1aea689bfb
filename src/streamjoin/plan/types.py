"""Column types as plans see them: Arrow's, and what Spark calls it, which knows more (collations, char, varchar).

What an expression's type is only Spark knows. So plans ask a `Typing`: Spark's own analysis, or, in tests, one that
knows columns by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps, loads
from typing import Final, Protocol

import pyarrow as pa

from streamjoin.errors import UnsupportedError
from streamjoin.plan.expression import Expression


@dataclass(frozen=True)
class Type:
    """A column's type: in Arrow, as Spark shows it to people, and as Spark writes it in JSON."""

    arrow: pa.DataType
    text: str
    json: str

    @property
    def collated(self) -> bool:
        """Whether strings that differ in bytes may be equal."""
        return "collate" in self.text


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
    members = [{"metadata": {}, "name": each.name, "nullable": True, "type": loads(each.type.json)} for each in fields]
    text = ",".join(f"{each.name}:{each.type.text}" for each in fields)
    arrow = pa.struct([pa.field(each.name, each.type.arrow) for each in fields])
    return Type(arrow, f"struct<{text}>", dumps({"fields": members, "type": "struct"}))
