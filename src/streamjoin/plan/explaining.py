"""A physical plan for people: what will run, in words, and as a picture.

A join of two sources, with or without a second stage for verdicts, is one table: operator, order, buckets, inputs.
Whatever has more parts is told stage by stage: what comes in, what Spark computes on the way, the operators with what
they keep, the buckets, and how it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from streamjoin.algebra import Band, Overlaps, Rows, Within
from streamjoin.operators import Configuration, NegativeJoin, Pmj, Tpmj
from streamjoin.plan.describing import Told, describe_operator
from streamjoin.plan.lowering.merging import why_not_in_generations
from streamjoin.plan.physical import Edge, Filter, Mark, PhysicalPlan, Source, Step
from streamjoin.plan.wording import (
    Part,
    as_written,
    called,
    describe_priority,
    describe_step,
    describe_window,
    in_bytes,
    in_units,
    target_of,
    written_as,
)
from streamjoin.runtime.fragment import Entry, Inner, Node
from streamjoin.runtime.lateness import LargestDelay
from streamjoin.runtime.outlet import ToCourt, ToFrame, ToStage
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.recall import RecallSide
from streamjoin.runtime.stage import Stage


def explain_plan(plan: PhysicalPlan) -> list[str]:
    """What a plan will do, line by line."""
    if _is_one_join(plan):
        return [_line(*each) for each in (*_of_one_join(plan), *_urgent(plan))]
    lines = [line for source in plan.sources if source.target is None for line in _passing(plan, source)]
    for stage in plan.stages:
        lines += [f"stage {stage.number}", *(f"    {_line(*each)}" for each in _of_stage(plan, stage))]
    if plan.stages:
        lines += [_line(*each) for each in (*_idle(plan), *_memory(plan))]
    return lines + [_line(*each) for each in _urgent(plan)]


def _urgent(plan: PhysicalPlan) -> Iterator[tuple[str, str]]:
    for source in plan.sources:
        priority = describe_priority(source)
        if priority is not None:
            by = written_as(source.derived, priority)
            yield "urgent", f"rows of {source.reading.label} by {by}: their results leave first"


def _line(heading: str, text: str) -> str:
    return f"{heading:<15}{text}"


def _is_one_join(plan: PhysicalPlan) -> bool:
    """Whether a plan is a join of sources, and no more than a verdict on its rows."""
    if not plan.stages or len(plan.stages) > 2 or len(plan.stages[0].nodes) > 1:
        return False
    first, *court = plan.stages
    judged = all(node.config.judges for stage in court for node in stage.nodes)
    config = first.nodes[0].config
    join = config.terms is not None and not isinstance(config, NegativeJoin)
    return judged and join and len(plan.sources) == len(first.nodes[0].feeds)


# -- one join ----------------------------------------------------------------------------------------------------------


def _of_one_join(plan: PhysicalPlan) -> Iterator[tuple[str, str]]:
    stage = plan.stages[0]
    part = Part(plan, stage, stage.nodes[0])
    told = describe_operator(part)
    yield "operator", told.operator
    yield from told.details
    for step in (step for edge in plan.edges for step in edge.steps):
        yield from _left_to_spark(plan, step)
    yield "buckets", stage.inputs[0].partitioning.describe()
    if stage.outlet.testimony:
        judged = " and ".join(f"input {number}" for number in sorted({each.input for each in stage.outlet.testimony}))
        yield "verdict", f"a second stage decides which rows of {judged} met nobody"
    for number, kept in enumerate(told.kept):
        for source in (each for each in part.feeders(number) if isinstance(each, Source)):
            window = "" if source.reading.window is None else f"{_window(plan, source)}: "
            yield f"input {number}", f"{window}{kept}{_arriving(plan, source)}"
            yield from _computed(plan, source, casts=False)
    yield from _idle(plan)
    yield from _memory(plan)


def _left_to_spark(plan: PhysicalPlan, step: Step) -> Iterator[tuple[str, str]]:
    if isinstance(step, Filter):
        yield "left to Spark", as_written(plan, step.condition)
    else:
        text = describe_step(plan, step)
        yield from [("Spark computes", text)] if text else []


def _idle(plan: PhysicalPlan) -> Iterator[tuple[str, str]]:
    idle_after = plan.stages[0].idle_after
    if idle_after is not None and plan.streaming:
        looked = "timers look for it" if plan.timers else "looked at when any input delivers"
        yield "idle", f"after {in_units(idle_after, pa.timestamp('us'))}, {looked}"
    if plan.timers and any(node.config.puts_off for stage in plan.stages for node in stage.nodes):
        yield "timers", "merges go on when nothing comes"


def _memory(plan: PhysicalPlan) -> Iterator[tuple[str, str]]:
    """What a budget means for this plan: whether anything goes to files, and what stays in memory all the same."""
    memory = plan.stages[0].memory
    if memory is None:
        return
    spills = any(node.areas for stage in plan.stages if plan.streaming or stage.in_pieces for node in stage.nodes)
    where = "what does not fit goes to files in Spark's local folders" if spills else "nothing here goes to files"
    yield "memory", f"{in_bytes(memory)} in each Python process; {where}"
    if plan.streaming:
        yield from _static_in_memory(plan)
        return
    for stage in plan.stages:
        which = f"stage {stage.number}: " if len(plan.stages) > 1 else ""
        yield from ((heading, which + text) for heading, text in (*_without_pmj(stage), *_in_memory(stage)))


def _static_in_memory(plan: PhysicalPlan) -> Iterator[tuple[str, str]]:
    """Beside a stream, what of static inputs is in memory as a whole, and until when."""
    for stage in (each for each in plan.stages if not each.complete):
        which = f"stage {stage.number}: " if len(plan.stages) > 1 else ""
        for number, given in enumerate(stage.inputs):
            if not any(channel.ended for channel in given.channels):
                continue
            if stage.prioritised:
                why = "when the first micro-batch takes it: urgent rows go first"
            elif not stage.goes_ahead(number):
                why = "when the first micro-batch takes it: not all operators that take it can do with less"
            elif any(_holds(node, number) for node in stage.nodes):
                why = "until its rows have had their turn"
            else:
                continue
            yield "in memory", f"{which}input {number}, as a whole, {why}"


def _holds(node: Node, number: int) -> bool:
    """Whether an operator lets rows of an input of its stage wait before they are joined."""
    terms = node.config.terms
    if terms is None:
        return False
    mine = [at for at, feed in enumerate(node.feeds) if isinstance(feed, Entry) and feed.input == number]
    return bool(mine) and (terms.chooser in mine or (terms.emit == "ordered" and terms.hold == "inputs"))


def _without_pmj(stage: Stage) -> Iterator[tuple[str, str]]:
    """Of a batch, why a stage with joins does not run by merging sorted runs."""
    joins = [node.config for node in stage.nodes if node.areas and not isinstance(node.config, Pmj | Tpmj)]
    why = why_not_in_generations(joins[0], prioritised=stage.prioritised) if joins else None
    if why is not None:
        yield "not by pmj", f"{why}: rows go through sweep areas, as in a stream"


def _in_memory(stage: Stage) -> Iterator[tuple[str, str]]:
    """Of a batch, what a bucket has in memory as a whole."""
    if stage.prioritised:
        yield "in memory", "the inputs of a bucket, as a whole: urgent rows go first"
    elif not stage.in_pieces:
        yield "in memory", "the inputs of a bucket, as a whole: not all operators that take them can do with less"
    else:
        for config in (node.config for node in stage.nodes):
            text = _waiting(config)
            if text is not None:
                yield "in memory", text


def _waiting(config: Configuration) -> str | None:
    """What of an operator's inputs or results is in memory until the end of a batch."""
    if isinstance(config, Tpmj):
        return None
    if isinstance(config, Pmj):
        parted = config.matching.timed or isinstance(config.matching.first, Band | Overlaps | Within)
        return None if parted else "when runs are merged, all rows of a key; without keys, of a bucket"
    if isinstance(config, NegativeJoin):
        return "the inputs of a bucket, as a whole: they are joined in the order of time"
    if config.judges:
        return "rows that wait for their verdict"
    terms = config.terms
    if terms is not None and terms.chooser is not None:
        return f"rows of input {terms.chooser}, as a whole: they choose when all others are there"
    if terms is not None and terms.emit == "ordered":
        held = "the inputs of a bucket" if terms.hold == "inputs" else "the results of a bucket"
        return f"{held}, as a whole: they wait for their turn"
    return None


