"""The rows of the streams of these tests: few, with ties, NULLs, and values exactly on the bounds of the queries.

Rows with equal times are in the order of their other columns, NULLs first: the order in which a batch counts them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.cql.streams import SCHEMAS

START = datetime(2024, 1, 1)


def _at(seconds: float) -> datetime:
    return (START + timedelta(seconds=seconds)).replace(tzinfo=UTC)


def _plain(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


_ROWS: dict[str, list[tuple[Any, ...]]] = {
    # ts, k, x, y, a: four of a key at one instant, two of them alike; one exactly on a minute, one between two seconds.
    "R": [
        (_at(0), "x", 1.5, 1.5, 4),
        (_at(0), "y", 2.0, None, 1),
        (_at(1), "x", 0.0, 3.0, 7),
        (_at(2.5), None, 2.5, 1.0, 5),
        (_at(2.5), "X", 3.0, 3.0, 12),
        (_at(5), "b", 4.0, 4.0, 9),
        (_at(5), "x", None, 2.0, None),
        (_at(5), "x", 5.0, 0.5, 4),
        (_at(5), "x", 5.0, 0.5, 4),
        (_at(5), "x", 6.25, 2.0, 2),
        (_at(60), "y", -1.0, 2.0, 6),
    ],
    # ts, k, x, y, b: the two of x at the start are near R's, each nearer in one dimension;
    # the one of x at 5 s is exactly 5 away from R's b.
    "S": [
        (_at(0), "x", 1.505, 1.495, 5),
        (_at(0), "x", 1.509, 1.499, 3),
        (_at(0), "y", 2.25, 25.0, 1),
        (_at(2.5), None, 3.0, 100.0, 5),
        (_at(2.5), "X", 3.5, 30.0, 1),
        (_at(5), "b", None, 4.0, None),
        (_at(5), "x", 7.0, 8.0, 3),
        (_at(5), "z", 7.0, 25.0, 11),
        (_at(60), "y", -1.0, 2.005, 6),
    ],
    # ts, k, c, price: prices exactly 0.50 apart.
    "T": [
        (_at(0), "x", 3, Decimal("10.50")),
        (_at(0), "x", 5, Decimal("10.00")),
        (_at(0), "y", None, Decimal("1.25")),
        (_at(2.5), None, 1, Decimal("2.00")),
        (_at(5), "b", 11, Decimal("0.10")),
        (_at(5), "x", 3, Decimal("7.25")),
        (_at(60), "z", 6, None),
    ],
    # t, k, lo, hi: an empty interval inside another one, and intervals that abut.
    "N": [
        (1, "x", 1, 4),
        (1, "y", 4, 4),
        (5, None, None, 7),
        (5, "x", 5, 6),
        (499, "y", 0, 3),
        (500, "z", 6, 10),
    ],
    "M": [
        (1, "x", 3, 5),
        (5, "x", 2, 6),
        (5, "x", 6, 8),
        (499, "y", 3, 5),
        (510, "z", 1, 6),
    ],
    # at, k, day, f: days on both bounds of the band, over the end of a leap year's February.
    "P": [
        (_plain(0), 1, date(2024, 2, 28), 1.5),
        (_plain(0), 2, date(2024, 3, 7), 2.5),
        (_plain(10), 3, date(2024, 2, 29), None),
        (_plain(90), 4, date(2024, 3, 1), 0.5),
    ],
    "Q": [
        (_plain(0), 1, date(2024, 3, 2), 2.5),
        (_plain(4), 2, date(2024, 2, 29), 1.75),
        (_plain(10), 3, None, 1.0),
        (_plain(60), 5, date(2024, 3, 1), 0.5),
        (_plain(90), 6, date(2024, 2, 23), 1.5),
    ],
    # ts, name, words: sets that share 2 of 3, 1 of 2 and 1 of 3 words; an element twice and a NULL in one; empty ones;
    # names that one change makes equal, one of them beside letters that are two bytes long.
    "C": [
        (_at(0), "Anna Rossi", ["anna", "rossi"]),
        (_at(0), "Jürgen Krämer", ["jürgen", "krämer"]),
        (_at(1), None, None),
        (_at(1), "Seeger", ["seeger", None, "seeger"]),
        (_at(5), "", []),
    ],
    "D": [
        (_at(0), "Ana Rossi", ["rossi", "anna", "maria"]),
        (_at(0), "Jürgen Kramer", ["jürgen", "kramer"]),
        (_at(2.5), "Seger", ["seeger"]),
        (_at(4), "Rossi", ["rossi"]),
        (_at(5), "", []),
        (_at(5), "S", None),
    ],
    # k, valid_from, valid_to, s: one without end, one that is never valid.
    "V": [
        ("q", _at(1), _at(4), {"z": 3}),
        ("w", _at(1), _at(4), None),
        ("x", _at(0), _at(10), {"z": 4}),
        ("y", _at(5), None, {"z": 7}),
        ("z", _at(3), _at(3), {"z": 9}),
    ],
}
TABLES = {
    name: pa.Table.from_pylist([dict(zip(SCHEMAS[name].names, row, strict=True)) for row in rows], SCHEMAS[name])
    for name, rows in _ROWS.items()
}
