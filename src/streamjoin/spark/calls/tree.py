"""A tree of relations over frames: lowered, and run by the interpreter that its frames ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from streamjoin.algebra import Rows
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.lowering.priorities import checked_priority, is_prioritised
from streamjoin.plan.multi_join import MultiJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    EVENT_JOINS,
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Query,
    Relation,
    operator_of,
    relations_of,
    streams_of,
)
from streamjoin.plan.stored import plan_name, to_stored
from streamjoin.plan.wording import in_bytes
from streamjoin.runtime.naming import OutputColumn
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.recall import ToRecall
from streamjoin.spark.calls.inputs import Input
from streamjoin.spark.calls.options import ROOM_TO_GROW, Options
from streamjoin.spark.calls.prioritising import check_priority_is_said, check_urgent
from streamjoin.spark.calls.sources import source_infos
from streamjoin.spark.early_workers import start_workers
from streamjoin.spark.marks import CallPlan, figures_behind, remember, uses_timers
from streamjoin.spark.running.interpreter import Interpreter
from streamjoin.spark.running.stream import StreamInterpreter
from streamjoin.spark.session_check import check_session
from streamjoin.spark.typing import SparkTyping
from streamjoin.state.snapshot import FORMAT
from streamjoin.state.spilling import LEAST_MEMORY


@dataclass(frozen=True)
class TreeCall:
    """A tree, its frames by name, and the options of the call.

    `columns`: the result's columns, where they are not the tree's. `numbered`: sources have numbers for names, and
    their columns the number before theirs; rows that leave unjoined are then shown in their own columns, with a flag.
    """

    inputs: Mapping[str, Input]
    query: Query
    written: Relation
    options: Options
    columns: tuple[OutputColumn, ...] | None = None
    numbered: bool = False
    reordered: bool = False

    def run(self) -> DataFrame:
        """The result as a frame, lazily."""
        for part in self.inputs.values():
            if part.streaming:
                start_workers(part.frame.sparkSession)
        plan, leaving = self.plan()
        frames = {name: part.prepared() for name, part in self.inputs.items()}
        timers = any(uses_timers(part.schema) for part in self.inputs.values())
        made = CallPlan(plan, self.query, self.written, leaving, timers, self.numbered)
        check_session(next(iter(frames.values())).sparkSession, streaming=plan.streaming)
        if not plan.streaming:
            return remember(Interpreter(plan, frames, self.options.urgent).run(), made)
        stored = to_stored(plan)
        call = {"name": plan_name(stored), "plan": stored, "format": FORMAT}
        fed_by = {name: figures_behind(part.schema) for name, part in self.inputs.items()}
        result = StreamInterpreter(plan, frames, call, self.options.urgent, fed_by).run()
        return remember(result, made, call["name"])

    def plan(self) -> tuple[PhysicalPlan, Leaving]:
        """How it runs, and what was asked of the lowering."""
        relation, options = self.query.relation, self.options
        change = options.changelog()
        events = isinstance(operator_of(relation), EVENT_JOINS)
        timed = getattr(operator_of(relation), "timed", True)
        read = [self.inputs[leaf.source] for leaf in streams_of(relation)]
        session, streaming = read[0].frame.sparkSession, any(part.streaming for part in read)
        options.check_priority(prioritised=is_prioritised(relation))
        for leaf in streams_of(relation):
            part, said = self.inputs[leaf.source], leaf.priority is not None
            check_priority_is_said(part, leaf.source, said=said, joins=self.numbered)
        new = getattr(options, "new_priority", None)
        leaving = Leaving(
            columns=self.columns,
            validity=None if events or not timed or self.reordered else options.validity_names(),
            to_stream=self.query.to_stream,
            change=change,
            emit=options.checked_emit(),
            flagged=self.numbered,
            method="negative" if change and not events else options.checked_method(),
            buckets=options.buckets_for(session, streaming=streaming),
            idle_after=options.idle_ticks(),
            memory=options.memory_bytes(session),
            timers=options.timers,
            reordered=self.reordered,
            priority=options.priority_as,
            new_priority=None if new is None else checked_priority(new, len(read)),
        )
        infos = source_infos(self.inputs, relation, options, numbered=self.numbered)
        self._check(infos, leaving)
        typing = SparkTyping(session)
        plan = lower(relation, infos, typing, leaving)
        if streaming and options.leaves_buckets_open(session) and _grows_without_copies(plan):
            leaving = replace(leaving, buckets=ROOM_TO_GROW * leaving.buckets)
            plan = lower(relation, infos, typing, leaving)
        check_late(plan)
        check_memory(plan, given=options.memory is not None)
        self._check_something_waits(plan, infos)
        if options.urgent is not None:
            check_urgent(plan, self.query, raised=new is not None)
        return plan, leaving

    def _check(self, infos: Mapping[str, SourceInfo], leaving: Leaving) -> None:
        if leaving.change and self.query.to_stream is not None:
            raise CallError(
                f"{self.query.to_stream.upper()} gives events, which do not change afterwards",
                hint='leave out output="changelog"',
            )
        self._check_ignored(infos, leaving)
        if any(info.late == "join" and not isinstance(info.lateness, ToRecall) for info in infos.values()):
            self._check_late_join(leaving)

    def _check_late_join(self, leaving: Leaving) -> None:
        """Refuse late rows where they would change more than what they meet."""
        hint = 'use late="output", late="drop" (counted in sj.progress) or late="fail"'
        if not _joins_once(self.query.relation):
            raise UnsupportedError(_why_late_rows_do_not_join(self.query.relation), hint=hint)
        if any(isinstance(leaf.window, Rows) for leaf in streams_of(self.query.relation)):
            raise UnsupportedError(
                'late="join" with a row window: a late row would push others out whose ends are known already',
                hint=hint,
            )
        if leaving.method == "negative":
            raise UnsupportedError(
                'late="join" by plus and minus tuples, which are said in order of time', hint=hint
            )  # fmt: skip

    def _check_ignored(self, infos: Mapping[str, SourceInfo], leaving: Leaving) -> None:
        """Refuse what would be accepted and mean nothing: options of validity where there is none."""
        events = isinstance(operator_of(self.query.relation), EVENT_JOINS)
        if events and self.options.method != "direct":
            raise CallError(
                f"method={self.options.method!r} says how lifetimes are managed, and an event join has none",
                hint="leave it out",
            )
        for info in infos.values() if events and not self.numbered else ():
            if info.invalid != "fail":
                raise CallError(
                    f'invalid="{info.invalid}" in an event join: a row without time is not invalid, it takes nobody',
                    hint="leave it out, or filter such rows",
                )
        if self.options.validity != Options.validity and (
            leaving.validity is None or leaving.change or self.query.to_stream is not None
        ):
            raise CallError(
                f"validity={self.options.validity!r} names columns that this result has not: it is of events",
                hint="leave it out",
            )

    def _check_something_waits(self, plan: PhysicalPlan, infos: Mapping[str, SourceInfo]) -> None:
        """Refuse what only an operator with state could do."""
        if plan.stages:
            self._check_late_is_read(plan, infos)
            return
        if self.options.idle_after is not None and plan.streaming:
            raise CallError(
                "idle_after in a query that keeps nothing: no row waits for an idle input", hint="leave it out"
            )
        if self.options.emit == "ordered":
            raise UnsupportedError(
                'emit="ordered" of a query that keeps nothing: its rows pass as they come', hint="sort them afterwards"
            )
        for late in sorted({info.late for info in infos.values()} - {"drop"}) if plan.streaming else ():
            raise CallError(
                f'late="{late}" in a query that keeps nothing: no row is too late for it',
                hint=f'leave out late="{late}"',
            )

    def _check_late_is_read(self, plan: PhysicalPlan, infos: Mapping[str, SourceInfo]) -> None:
        """Refuse what is said of the late rows of one stream that no operator reads. What is said of all streams is
        meant for those that one does.
        """
        if self.options.late is None or isinstance(self.options.late, str):
            return
        read = {source.name for source in plan.sources if source.target is not None}
        for name in sorted(infos.keys() - read):
            late = infos[name].late
            if infos[name].streaming and late != "drop":
                raise CallError(
                    f'late="{late}" of {infos[name].label}, of which nothing is kept: its rows pass as they come, and '
                    "none is too late",
                    hint="leave it out for this stream",
                )


def _grows_without_copies(plan: PhysicalPlan) -> bool:
    """Whether more buckets copy no row: all stages place theirs by hash."""
    return all(type(each.partitioning) is Partitioning for stage in plan.stages for each in stage.inputs)


def _joins_once(relation: Relation) -> bool:
    top = operator_of(relation)
    return isinstance(top, (Join, MultiJoin, *EVENT_JOINS)) and all(
        not operator_of(child).children for child in top.children
    )


def _why_late_rows_do_not_join(relation: Relation) -> str:
    """A join has more results with a late row, and the others stay as they are. What else is there changes them."""
    below = list(relations_of(relation))
    if any(isinstance(each, Aggregation | Distinct | Difference | Intersection) for each in below):
        return 'late="join" in groups or set operators: a late row would change results that have left'
    if not any(isinstance(each, (Join, MultiJoin, *EVENT_JOINS)) for each in below):
        return 'late="join" is for joins, and here is none'
    return 'late="join" in a query of several operators: a row may be part of many results, each behind what has left'


def check_late(plan: PhysicalPlan) -> None:
    """Refuse late rows where a second stage decides about them, or could not show them.

    It tells rows apart by content and validity. A late row need not meet whom an equal one met in time, and would be
    taken for it: a row that met nobody could be lost. And what a stage made of rows that were idle can be late for the
    next one, which has only the result.
    """
    for stage in plan.stages:
        going = [channel for each in stage.inputs for channel in each.channels if not channel.ended]
        late = [channel.late for channel in going]
        shown = [each for each in going if each.buckets and not each.follows and each.late == "output"]
        if stage.idle_after is not None and len(going) > 1 and shown:
            raise UnsupportedError(
                f'late="output" beside idle_after: what {shown[0].label} became together may be late for the next '
                "operator, where none of its rows can be shown any more",
                hint='use late="fail" or late="drop" (counted in sj.progress), or join in two calls',
            )
        if stage.outlet.testimony and "join" in late and not stage.complete:
            terms = stage.nodes[-1].config.terms
            raise UnsupportedError(
                f'late="join" in a {terms.how} join whose rows go to several buckets, and a second stage decides who '
                "met nobody: it tells rows apart by content and validity, and a late row need not meet whom an equal "
                "one met in time",
                hint='use late="output" or late="drop", give equality keys (by=), or buckets=1',
            )


def check_memory(plan: PhysicalPlan, *, given: bool) -> None:
    """Refuse a budget with which no run could be merged, or for which there is nothing to do."""
    areas = {stage.number: sum(node.areas for node in stage.nodes) for stage in plan.stages}
    if given and not any(areas.values()):
        raise CallError(
            "memory= bounds what a join keeps, and this query has none",
            hint="leave it out: what groups, row windows and set operators keep stays in memory",
        )
    for stage in plan.stages:
        least = areas[stage.number] * LEAST_MEMORY
        if stage.memory is not None and stage.memory < least:
            raise CallError(
                f"memory={in_bytes(stage.memory)!r} is too little for a join that keeps {areas[stage.number]} inputs: "
                "runs of each are merged with a page of every run in memory",
                hint=f"give at least memory={in_bytes(least)!r}",
            )
