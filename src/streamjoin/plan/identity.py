"""What the state of a stage depends on, in words: a query that goes on may differ in none of it, but for lateness.

The words are for people, who shall be told what has changed. That nothing else has is seen by a digest of all parts of
the plan up to the stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streamjoin.algebra import Band, Predicate
from streamjoin.operators.contract import JoinTerms
from streamjoin.plan.physical import Collate, Compute, Computed, Edge, Filter, Fold, PhysicalPlan, Rank, Source, Step
from streamjoin.plan.stored import plan_name, to_stored
from streamjoin.plan.wording import describe_priority, describe_window, in_units
from streamjoin.runtime.outlet import ToCourt, ToUser
from streamjoin.runtime.stage import Stage

# A digest, not words.
REST: Final = "plan"


def identity_of(plan: PhysicalPlan, stage: Stage) -> dict[str, str]:
    """By name: windows, times and columns of all sources below, what is computed of them, operators, and buckets."""
    below = list(stages_below(plan, stage))
    channels = {channel for each in below for channel in plan.feeders(each)} | {stage.outlet.way.channel}
    sources = [source for source in plan.sources if source.channel in channels]
    edges = [edge for edge in plan.edges if edge.channel in channels]
    joins = [join for each in below for join in _joins(each)]
    parts = {
        "window": ", ".join(_window(plan, source) for source in sources),
        "time": ", ".join(str(source.reading.called) for source in sources),
        "choice": ", ".join(dict.fromkeys(_choices(plan, joins))) or "none",
        "keys": "; ".join(str(key) for each in below for key in _keys(plan, each)),
        "predicates": "; ".join(str(each) for each in dict.fromkeys(_predicates(plan, below, joins))) or "none",
        "schema": "; ".join(_columns(source) for source in sources),
        "buckets": ", ".join(_buckets(each) for each in below),
        "how": ", ".join(f"{each.how}, outer by {each.outer}" for each in joins) or "none",
        "emit": f"{'ordered' if _ordered(stage) else 'eager'}, {_held(stage)}, {stage.outlet.leaves}",
        "output": "changelog" if plan.sink.shape.change else "append",
        "late": ", ".join(channel.late for each in below for given in each.inputs for channel in given.channels),
        "static": ", ".join(source.reading.label for source in sources if source.complete) or "no input",
        "query": "; ".join([*(_computed(source) for source in sources), *(_steps(edge) for edge in edges)]),
    }
    ranked = [
        f"{source.name}: {describe_priority(source)}" for source in sources if source.reading.priority is not None
    ]
    priority = {"priority": "; ".join(ranked)} if ranked else {}
    derived = [text for source in sources for text in source.derived]
    expressions = {"expressions": str(derived)} if derived else {}
    whole = plan_name([to_stored(each) for each in (*sources, *edges, *map(_inside, below))])
    return parts | expressions | priority | {REST: whole}


def _inside(stage: Stage) -> Stage:
    """A stage but for what its results are called when they leave."""
    way = stage.outlet.way
    return (
        replace(stage, outlet=replace(stage.outlet, way=ToCourt(way.channel, 0))) if isinstance(way, ToUser) else stage
    )


def stages_below(plan: PhysicalPlan, stage: Stage) -> Iterator[Stage]:
    """The stage, and all that it reads."""
    yield stage
    feeders = set(plan.feeders(stage))
    for other in plan.stages:
        if other.outlet.way.channel in feeders:
            yield from stages_below(plan, other)


def _window(plan: PhysicalPlan, source: Source) -> str:
    if source.reading.window is None:
        return "None"
    return describe_window(source.reading, source.groups, plan.time_type)


def _choices(plan: PhysicalPlan, joins: list[JoinTerms]) -> Iterator[str]:
    for join in joins:
        if join.choice is not None:
            yield join.choice.describe(lambda ticks: in_units(ticks, plan.time_type))


def _keys(plan: PhysicalPlan, stage: Stage) -> Iterator[tuple[str, ...]]:
    channels = set(plan.feeders(stage))
    return (target.binding.keys for target in plan.targets if target.channel in channels)


def _predicates(plan: PhysicalPlan, stages: list[Stage], joins: list[JoinTerms]) -> Iterator[str]:
    channels = {channel for stage in stages for channel in plan.feeders(stage)}
    for target in plan.targets:
        if target.channel in channels and target.binding.predicates:
            yield str(tuple(_in_words(plan, each) for each in target.binding.predicates))
    for link in (link for join in joins for link in join.links):
        yield f"inputs {link.one} and {link.two}: {_in_words(plan, link.predicate)}"
    yield from (text for join in joins for text in join.texts)
    behind = {stage.outlet.way.channel for stage in stages}
    for edge in plan.edges:
        if edge.channel in behind:
            yield from (step.condition for step in edge.steps if isinstance(step, Filter))


def _in_words(plan: PhysicalPlan, predicate: Predicate | None) -> Predicate | None:
    """A band with its bounds as people write them."""
    if not isinstance(predicate, Band):
        return predicate
    fields = (field for source in plan.sources for field in (*source.fields, *source.hidden))
    kind = next((field.type.arrow for field in fields if field.name == predicate.left), None)
    return replace(predicate, below=in_units(predicate.below, kind), above=in_units(predicate.above, kind))


def _joins(stage: Stage) -> list[JoinTerms]:
    return [node.config.terms for node in stage.nodes if node.config.terms is not None]


def _held(stage: Stage) -> str:
    held = dict.fromkeys(join.hold for join in _joins(stage) if join.hold is not None)
    return f"holding {', '.join(held) or 'nothing'}"


def _buckets(stage: Stage) -> str:
    return ", ".join(dict.fromkeys(str(given.partitioning) for given in stage.inputs))


def _ordered(stage: Stage) -> bool:
    return stage.outlet.ordered or any(join.emit == "ordered" for join in _joins(stage))


def _columns(source: Source) -> str:
    return ", ".join(f"{field.name} {field.type.text}" for field in (*source.fields, *source.hidden))


def _computed(source: Source) -> str:
    return f"{source.name}: {', '.join(f'{column} as {name}' for name, column in source.reads)}{_words(source.steps)}"


def _steps(edge: Edge) -> str:
    return f"channel {edge.channel}{_words(edge.steps)}"


def _words(steps: tuple[Step, ...]) -> str:
    return "".join(f" | {_step(step)}" for step in steps)


def _step(step: Step) -> str:
    if isinstance(step, Compute):
        return ", ".join(_one(each) for each in step.columns)
    if isinstance(step, Fold):
        return "whole rows"
    if isinstance(step, Rank):
        return f"priority {step.text}"
    if isinstance(step, Collate):
        return f"collation keys of {', '.join(column for _, column in step.columns)}"
    return f"{'where' if isinstance(step, Filter) else 'marked'} {step.condition}"


def _one(column: Computed) -> str:
    return f"{column.text} as {column.name}" + ("" if column.cast is None else f" {column.cast.text}")
