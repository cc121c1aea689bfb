"""Binding: one hash places everything, whoever asks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators import Results
from streamjoin.runtime.binding import RowBinding

NAN = float("nan")
COLUMNS = {
    "k": pa.array([1, None, 2, None, 1], pa.int64()),
    "v": pa.array([0.5, 0.0, NAN, None, -0.0]),
    "s": pa.array(["", "a", None, None, "b"]),
}


@pytest.mark.parametrize("rows", [slice(0, 5), slice(0, 1)], ids=["with NULL and NaN", "without"])
@pytest.mark.parametrize("by", [("k",), ("v",), ("s",), ("k", "s"), ("s", "v", "k")])
def test_differential_keys_and_groups_have_one_hash(by: tuple[str, ...], rows: slice) -> None:
    """What a join is placed by, and what GROUP BY or a set operator is placed by: also where a key matches nothing."""
    table = pa.table(COLUMNS).slice(rows.start, rows.stop)
    elements = Results(table, np.zeros(len(table), np.int64), np.ones(len(table), np.int64))
    names = tuple(COLUMNS)
    joined, grouped = RowBinding(names, keys=by, placed_by=by), RowBinding(names, placed_by=by)
    hashes = [binding.hashes(elements, binding.bind(elements)) for binding in (joined, grouped)]
    assert hashes[0].tolist() == hashes[1].tolist()


def test_a_row_without_a_place_has_no_hash() -> None:
    elements = Results(pa.table(COLUMNS), np.zeros(5, np.int64), np.ones(5, np.int64))
    binding = RowBinding(tuple(COLUMNS), keys=("k",))
    assert binding.hashes(elements, binding.bind(elements)) is None
