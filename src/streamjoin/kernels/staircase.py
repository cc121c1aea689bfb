"""The cheapest of the pairs that just suffice: two pointers down a staircase."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Times
from streamjoin.kernels.pairs import compiled

Floats = npt.NDArray[np.float64]


@compiled
def _walk(mean: Any, var: Any, margin: float, budget: float, cost: Any, edges: Any) -> tuple[int, int]:
    places = len(edges)
    best, one, two = np.inf, places - 1, places - 1
    at = places - 1
    for place in range(places):
        if mean[0, place] + mean[1, at] + margin * np.sqrt(var[0, place] + var[1, at]) > budget:
            continue
        while at > 0 and mean[0, place] + mean[1, at - 1] + margin * np.sqrt(var[0, place] + var[1, at - 1]) <= budget:
            at -= 1
        price = cost[0] * edges[place] + cost[1] * edges[at]
        if price < best:
            best, one, two = price, place, at
    return one, two


def cheapest_step(
    mean: Floats, var: Floats, margin: float, budget: float, cost: Floats, edges: Times
) -> tuple[int, int]:
    """Places on the edges with `mean_0 + mean_1 + margin x sqrt(var_0 + var_1) <= budget` that cost least.

    Mean and variance fall along the edges: with more of one, less of the other is enough. Where nothing suffices, the
    last places.

    >>> mean, none = np.array([[4.0, 1.0, 0.0], [2.0, 2.0, 0.0]]), np.zeros((2, 3))
    >>> cheapest_step(mean, none, 1.0, 3.0, np.array([1.0, 1.0]), np.array([0, 10, 20]))
    (1, 0)
    """
    arrays = [np.ascontiguousarray(each, np.float64) for each in (mean, var, cost)]
    one, two = _walk(arrays[0], arrays[1], margin, budget, arrays[2], np.ascontiguousarray(edges))
    return int(one), int(two)