# -- sources -----------------------------------------------------------------------------------------------------------


def _window(plan: PhysicalPlan, source: Source) -> str:
    return describe_window(source.reading, source.groups, plan.time_type)


def _arriving(plan: PhysicalPlan, source: Source) -> str:
    """What a stream adds: how late its rows may be, or that it is there from the start."""
    if source.complete:
        return "; static, in the state from the start" if plan.streaming else ""
    if isinstance(source.lateness, LargestDelay):
        return "; rows may be as late as the latest so far"
    if isinstance(source.lateness, RecallSide):
        return f"; kept as long as {source.lateness.model.aim.target:.4g} of all results need"
    delay = source.lateness.delay
    return "" if delay is None else f"; rows may be {in_units(delay, plan.time_type)} late"


def _source(plan: PhysicalPlan, source: Source) -> str:
    window = "" if source.reading.window is None else f", {_window(plan, source)}"
    return f"{source.reading.label}{window}{_arriving(plan, source)}"


def _computed(plan: PhysicalPlan, at: Source | Edge | None, *, casts: bool = True) -> Iterator[tuple[str, str]]:
    """What Spark computes of a source's columns, or between stages."""
    steps = () if at is None else at.steps
    texts = [text for step in steps if (text := describe_step(plan, step, casts=casts))]
    if texts:
        counted = isinstance(at, Source) and isinstance(at.reading.window, Rows)
        marked = counted and any(isinstance(step, Mark) for step in steps)
        yield "Spark computes", ", then ".join(texts) + ("; other rows still count in the window" if marked else "")


