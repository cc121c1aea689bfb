"""What parameters of the public functions take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from pyspark.sql import Column

T = TypeVar("T")

# A column: by name, or an expression.
ColumnLike: TypeAlias = str | Column
# One column, or several.
Columns: TypeAlias = ColumnLike | Sequence[ColumnLike] | None
# One value for all inputs, or a list with one for each.
PerInput: TypeAlias = T | Sequence[T]
# One value for all streams of a query, or a dict from a stream's name to it.
PerStream: TypeAlias = T | Mapping[str, T]
# A length of time: "5 seconds" or a timedelta over timestamps and dates, a number over integers.
Length: TypeAlias = str | timedelta | int
# A number of the type of the column that it is compared with: for times a length of time.
Bound: TypeAlias = Any
