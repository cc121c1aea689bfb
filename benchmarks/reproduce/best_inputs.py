"""Two tables for best matches, of kinds on which the Window Algorithm as printed stumbles, and three ways to join them.

| kind | values of the sorted dimension |
|---|---|
| whole | small whole numbers from zero on, so many that no gap is wider than epsilon: what the document had in mind |
| negative | the same, but half of them are below zero |
| gaps | clusters with gaps wider than epsilon, and clusters that only the right side has |
| decimals | tenths, which binary fractions only come near |
| right below | as whole, but the right side begins epsilon below zero: partners of the first left rows |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from benchmarks.contenders.best_match_operator import matched
from benchmarks.window_algorithm import Joined, Table, undominated

Kind = Literal["whole", "negative", "gaps", "decimals", "right below"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
EPSILON: Final = 3.0  # of whole numbers


@dataclass(frozen=True)
class Inputs:
    """Both tables, sorted by their first column, and epsilon of each dimension."""

    kind: Kind
    left: Table
    right: Table
    epsilons: tuple[float, ...]


@dataclass(frozen=True)
class Answer:
    """Pairs, and left rows without one, each as often as it left: what two ways must agree on.

    >>> once, twice = (Answer.of(Joined([(0, 1)] * times)) for times in (1, 2))
    >>> once == twice
    False
    """

    pairs: Counter[tuple[int, int]]
    padded: Counter[int]

    @classmethod
    def of(cls, joined: Joined) -> Answer:
        """Without the order."""
        return cls(Counter(joined.pairs), Counter(joined.padded))


def draw(kind: Kind, seed: int, rows: int) -> Inputs:
    """Few different values, so that there are ties and rows on the bounds."""
    rng = np.random.default_rng([KINDS.index(kind), seed])

    def side(right: bool) -> Table:
        count = int(rng.integers(rows // 2, rows + 1))
        dense = kind in {"whole", "right below"}
        first = rng.integers(0, rows // 2 if dense else 2 * rows, count).astype(np.float64)
        if kind == "right below" and right:
            first -= EPSILON
        elif kind == "negative":
            first -= rows
        elif kind == "gaps":
            # Clusters of ten values every hundred. The left side has no rows in the first, nor in every third.
            cluster = rng.integers(0 if right else 1, 9, count)
            first = 100.0 * np.where(right | (cluster % 3 > 0), cluster, cluster + 1) + first % 10
        elif kind == "decimals":
            first = first / 10
        other = rng.integers(0, 12, count) / (10 if kind == "decimals" else 1)
        table = np.column_stack([first, other])
        return table[np.argsort(table[:, 0], kind="stable")]

    left, right = side(False), side(True)
    epsilons = (0.4, 0.3) if kind == "decimals" else (EPSILON, EPSILON)
    return Inputs(kind, left, right, epsilons)


def by_our_operator(left: Table, right: Table, epsilons: Sequence[float]) -> Answer:
    """streamjoin's operator, planned as any call is, in this process."""
    names = [f"d{number}" for number in range(len(epsilons))]
    sides = [
        {name: np.ascontiguousarray(table[:, at]) for at, name in enumerate(names)} | {"id": np.arange(len(table))}
        for table in (left, right)
    ]
    pairs: list[tuple[int, int]] = []
    padded: list[int] = []
    for ids in matched(sides[0], sides[1], dict(zip(names, epsilons, strict=True)), how="left"):
        for one, two in zip(ids["left.id"].to_pylist(), ids["right.id"].to_pylist(), strict=True):
            if two is None:
                padded.append(one)
            else:
                pairs.append((one, two))
    return Answer(Counter(pairs), Counter(padded))


def own_cell_only(left: Table, right: Table, epsilons: Sequence[float]) -> Joined:
    """An approximate method: of each row only the partners in its own cell, as wide as epsilon, are looked at.

    The document speaks of approximate methods and names none; this is the simplest one that people use.
    """
    found, near = Joined(), np.asarray(epsilons, np.float64)
    cells: dict[tuple[int, ...], list[int]] = {}
    for row, cell in enumerate(_cells(right, near)):
        cells.setdefault(cell, []).append(row)
    for row, cell in enumerate(_cells(left, near)):
        there = np.array(cells.get(cell, ()), np.int64)
        found.tested += len(there)
        distances = np.abs(left[row] - right[there])
        close = (distances <= near).all(axis=1)
        there, distances = there[close], distances[close]
        if len(there):
            found.results += [(row, int(partner)) for partner in there[undominated(distances)]]
        else:
            found.results.append((row, None))
    return found


def _cells(table: Table, near: Any) -> list[tuple[int, ...]]:
    return [tuple(cell) for cell in np.floor(table / near).astype(np.int64).tolist()]
