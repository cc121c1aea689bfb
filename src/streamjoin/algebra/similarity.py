"""Similarity of sets and of texts: `similar("tokens", jaccard=0.8)`, `similar("name", edit=2)`.

| measure  | of           | two rows match where                                            | threshold          |
|----------|--------------|-----------------------------------------------------------------|--------------------|
| jaccard  | sets A, B    | `|A and B| / |A or B| >= threshold`                             | above 0, at most 1 |
| cosine   | sets A, B    | `|A and B| / sqrt(|A| * |B|) >= threshold`                      | above 0, at most 1 |
| overlap  | sets A, B    | `|A and B| >= threshold`                                        | at least 1         |
| edit     | texts        | so many insertions, deletions and replacements at most          | at least 0         |
|          |              | of single code points make one of the other (Levenshtein)       |                    |

Laws. Sets, not bags: an element that is there twice counts once. A NULL in an array is no element. NULL matches
nothing, nor does an empty set, which shares nothing with anyone; an empty text is a text like others. Quotients are
those of doubles, as Spark's `/` gives them, so a threshold that is met exactly is met.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.predicate import Column, Predicate, Values, between
from streamjoin.errors import CallError, says_what_fits

Measure = Literal["jaccard", "cosine", "overlap", "edit"]

_QUOTIENTS: Final = ("jaccard", "cosine")
_EXAMPLE: Final = 'sj.similar("tokens", jaccard=0.8), or sj.similar("name", edit=2)'


@dataclass(frozen=True)
class Similar(Predicate):
    """Two sets, or two texts, that are alike by a measure.

    >>> sets = [np.array([["a", "b"], ["a"]], object)], [np.array([["b", "a", "a"], []], object)]
    >>> Similar("tokens", "tokens", "jaccard", 1.0).holds(*sets).tolist()
    [True, False]
    """

    left: Column
    right: Column
    measure: Measure
    threshold: float

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise CallError(f"measure must be one of {', '.join(get_args(Measure))}, got {self.measure!r}")
        given, what = self.threshold, self.measure
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if what in _QUOTIENTS:
            if not number or not 0 < given <= 1:
                raise CallError(
                    f"{what} must be a number above 0 and at most 1, got {given!r}: it is a share of what two sets "
                    "have in common, and 0 would match every pair",
                    hint=f"for example {what}=0.8",
                )
            return
        least = 1 if what == "overlap" else 0
        if not number or math.isnan(given) or given != int(given if math.isfinite(given) else 0) or given < least:
            counted = "the elements that two sets have in common" if what == "overlap" else "changes of a text"
            raise CallError(
                f"{what} must be a whole number of at least {least}, got {given!r}: it counts {counted}",
                hint=f"for example {what}=2",
            )
        object.__setattr__(self, "threshold", int(given))

    def columns(self, number: int) -> tuple[Column, ...]:
        return (self.left if number == 0 else self.right,)

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        """By the definition, one pair after the other: what kernels are tested against."""
        return np.array([self._match(one, two) for one, two in zip(left[0], right[0], strict=True)], np.bool_)

    def _match(self, one: Any, two: Any) -> bool:
        if one is None or two is None:
            return False
        if self.measure == "edit":
            return edit_distance(one, two) <= self.threshold
        first, second = set(one) - {None}, set(two) - {None}
        common = len(first & second)
        if not common:
            return False
        if self.measure == "overlap":
            return common >= self.threshold
        whole = len(first | second) if self.measure == "jaccard" else math.sqrt(len(first) * len(second))
        return common / whole >= self.threshold


def edit_distance(one: str, two: str) -> int:
    """How many insertions, deletions and replacements of code points make one text of the other.

    >>> edit_distance("kitten", "sitting")
    3
    """
    above = list(range(len(two) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, other in enumerate(two, 1):
            current.append(min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != other)))
        above = current
    return above[-1]


@says_what_fits
def similar(
    left: Column,
    right: Column | None = None,
    *,
    jaccard: float | None = None,
    cosine: float | None = None,
    overlap: int | None = None,
    edit: int | None = None,
    of: tuple[int, int] | None = None,
) -> Any:
    """Likeness of `left` on input 0 and `right` (the same name, unless given) on input 1, by one measure.

        jaccard   arrays of strings or integers, as sets: shared elements by all elements, at least this
        cosine    the same, by the root of the product of the two sizes
        overlap   the same, counted: at least so many shared elements
        edit      strings: at most so many insertions, deletions and replacements of code points

    In a join of more than two inputs it is for every two of them, or with `of` for these two.

    >>> similar("tokens", jaccard=0.8)
    Similar(left='tokens', right='tokens', measure='jaccard', threshold=0.8)
    >>> similar("name", "called", edit=2).threshold
    2
    """
    thresholds: dict[Measure, Any] = {"jaccard": jaccard, "cosine": cosine, "overlap": overlap, "edit": edit}
    given = [measure for measure, threshold in thresholds.items() if threshold is not None]
    if len(given) != 1:
        got = " and ".join(f"{name}={thresholds[name]!r}" for name in given) or "none"
        raise CallError(
            f"similar takes one of jaccard, cosine, overlap and edit, got {got}: each is a question of its own",
            hint=f"write {_EXAMPLE}; two measures are two predicates, similar(...) & similar(...)",
        )
    return between(Similar(left, left if right is None else right, given[0], thresholds[given[0]]), of)
