"""Rows, predicates and windows that Spark tests hand both to streamjoin and to the oracle.

A kind of predicate is written twice: as the user writes it, and as a plain Python function of two rows. Times are
ticks; `TIMES` says how a frame holds them and what one unit of them is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.algebra import Predicate, Window
from tests.oracle import FOREVER, Match

ROW_SCHEMA = (
    "id int, ts long, te long, k int, s string, v double, n long, d decimal(6,2), t long, "
    "lo double, hi double, ilo int, ihi int, x double, y double, z double"
)


@dataclass(frozen=True)
class TimeType:
    """How a frame holds times: ticks to the column and back, ticks in a unit, units as the user writes them."""

    to_column: Callable[[Column], Column]
    to_ticks: Callable[[Column], Column]
    unit: int
    duration: Callable[[int], Any]


TIMES = {
    "timestamp": TimeType(F.timestamp_micros, F.unix_micros, 1_000_000, lambda n: f"{n} seconds"),
    "timestamp_ntz": TimeType(
        lambda ticks: F.timestamp_micros(ticks).cast("timestamp_ntz"),
        lambda time: F.unix_micros(time.cast("timestamp")),
        1_000_000,
        lambda n: f"{n} seconds",
    ),
    "date": TimeType(lambda ticks: F.date_from_unix_date(ticks.cast("int")), F.unix_date, 1, lambda n: f"{n} days"),
    "long": TimeType(lambda ticks: ticks, lambda time: time, 1, lambda n: n),
    "int": TimeType(lambda ticks: ticks.cast("int"), lambda time: time, 1, lambda n: n),
}


# -- windows -----------------------------------------------------------------------------------------------------------

Ends = Callable[[int, int | None], int]  # the end of an element from its start and from the end it brings, if any


def window(name: str, time: TimeType) -> tuple[Window, Ends]:
    """A window as the user writes it, and what it means."""
    size, slide = 4 * time.unit, 3 * time.unit
    windows: dict[str, tuple[Window, Ends]] = {
        "range": (sj.Range(time.duration(4)), lambda ts, te: ts + size),
        "slide": (
            sj.Range(time.duration(4), slide=time.duration(3)),
            lambda ts, te: ts // slide * slide + size,
        ),
        "fixed": (sj.Fixed(time.duration(4)), lambda ts, te: (ts // size + 1) * size),
        "now": (sj.Now(), lambda ts, te: ts + 1),
        "unbounded": (sj.Unbounded(), lambda ts, te: FOREVER),
        "validity": (sj.Validity("ts", "te"), lambda ts, te: FOREVER if te is None else te),
    }
    return windows[name]


# -- rows --------------------------------------------------------------------------------------------------------------


def random_rows(rng: random.Random, count: int, unit: int) -> list[dict]:
    """Rows from narrow ranges, to force ties, empties, shared bounds, NULLs and NaNs; some rows come twice."""
    rows = []
    for number in range(count):
        ts = rng.randint(-6, 24) if rng.random() < 0.8 else rng.randint(30, 120)
        lo = rng.choice([0.0, 1.0, 1.5, 3.0, -2.0])
        rows.append({
            "id": number,
            "ts": ts * unit,
            "te": rng.choice([ts, ts + 1, ts + 2, ts + 5, ts + 9, None]),
            "k": rng.choice([None, 0, 1, 2, -5]),
            "s": rng.choice([None, "", "a", "ab", "ä"]),
            "v": rng.choice([None, math.nan, 0.0, -0.0, 0.1, 0.3, 1.0, 2.5, -1.5, math.inf]),
            "n": rng.choice([None, 2**62, -(2**62)]) if rng.random() < 0.2 else rng.randint(-6, 6),
            "d": rng.choice([None, *map(Decimal, ("0.00", "0.10", "0.30", "1.00", "-2.50", "9999.99"))]),
            "t": rng.choice([None, 0, 1, 500_000, 1_000_000, 2_500_000, -1_500_000]),
            "lo": rng.choice([None, lo, lo, lo, lo]),
            "hi": lo + rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0]),
            "ilo": rng.choice([None, -3, 0, 1, 5]),
            "ihi": rng.choice([0, 2, 3, 6]),
            "x": rng.choice([None, math.nan]) if rng.random() < 0.1 else rng.choice([0.0, 0.5, 1.0, 1.5, -2.0, 80.0]),
            "y": rng.choice([0.0, 0.5, 1.0, -1.5, 179.9, -179.9]),
            "z": rng.choice([0.0, 1.0, 1.5]),
        })  # fmt: skip
        rows[-1]["te"] = None if rows[-1]["te"] is None else rows[-1]["te"] * unit
    return rows + rng.sample(rows, count // 8)


def frame_of(spark: SparkSession, rows: Sequence[dict], time: TimeType) -> DataFrame:
    """The rows as a frame whose `ts` and `te` are of this type, and `t` is a timestamp."""
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], ROW_SCHEMA)
    return frame.withColumns(
        {
            "ts": time.to_column(F.col("ts")),
            "te": time.to_column(F.col("te")),
            "t": F.timestamp_micros("t"),
        }
    )


# -- predicates --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A condition: `keys` and `where` are what the user writes, `match` is what it means."""

    match: Match
    keys: tuple[str, ...] = ()
    where: Predicate | None = None


def known(*values: object) -> bool:
    """Neither NULL nor NaN."""
    return all(value is not None and value == value for value in values)


def same(*columns: str) -> Match:
    return lambda one, two: all(known(one[name], two[name]) and one[name] == two[name] for name in columns)


