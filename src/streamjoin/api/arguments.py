"""What parameters of the public functions take, and how their options become one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from streamjoin.errors import says_what_fits
from streamjoin.spark.calls.options import Options

T = TypeVar("T")
P = ParamSpec("P")
Gathered = TypeVar("Gathered", bound=Options)

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
# Called with urgent results in the worker: a table of them, the number of the micro-batch, and that of the bucket.
Handler: TypeAlias = Callable[[pa.Table, int, int], Any]
# A length of time: "5 seconds" or a timedelta over timestamps and dates, a number over integers.
Length: TypeAlias = str | timedelta | int
# A number of the type of the column that it is compared with: for times a length of time.
Bound: TypeAlias = Any


def gathers(kind: type[Gathered]) -> Callable[[Callable[Concatenate[Gathered, P], DataFrame]], Callable[P, DataFrame]]:
    """A public function whose body gets its options as one value besides: those parameters that are fields of `kind`.

    Whoever calls it does not see that value, which comes first; the function's signature is as it is written without.

    >>> @gathers(Options)
    ... def counted(options, *frames, late="fail", buckets=None): return options
    >>> counted(buckets=3).late, counted(buckets=3).buckets, str(inspect.signature(counted))
    ('fail', 3, "(*frames, late='fail', buckets=None)")
    """
    known = {each.name for each in fields(kind)}

    def gathering(function: Callable[Concatenate[Gathered, P], DataFrame]) -> Callable[P, DataFrame]:
        signature = inspect.signature(function)
        public = signature.replace(parameters=list(signature.parameters.values())[1:])

        @functools.wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> DataFrame:
            bound = public.bind(*args, **given)
            bound.apply_defaults()
            options = kind(**{name: value for name, value in bound.arguments.items() if name in known})
            return function(options, *args, **given)

        call.__signature__ = public  # type: ignore[attr-defined]
        return says_what_fits(call)

    return gathering
