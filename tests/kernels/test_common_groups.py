"""Rows of common groups: nobody of a group that all have is missing, and hardly anybody else is there."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import rows_of_common_groups


@pytest.mark.parametrize("inputs", [2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_differential_against_sets(inputs: int, seed: int) -> None:
    """Small numbers, negative ones, and hashes of 64 bits; some inputs are empty, or have one row."""
    rng = np.random.default_rng(seed)
    span = [(-5, 40), (-(2**63), 2**63 - 1), (0, 3000)][seed % 3]
    sizes = rng.choice([0, 1, 30, 500, 2000] if seed > 4 else [30, 500, 2000], inputs)
    shared = rng.integers(*span, 20, dtype=np.int64)
    groups = [np.concatenate([rng.integers(*span, size), shared])[rng.permutation(size + 20)[:size]] for size in sizes]
    common = set.intersection(*(set(each.tolist()) for each in groups))
    for each, rows in zip(groups, rows_of_common_groups(groups), strict=True):
        assert (np.diff(rows) > 0).all()
        wanted = {row for row, group in enumerate(each.tolist()) if group in common}
        assert wanted <= set(rows.tolist())
        assert len(rows) <= len(wanted) + 0.25 * len(each) + 2  # those whose bit somebody else has set


def test_groups_that_only_some_have_go() -> None:
    one, two, three = np.arange(0, 9000), np.arange(6000, 15000), np.arange(8000, 20000)
    found = rows_of_common_groups([one, two, three])
    for rows, groups in zip(found, (one, two, three), strict=True):
        assert set(range(8000, 9000)) <= set(groups[rows].tolist())
        assert len(rows) < 2500
