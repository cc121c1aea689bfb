"""What a query was begun with, read from its checkpoint: whoever goes on with it, on whatever machine, needs the same.

The state of every bucket has the call that made it (see `bucket`), so one row of each stateful operator says it all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamjoin.algebra import Grace, LatenessPolicy, MaxDelay, Recall, TimeAxis
from streamjoin.algebra.time import Duration
from streamjoin.errors import CallError
from streamjoin.plan.identity import identity_of
from streamjoin.plan.stored import from_stored, plan_name, to_stored
from streamjoin.plan.wording import in_units
from streamjoin.runtime.lateness import LargestDelay, Slack
from streamjoin.runtime.recall import RecallSide, finest
from streamjoin.spark.marks import plan_if_any
from streamjoin.spark.stored.bucket import check_same
from streamjoin.spark.stored.checkpoint_log import CheckpointLog
from streamjoin.spark.stored.finish import StoredStage, stored_stages

Lateness = tuple[LatenessPolicy | None, ...] | Mapping[str, LatenessPolicy | None]


@dataclass(frozen=True)
class Checkpoint:
    """What a query was begun with. Before its first micro-batch is over nothing of it is known, and nothing is bound.

    buckets    into how many its state is cut, for ever; None before the first micro-batch, as a call takes it
    lateness   how late rows may be, as a call takes it: one for each frame, or of a query a dict from a stream's name;
               None where the frame says it, or rows cannot be late
    call       what its state depends on, in words: window, time, keys, predicates, schema, how, ...
    """

    buckets: int | None = None
    lateness: Lateness | None = None
    call: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[StoredStage, ...] = field(default=(), repr=False)


def begun_with(spark: SparkSession, checkpoint: str) -> Checkpoint:
    """The options of the last streamjoin call of a query."""
    stages = stages_of(spark, checkpoint)
    if not stages:
        return Checkpoint()
    last = _last(stages)
    plans = {stage.name: stage.call["plan"] for stage in stages}
    buckets = max(stage["buckets"] for plan in plans.values() for stage in plan["stages"]["items"])
    return Checkpoint(buckets, _lateness(last.call["plan"]), last.call.get("identity", {}), tuple(stages))


def check_goes_on(frame: DataFrame, begun: Checkpoint) -> None:
    """Refuse a frame whose call is not the one that a query was begun with, and say in what it differs.

    A query would find out too, but only in the first micro-batch that brings rows.
    """
    stages, made = begun.stages, plan_if_any(frame)
    if not stages or made is None or plan_name(to_stored(made.plan)) in {stage.name for stage in stages}:
        return
    plan = made.plan
    last = _last(stages).name
    for stage in (each for each in stages if each.name == last):
        now = identity_of(plan, plan.stages[stage.number]) if stage.number < len(plan.stages) else {}
        check_same(stage.call.get("identity", now), now)


def stages_of(spark: SparkSession, checkpoint: str) -> list[StoredStage]:
    """The stages of a query that can go on; none before its first micro-batch is over."""
    log = CheckpointLog(spark, checkpoint)
    if log.is_finished:
        raise CallError(
            f"the query of {checkpoint} was finished, and going on would repeat rows",
            hint="begin anew, with a new checkpoint and a new output",
        )
    return stored_stages(spark, checkpoint) if log.has_committed else []


def _last(stages: Sequence[StoredStage]) -> StoredStage:
    """The last stage of the plan whose result no other one reads."""
    read = {source.get("made_by") for stage in stages for source in stage.call["plan"]["sources"]["items"]}
    last = [stage for stage in stages if stage.name not in read] or stages
    return max(last, key=lambda stage: stage.number)


def _lateness(plan: Mapping[str, Any]) -> Lateness:
    """Of every source of a stored plan, how late its rows may be, as a call takes it."""
    axis, kind = from_stored(plan["axis"]), from_stored(plan["time_type"])

    def sized(ticks: int | None) -> Duration | None:
        return ticks if ticks is None or axis is TimeAxis.INTEGER else in_units(ticks, kind)

    found: dict[str, LatenessPolicy | None] = {}
    for source in plan["sources"]["items"]:
        policy = _policy(from_stored(source["lateness"]), sized)
        # What a call has computed of a frame, to have a time, may count in other units.
        found[source["name"]] = None if source["derived"]["items"] and not isinstance(policy, MaxDelay) else policy
    return tuple(found[name] for name in sorted(found)) if all(name.isdigit() for name in found) else found


def _policy(lateness: Any, sized: Callable[[int | None], Any]) -> LatenessPolicy | None:
    """A policy as a call takes it; None where rows cannot be late."""
    match lateness:
        case Slack(ticks):
            return Grace(sized(ticks))
        case LargestDelay():
            return MaxDelay()
        case RecallSide(model):
            aim = model.aim
            step = None if aim.step == finest(model.windows) else sized(aim.step)
            initial = sized(aim.initial) if aim.initial else None
            return Recall(aim.target, sized(aim.period), sized(aim.interval), step, sized(aim.max_delay), initial)
    return None
