"""Which of several candidates are best: those that no other one dominates.

A candidate is a row of whole numbers, one per dimension, the smaller the better. `pareto`: one dominates another that
it is nowhere worse than, and somewhere better. `strict`: that it is better than everywhere. Equal rows dominate each
other in neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices, compiled, frozen


@compiled
def _undominated(starts: Any, keys: Any, strict: bool, keep: Any) -> None:
    dimensions = keys.shape[1]
    for group in range(len(starts) - 1):
        first, last = starts[group], starts[group + 1]
        for i in range(first, last):
            for j in range(first, last):
                # Dominance is transitive: whoever is dominated has a dominator that is not, so it need not be asked.
                if j == i or not keep[j]:
                    continue
                nowhere_worse, somewhere_better, everywhere_better = True, False, True
                for d in range(dimensions):
                    if keys[j, d] > keys[i, d]:
                        nowhere_worse = False
                        break
                    if keys[j, d] < keys[i, d]:
                        somewhere_better = True
                    else:
                        everywhere_better = False
                if nowhere_worse and (everywhere_better if strict else somewhere_better):
                    keep[i] = False
                    break


def undominated(starts: Indices, keys: npt.NDArray[np.int64], *, strict: bool) -> npt.NDArray[np.bool_]:
    """Which rows of `keys` no other one of their group dominates; group g is `starts[g]` to `starts[g + 1]`.

    >>> undominated(np.array([0, 3]), np.array([[1, 4], [2, 2], [2, 3]]), strict=False).tolist()
    [True, True, False]
    """
    keep = np.ones(len(keys), np.bool_)
    _undominated(frozen(starts), frozen(keys), strict, keep)
    return keep


@compiled
def _rivals(starts: Any, one: Any, two: Any) -> None:
    place = 0
    for group in range(len(starts) - 1):
        for i in range(starts[group], starts[group + 1]):
            for j in range(starts[group], starts[group + 1]):
                if i != j:
                    one[place] = i
                    two[place] = j
                    place += 1


def rivals(starts: Indices) -> tuple[Indices, Indices]:
    """All ordered pairs of different rows of one group.

    >>> [column.tolist() for column in rivals(np.array([0, 2, 3]))]
    [[0, 1], [1, 0]]
    """
    sizes = np.diff(starts)
    count = int((sizes * (sizes - 1)).sum())
    one, two = np.empty(count, np.int64), np.empty(count, np.int64)
    _rivals(frozen(starts), one, two)
    return one, two
