"""The oracle of the relational algebra over lifetimes: what a tree of relations means, by brute force.

Literally by snapshots: windows give the elements of the leaves their ends; time is cut at every start and end of one
of them; between two neighbouring cuts nothing changes, and the tree is evaluated there as ordinary relational algebra,
over lists of payloads. Of streamjoin only the nodes, windows, predicates and aggregates are used, as data.

A row is a dict of a stream's columns. An element is `(payload, ts, te)`, the payload a tuple of values. Conditions are
Spark SQL, which is not parsed here: `conditions` has a function for each text, from a row to True, False or None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise

from streamjoin.algebra import Aggregate, Band, Equals, Fixed, Now, Predicate, Range, Rows, Unbounded, Validity
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from tests import oracle

Row = dict
Streams = Mapping[str, list[Row]]
Payload = tuple
Element = tuple[Payload, int, int]
Condition = Callable[[Row], bool | None]
Conditions = Mapping[str, Condition]
FOREVER = oracle.FOREVER


def evaluate(relation: Relation, streams: Streams, conditions: Conditions | None = None) -> list[Element]:
    """The elements of a relation over finite streams, each a list of rows in order of arrival.

    They come in pieces from cut to cut; `normal_form` puts the pieces together.
    """
    elements = {leaf: lifetimes(leaf, streams[leaf.source]) for leaf in leaves(relation)}
    cuts = sorted({time for leaf in elements.values() for _, ts, te in leaf for time in (ts, te)})
    results = []
    for start, end in pairwise(cuts):
        snapshots = {leaf: snapshot(found, start) for leaf, found in elements.items()}
        results += [(payload, start, end) for payload in at_an_instant(relation, snapshots, conditions or {})]
    return results


def leaves(relation: Relation) -> Iterator[Stream]:
    """The streams at the bottom of a tree; one that is there twice comes twice."""
    if isinstance(relation, Stream):
        yield relation
    for child in relation.children:
        yield from leaves(child)


def snapshot(elements: Iterable[Element], instant: int) -> list[Payload]:
    """The payloads that are valid at an instant."""
    return [payload for payload, ts, te in elements if ts <= instant < te]


def normal_form(elements: Iterable[Element]) -> dict[tuple, list[list[tuple[int, int]]]]:
    """For every payload and every k >= 1 the maximal intervals on which its multiplicity is at least k."""
    form = oracle.normal_form((payload, None, ts, te) for payload, ts, te in elements)
    return {payload: levels for (payload, _), levels in form.items()}


# Windows.


def lifetimes(leaf: Stream, rows: list[Row]) -> list[Element]:
    """The elements of a stream through its window. Ghosts are in no snapshot, but they count in a row window."""
    start = leaf.window.start if isinstance(leaf.window, Validity) else leaf.time
    ends = row_window_ends(leaf, rows) if isinstance(leaf.window, Rows) else [end_of(leaf, row) for row in rows]
    return [
        (tuple(row[source] for _, source in leaf.reads), row[start], te)
        for row, te in zip(rows, ends, strict=True)
        if row[start] < te
    ]


def end_of(leaf: Stream, row: Row) -> int:
    window = leaf.window
    if isinstance(window, Validity):
        return FOREVER if row[window.end] is None else row[window.end]
    ts = row[leaf.time]
    if isinstance(window, Range):
        return (ts if window.slide is None else ts // window.slide * window.slide) + window.size
    if isinstance(window, Fixed):
        return (ts // window.size + 1) * window.size
    if isinstance(window, Now):
        return ts + 1
    assert isinstance(window, Unbounded), window
    return FOREVER


def row_window_ends(leaf: Stream, rows: list[Row]) -> list[int]:
    """The time stamp of the n-th later row by (ts, arrival), among the rows of the same group; NULLs are a group.

    The last n rows of a group have none: they never end, or with `drain` just after the last row of the whole stream.
    """
    window, by = leaf.window, leaf.window.by or ()
    last = max((row[leaf.time] for row in rows), default=0) + 1 if window.drain else FOREVER
    ends = []
    for arrival, row in enumerate(rows):
        later = sorted(
            other[leaf.time]
            for place, other in enumerate(rows)
            if all(other[name] == row[name] for name in by) and (other[leaf.time], place) > (row[leaf.time], arrival)
        )
        ends.append(later[window.size - 1] if len(later) >= window.size else last)
    return ends


# Operators at one instant: lists of payloads in, list of payloads out.


def at_an_instant(relation: Relation, leaf: Mapping[Stream, list[Payload]], conditions: Conditions) -> list[Payload]:
    """The ordinary relational operators, applied to the snapshots of the leaves."""
    if isinstance(relation, Stream):
        return leaf[relation]
    children = [at_an_instant(child, leaf, conditions) for child in relation.children]
    if isinstance(relation, Selection):
        holds = conditions[relation.condition]
        return [one for one in children[0] if holds(named(relation.columns, one)) is True]
    if isinstance(relation, Projection):
        places = [relation.child.columns.index(text.strip("`")) for _, text in relation.computed]
        return [tuple(one[place] for place in places) for one in children[0]]
    if isinstance(relation, Union):
        return [one for child in children for one in child]
    if isinstance(relation, Distinct):
        return list(set(children[0]))  # None equals None here, as in SQL's DISTINCT and set operators
    if isinstance(relation, Difference):
        if relation.every:
            return list((Counter(children[0]) - Counter(children[1])).elements())
        return list(set(children[0]) - set(children[1]))
    if isinstance(relation, Intersection):
        if relation.every:
            return list((Counter(children[0]) & Counter(children[1])).elements())
        return list(set(children[0]) & set(children[1]))
    if isinstance(relation, Join):
        return join(relation, *children, conditions)
    assert isinstance(relation, Aggregation), relation
    return aggregation(relation, children[0])


def named(columns: tuple[str, ...], payload: Payload) -> Row:
    return dict(zip(columns, payload, strict=True))


def join(node: Join, left: list[Payload], right: list[Payload], conditions: Conditions) -> list[Payload]:
    """The ordinary join of two snapshots, outer joins too."""
    left_rows = [(one, named(node.left.columns, one)) for one in left]
    right_rows = [(two, named(node.right.columns, two)) for two in right]
    results, met = [], set()
    for one, row in left_rows:
        found = [place for place, (_, other) in enumerate(right_rows) if matches(node, row, other, conditions)]
        met |= set(found)
        if node.how in ("inner", "left", "right", "full"):
            results += [one + right[place] for place in found]
        if node.how in ("left", "full") and not found:
            results.append(one + (None,) * len(node.right.columns))
        if (node.how == "semi" and found) or (node.how == "anti" and not found):
            results.append(one)
    if node.how in ("right", "full"):
        results += [(None,) * len(node.left.columns) + two for place, two in enumerate(right) if place not in met]
    return results


def matches(node: Join, left: Row, right: Row, conditions: Conditions) -> bool:
    if not all(holds(predicate, left, right) for predicate in node.predicates):
        return False
    return node.theta is None or conditions[node.theta](left | right) is True


def holds(predicate: Predicate, left: Row, right: Row) -> bool:
    """Whether a pair matches; NULL matches nothing."""
    assert isinstance(predicate, Equals | Band), predicate
    one, two = left[predicate.left], right[predicate.right]
    if one is None or two is None:
        return False
    if isinstance(predicate, Equals):
        return one == two
    gap = two - one
    low = gap >= -predicate.below if predicate.closed in ("both", "left") else gap > -predicate.below
    return low and (gap <= predicate.above if predicate.closed in ("both", "right") else gap < predicate.above)


def aggregation(node: Aggregation, payloads: list[Payload]) -> list[Payload]:
    """One payload for each group that has an element. NULL keys are a group."""
    groups: dict[tuple, list[Row]] = {}
    for one in payloads:
        row = named(node.child.columns, one)
        groups.setdefault(tuple(row[key] for key in node.keys), []).append(row)
    return [key + tuple(aggregate(each, rows) for each in node.aggregates) for key, rows in groups.items()]


def aggregate(node: Aggregate, rows: list[Row]) -> int | float | str | None:
    """What an aggregate says of a group.

    Doubles are added exactly and rounded once, so that no order of coming and going can matter; `avg` divides that
    rounded sum.
    """
    if node.column is None:
        return len(rows)
    values = [row[node.column] for row in rows if row[node.column] is not None]
    if node.function == "count":
        return len(values)
    if len(values) < (2 if node.function == "stddev" else 1):
        return None
    if node.function in ("min", "max"):
        return min(values) if node.function == "min" else max(values)
    if node.function == "stddev":
        exact = [Fraction(value) for value in values]
        mean = sum(exact) / len(exact)
        return math.sqrt(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))
    total = float(sum(map(Fraction, values))) if isinstance(values[0], float) else sum(values)
    return total if node.function == "sum" else total / len(values)
