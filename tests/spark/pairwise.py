"""A pairwise cover: few cases in which any two values of any two factors occur together at least once.

Greedy, after AETG: begin with a pair that is not covered yet, give each other factor the value that covers most, do
that a few times in random order, keep the best case, repeat. The same seed gives the same cases.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Choice = tuple[str, Any]  # a factor and one of its values
Clash = Callable[[Choice, Choice], bool]
TRIES = 40


def pairwise_cover(
    factors: Mapping[str, Sequence[Any]],
    *,
    seed: int,
    clash: Clash | None = None,
    apart: tuple[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Cases that cover every pair of values, but for those that `clash`, and those of two factors that are `apart`:
    others cover these.

    >>> cases = pairwise_cover({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, seed=1)
    >>> len(cases), sorted({(case["a"], case["c"]) for case in cases})
    (4, [(1, 1), (1, 2), (2, 1), (2, 2)])
    """
    rng = random.Random(seed)
    clashes = clash or (lambda one, two: False)
    names = list(factors)
    open_pairs = {
        ((a, x), (b, y)): None  # a dict, because a set's order would change from run to run
        for a, b in itertools.combinations(names, 2)
        for x, y in itertools.product(factors[a], factors[b])
        if not (clashes((a, x), (b, y)) or clashes((b, y), (a, x)))
    }
    allowed = set(open_pairs)
    if apart is not None:
        open_pairs = {both: None for both in open_pairs if {both[0][0], both[1][0]} != set(apart)}

    def pair(one: Choice, two: Choice) -> tuple[Choice, Choice]:
        return (one, two) if names.index(one[0]) < names.index(two[0]) else (two, one)

    def fill(start: tuple[Choice, Choice]) -> dict[str, Any] | None:
        case = dict(start)
        rest = [name for name in names if name not in case]
        for name in rng.sample(rest, len(rest)):
            options = [
                (sum(pair(chosen, (name, value)) in open_pairs for chosen in case.items()), rng.random(), value)
                for value in factors[name]
                if all(pair(chosen, (name, value)) in allowed for chosen in case.items())
            ]
            if not options:
                return None
            case[name] = max(options, key=lambda option: option[:2])[2]
        return case

    def covered(case: dict[str, Any]) -> list[tuple[Choice, Choice]]:
        chosen = [(name, case[name]) for name in names]
        return [both for both in itertools.combinations(chosen, 2) if both in open_pairs]

    cases = []
    while open_pairs:
        start = next(iter(open_pairs))
        tries = [case for case in (fill(start) for _ in range(TRIES)) if case is not None]
        if not tries:
            raise ValueError(f"no case can hold {start}: its values clash with all values of another factor")
        best = max(tries, key=lambda case: len(covered(case)))
        for both in covered(best):
            del open_pairs[both]
        cases.append({name: best[name] for name in names})
    return cases
