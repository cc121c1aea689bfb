"""Windows against the streams they stand behind: columns must be there, and sizes must fit the time axis."""

from __future__ import annotations

import pyarrow as pa

from streamjoin.algebra import Fixed, Now, Range, Rows, TimeAxis, Unbounded, Validity, Window
from streamjoin.errors import CallError
from streamjoin.language.complaint import nearest, unknown, wrong
from streamjoin.language.scope import matching
from streamjoin.language.syntax import Amount, Name, StreamClause, WindowClause
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.expression.sqltypes import from_arrow


def bind_window(
    text: str, clause: StreamClause, window: WindowClause, schema: pa.Schema, time: str | None
) -> tuple[str | None, Window]:
    """The time column that the window uses, if any, and the window."""
    stream = clause.name.text
    if window.kind == "valid":
        start, end = (_column(text, stream, schema, name) for name in window.names)
        kinds = [schema.field(name).type for name in (start, end)]
        axes = {time_axis(kind) for kind in kinds}
        zoned = {pa.types.is_timestamp(kind) and kind.tz is not None for kind in kinds}
        if None in axes or len(axes) > 1 or len(zoned) > 1:
            shown = [from_arrow(kind) for kind in kinds]
            raise wrong(
                text,
                window.names[0].start,
                f"A validity lies between two times of one kind, but {start!r} is {shown[0]} and {end!r} is {shown[1]}",
                "use two timestamps (both with a zone, or both without), two dates or two integer columns",
            )
        return None, Validity(start, end)
    if time is None:
        raise wrong(
            text,
            window.start,
            f"Stream {stream!r} has no time column, and this window needs one",
            "name its time column when you give the stream to the query, or write [VALID valid_from TO valid_to]",
        )
    axis = axis_of(text, window.start, stream, schema, time)
    by = tuple(_column(text, stream, schema, name) for name in window.names)
    try:
        found = _window(text, window, by, axis, time)
        found.resolve(axis)  # the place where wrong sizes are refused
    except CallError as error:
        if "\n" in error.message:  # it says where already
            raise
        raise wrong(text, window.start, error.message, error.hint or "look at the window's size") from None
    return time, found


def _window(text: str, window: WindowClause, by: tuple[str, ...], axis: TimeAxis, time: str) -> Window:
    if window.kind == "now":
        return Now()
    if window.kind == "unbounded":
        return Unbounded()
    assert window.size is not None  # the others have one
    if window.kind == "rows":
        return Rows(int(window.size.text), by or None, window.drain)
    if window.kind == "fixed":
        return Fixed(duration(text, window.size, axis, time))
    slide = None if window.slide is None else duration(text, window.slide, axis, time)
    return Range(duration(text, window.size, axis, time), slide)


def axis_of(text: str, at: int, stream: str, schema: pa.Schema, time: str) -> TimeAxis:
    """The axis of a stream's time column."""
    if time not in schema.names:
        raise wrong(text, at, f"Stream {stream!r} has no time column {time!r}", nearest(time, schema.names, "columns"))
    axis = time_axis(schema.field(time).type)
    if axis is None:
        raise wrong(
            text,
            at,
            f"The time column {time!r} of {stream!r} is {schema.field(time).type}, which is no time axis",
            "use a timestamp (with or without zone), a date or an integer column",
        )
    return axis


def duration(text: str, amount: Amount, axis: TimeAxis, column: str) -> int | str:
    """A length on a time axis: a number where it counts numbers, text with units elsewhere."""
    if axis is TimeAxis.INTEGER:
        if amount.unit or not amount.text.isdecimal():
            number = amount.text.split()[0].split(".")[0]
            raise wrong(
                text,
                amount.start,
                f"The time column {column!r} counts numbers, on which {amount.text!r} has no meaning",
                f"write a whole number in the unit of {column!r}, as in [RANGE {number}]",
            )
        return int(amount.text)
    if not amount.unit:
        raise wrong(
            text,
            amount.start,
            f"The time column {column!r} is a {axis.value}: the number {amount.text} alone says no time",
            f"write its unit, as in [RANGE {amount.text} {'SECONDS' if axis is TimeAxis.TIMESTAMP else 'DAYS'}]",
        )
    return amount.text


def _column(text: str, stream: str, schema: pa.Schema, name: Name) -> str:
    found = matching(name.text, schema.names)
    if len(found) == 1:
        return found[0]
    raise unknown(
        text,
        name.start,
        f"Stream {stream!r} has no column {name.text!r}" if not found else f"Column {name.text!r} is ambiguous",
        nearest(name.text, schema.names, "columns"),
    )
