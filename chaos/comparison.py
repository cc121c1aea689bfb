"""What a query delivered, compared with what the same call gives for the whole of the data: as multisets of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from chaos import data
from chaos.checkpoint import Checkpoint
from chaos.errors import ChaosError
from chaos.kinds import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Rows = Counter[Any]
CHANGE: Final = "_change"


@dataclass(frozen=True)
class Difference:
    """What was compared, and in what it differs."""

    rows: int
    lost: Rows
    repeated: Rows
    invented: Rows

    @property
    def equal(self) -> bool:
        """Whether every row was delivered exactly as often as it should be."""
        return not (self.lost or self.repeated or self.invented)

    def describe(self, most: int = 5) -> list[str]:
        """A line for each kind of difference and for some of its rows."""
        lines = []
        for name in ("lost", "repeated", "invented"):
            rows: Rows = getattr(self, name)
            if rows:
                lines.append(f"{rows.total()} rows {name}, for example:")
                lines += [f"  {count} x {row}" for row, count in rows.most_common(most)]
        return lines


def compare(expected: Rows, delivered: Rows) -> Difference:
    """The difference of two multisets of rows.

    >>> difference = compare(Counter("aab"), Counter("abbc"))
    >>> difference.rows, difference.lost, difference.repeated, difference.invented
    (3, Counter({'a': 1}), Counter({'b': 1}), Counter({'c': 1}))
    """
    surplus = delivered - expected
    repeated = Counter({row: count for row, count in surplus.items() if row in expected})
    return Difference(expected.total(), expected - delivered, repeated, surplus - repeated)


def compare_query(spark: SparkSession, kind: Kind, folder: Path) -> Difference:
    """What is in the output of a query that has ended, and what it still holds, compared with what should be."""
    expected, checkpoint = expected_frame(spark, kind, folder / "in"), Checkpoint(folder)
    # Spark reads what its sink's log counts as output, and no file that a dead driver has left.
    delivered = spark.read.schema(expected.schema).parquet(str(checkpoint.output))
    rest = rest_of(spark, checkpoint) if kind.finished else Rows()
    return compare(rows_of(expected), rows_of(delivered) + rest)


def rest_of(spark: SparkSession, checkpoint: Checkpoint) -> Rows:
    """What a query that has ended still holds."""
    try:
        return rows_of(sj.finish(checkpoint.path, spark))
    except (sj.StreamjoinError, PySparkException) as error:
        raise ChaosError(f"the query cannot be finished: {error}") from error


def expected_frame(spark: SparkSession, kind: Kind, inputs: Path) -> DataFrame:
    """The call on batch frames. Rows that come too late for it, which a batch cannot have, are kept from it and shown
    beside its result.
    """
    left, right = data.frames(spark, inputs, streaming=False)
    if not kind.late or kind.waits:
        return kind.call(left, right)
    joined = kind.call(left.filter("NOT late"), right.filter("NOT late"))
    for side, frame in enumerate((left, right)):
        joined = joined.unionAll(_shown_late(frame.filter("late"), side, joined.schema))
    return joined


def _shown_late(frame: DataFrame, side: int, schema: StructType) -> DataFrame:
    """Late rows of one side as the result shows them: unjoined, and marked."""
    columns, merged = [], "k_right" not in schema.names
    for field in schema:
        source = field.name.removesuffix("_right") if side == 1 else field.name
        if field.name == "_late":
            column = F.lit(True)
        elif (field.name == "k" and merged) or (source in frame.columns and (side == 0 or source != field.name)):
            column = F.col(source)
        else:
            column = F.lit(None)
        columns.append(column.cast(field.dataType).alias(field.name))
    return frame.select(columns)


def rows_of(frame: DataFrame) -> Rows:
    """The rows of a frame without those that a closing row is in; of a changelog what it comes to."""
    ids = [name for name in ("id", "id_right") if name in frame.columns]
    for name in ids:
        frame = frame.filter(F.col(name).isNull() | (F.col(name) != data.CLOSING_ID))
    heavy = [name for name in frame.columns if name.removesuffix("_right") == data.BALLAST]
    frame = frame.withColumns({name: F.md5(name) for name in heavy})
    if CHANGE not in frame.columns:
        return Counter(tuple(row) for row in frame.collect())
    total: Rows = Counter()
    place = frame.columns.index(CHANGE)
    for row in frame.collect():
        total[tuple(value for number, value in enumerate(row) if number != place)] += (
            -1 if row[place] == "retract" else 1
        )
    # A row that was retracted more often than inserted must not vanish from the comparison.
    return Counter({("retracted too often", *row) if count < 0 else row: abs(count) for row, count in total.items()})
