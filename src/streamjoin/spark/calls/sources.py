"""The sources of a tree: what is known of each frame before anything runs, above all how late its rows may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamjoin.algebra import LatenessPolicy, MaxDelay, Recall, TimeAxis, Validity
from streamjoin.errors import CallError
from streamjoin.plan.condition import one_column
from streamjoin.plan.lowering import SourceInfo
from streamjoin.plan.relation import EVENT_JOINS, Projection, Relation, Selection, Stream, event_times, streams_of
from streamjoin.runtime.lateness import Complete, LargestDelay, Lateness, Slack, Timeless
from streamjoin.runtime.recall import ToRecall
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
    lateness = per_source(options.lateness, names, "lateness", None)
    late, invalid = options.late_of(names), options.invalid_of(names)
    said = per_source(options.late, names, "late", None)
    infos = {}
    for name in used:
        part = inputs[name]
        policy = _one_lateness(part, lateness[name], times.get(name, []))
        if isinstance(policy, ToRecall) and said[name] is None:
            late[name] = "join"
        infos[name] = SourceInfo(
            name,
            part.fields,
            part.label,
            policy,
            part.streaming,
            late[name],
            invalid[name],
            f"{name}." if numbered else "",
            made_by(part.frame),
            part.derived,
            whole=not numbered and "output" in (late[name], invalid[name]),
        )
    return infos


def time_columns(relation: Relation) -> dict[str, list[str]]:
    """Of each source, the frame's columns that say when its rows are, one for each way in which it is read; none where
    that is computed, or nothing does.
    """
    found: dict[str, list[str]] = {}
    for source, column in _times_of(relation):
        if column not in found.setdefault(source, []):
            found[source].append(column)
    return found


def _times_of(relation: Relation) -> Iterator[tuple[str, str]]:
    if isinstance(relation, Stream) and relation.window is not None:
        start = relation.window.start if isinstance(relation.window, Validity) else relation.time
        yield from [] if start is None else [(relation.source, str(start))]
    if isinstance(relation, EVENT_JOINS):
        times = event_times(relation)
        for child, time in zip(relation.children, times or (None, None), strict=True):
            source = None if time is None else _own_column(child, time)
            yield from [] if source is None else [source]
    for child in relation.children:
        yield from _times_of(child)


def _one_lateness(part: Input, given: Any, columns: list[str]) -> Lateness:
    """How late rows of a source may be: there is one answer, by whichever of its times it is read."""
    first, *others = [lateness_of(part, given, column) for column in (columns or (None,))]
    if any(other != first for other in others):
        raise CallError(
            f"{part.label} is read by {' and by '.join(columns)}, which are not equally late",
            hint='say for all of them how late rows may be, with lateness=sj.Grace("...")',
        )
    return first


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
    if given is not None and not isinstance(given, LatenessPolicy):
        raise CallError(
            f"lateness must be a policy, got {given!r}",
            hint='lateness=sj.Grace("5 seconds"), sj.MaxDelay() or sj.Recall(0.95)',
        )
    axis = _axis(part, column)
    resolved = None if given is None or axis is None else given.resolve(axis)
    if given is not None and column is None:
        raise CallError("lateness needs a time", hint="give time= and window=")
    if not part.streaming:
        return Complete()
    if column is None:
        return Timeless()
    if resolved is not None:
        return _running(resolved)
    if column == part.arrival:
        return Slack(0)
    delay = part.watermark_delay(column)
    if delay is not None and axis is TimeAxis.TIMESTAMP:
        return Slack(delay * 1000)
    behind = delay_of_column(part.schema, column)
    if behind is not None:
        return Slack(behind)
    raise CallError(
        f"nothing says how late rows of {part.label} may be, and guessing would lose rows",
        hint="give lateness=sj.Grace(0.5), a distance of the values that the streams are ordered by"
        if column in part.hidden
        else f'give lateness=sj.Grace("10 seconds"), or use withWatermark("{column}", "10 seconds")',
    )


def _running(policy: Any) -> Lateness:
    """A policy in ticks, as it runs."""
    if isinstance(policy, MaxDelay):
        return LargestDelay()
    if isinstance(policy, Recall):
        sizes: Any = policy.period, policy.interval, policy.granularity, policy.max_delay, policy.initial or 0
        return ToRecall(float(policy.target), *sizes)
    return Slack(policy.delay)


def _axis(part: Input, column: str | None) -> TimeAxis | None:
    if column is None or part.types[column].text.startswith(("double", "float", "decimal")):
        return None  # a best-match join may be ordered by any number
    return part.time_axis(column)
