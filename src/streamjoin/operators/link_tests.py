"""Links that no step of a route has followed, tested on tuples: of rows at both ends only what the link compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.algebra import Similar
from streamjoin.algebra.interval import Mask
from streamjoin.state import Batch, Run
from streamjoin.state.batch import Indices
from streamjoin.state.contents import are_alike
from streamjoin.state.links import Link, same_proof
from streamjoin.state.places import Places


def link_holds(link: Link, number: int, mine: Run, places: Sequence[Places], members: Mapping[int, Indices]) -> Mask:
    """For which tuples a link holds. Members of input `number` are rows of `mine`, others are at places."""
    if isinstance(link.predicate, Similar):
        return _alike(link, link.predicate, number, mine, places, members)
    sides: list[list[npt.NDArray[Any]]] = []
    proofs = []
    for end, at in ((link.one, link.at[0]), (link.two, link.at[1])):
        where, columns = members[end], range(at, at + link.width)
        if end == number:
            sides.append([mine.rows.values[column][where] for column in columns])
            proofs.append((mine.rows.proof, where))
            continue
        there = places[end]
        sides.append([there.column(where, value_of(column)) for column in columns])
        proof = there.rows(where).proof if link.proof and len(where) else None
        proofs.append((proof, np.arange(len(where))))
    assert link.predicate is not None
    holds = link.predicate.holds(sides[0], sides[1])
    if link.proof and len(holds):
        holds = holds & same_proof(link.proof, *proofs[0], *proofs[1])
    return holds


def _alike(
    link: Link,
    predicate: Similar,
    number: int,
    mine: Run,
    places: Sequence[Places],
    members: Mapping[int, Indices],
) -> Mask:
    """The same of a similarity: each row's set or text is worked out once, in however many tuples it is."""
    if not len(members[link.one]):
        return np.zeros(0, np.bool_)
    ends: list[tuple[Batch, Indices, int]] = []
    for end, at in ((link.one, link.at[0]), (link.two, link.at[1])):
        where = members[end]
        if end == number:
            ends.append((mine.rows, where, at))
            continue
        distinct, which = np.unique(where, return_inverse=True)
        ends.append((places[end].rows(distinct), which.reshape(-1).astype(np.int64), at))
    return are_alike(predicate, ends[0], ends[1])


def value_of(number: int) -> Any:
    """A batch's values with this number."""
    return lambda rows: rows.values[number]
