"""The sources of a tree: what is known of each frame before anything runs, above all how late its rows may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamjoin.algebra import Grace, TimeAxis, Validity
from streamjoin.errors import CallError
from streamjoin.plan.condition import one_column
from streamjoin.plan.lowering import SourceInfo
from streamjoin.plan.relation import EVENT_JOINS, Projection, Relation, Selection, Stream, streams_of
from streamjoin.runtime.lateness import Complete, Lateness, Slack, Timeless
from streamjoin.spark.calls.inputs import Input
from streamjoin.spark.calls.options import Options, per_source
from streamjoin.spark.marks import delay_of_column, made_by


def source_infos(
    inputs: Mapping[str, Input], relation: Relation, options: Options, *, numbered: bool
) -> dict[str, SourceInfo]:
    """What is known of the frames that a tree reads. `numbered`: their columns have the frame's number before them."""
    times = time_columns(relation)
    used = list(dict.fromkeys(leaf.source for leaf in streams_of(relation)))
    names = list(inputs)
    late, invalid = options.late_of(names), options.invalid_of(names)
    lateness = per_source(options.lateness, names, "lateness", None)
    infos = {}
    for name in used:
        part = inputs[name]
        infos[name] = SourceInfo(
            name,
            part.fields,
            part.label,
            lateness_of(part, lateness[name], times.get(name)),
            part.streaming,
            late[name],
            invalid[name],
            f"{name}." if numbered else "",
            made_by(part.frame),
            part.derived,
            whole=not numbered and "output" in (late[name], invalid[name]),
        )
    return infos


def time_columns(relation: Relation) -> dict[str, str]:
    """Of each source, the frame's column that says when its rows are; none where that is computed, or nothing does."""
    found: dict[str, str] = {}
    if isinstance(relation, Stream) and relation.window is not None:
        start = relation.window.start if isinstance(relation.window, Validity) else relation.time
        return {} if start is None else {relation.source: str(start)}
    if isinstance(relation, EVENT_JOINS):
        times = event_times(relation)
        for child, time in zip(relation.children, times or (None, None), strict=True):
            source = None if time is None else _own_column(child, time)
            found |= {} if source is None else {source[0]: source[1]}
    for child in relation.children:
        found |= time_columns(child)
    return found


def event_times(join: Any) -> tuple[str, str] | None:
    """The columns by which the progress of a join's children is counted."""
    if join.times is None and hasattr(join, "dimensions"):
        one, two, _ = join.dimensions[0]
        return one, two
    times: tuple[str, str] | None = join.times
    return times


def _own_column(relation: Relation, name: str) -> tuple[str, str] | None:
    """The source and its column that a column of a relation is, if it is nothing else."""
    if isinstance(relation, Stream):
        return relation.source, dict(relation.reads)[name]
    if isinstance(relation, Selection):
        return _own_column(relation.child, name)
    if isinstance(relation, Projection):
        inner = one_column(dict(relation.computed)[name])
        return None if inner is None else _own_column(relation.child, inner)
    return None


def lateness_of(part: Input, given: Any, column: str | None) -> Lateness:
    """As the call says, or the frame's watermark; or as is known: rows stamped on arrival, results of a join."""
    if given is not None and not isinstance(given, Grace):
        raise CallError(f"lateness must be a policy, got {given!r}", hint='lateness=sj.Grace("5 seconds")')
    axis = _axis(part, column)
    resolved = None if given is None or axis is None else given.resolve(axis)
    if given is not None and column is None:
        raise CallError("lateness needs a time", hint="give time= and window=")
    if not part.streaming:
        return Complete()
    if column is None:
        return Timeless()
    if resolved is not None:
        assert isinstance(resolved.delay, int)
        return Slack(resolved.delay)
    if column == part.arrival:
        return Slack(0)
    delay = part.watermark_delay(column)
    if delay is not None and axis is TimeAxis.TIMESTAMP:
        return Slack(delay * 1000)
    behind = delay_of_column(part.frame, column)
    if behind is not None:
        return Slack(behind)
    raise CallError(
        f"nothing says how late rows of {part.label} may be, and guessing would lose rows",
        hint="give lateness=sj.Grace(0.5), a distance of the values that the streams are ordered by"
        if column in part.hidden
        else f'give lateness=sj.Grace("10 seconds"), or use withWatermark("{column}", "10 seconds")',
    )


def _axis(part: Input, column: str | None) -> TimeAxis | None:
    if column is None:
        return None
    try:
        return part.time_axis(column)
    except CallError:
        if part.types[column].text in ("double", "float") or part.types[column].text.startswith("decimal"):
            return None  # a best-match join may be ordered by any number
        raise
