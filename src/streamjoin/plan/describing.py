"""What the operators of a physical plan are and do, in words.

Each operator describes itself: one function for each configuration, in `DESCRIBERS`. A new operator is one more entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from streamjoin.algebra import FOREVER, Near
from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.algebra.similarity import Similar
from streamjoin.operators import (
    Aggregating,
    AsofJoin,
    BestMatchJoin,
    Judging,
    Multiplicity,
    NearestJoin,
    NegativeJoin,
    NegativeWindow,
    NwayJoin,
    Passing,
    Pmj,
    RowWindow,
    StreamOf,
    TemporalJoin,
    Tpmj,
)
from streamjoin.plan.physical import Source
from streamjoin.plan.wording import Part, as_written, in_units

_UNTIL_ITS_END: Final = "a row is kept until the other input's progress reaches its end"
_UNTIL_PROGRESS: Final = "an element is kept until the progress of all inputs reaches its end"


@dataclass(frozen=True)
class Told:
    """An operator in words. `details` are lines of their own where it is explained alone, by their headings; `brief`
    is all of it in one. `kept` says for each input what is kept of it, and until when; or once for all of them.
    """

    operator: str
    brief: str = ""
    details: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()


# -- joins -------------------------------------------------------------------------------------------------------------


def _pairs(part: Part, emission: str) -> tuple[tuple[str, str], ...]:
    """How pairs are found, and when they leave."""
    matching = part.node.config.matching
    keys, first = part.equal_keys(), _predicate(part, matching.first)
    tests = [type(test).__name__ for test in matching.tests]
    return (
        ("emission", emission),
        ("order", _order(part, matching.first)),
        ("matches by", " and ".join(each for each in (keys, first) if each) or "validity alone"),
        *([("then tested", ", ".join(tests))] if tests else []),
    )


def _temporal(part: Part) -> Told:
    join = part.node.config
    details = _pairs(part, join.emit + (f", holding {join.hold}" if join.emit == "ordered" else ""))
    outer = f", outer by {join.outer}" if join.how != "inner" else ""
    told = f"temporal join, how={join.how}{outer}{'' if join.validity else ', without validity'}"
    kept = (_kept_of_pairs(part, 0), _kept_of_pairs(part, 1))
    return Told(told, _matches(part, join.matching), details, kept)


def _pmj(part: Part) -> Told:
    join = part.node.config
    details = _pairs(part, "eager: rows that fill memory together are joined then, all others at the end, by merging")
    told = f"progressive merge join (pmj), how=inner{'' if join.validity else ', without validity'}"
    kept = "in memory as far as it fits, otherwise in sorted runs in files, until the end"
    return Told(told, _matches(part, join.matching), details, (kept, kept))


def _negative_join(part: Part) -> Told:
    join = part.node.config
    brief = _matches(part, join.matching)
    return Told(
        f"join of plus and minus tuples, how={join.how}", brief, kept=("a row is kept until its minus tuple comes",)
    )


def _nway(part: Part) -> Told:
    join = part.node.config
    inputs = range(len(join.schemas))
    keys = list(dict.fromkeys(part.called_all(number, part.binding(number).keys) for number in inputs))
    texts = [f"equal {' = '.join(keys)}"] if any(keys) else []
    if join.common is not None:
        texts.append(f"a point that all have in common, of {_interval(part, join)}")
    for link in join.links:
        if not join.graph.is_common(link):
            texts.append(_link(part, link))
    alone = _unconnected(join)
    if alone and not any(keys):
        texts.append(f"validity alone for input {' and input '.join(map(str, alone))}")
    matches = " and ".join(texts) or "validity alone"
    details = (
        ("emission", join.emit + (f", holding {join.hold}" if join.emit == "ordered" else "")),
        ("matches by", matches),
        ("asks", "the areas of all other inputs, those first in which rows have found fewest so far"),
    )
    kept = "a row is kept until the progress of all other inputs reaches its end"
    kept = kept if join.validity else "no time: every row is kept"
    told = f"join of {len(inputs)} inputs at once, how=inner{'' if join.validity else ', without validity'}"
    return Told(told, matches, details, (kept,) * len(inputs))


def _tpmj(part: Part) -> Told:
    join = part.node.config
    inputs = range(len(join.schemas))
    keys = list(dict.fromkeys(part.called_all(number, part.binding(number).keys) for number in inputs))
    texts = [f"equal {' = '.join(keys)}"] if any(keys) else []
    if join.order.interval:
        texts.append("a point that all intervals have in common")
    texts += [_link(part, link) for link in join.order.bands]
    for each in join.tests:
        link = getattr(each.test, "link", None)
        if link is not None and link.predicate is not None:
            texts.append(_link(part, link))
    matches = " and ".join(texts)
    details = (
        ("emission", "ordered, when sorted runs are merged"),
        ("matches by", matches),
        ("merges", f"{join.merge!r}"),
    )
    kept = "a row is kept in a sorted run, until a merge with the oldest finds that it has ended"
    return Told(
        f"join of {len(inputs)} inputs in sorted runs (tpmj), how=inner", matches, details, (kept,) * len(inputs)
    )


def _interval(part: Part, join: Any) -> str:
    link = next(link for link in join.links if join.graph.is_common(link))
    return f"[{part.called_all(link.one, link.predicate.left)})"


def _link(part: Part, link: Any) -> str:
    """A predicate between two of the inputs."""
    one, two, predicate = link.one, link.two, link.predicate
    if isinstance(predicate, Band):
        ends = ((one, predicate.left), (two, predicate.right))
        a, b = (f"{part.called(number, str(name))} of input {number}" for number, name in ends)
        if predicate.below == predicate.above == 0:
            return f"{a} = {b}"
        left, right = "[" if predicate.low_closed else "(", "]" if predicate.high_closed else ")"
        low, high = (in_units(bound, part.kind(one, predicate.left)) for bound in (-predicate.below, predicate.above))
        return f"{b} - {a} in {left}{low}, {high}{right}"
    if isinstance(predicate, Similar):
        return _similarity(predicate, *(
            f"{part.called(number, str(name))} of input {number}"
            for number, name in ((one, predicate.left), (two, predicate.right))
        ))  # fmt: skip
    a, b = (f"({part.called_all(n, side)}) of input {n}" for n, side in ((one, predicate.left), (two, predicate.right)))
    if isinstance(predicate, Overlaps):
        return f"{a} overlaps {b}"
    return f"{predicate.metric} distance of {a} and {b} at most {predicate.radius:g}"


def _unconnected(join: Any) -> list[int]:
    """Inputs that no predicate joins with any other."""
    return [number for number in range(len(join.schemas)) if not any(link.joins(number) for link in join.links)]


def _matches(part: Part, matching: Any) -> str:
    """All that must hold, in one line."""
    tests = (_test(part, test) for test in matching.tests)
    parts = (part.equal_keys(both=True), _predicate(part, matching.first), *tests)
    return " and ".join(each for each in parts if each) or "validity alone"


def _test(part: Part, test: Any) -> str:
    text = getattr(test, "text", None)
    return as_written(part.plan, text) if text is not None else _predicate(part, getattr(test, "predicate", None))


def _predicate(part: Part, predicate: Any) -> str:
    if isinstance(predicate, Band):
        left, right = "[" if predicate.low_closed else "(", "]" if predicate.high_closed else ")"
        kind = part.kind(0, predicate.left)
        low, high = (in_units(bound, kind) for bound in (-predicate.below, predicate.above))
        return f"{part.called(1, predicate.right)} - {part.called(0, predicate.left)} in {left}{low}, {high}{right}"
    if isinstance(predicate, Overlaps):
        return f"[{part.called_all(0, predicate.left)}) overlaps [{part.called_all(1, predicate.right)})"
    if isinstance(predicate, Within):
        axes = part.called_all(0, predicate.left)
        return f"{predicate.metric} distance over ({axes}) at most {predicate.radius:g}"
    if isinstance(predicate, Similar):
        return _similarity(predicate, part.called(0, predicate.left), part.called(1, predicate.right))
    return ""


def _similarity(predicate: Similar, one: str, two: str) -> str:
    bound = "at most" if predicate.measure == "edit" else "at least"
    measured = {"edit": "edit distance", "overlap": "shared elements"}.get(predicate.measure, predicate.measure)
    return f"{measured} of {one} and {two} {bound} {predicate.threshold:g}"


def _order(part: Part, first: Any) -> str:
    by = {Band: "value", Overlaps: "lo", Within: "grid row, x"}.get(type(first), "ts")
    index = ", an index of prefix tokens beside each" if isinstance(first, Similar) else ""
    return f"runs sorted by ({'key, ' if part.binding(0).keys else ''}{by}){index}"


def _kept_of_pairs(part: Part, number: int) -> str:
    if part.node.config.validity:
        return _UNTIL_ITS_END
    return _kept_for_a_while(part, number)


def _kept_for_a_while(part: Part, number: int) -> str:
    forget_after = part.binding(number).forget_after
    if forget_after is None:
        return "no time: every row is kept"
    return f"a row is kept until the other input's progress is {part.in_time(forget_after)} beyond its time"


def _asof(part: Part) -> Told:
    join, keys = part.node.config, part.equal_keys() or "time alone"
    takes = f"{join.choice.describe(part.in_time)}; ties: the greatest by {_ties(part)}"
    kept = ("a row waits until the other input's progress proves its answer", _kept_history(part))
    return _choosing(part, "as-of join", "ts", keys, takes, kept)


def _kept_history(part: Part) -> str:
    forget_after = part.binding(1).forget_after
    if not part.node.config.choice.looks_back:
        return _kept_for_a_while(part, 1)
    limit = "" if forget_after == FOREVER else f", or is {part.in_time(forget_after)} beyond its time"
    return (
        f"a row is kept until the smallest left time that waits or can come has passed the next row of its key{limit}"
    )


def _nearest(part: Part) -> Told:
    join, within = part.node.config, part.node.config.within
    matches = f"{_and(part.equal_keys())}a {within.metric} distance of at most {within.radius:g}"
    takes = f"{join.choice.describe(part.in_time)}; ties: the greatest by {_ties(part)}"
    return _choosing(part, "nearest join", "grid row, x", matches, takes, _kept_of_candidates(part))


def _best_match(part: Part) -> Told:
    join = part.node.config
    within = ", ".join(
        f"{part.called(0, str(each.left))} "
        + (f"{each.epsilon:g}" if isinstance(each, Near) else in_units(each.above, part.kind(0, each.left)))
        for each in join.dimensions
    )
    matches, first = f"{_and(part.equal_keys())}distances of at most {within}", part.called(0, join.dimensions[0].left)
    return _choosing(part, "best-match join", first, matches, join.choice.describe(), _kept_of_candidates(part))


def _choosing(part: Part, name: str, by: str, matches: str, takes: str, kept: tuple[str, ...]) -> Told:
    emission = "ordered" if part.node.config.emit == "ordered" else "when final"
    if part.plan.sink.shape.change:
        emission = "a first answer at once, and corrections"
    details = (
        ("emission", emission),
        ("order", f"runs sorted by ({'key, ' if part.binding(0).keys else ''}{by})"),
        ("matches by", matches),
        ("takes", takes),
    )
    return Told(f"{name}, how={part.node.config.how}", f"{matches}; takes {takes}", details, kept)


def _kept_of_candidates(part: Part) -> tuple[str, ...]:
    if part.binding(0).forget_after is None:
        return ("no time: every row is kept",) * 2
    waits = "a row waits until the other input's progress is beyond its reach"
    taken = "a row is kept while one that waits or can come may reach it"
    return (waits, taken) if part.node.config.chooser == 0 else (taken, waits)


def _ties(part: Part) -> str:
    return ", ".join((*(part.called(1, name) for name in part.node.config.choice.tie_break), "content"))


def _and(text: str) -> str:
    return f"{text} and " if text else ""


# -- other operators ---------------------------------------------------------------------------------------------------


def _row_window(part: Part) -> Told:
    window = part.node.config
    groups = next((feeder.groups for feeder in part.feeders(0) if isinstance(feeder, Source)), ())
    newest = "the newest row" if window.size == 1 else f"the newest {window.size} rows"
    drained = ", until just after the last one" if window.drain else ""
    brief = newest + (f" of each {', '.join(groups)}" if groups else "") + drained
    if isinstance(window, RowWindow):
        return Told("row window", brief, kept=("the time of a row is kept until it is no longer among them",))
    return Told("row window of plus and minus tuples", brief, kept=("a row is kept until it is no longer among them",))


def _negative_window(part: Part) -> Told:
    if part.node.config.size is not None:
        return _row_window(part)
    return Told("window of plus and minus tuples", kept=("a row is kept until progress reaches its end",))


def _multiplicity(part: Part) -> Told:
    return Told(part.node.config.operator.upper(), kept=(_UNTIL_PROGRESS,))


def _aggregating(part: Part) -> Told:
    config = part.node.config
    results = ", ".join(
        f"{each.name} = {each.function}({'*' if each.column is None else part.called(0, each.column)})"
        for each in config.aggregates
    )
    by = f"by {part.called_all(0, config.keys)}, " if config.keys else ""
    return Told("aggregation", f"{by}{results}", kept=(_UNTIL_PROGRESS,))


def _stream_of(part: Part) -> Told:
    return Told(part.node.config.kind.upper(), kept=(_UNTIL_PROGRESS,))


def _passing(part: Part) -> Told:
    ended = {channel.ended for each in part.stage.inputs for channel in each.channels}
    what = "a table beside a stream" if len(ended) > 1 else "rows that are brought into order"
    return Told("union", what, kept=("nothing: a row passes as it comes",))


def _judging(part: Part) -> Told:
    who = " and ".join(f"input {verdict.number}" for verdict in part.node.config.verdicts)
    kept = "a row waits until every bucket of the join is past its end"
    return Told("verdict", f"which rows of {who} of the join met nobody", kept=(kept,))


DESCRIBERS: Final[dict[type, Callable[[Part], Told]]] = {
    TemporalJoin: _temporal,
    AsofJoin: _asof,
    NearestJoin: _nearest,
    BestMatchJoin: _best_match,
    NegativeJoin: _negative_join,
    NwayJoin: _nway,
    Tpmj: _tpmj,
    Pmj: _pmj,
    RowWindow: _row_window,
    NegativeWindow: _negative_window,
    Multiplicity: _multiplicity,
    Aggregating: _aggregating,
    StreamOf: _stream_of,
    Passing: _passing,
    Judging: _judging,
}


def describe_operator(part: Part) -> Told:
    """An operator in words."""
    return DESCRIBERS[type(part.node.config)](part)
