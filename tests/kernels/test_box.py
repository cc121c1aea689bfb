"""Boxes: the grid of cells against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import box_pairs, packed_cells
from streamjoin.kernels.box import MOST_GRID_AXES
from tests.kernels import drawing, twins


def side(rng: np.random.Generator, rows: int, pool: str, reach: np.ndarray, grouped: bool) -> twins.Side:
    """A side (group, cell, value, axes), sorted."""
    axes = rng.choice(drawing.POOLS["infinite" if pool == "infinite" else "tenths"], (rows, len(reach)))
    value = rng.choice(drawing.POOLS[pool], rows)
    return drawing.in_order((drawing.groups(rng, rows, grouped), packed_cells(axes, reach), value, axes), 0, 1, 2)


@pytest.mark.parametrize("pool", ["small", "extreme", "tenths", "infinite"])
@pytest.mark.parametrize("axes", range(1, MOST_GRID_AXES + 1))
@pytest.mark.parametrize("seed", range(12))
def test_differential_boxes_against_all_pairs(pool: str, axes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reach = rng.choice([0.0, 0.1, 0.3, 1.0, 3.0], axes)
    far = rng.choice([0, 1, 3]) if pool in ("small", "extreme") else rng.choice([0.0, 0.1, 0.4, 2.0])
    a, b = (side(rng, rows, pool, reach, grouped=seed % 2 == 0) for rows in drawing.sizes(rng))
    surely, perhaps = twins.box(a, b, far, reach), twins.box(a, b, far, reach * (1 + 1e-9) + 1e-14)
    for limit in drawing.LIMITS:
        found = twins.counted(box_pairs(a, b, far=far, reach=reach, limit=limit))
        assert surely <= found, f"seed {seed}, limit {limit}: pairs are missing"
        if pool != "infinite":  # beside an infinite value anything is roughly near
            assert found <= perhaps, f"seed {seed}, limit {limit}: pairs are far, or there twice"


@pytest.mark.parametrize("seed", range(4))
def test_differential_many_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reach = np.array([0.5, 0.8])
    sides = []
    for rows in (60, 600):
        axes = rng.uniform(-6, 6, (rows, 2))
        columns = (np.zeros(rows, np.int64), packed_cells(axes, reach), rng.uniform(-3, 3, rows), axes)
        sides.append(drawing.in_order(columns, 0, 1, 2))
    for a, b in (sides, sides[::-1]):
        found = twins.counted(box_pairs(a, b, far=1.5, reach=reach, limit=7))
        assert found == twins.box(a, b, 1.5, reach), f"seed {seed}"
        assert len(found) > 50, "the example itself is wrong: hardly a pair"


def test_cells_far_out_stay_neighbours() -> None:
    """Beyond the largest cell all points share one; so do those at infinity."""
    reach = np.array([1e-9])
    cells = packed_cells(np.array([[1e12], [1e12 + 1], [np.inf], [-np.inf]]), reach)
    assert cells[0] == cells[1] == cells[2] == -cells[3]
