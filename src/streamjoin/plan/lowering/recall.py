"""Recall targets in a tree: where one may stand, and the join that it is bound to.

Rows join on arrival, late ones too; only how long rows are kept adapts. So it is for joins whose results are right
whenever they leave: two streams, windows of one length or an interval of time, whatever else they are joined by. Only
selections and projections may stand around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamjoin.algebra import Now, Range, Rows
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.lowering.feeds import Lowered, SourceFeed
from streamjoin.plan.lowering.joining import JoinParts
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.relation import EVENT_JOINS, IntervalJoin, Join, Relation, operator_of, streams_of
from streamjoin.runtime.recall import ToRecall, finest

_INSTEAD = 'lateness=sj.Grace("10 seconds") or sj.MaxDelay() instead'


def check_recall(relation: Relation, sources: Mapping[str, SourceInfo], leaving: Leaving) -> None:
    """Refuse a recall target where it would not mean what it says."""
    leaves = streams_of(relation)
    infos = [sources[leaf.source] for leaf in leaves]
    if not any(isinstance(info.lateness, ToRecall) for info in infos):
        return
    top = operator_of(relation)
    if isinstance(top, EVENT_JOINS) and not isinstance(top, IntervalJoin):
        raise UnsupportedError(
            "a recall target in a join in which rows choose: what a row has chosen is final, and cannot be found later",
            hint=_INSTEAD,
        )
    two = isinstance(top, Join | IntervalJoin) and all(not operator_of(child).children for child in top.children)
    if not two or leaving.to_stream is not None:
        raise UnsupportedError(
            "a recall target is for one join of two streams, with selections and projections around it",
            hint=_INSTEAD,
        )
    _check_inputs(infos)
    for leaf in leaves:
        _check_window(leaf.window)
    if leaving.emit == "ordered":
        raise CallError(
            'a recall target cannot be combined with emit="ordered": a late row\'s results would leave out of order',
            hint="leave emit out, or " + _INSTEAD,
        )
    if leaving.change or leaving.method == "negative":
        raise UnsupportedError(
            "a recall target by plus and minus tuples, which are said in order of time", hint=_INSTEAD
        )  # fmt: skip


def _check_inputs(infos: list[SourceInfo]) -> None:
    """Both inputs are streams with the same target, and late rows join."""
    if any(info.lateness != infos[0].lateness for info in infos):
        raise CallError(
            "a recall target is for both inputs of a join: a result is lost by either of them",
            hint="give lateness=sj.Recall(...) once, for two streams; for a stream beside a table, which is there from "
            'the start, lateness=sj.Grace("0 seconds")',
        )
    for info in infos:
        if info.late != "join":
            raise CallError(
                f'late="{info.late}" beside a recall target: rows join on arrival, late ones too',
                hint='leave late out, or late="join"',
            )


def _check_window(window: Any) -> None:
    """A target counts which rows meet by their time stamps: all rows of an input must be valid for as long."""
    if isinstance(window, Rows):
        raise UnsupportedError(
            "a recall target with a row window: a late row would move ends that are known already", hint=_INSTEAD
        )
    if window is not None and not isinstance(window, Now) and (not isinstance(window, Range) or window.slide):
        raise UnsupportedError(
            f"a recall target with {type(window).__name__} and rows that are not all valid for as long",
            hint="use sj.Range without a slide, sj.Now or sj.join_interval; or " + _INSTEAD,
        )


def bound_to(join: Any, parts: JoinParts, children: list[Lowered]) -> list[Lowered]:
    """The inputs of a join; a recall target is told what is joined."""
    feeds = [child.feeds[0] for child in children]
    if not all(isinstance(feed, SourceFeed) and isinstance(feed.info.lateness, ToRecall) for feed in feeds):
        return children
    if any(parts.followed):
        raise UnsupportedError(
            f"a recall target in a {join.how} join whose rows go to several buckets: a second stage decides who met "
            "nobody, and late rows cannot join there",
            hint='use how="inner", give equality keys (by=), or buckets=1',
        )
    one, two = (_length(feed, parts, number) for number, feed in enumerate(feeds))
    bound = []
    for number, feed in enumerate(feeds):
        assert isinstance(feed, SourceFeed)
        wanted = feed.info.lateness
        assert isinstance(wanted, ToRecall)
        if wanted.granularity is not None and wanted.granularity > finest((one, two)):
            raise CallError(
                "granularity of a recall target may be a fortieth of both windows together at most, or the prediction "
                "is no use",
                hint="leave it out",
            )
        lateness = wanted.side(number, (one, two), keyed=bool(parts.keys))
        bound.append(Lowered((replace(feed, info=replace(feed.info, lateness=lateness)),)))
    return bound


def _length(feed: Any, parts: JoinParts, number: int) -> int:
    """How long a row is valid, or in an event join kept."""
    forget = parts.bindings[number].forget_after
    if forget is not None:
        return forget
    window = feed.reading.window
    return window.size if isinstance(window, Range) else 1  # type: ignore[return-value]
