"""Aggregates: what is said of all elements of a group that are valid at an instant.

    count            how many elements there are; of a column, how many values are not NULL
    sum, avg         of the values that are not NULL; NULL where there are none. Never depends on the order in which
                     elements came or went
    min, max         of the values that are not NULL
    stddev           of a sample; NULL where there are fewer than two values

A group without elements says nothing, not even a count of zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from streamjoin.errors import CallError

AggregateFunction = Literal["count", "sum", "avg", "min", "max", "stddev"]


@dataclass(frozen=True)
class Aggregate:
    """A function over a column of a group's elements, and the name of the result; `count` may be without a column.

    >>> Aggregate("avg", "percentage", "mean")
    Aggregate(function='avg', column='percentage', name='mean')
    """

    function: AggregateFunction
    column: str | None
    name: str

    def __post_init__(self) -> None:
        if self.function not in get_args(AggregateFunction):
            raise CallError(
                f"unknown aggregate {self.function!r}", hint="use one of " + ", ".join(get_args(AggregateFunction))
            )
        if self.column is None and self.function != "count":
            raise CallError(f"{self.function} needs a column", hint="only count works without one")
