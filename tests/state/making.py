"""Batches for the tests of state and operators. A row's payload is its id, by which it is recognised everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER
from streamjoin.state import Batch
from streamjoin.state.row_table import declared

PAYLOAD = pa.schema([("id", pa.int64()), ("note", pa.string())])


def batch(
    validities: Sequence[tuple[int, int]],
    *,
    ids: Iterable[int] | None = None,
    group: Sequence[int] | None = None,
    values: Sequence[Sequence[Any]] = (),
    matchable: Sequence[bool] | None = None,
    origin: Sequence[int] | None = None,
    home: Sequence[bool] | None = None,
    proof: pa.Table | None = None,
) -> Batch:
    """A batch of rows with these validities; ids count from 0 unless given."""
    rows = len(validities)
    numbers = list(range(rows)) if ids is None else list(ids)
    payload = pa.table({"id": numbers, "note": [f"row {number}" for number in numbers]}, schema=PAYLOAD)
    return Batch(
        payload,
        np.array([ts for ts, _ in validities], np.int64),
        np.array([te for _, te in validities], np.int64),
        np.zeros(rows, np.int64) if group is None else np.array(group, np.int64),
        tuple(np.array(column) for column in values),
        proof,
        None if matchable is None else np.array(matchable, np.bool_),
        None if origin is None else np.array(origin, np.int64),
        None if home is None else np.array(home, np.bool_),
    )


def ids(rows: Batch | pa.Table) -> list[int]:
    """The ids of these rows, in order."""
    payload = rows.payload if isinstance(rows, Batch) else rows
    return payload["id"].to_pylist()


def drawn(
    rng: np.random.Generator, rows: int, *, first_id: int = 0, values: Sequence[np.ndarray] = (), groups: int = 1
) -> Batch:
    """Random rows with short, long and endless validities; each value column is drawn from its pool."""
    ts = rng.integers(-5, 15, rows)
    te = np.where(rng.random(rows) < 0.1, FOREVER, ts + rng.integers(1, 9, rows))
    return batch(
        list(zip(ts.tolist(), te.tolist(), strict=True)),
        ids=range(first_id, first_id + rows),
        group=rng.integers(0, groups, rows).tolist(),
        values=[rng.choice(pool, rows) for pool in values],
    )


def same(one: Batch, two: Batch) -> bool:
    """Whether two batches hold the same rows in the same order, with every array."""
    columns = [(each.kind, getattr(one, each.name), getattr(two, each.name)) for each in declared(Batch)]
    return all(_same(kind, a, b) for kind, a, b in columns)


def _same(kind: str, one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    if kind in ("payload", "beside"):
        return _columns(one) == _columns(two)
    pairs = zip(one, two, strict=True) if kind == "numbered" else [(one, two)]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def _columns(table: pa.Table) -> list[list[Any]]:
    return [column.to_pylist() for column in table.columns]
