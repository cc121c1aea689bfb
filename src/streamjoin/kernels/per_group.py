"""Arrays with one row per group, under dense group codes that grow and are compacted now and then."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices


def with_room(array: npt.NDArray[Any], groups: int) -> npt.NDArray[Any]:
    """The array with rows for at least so many groups, new ones zero. It doubles, so that growing costs O(1) per group.

    >>> with_room(np.array([5]), 2).tolist()
    [5, 0]
    """
    if len(array) >= groups:
        return array
    longer = np.zeros((max(groups, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def renumbered(array: npt.NDArray[Any], old_to_new: Indices) -> npt.NDArray[Any]:
    """The rows under their new codes; a row whose new code is -1 goes.

    >>> renumbered(np.array([5, 6, 7]), np.array([1, -1, 0])).tolist()
    [7, 5]
    """
    stays = np.flatnonzero(old_to_new >= 0)
    moved = np.zeros((int(old_to_new.max(initial=-1)) + 1, *array.shape[1:]), array.dtype)
    moved[old_to_new[stays]] = array[stays]
    return moved
