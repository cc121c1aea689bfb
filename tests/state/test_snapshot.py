"""Snapshots: tables as bytes."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from streamjoin.state import Snapshot, table_from_bytes, table_to_bytes

TABLES = {
    "nothing": pa.table({}),
    "no rows": pa.table({"a": pa.array([], pa.int64())}),
    "types": pa.table({
        "i": pa.array([1, None]),
        "s": pa.array(["x", None]),
        "d": pa.array([Decimal("1.50"), None]),
        "t": pa.array([datetime.datetime(2024, 1, 1), None]),
        "l": pa.array([[1], None]),
        "o": pa.array([{"x": 1}, None]),
    }),
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_survives_the_way_through_bytes(table: pa.Table) -> None:
    blob = table_to_bytes(table)
    assert isinstance(blob, bytes)
    assert table_from_bytes(blob).equals(table)


def test_a_snapshot_knows_its_size() -> None:
    assert Snapshot({}).nbytes == 0
    assert Snapshot({}, {"a": b"12", "b": b"345"}).nbytes == 5


def test_snapshots_share_nothing() -> None:
    one, two = Snapshot({}), Snapshot({})
    one.blobs["a"] = b""
    assert two.blobs == {}
