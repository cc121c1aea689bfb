"""Joins of many relations: from predicates between two of them to links, and where their rows meet.

equality      a class of columns, one of each input, is the key by which rows are grouped and hashed. Equality of
              fewer inputs is a link over codes of the columns, verified where these are hashes
overlap       an interval of each input, with a predicate between every two: all share a point
similarity    a link over sets or texts, found by an index of their tokens
anything else a link
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Band, Equals, Overlaps, Predicate, Similar, Within
from streamjoin.algebra.policy import Hold
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import NwayJoin, Tpmj
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.lowering.joining import JoinParts, Setting, payload_of, with_cell
from streamjoin.plan.lowering.merging import merging
from streamjoin.plan.lowering.predicates import Sides, bind_band, bind_key, bind_overlaps, bind_similar, bind_within
from streamjoin.plan.multi_join import Between, MultiJoin, equality_classes, for_all
from streamjoin.plan.types import Fields, Type, arrow_schema
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.many_placing import CubePartitioning, PointPartitioning, ReachPartitioning
from streamjoin.runtime.placing import Partitioning, default_cell
from streamjoin.state.columns import codes_are_exact
from streamjoin.state.links import Link
from streamjoin.state.matching import grid_radius


@dataclass
class ManySides(Sides):
    """The inputs of a join while it is bound. A column that is cast twice is added once."""

    known: dict[tuple[int, str, Any], str] = field(default_factory=dict)

    def cast(self, number: int, name: str, kind: Type) -> str:
        asked = number, name, kind.text
        if asked not in self.known:
            self.known[asked] = super().cast(number, name, kind)
        return self.known[asked]

    def collation_key(self, number: int, name: str) -> str:
        asked = number, name, None
        if asked not in self.known:
            self.known[asked] = super().collation_key(number, name)
        return self.known[asked]


@dataclass
class TwoOf(Sides):
    """Two of many inputs, as inputs 0 and 1."""

    whole: ManySides = field(kw_only=True)
    ends: tuple[int, int] = (0, 1)

    @classmethod
    def of(cls, whole: ManySides, each: Between) -> TwoOf:
        """Those that something holds between."""
        return cls(whole.parts, whole.typing, whole=whole, ends=(each.one, each.two))

    def type(self, number: int, name: str) -> Type:
        return self.whole.type(self.ends[number], name)

    def cast(self, number: int, name: str, kind: Type) -> str:
        return self.whole.cast(self.ends[number], name, kind)

    def collation_key(self, number: int, name: str) -> str:
        return self.whole.collation_key(self.ends[number], name)

    def called(self, number: int, name: str) -> str:
        return self.whole.called(self.ends[number], name)

    def where(self, number: int) -> str:
        return self.whole.where(self.ends[number])


def lower_multi_join(join: MultiJoin, sides: ManySides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """How a join of many relations runs."""
    inputs = len(sides.parts)
    bound = [_bound(sides, each) for each in _in_common_types(sides, join.between)]
    keys, rest = _keys(bound, inputs)
    reads = _Reads(inputs)
    ordered = sorted(rest, key=lambda each: _ORDER.index(type(each.predicate)))
    links = tuple(reads.link(sides, each) for each in ordered)
    common = _common(ordered, links, inputs)
    needed = needed | set(columns_of(join.theta or ""))
    payload = tuple(payload_of(sides, number, needed) for number in range(inputs))
    exact = codes_are_exact([sides.type(0, key[0]).arrow for key in keys])
    proved = 0 if exact else len(keys)
    links = tuple(reads.with_proof(link, sides, each, proved) for link, each in zip(links, ordered, strict=True))
    config = NwayJoin(
        tuple(arrow_schema(fields) for fields in payload), links, common, proved, setting.emit,
        _hold(join, links, keys, setting), tuple(setting.late), join.timed, setting.unknown_ends,
        new_priority=setting.new_priority,
    )  # fmt: skip
    partitioning = choose_many_partitioning(config, bool(keys), setting.buckets, join.cell)
    running: NwayJoin | Tpmj = config
    if join.merge is not None:
        running = merging(config, join.merge, setting, keyed=bool(keys))
    bindings = tuple(_binding(payload[number], number, keys, reads) for number in range(inputs))
    return JoinParts(running, partitioning, bindings, payload, tuple(keys), "inner", ((),) * inputs)  # type: ignore[arg-type]


_ORDER = (Similar, Within, Band, Equals, Overlaps)  # the first between two inputs finds the pairs
_WHOLE_DOUBLES = 32  # integers of so many bits are all different as doubles


def _in_common_types(sides: ManySides, between: Sequence[Between]) -> list[Between]:
    """What holds, with all columns that equalities make equal in one type, so that their codes meet.

    Two columns are equal as they are in their own common type, which may tell more apart than that of all: large
    integers are not all different as doubles. Then that equality stays beside the one of all.
    """
    made: list[Between] = [each for each in between if not isinstance(each.predicate, Equals)]
    equalities = [each for each in between if isinstance(each.predicate, Equals)]
    kinds = {each: TwoOf.of(sides, each).common(_names(each), "equality") for each in equalities}
    for members in equality_classes(between):
        own = [each for each in equalities if (each.one, str(each.predicate.columns(0)[0])) in members]
        common = kinds[own[0]]
        for each in own[1:]:
            found = common if common == kinds[each] else sides.typing.common(common, kinds[each])
            if found is None:
                raise CallError(
                    f"equality compares {common.text} and {kinds[each].text} columns, which have no common type",
                    hint="cast them to one type before the join",
                )
            common = found
        for each in own:
            left, right = _names(each)
            if kinds[each] != common:
                _check_no_finer(sides, each, kinds[each], common)
            whole = Equals(sides.cast(each.one, left, common), sides.cast(each.two, right, common))
            made.append(Between(each.one, each.two, whole))
            if kinds[each] != common and not _keeps_apart(kinds[each], common):
                made.append(each)
    return made


def _check_no_finer(sides: ManySides, each: Between, own: Type, common: Type) -> None:
    """Refuse a common type in which columns differ that are equal in their own: results would be lost."""
    for number, name in zip((each.one, each.two), _names(each), strict=True):
        kind = sides.type(number, name)
        if kind != own and not _keeps_apart(kind, own):
            raise CallError(
                f"{name}, {kind.text}, is compared as {own.text} with one column, and as {common.text} with all: "
                "values that are equal in the one may differ in the other",
                hint='cast these columns to one type before the join, or nway="cascade"',
            )


def _names(each: Between) -> tuple[str, str]:
    left, right = each.predicate.columns(0)[0], each.predicate.columns(1)[0]
    return str(left), str(right)


def _keeps_apart(kind: Type, wider: Type) -> bool:
    """Whether a cast never makes different values equal."""
    one, two = kind.arrow, wider.arrow
    if pa.types.is_integer(one):
        exact = pa.types.is_float64(two) and one.bit_width <= _WHOLE_DOUBLES
        return bool(exact or pa.types.is_integer(two) or pa.types.is_decimal(two))
    if pa.types.is_decimal(one) and pa.types.is_decimal(two):
        return bool(two.scale >= one.scale)
    return bool(pa.types.is_float32(one) and pa.types.is_float64(two))


def _bound(sides: ManySides, each: Between) -> Between:
    """A predicate with its columns in common types, and its bounds in the unit of those."""
    two = TwoOf.of(sides, each)
    bound: Predicate
    match each.predicate:
        case Equals(left=left, right=right):
            bound = Equals(*bind_key(two, (left, right)))
        case Band():
            bound = bind_band(two, each.predicate)
        case Overlaps():
            bound = bind_overlaps(two, each.predicate)
        case Within():
            bound = bind_within(two, each.predicate)
        case Similar():
            bound = bind_similar(two, each.predicate)
        case _:
            raise UnsupportedError(
                f"a predicate of type {type(each.predicate).__name__} in a join of {len(sides.parts)} inputs",
                hint="join two of them by it, then join the result with the others",
            )
    return Between(each.one, each.two, bound)


def _keys(bound: Sequence[Between], inputs: int) -> tuple[list[tuple[str, ...]], list[Between]]:
    """Equality classes that have columns of all inputs, one column of each, and what is left."""
    keys, covered = [], set[tuple[int, str]]()
    for members in equality_classes(bound):
        own: dict[int, str] = {}
        for number, name in sorted(members):
            own.setdefault(number, name)
        if len(own) == inputs:  # one column of each is the key; equalities with further columns are links
            keys.append(tuple(own[number] for number in range(inputs)))
            covered |= set(own.items())
    rest = [
        each
        for each in bound
        if not isinstance(each.predicate, Equals)
        or not {(each.one, str(each.predicate.left)), (each.two, str(each.predicate.right))} <= covered
    ]
    return keys, rest


class _Reads:
    """What is read of each input: the values of its predicates, each once, the first one's first."""

    def __init__(self, inputs: int) -> None:
        self.predicates: list[list[Predicate]] = [[] for _ in range(inputs)]

    def link(self, sides: ManySides, each: Between) -> Link:
        """A predicate as a link."""
        at = self._at(each.one, each.predicate, 0), self._at(each.two, each.predicate, 1)
        predicate: Any = each.predicate
        if isinstance(predicate, Equals):
            predicate = Band(predicate.left, predicate.right, 0, 0)
        return Link(each.one, each.two, predicate, at)

    def _at(self, number: int, predicate: Predicate, side: int) -> int:
        columns = predicate.columns(side)
        own: Any = columns if isinstance(predicate, Overlaps | Within) else columns[0]
        read = replace(predicate, left=own, right=own)  # type: ignore[type-var]
        if isinstance(read, Band):
            read = replace(read, below=0, above=0, closed="both")
        if isinstance(read, Within):  # what is read are the axes, whatever distance is asked for
            read = replace(read, radius=0.0)
        known = self.predicates[number]
        if read not in known:
            known.append(read)
        before = known[: known.index(read)]
        if isinstance(read, Similar):  # a place among the contents, not among the values
            return sum(isinstance(each, Similar) for each in before)
        return sum(len(each.columns(0)) for each in before if not isinstance(each, Similar))

    def with_proof(self, link: Link, sides: ManySides, each: Between, proved: int) -> Link:
        """The link, with the columns that prove an equality whose values are hashes."""
        if not isinstance(each.predicate, Equals):
            return link
        if codes_are_exact([sides.type(each.one, str(each.predicate.left)).arrow]):
            return link
        ends = ((each.one, each.predicate.left), (each.two, each.predicate.right))
        one, two = (proved + self.hashed(sides, number).index(str(name)) for number, name in ends)
        return replace(link, proof=((one, two),))

    def hashed(self, sides: ManySides, number: int) -> list[str]:
        """The columns of an input whose codes are hashes, in the order of its proof."""
        names = [str(each.left) for each in self.predicates[number] if isinstance(each, Equals)]
        return [name for name in names if not codes_are_exact([sides.type(number, name).arrow])]


