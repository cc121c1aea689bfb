"""Small random relations on every time axis, and results in ticks: what Spark gives, as the oracle writes it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from tests.relational_oracle import FOREVER, Element, Row

COLUMNS = ("ts", "k", "v", "s", "te")


@dataclass(frozen=True)
class Axis:
    """A time axis. One step of the rows' times is `step` ticks, and `unit` in words; integers have no words."""

    name: str
    step: int
    unit: str | None

    def time(self, column: str) -> Column:
        """Steps as a time of this axis."""
        if self.name == "long":
            return F.col(column)
        if self.name == "date":
            return F.date_from_unix_date(F.col(column).cast("int"))
        return F.timestamp_seconds(column).cast(self.name)

    def lasting(self, steps: int) -> Any:
        """A duration, as a caller writes it."""
        return steps if self.unit is None else f"{steps} {self.unit}"


AXES = {
    "long": Axis("long", 1, None),
    "timestamp": Axis("timestamp", 10**6, "seconds"),
    "timestamp_ntz": Axis("timestamp_ntz", 10**6, "seconds"),
    "date": Axis("date", 1, "days"),
}


def random_rows(rng: random.Random, count: int = 25) -> list[Row]:
    """Rows with many equal times and values, and NULLs. Values are eighths: sums of them are the same in any order."""
    rows = []
    for _ in range(count):
        ts = rng.randint(-3, 20)
        values = (rng.choice([None, 1, 2, 3]), rng.choice([None, 0.125, 0.25, 0.5, 2.0]), rng.choice(["a", "b"]))
        rows.append(dict(zip(COLUMNS, (ts, *values, rng.choice([None, ts, ts + rng.randint(1, 9)])), strict=True)))
    return rows


def as_counted(rows: list[Row], columns: Iterable[str]) -> list[Row]:
    """The rows in the order in which a batch with these columns counts them: by time, then by all columns."""

    def content(row: Row) -> list[Any]:
        return [(row[name] is not None, 0 if row[name] is None else row[name]) for name in ("ts", *columns)]

    return sorted(rows, key=content)


def in_ticks(axis: Axis, rows: list[Row]) -> list[Row]:
    """The rows as the oracle takes them."""
    times = ("ts", "te")
    return [
        {name: value * axis.step if name in times and value is not None else value for name, value in row.items()}
        for row in rows
    ]


def frame_of(spark: SparkSession, axis: Axis, rows: list[Row], rng: random.Random) -> DataFrame:
    """The rows in any order, in two partitions."""
    shuffled = rng.sample([tuple(row.values()) for row in rows], len(rows))
    frame = spark.createDataFrame(shuffled, "ts long, k int, v double, s string, te long").coalesce(2)
    return frame.withColumns({name: axis.time(name) for name in ("ts", "te")})


def elements_of(result: DataFrame) -> list[Element]:
    """The rows of a result, all times in ticks; the last two columns are the validity."""
    ticks = []
    for column in result.schema.fields:
        value = F.col(f"`{column.name}`")
        if isinstance(column.dataType, TimestampType | TimestampNTZType):
            value = F.unix_micros(value.cast("timestamp"))
        elif isinstance(column.dataType, DateType):
            value = F.unix_date(value)
        ticks.append(value)
    rows = [tuple(map(_rounded, row)) for row in result.select(*ticks).collect()]
    return [(row[:-2], row[-2], FOREVER if row[-1] is None else row[-1]) for row in rows]


def rounded(elements: list[Element]) -> list[Element]:
    """Deviations may be rounded differently."""
    return [(tuple(map(_rounded, payload)), ts, te) for payload, ts, te in elements]


def _rounded(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value
