"""The joins that chaos is tried on."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from chaos.data import BALLAST, CLOSING_ID, LATEST_SECONDS, SLACK_SECONDS
from chaos.kinds import BUCKETS, Kind


def _over_windows(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    window = sj.Range("4 seconds")
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    return sj.join([left, right], time="ts", window=window, lateness=lateness, buckets=BUCKETS, **options)


def _to_recall(left: DataFrame, right: DataFrame) -> DataFrame:
    """The controller learns and decides all the time, and the slack to begin with is held for longer than the data are:
    so nothing is lost, if it knows after a kill when it began.
    """
    target = sj.Recall(0.9, period="60 seconds", initial=f"{LATEST_SECONDS} seconds")
    both: dict[str, Any] = {"by": "k", "lateness": target, "buckets": BUCKETS}
    return sj.join([left, right], time="ts", window=sj.Range("4 seconds"), **both)


def _over_interval(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    common: dict[str, Any] = {"by": "k", "lateness": lateness, "buckets": BUCKETS}
    return sj.join_interval(left, right, on="ts", lower="-2 seconds", upper="3 seconds", **common, **options)


def _over_validity(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    near = sj.theta("r.v - l.v <= 3 AND l.v - r.v <= 3")  # no band: that would take the grid, which is to lie over time
    return sj.join_overlap(left, right, on=("ts", "te"), where=near, lateness=lateness, buckets=BUCKETS, **options)


def _as_of(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    return sj.join_asof(left, right, on="ts", lateness=lateness, buckets=BUCKETS, **options)


def _best(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    on = {"ts": "2 seconds", "v": 1.0}
    return sj.join_best_match(left, right, on=on, lateness=lateness, buckets=BUCKETS, **options)


def _near(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    near: dict[str, Any] = {"on": "v", "within": 1.0, "time": "ts", "tolerance": "2 seconds", "k": 2}
    return sj.join_nearest(left, right, lateness=lateness, buckets=BUCKETS, **near, **options)


def _many(left: DataFrame, right: DataFrame, **options: Any) -> DataFrame:
    """Three inputs: the third is every second row of the left side, read once more, and its closing row."""
    third = left.filter(f"id % 2 = 0 OR id = {CLOSING_ID}")
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    common: dict[str, Any] = {"time": "ts", "window": sj.Range("4 seconds"), "lateness": lateness, "buckets": BUCKETS}
    return sj.join([left, right, third], **common, **options)


def _spilled(left: DataFrame, right: DataFrame, limits: dict[str, Any] | None = None, **options: Any) -> DataFrame:
    """Rows of eight kilobytes that are kept for three files: as a stream more than its memory takes. The batch that it
    is compared with has no limit.
    """
    # Every row has an interval of its own, and values that few others have: wide rows in few results.
    columns = {BALLAST: F.expr("repeat(md5(CAST(id AS STRING)), 256)"), "hi": F.expr("v + x / 300")}
    sides = [side.withColumns({**columns, "w": F.expr("CAST(y AS INT)")}) for side in (left, right)]
    limited: dict[str, Any] = {"memory": "2 MB", **(limits or {})} if left.isStreaming else {}
    lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
    common: dict[str, Any] = {"window": sj.Range("60 seconds"), "lateness": lateness, "buckets": BUCKETS}
    return sj.join(sides, time="ts", **common, **limited, **options)


_MERGED: Final = {"algorithm": "tpmj", "merge": sj.Greedy()}
_BAND: Final = sj.band("v", below=0.5, above=0.5)
_THETA: Final = sj.theta("l.v < r.v AND r.v - l.v < 1.5")
_PAIRWISE: Final = sj.equals("k", of=(0, 1)) & sj.band("v", below=0.5, above=0.5, of=(1, 2))

JOINS: Final = (
    Kind("interval-inner", _over_interval),
    Kind("interval-left", partial(_over_interval, how="left")),
    Kind("interval-full", partial(_over_interval, how="full")),
    Kind("window-left-ordered", partial(_over_windows, by="k", how="left", emit="ordered")),
    Kind("window-anti", partial(_over_windows, by="k", how="anti")),
    Kind("window-semi", partial(_over_windows, by="k", how="semi")),
    Kind("window-full-snapshot", partial(_over_windows, by="k", how="full", outer="snapshot")),
    Kind("band-inner", partial(_over_windows, where=_BAND)),
    Kind("band-semi", partial(_over_windows, where=_BAND, how="semi")),
    Kind("band-right", partial(_over_windows, where=_BAND, how="right")),
    Kind("within-inner", partial(_over_windows, where=sj.within(("x", "y"), radius=2.0))),
    Kind("overlap-inner", partial(_over_validity, cell="10 seconds")),
    Kind("theta-inner", partial(_over_windows, where=_THETA)),
    # Rows have copies in several buckets here, and a second stage with a state of its own judges which met nobody.
    Kind("theta-left", partial(_over_windows, where=_THETA, how="left")),
    Kind("theta-late-output", partial(_over_windows, where=_THETA, late="output"), late=True),
    Kind("band-full", partial(_over_windows, where=_BAND, how="full")),
    Kind("overlap-left-snapshot", partial(_over_validity, cell="10 seconds", how="left", outer="snapshot")),
    Kind("late-output", partial(_over_windows, by="k", how="left", late="output"), late=True),
    Kind("late-recall", _to_recall, late=True, waits=True),
    Kind("table-full", partial(_over_windows, by="k", how="full"), table=True),
    Kind("many-keys", partial(_many, by="k")),
    # Rows have copies along the edges of a cube of buckets here, and results wait for their turn.
    Kind("many-pairwise-ordered", partial(_many, where=_PAIRWISE, emit="ordered")),
    Kind("best-match-left", _best),
    Kind("best-match-full", partial(_best, by="k", how="full")),
    Kind("best-match-full-without-keys", partial(_best, how="full")),
    Kind("nearest-left", _near),
    Kind("nearest-changelog", partial(_near, by="k", output="changelog")),
    Kind("asof-changelog", partial(_as_of, by="k", output="changelog")),
    Kind("asof-backward", partial(_as_of, by="k")),
    Kind("asof-nearest-ordered", partial(_as_of, by="k", direction="nearest", emit="ordered")),
    Kind("spilled-band", partial(_spilled, where=sj.band("v", below=0.05, above=0.05)), spills=True),
    Kind("spilled-equality", partial(_spilled, by=["k", "w"], how="left"), spills=True),
    Kind("spilled-overlap", partial(_spilled, where=sj.overlaps("v", "hi")), spills=True),
    # Results leave with merges: nobody knows when the last ones would.
    Kind("spilled-tpmj", partial(_spilled, by=["k", "w"], emit="ordered", limits=_MERGED), spills=True, finished=True),
    Kind("asof-forward-without-keys", partial(_as_of, direction="forward", tolerance="2 seconds", how="inner")),
)