def _common(rest: Sequence[Between], links: Sequence[Link], inputs: int) -> tuple[int, ...] | None:
    """Where the intervals begin of which all must share a point."""
    at: dict[int, int] = {}
    pairs = set()
    for each, link in zip(rest, links, strict=True):
        if isinstance(each.predicate, Overlaps):
            ends = ((link.one, link.at[0]), (link.two, link.at[1]))
            if all(at.get(number, place) == place for number, place in ends):
                at.update(ends)
                pairs.add((min(link.one, link.two), max(link.one, link.two)))
    return tuple(at[number] for number in range(inputs)) if pairs == set(for_all(inputs)) else None


def _hold(join: MultiJoin, links: Sequence[Link], keys: Sequence[Any], setting: Setting) -> Hold:
    """As in a join of two: hold inputs where nothing but time restricts who meets."""
    if join.hold != "auto":
        return join.hold
    return "inputs" if not links and not keys and not setting.prioritised else "outputs"


def _binding(fields: Fields, number: int, keys: Sequence[tuple[str, ...]], reads: _Reads) -> RowBinding:
    own = tuple(key[number] for key in keys)
    return RowBinding(tuple(each.name for each in fields), 0, own, tuple(reads.predicates[number]), own)


# -- where rows meet ---------------------------------------------------------------------------------------------------