def _passing(plan: PhysicalPlan, source: Source) -> list[str]:
    """A source whose rows leave as they come."""
    lines = [("input", _source(plan, source)), *_computed(plan, source), ("leaves", "at once: nothing is kept")]
    return [_line(*each) for each in lines]


# -- stages ------------------------------------------------------------------------------------------------------------


def _of_stage(plan: PhysicalPlan, stage: Stage) -> Iterator[tuple[str, str]]:
    for number, each in enumerate(stage.inputs):
        for channel in each.channels:
            if number == 0 or not stage.nodes[0].config.judges:  # all that a court reads is one stage's
                yield from _input(plan, number, channel.number)
    for number, node in enumerate(stage.nodes):
        told = describe_operator(Part(plan, stage, node))
        brief, comma = f": {told.brief}" if told.brief else "", "," if "," in told.operator else ""
        yield f"operator {number}", f"{told.operator}{comma} of {_read_by(node)}{brief}"
        yield "kept", _kept(told, node)
    yield "buckets", _buckets(plan, stage)
    yield "leaves", _leaving(plan, stage)
    edge = plan.edge_of(stage.outlet.way.channel)
    if edge is not None and edge.target is None:
        yield from _computed(plan, edge)


def _input(plan: PhysicalPlan, number: int, channel: int) -> Iterator[tuple[str, str]]:
    source = next((each for each in plan.sources if each.channel == channel), None)
    if source is not None:
        yield f"input {number}", _source(plan, source)
        yield from _computed(plan, source)
        return
    writer = next(each for each in plan.stages if each.outlet.way.channel == channel)
    yield f"input {number}", f"stage {writer.number}"
    yield from _computed(plan, plan.edge_of(channel))


def _read_by(node: Node) -> str:
    if node.config.judges:
        return "input 0"
    names = [f"operator {feed.node}" if isinstance(feed, Inner) else f"input {feed.input}" for feed in node.feeds]
    return " and ".join(names)


