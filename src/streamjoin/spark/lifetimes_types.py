"""The parts of a set operator have as many columns each, in common types, under the names of the first."""

from __future__ import annotations

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructField

from streamjoin.errors import CallError
from streamjoin.spark.frames import InputFrame, common_type
from streamjoin.spark.lifetimes_frame import ElementFrame


def alike(parts: list[ElementFrame], what: str) -> list[ElementFrame]:
    """Parts of a set operator with equal columns, by position."""
    widths = {len(part.types) for part in parts}
    if len(widths) > 1:
        raise CallError(
            f"{what} needs parts with as many columns each, got {' and '.join(str(len(p.types)) for p in parts)}",
            hint="select the same columns on both sides",
        )
    types = list(parts[0].types)
    for part in parts[1:]:
        for number, mine in enumerate(part.types):
            types[number] = StructField(types[number].name, _common(part, types[number], mine, what))
    return [part.cast_to(types) if tuple(types) != part.types else part for part in parts]


def _common(part: ElementFrame, one: StructField, two: StructField, what: str) -> DataType:
    if one.dataType == two.dataType:
        return one.dataType
    empty = part.frame.sparkSession.range(0)
    sides = [
        InputFrame(number, empty.select(F.lit(None).cast(each.dataType).alias(each.name)))
        for number, each in enumerate((one, two))
    ]
    return common_type((sides[0], sides[1]), (one.name, two.name), what)
