"""A tree of relations for people, as indented text."""

from __future__ import annotations

from streamjoin.algebra import (
    Band,
    Equals,
    Fixed,
    Now,
    Overlaps,
    Predicate,
    Range,
    Rows,
    Similar,
    Unbounded,
    Validity,
    Window,
    Within,
)
from streamjoin.plan.condition import one_column
from streamjoin.plan.multi_join import MultiJoin
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
)


def explain_relation(relation: Relation) -> str:
    """The tree as text, one line per node.

    >>> stream = Stream("R", (("R.x", "x"),), "ts", Range("5 seconds"))
    >>> print(explain_relation(Projection(Selection(stream, "`R.x` > 3"), (("x", "`R.x`"), ("y", "`R.x` + 1")))))
    Projection  x = R.x, y = `R.x` + 1
      Selection  `R.x` > 3
        Stream  R [RANGE 5 seconds]  time ts, reads x as R.x
    """
    below = [f"  {line}" for child in relation.children for line in explain_relation(child).splitlines()]
    return "\n".join(["  ".join(part for part in describe(relation) if part), *below])


def describe(relation: Relation) -> tuple[str, ...]:
    """What a node is, and what is particular about it.

    >>> describe(Stream("R", (), "ts", Now()))
    ('Stream', 'R [NOW]', 'time ts, reads nothing')
    """
    name = type(relation).__name__
    if isinstance(relation, Stream):
        window = "" if relation.window is None else " " + _in_cql(relation.window)
        reads = ", ".join(own if own == here else f"{own} as {here}" for here, own in relation.reads) or "nothing"
        time = "" if relation.time is None else f"time {relation.time}, "
        priority = "" if relation.priority is None else f", priority by {relation.priority}"
        return name, f"{relation.source}{window}", f"{time}reads {reads}{priority}"
    if isinstance(relation, Selection):
        return name, relation.condition
    if isinstance(relation, Projection):
        return name, ", ".join(_computed(*one) for one in relation.computed) or "nothing"
    if isinstance(relation, Aggregation):
        keys = f"by {', '.join(relation.keys)}" if relation.keys else ""
        aggregates = (
            f"{one.name} = {one.function}({'*' if one.column is None else one.column})" for one in relation.aggregates
        )
        return name, keys, ", ".join(aggregates)
    if isinstance(relation, Difference | Intersection):
        return name, "all" if relation.every else ""
    if isinstance(relation, Join):
        predicates = " AND ".join(describe_predicate(one) for one in relation.predicates)
        return name, relation.how, predicates, f"theta {relation.theta}" if relation.theta is not None else ""
    if isinstance(relation, MultiJoin):
        predicates = " AND ".join(dict.fromkeys(describe_predicate(one.predicate) for one in relation.between))
        return name, relation.how, predicates, f"theta {relation.theta}" if relation.theta is not None else ""
    if isinstance(relation, AsOfJoin):
        sign = {"backward": ">", "forward": "<"}.get(relation.direction, relation.direction)
        times = f"{relation.times[0]} {sign}{'=' * relation.exact} {relation.times[1]}"
        within = "" if relation.tolerance is None else f"within {relation.tolerance}"
        return name, relation.how, times, _keys(relation.keys), within
    if isinstance(relation, BestMatchJoin):
        near = ", ".join(f"|{one} - {other}| <= {largest}" for one, other, largest in relation.dimensions)
        return name, relation.how, near, _keys(relation.keys)
    return (name,)


def _computed(name: str, text: str) -> str:
    source = one_column(text)
    return name if source == name else f"{name} = {text if source is None else source}"


def _keys(keys: tuple[tuple[str, str], ...]) -> str:
    return " AND ".join(f"{one} = {other}" for one, other in keys)


def _in_cql(window: Window) -> str:
    """A window as it is written in CQL.

    >>> _in_cql(Rows(10, by=("a", "b"), drain=True)), _in_cql(Range(5, slide=1))
    ('[PARTITION BY a, b ROWS 10 DRAIN]', '[RANGE 5 SLIDE 1]')
    """
    if isinstance(window, Range):
        return f"[RANGE {window.size}{'' if window.slide is None else f' SLIDE {window.slide}'}]"
    if isinstance(window, Fixed):
        return f"[FIXED {window.size}]"
    if isinstance(window, Rows):
        by = f"PARTITION BY {', '.join(map(str, window.by))} " if isinstance(window.by, tuple) else ""
        return f"[{by}ROWS {window.size}{' DRAIN' if window.drain else ''}]"
    if isinstance(window, Validity):
        return f"[VALID {window.start} TO {window.end}]"
    return "[UNBOUNDED]" if isinstance(window, Unbounded) else "[NOW]" if isinstance(window, Now) else repr(window)


def describe_predicate(predicate: Predicate) -> str:
    """A predicate as a formula.

    >>> describe_predicate(Band("a", "b", below=1, above=2, closed="left"))
    '-1 <= b - a < 2'
    """
    if isinstance(predicate, Equals):
        return f"{predicate.left} = {predicate.right}"
    if isinstance(predicate, Band):
        low, high = "<=" if predicate.low_closed else "<", "<=" if predicate.high_closed else "<"
        return f"{_negated(predicate.below)} {low} {predicate.right} - {predicate.left} {high} {predicate.above}"
    if isinstance(predicate, Overlaps):
        (start, end), (other_start, other_end) = predicate.left, predicate.right
        return f"[{start}, {end}) overlaps [{other_start}, {other_end})"
    if isinstance(predicate, Within):
        left, right = ", ".join(predicate.left), ", ".join(predicate.right)
        return f"distance(({left}), ({right})) <= {predicate.radius}"
    if isinstance(predicate, Similar):
        compared = "<=" if predicate.measure == "edit" else ">="
        return f"{predicate.measure}({predicate.left}, {predicate.right}) {compared} {predicate.threshold}"
    return repr(predicate)


def _negated(bound: object) -> str:
    text = str(bound)
    if text[0] == "-":
        return text[1:]
    return text if text.split()[0] in ("0", "0.0") else f"-{text}"
