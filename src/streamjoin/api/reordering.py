"""Rows in order of time, for whoever needs them so."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamjoin.algebra import Arrival, LatenessPolicy, Now
from streamjoin.algebra.policy import InvalidPolicy, LatePolicy
from streamjoin.api.arguments import ColumnLike
from streamjoin.api.queries import Frames
from streamjoin.errors import says_what_fits
from streamjoin.spark.calls.options import Options


@says_what_fits
def reorder(
    frame: DataFrame,
    *,
    time: ColumnLike | Arrival,
    lateness: LatenessPolicy | None = None,
    late: LatePolicy = "drop",
    invalid: InvalidPolicy = "fail",
) -> DataFrame:
    """The rows of a frame in order of time. On a stream a row waits until no earlier one can come any more.

    That takes as long as rows may be late: `lateness`, `sj.Grace` or `sj.MaxDelay` (together with a join that expects
    order this is what is called MP-K-slack). Streamjoin's own joins need no order; this is for others that do. All rows
    pass one task. Rows that come later than that are `late`: "drop", "fail", or "output" (in a column `_late_0`).

    Parameters
        time        the time column, or `sj.arrival()`
        lateness    on a stream, how late rows may be; by default as the frame's own watermark says
        invalid     rows without time: "fail", "drop" or "output" (in a column `_invalid_0`)

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([(3, "c"), (1, "a"), (2, "b")], "ts long, name string")
    >>> [row.name for row in sj.reorder(seen, time="ts").collect()]
    ['a', 'b', 'c']
    """
    options = Options(lateness=lateness, late=late, invalid=invalid, emit="ordered", buckets=1)
    frames = Frames([frame], time, Now(), options, "reorder")
    return frames.run(frames.stream(0, {name: name for name in frames.inputs[0].columns}), reordered=True)