def _kept(told: Told, node: Node) -> str:
    if len(set(told.kept)) == 1:
        return told.kept[0]
    names = _read_by(node).split(" and ")
    return "; ".join(f"of {name}, {kept}" for name, kept in zip(names, told.kept, strict=True))


def _buckets(plan: PhysicalPlan, stage: Stage) -> str:
    """Where rows meet. What they are hashed by has the name of its columns."""
    told = "; ".join(dict.fromkeys(each.partitioning.describe() for each in stage.inputs))
    by = []
    for channel in (each.channels[0].number for each in stage.inputs):
        target = target_of(plan, channel)
        if target is not None and type(target.partitioning) is Partitioning and target.binding.placed_by:
            names = ", ".join(called(plan, (channel,), name) for name in target.binding.placed_by)
            by.append(names if len(target.binding.placed_by) == 1 else f"({names})")
    return told.replace("the equality keys", " = ".join(dict.fromkeys(by)) or "the rows")


def _leaving(plan: PhysicalPlan, stage: Stage) -> str:
    outlet, way = stage.outlet, stage.outlet.way
    reader = next((each for each in plan.stages if way.channel in plan.feeders(each)), None)
    if reader is not None and isinstance(way, ToCourt):
        return f"passed on to the same bucket of stage {reader.number}, packed, with word of rows that met nobody"
    if reader is not None:
        how = "packed" if isinstance(way, ToStage) else "as rows through Spark"
        return f"passed on to stage {reader.number}, {how}"
    when = "a result leaves when its end is known" if plan.sink.shape.validity else "a result leaves when it is made"
    when = "a changelog: every change leaves at once" if outlet.leaves == "told" else when
    ordered = ", in the order of time" if outlet.ordered else ""
    return f"{when}{ordered}{', through Spark' if isinstance(way, ToFrame) else ''}"


# -- the picture -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A source, a stage or the result, in a few lines."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Arrow:
    """Who reads a channel: the names of two boxes, and what Spark computes on the way."""

    start: str
    end: str
    channel: int
    told: tuple[str, ...]


def parts_of(plan: PhysicalPlan) -> tuple[list[Box], list[Arrow]]:
    """The plan as boxes and arrows between them; the result is the first box."""
    boxes, arrows = [Box("result", ("result", ", ".join(plan.sink.shape.schema.names)))], []
    for number, source in enumerate(plan.sources):
        boxes.append(Box(f"source{number}", tuple(_source(plan, source).split("; "))))
        arrows.append(_arrow(plan, f"source{number}", source.channel, source))
    for stage in plan.stages:
        told = [describe_operator(Part(plan, stage, node)) for node in stage.nodes]
        lines = [f"{each.operator}: {each.brief}" if each.brief else each.operator for each in told]
        boxes.append(Box(f"stage{stage.number}", (f"stage {stage.number}", *lines, _buckets(plan, stage))))
        channel = stage.outlet.way.channel
        arrows.append(_arrow(plan, f"stage{stage.number}", channel, plan.edge_of(channel)))
    return boxes, arrows


def _arrow(plan: PhysicalPlan, name: str, channel: int, at: Source | Edge | None) -> Arrow:
    reader = next((f"stage{each.number}" for each in plan.stages if channel in plan.feeders(each)), "result")
    return Arrow(name, reader, channel, tuple(text for _, text in _computed(plan, at)))


def draw_plan(plan: PhysicalPlan) -> str:
    """The plan as a mermaid flowchart: rows flow upwards, and Spark computes what stands beside an arrow."""
    boxes, arrows = parts_of(plan)
    drawn = [_box(box.name, "<br/>".join(map(_escaped, box.lines))) for box in boxes]
    for arrow in arrows:
        told = "".join(f'|"{_escaped(text)}"|' for text in arrow.told)
        drawn.append(f"    {arrow.start} -->{told} {arrow.end}")
    return "\n".join(["flowchart BT", *drawn])


def _box(name: str, text: str) -> str:
    return f'    {name}["{text}"]'


def _escaped(text: str) -> str:
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, entity)
    return text
