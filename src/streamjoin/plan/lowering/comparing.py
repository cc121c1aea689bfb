"""Columns that operators compare by themselves, row with row: by bytes, in their order. Of which types that is wrong.

Strings with a collation may be equal, or in another order, where their bytes say otherwise; maps are equal whatever the
order of their entries. Spark has keys of bytes for equal strings, which joins and row windows go by. A set operator or
a group would have to remember beside them which of the equal strings it shows, and an order needs other keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamjoin.errors import UnsupportedError
from streamjoin.plan.column_types import has_map
from streamjoin.plan.types import Fields, type_of

_PLAIN_TEXT: Final = (
    "make it plain text, lower(...) where case does not matter, and cast(... AS STRING COLLATE UTF8_BINARY)"
)


def check_told_apart(fields: Fields, names: Sequence[str], what: str) -> None:
    """Refuse columns by which rows cannot be told apart."""
    for name in names:
        kind = type_of(fields, name)
        if kind.collated:
            raise UnsupportedError(
                f"{what} over {name!r}, which is {kind.text}: rows are told apart by their bytes here, and the "
                "collation takes some of them for equal",
                hint=_PLAIN_TEXT,
            )
        if has_map(kind.arrow):
            raise UnsupportedError(
                f"{what} over {name!r}, which is {kind.text}: it asks which rows are the same, and maps are not "
                "compared",
                hint=f"leave it out, or compare its entries: array_sort(map_entries({name}))",
            )


def check_ordered(fields: Fields, names: Sequence[str], what: str) -> None:
    """Refuse columns whose values cannot be put in order."""
    for name in names:
        kind = type_of(fields, name)
        if kind.collated:
            raise UnsupportedError(
                f"{what} over {name!r}, which is {kind.text}: strings are put in order by their bytes here, and by the "
                "collation in another",
                hint=_PLAIN_TEXT,
            )