def choose_many_partitioning(config: NwayJoin, keyed: bool, buckets: int, cell: float | None) -> Partitioning:
    """Which rows meet where. Keys need no copies; bounds that lead from input 0 to all others need few."""
    inputs = len(config.schemas)
    if keyed:
        return with_cell(Partitioning(buckets), cell)
    chosen: Partitioning | None = _reach(config.links, inputs, buckets, cell)
    if chosen is None and cell is not None and (config.common is not None or (config.validity and not config.links)):
        chosen = PointPartitioning(buckets, cell, inputs, config.common)
    return with_cell(chosen or CubePartitioning(buckets, inputs), cell)


def _reach(links: Sequence[Link], inputs: int, buckets: int, cell: float | None) -> ReachPartitioning | None:
    """Bounds on one value of each input, that lead from input 0 to all others, and add up on the way."""
    for first in (link for link in links if link.joins(0) and isinstance(link.predicate, Band | Within)):
        at = {0: first.at[0] if first.one == 0 else first.at[1]}
        spans: dict[int, tuple[float, float]] = {0: (0.0, 0.0)}
        grown = True
        while grown:
            grown = False
            for link in links:
                for one, two, here, there in _ways(link):
                    alike = type(link.predicate) is type(first.predicate) and at.get(one) == here
                    if alike and two not in at and _same_metric(link.predicate, first.predicate):
                        low, high = _span(link, forward=one == link.one)
                        at[two], spans[two] = there, (spans[one][0] + low, spans[one][1] + high)
                        grown = True
        if len(at) == inputs:
            within = first.predicate if isinstance(first.predicate, Within) else None
            assert isinstance(first.predicate, Band | Within)
            # A row of another input lies in [low, high] from that of input 0, which so lies in [-high, -low] from it.
            below = tuple(spans[number][1] for number in range(inputs))
            above = tuple(-spans[number][0] for number in range(inputs))
            size = cell or max(default_cell(first.predicate), max(b + a for b, a in zip(below, above, strict=True)))
            if all(abs(each) < float("inf") for each in (*below, *above)):
                return ReachPartitioning(buckets, size, tuple(at[n] for n in range(inputs)), below, above, within)
    return None


def _ways(link: Link) -> tuple[tuple[int, int, int, int], ...]:
    """Both directions of a link: from, to, and where the values of each begin."""
    return ((link.one, link.two, *link.at), (link.two, link.one, link.at[1], link.at[0]))


def _same_metric(one: Any, other: Any) -> bool:
    return not isinstance(one, Within) or (one.metric == other.metric and len(one.left) == len(other.left))


def _span(link: Link, *, forward: bool) -> tuple[float, float]:
    """From where to where the value at the other end lies, from the one at this end."""
    if isinstance(link.predicate, Within):
        reach = grid_radius(link.predicate)
        return -reach, reach
    assert isinstance(link.predicate, Band)
    below, above = float(link.predicate.below), float(link.predicate.above)
    return (-below, above) if forward else (-above, below)
