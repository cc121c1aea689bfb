"""The streams that the queries of these tests read."""

from __future__ import annotations

import pyarrow as pa

_ZONED, _PLAIN = pa.timestamp("us", "UTC"), pa.timestamp("us")

SCHEMAS = {
    "R": pa.schema({"ts": _ZONED, "k": pa.string(), "x": pa.float64(), "y": pa.float64(), "a": pa.int32()}),
    "S": pa.schema({"ts": _ZONED, "k": pa.string(), "x": pa.float64(), "y": pa.float64(), "b": pa.int32()}),
    "T": pa.schema({"ts": _ZONED, "k": pa.string(), "c": pa.int64(), "price": pa.decimal128(10, 2)}),
    "N": pa.schema({"t": pa.int64(), "k": pa.string(), "lo": pa.int64(), "hi": pa.int64()}),
    "M": pa.schema({"t": pa.int64(), "k": pa.string(), "lo": pa.int64(), "hi": pa.int64()}),
    "P": pa.schema({"at": _PLAIN, "k": pa.int64(), "day": pa.date32(), "f": pa.float32()}),
    "Q": pa.schema({"at": _PLAIN, "k": pa.int64(), "day": pa.date32(), "f": pa.float32()}),
    "C": pa.schema({"ts": _ZONED, "name": pa.string(), "words": pa.list_(pa.string())}),
    "D": pa.schema({"ts": _ZONED, "name": pa.string(), "words": pa.list_(pa.string())}),
    "V": pa.schema({"k": pa.string(), "valid_from": _ZONED, "valid_to": _ZONED, "s": pa.struct({"z": pa.int32()})}),
}
TIMES = {"R": "ts", "S": "ts", "T": "ts", "N": "t", "M": "t", "P": "at", "Q": "at", "C": "ts", "D": "ts", "V": None}