def in_band(column: str, below: Any, above: Any, closed: str = "both") -> Match:
    def match(one: dict, two: dict) -> bool:
        if not known(one[column], two[column]):
            return False
        gap = two[column] - one[column]
        low = gap >= -below if closed in ("both", "left") else gap > -below
        return low and (gap <= above if closed in ("both", "right") else gap < above)

    return match


def overlap(lo: str, hi: str) -> Match:
    def match(one: dict, two: dict) -> bool:
        return known(one[lo], one[hi], two[lo], two[hi]) and max(one[lo], two[lo]) < min(one[hi], two[hi])

    return match


def near(axes: str, radius: float, metric: str = "euclidean") -> Match:
    def match(one: dict, two: dict) -> bool:
        a, b = [one[axis] for axis in axes], [two[axis] for axis in axes]
        if not known(*a, *b):
            return False
        if metric == "haversine":
            phi, psi = math.radians(a[0]), math.radians(b[0])
            h = math.sin((psi - phi) / 2) ** 2
            h += math.cos(phi) * math.cos(psi) * math.sin((math.radians(b[1]) - math.radians(a[1])) / 2) ** 2
            return 2 * 6_371_008.8 * math.asin(math.sqrt(min(1.0, h))) <= radius
        gaps = [abs(q - p) for p, q in zip(a, b, strict=True)]
        if metric == "manhattan":
            return sum(gaps) <= radius
        if metric == "chebyshev":
            return max(gaps) <= radius
        return sum(gap * gap for gap in gaps) <= radius * radius

    return match


def both(*matches: Match) -> Match:
    return lambda one, two: all(match(one, two) for match in matches)


def _less_or_odd(one: dict, two: dict) -> bool:
    return (known(one["n"], two["n"]) and one["n"] < two["n"]) or (one["z"] + two["z"]) % 2 == 1


def _begins_with_a(one: dict, two: dict) -> bool:
    return known(one["s"], two["k"]) and one["s"].startswith("a") and 0 <= two["k"] <= 1


LESS_OR_ODD = sj.theta("l.n < r.n OR (l.z + r.z) % 2 = 1")
BEGINS_WITH_A = sj.theta("l.s LIKE 'a%' AND r.k BETWEEN 0 AND 1")

KINDS = {
    "time alone": Kind(lambda one, two: True),
    "equal ints": Kind(same("k"), ("k",)),
    "equal strings": Kind(same("s"), ("s",)),
    "two equal keys": Kind(same("s", "k"), ("s", "k")),
    "band of doubles": Kind(in_band("v", 0.2, 1.0), where=sj.band("v", below=0.2, above=1.0)),
    "band of longs": Kind(in_band("n", 2, 3, "left"), where=sj.band("n", below=2, above=3, closed="left")),
    "band of decimals": Kind(
        in_band("d", Decimal("0.1"), Decimal("0.7"), "right"), where=sj.band("d", below=0.1, above=0.7, closed="right")
    ),
    "band of timestamps": Kind(
        in_band("t", 500_000, 1_500_000, "neither"),
        where=sj.band("t", below="500 ms", above="1.5 seconds", closed="neither"),
    ),
    "overlap of doubles": Kind(overlap("lo", "hi"), where=sj.overlaps("lo", "hi")),
    "overlap of ints": Kind(overlap("ilo", "ihi"), where=sj.overlaps("ilo", "ihi")),
    "within on one axis": Kind(near("x", 0.5), where=sj.within("x", radius=0.5)),
    "within in the plane": Kind(near("xy", 1.2), where=sj.within(("x", "y"), radius=1.2)),
    "within in space": Kind(
        near("xyz", 1.5, "manhattan"), where=sj.within(("x", "y", "z"), radius=1.5, metric="manhattan")
    ),
    "within on Earth": Kind(
        near("xy", 157_500.0, "haversine"), where=sj.within(("x", "y"), radius=157_500.0, metric="haversine")
    ),
    "theta of numbers": Kind(_less_or_odd, where=LESS_OR_ODD),
    "theta of text": Kind(_begins_with_a, where=BEGINS_WITH_A),
    "key and band": Kind(both(same("k"), in_band("v", 1.0, 1.5)), ("k",), sj.band("v", below=1.0, above=1.5)),
    "overlap and band": Kind(
        both(overlap("lo", "hi"), in_band("n", 3, 3)), where=sj.overlaps("lo", "hi") & sj.band("n", below=3, above=3)
    ),
    "near and theta": Kind(
        both(near("xy", 2.0, "chebyshev"), _less_or_odd),
        where=sj.within(("x", "y"), radius=2.0, metric="chebyshev") & LESS_OR_ODD,
    ),
    "keys, overlap, theta": Kind(
        both(same("s"), overlap("ilo", "ihi"), _less_or_odd),
        where=sj.equals("s") & sj.overlaps("ilo", "ihi") & LESS_OR_ODD,
    ),
    "interval": Kind(lambda one, two: True),
    "interval with a key": Kind(same("k"), ("k",)),
    "interval and band": Kind(in_band("v", 1.0, 1.0), where=sj.band("v", below=1.0, above=1.0)),
}

FAMILIES = {
    "time": ["time alone"],
    "equal": ["equal ints", "equal strings", "two equal keys"],
    "band": ["band of doubles", "band of longs", "band of decimals", "band of timestamps"],
    "overlap": ["overlap of doubles", "overlap of ints"],
    "near": ["within on one axis", "within in the plane", "within in space", "within on Earth"],
    "theta": ["theta of numbers", "theta of text"],
    "and": ["key and band", "overlap and band", "near and theta", "keys, overlap, theta"],
    "interval": ["interval", "interval with a key", "interval and band"],
}
