"""What parameters of the public functions take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

T = TypeVar("T")

# A frame, or several in a list: the frames of a call come one after the other, or in one list.
OneOrMore: TypeAlias = DataFrame | Sequence[DataFrame]
# A column: by name, as SQL text, or as a Column. A name that is a column wins over SQL text.
ColumnLike: TypeAlias = str | Column
# One column, or several.
Columns: TypeAlias = ColumnLike | Sequence[ColumnLike] | None
# One value for all inputs, or a list with one for each.
PerInput: TypeAlias = T | Sequence[T]
# One value for all streams of a query, or a dict from a stream's name to it.
PerStream: TypeAlias = T | Mapping[str, T]
# The columns of a frame: Spark's own type, or as text, "k int, ts timestamp".
SchemaLike: TypeAlias = StructType | str
# A length of time: "5 seconds" or a timedelta over timestamps and dates, a number over integers.
Length: TypeAlias = str | timedelta | int
# A number of the type of the column that it is compared with: for times a length of time.
Bound: TypeAlias = Any
