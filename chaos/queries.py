"""The queries in CQL that chaos is tried on. Between them they use every sort of operator with state.

They are asked for by `sj.cql` and brought to their end by `sj.finish` alone, so they hold whatever is inside.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

import streamjoin as sj
from chaos.data import SLACK_SECONDS
from chaos.kinds import BUCKETS, Kind


def _query(name: str, text: str, *, distinct: bool = False) -> Kind:
    """A query of the streams l and r. Sums are of whole numbers: those of others depend on their order."""

    def ask(left: DataFrame, right: DataFrame) -> DataFrame:
        lateness = sj.Grace(f"{SLACK_SECONDS} seconds")
        return sj.cql(left.sparkSession, text, l=left, r=right, lateness=lateness, buckets=BUCKETS)

    # Most have two stages, so that a batch takes about twice as long as a join's.
    return Kind(name, ask, distinct=distinct, most_files=8, finished=True)


QUERIES: Final = (
    _query(
        "cql-rows",
        """SELECT l.id, r.id AS id_right FROM l [PARTITION BY k ROWS 3] JOIN r [RANGE 4 SECONDS] ON l.k = r.k""",
        distinct=True,  # a batch orders rows of one time by what is in them, a stream as they come
    ),
    _query(
        "cql-groups",
        """SELECT l.k, COUNT(*) AS n, SUM(r.id) AS ids, MAX(l.v) AS top
           FROM l [RANGE 4 SECONDS] JOIN r [RANGE 2 SECONDS] ON l.k = r.k GROUP BY l.k""",
    ),
    _query(
        "cql-sets",
        """SELECT DISTINCT q.k FROM
           (SELECT k FROM l [RANGE 4 SECONDS] EXCEPT ALL SELECT k FROM r [RANGE 3 SECONDS]) AS q""",
    ),
    _query(
        "cql-left-band",
        """SELECT l.id, r.id AS id_right
           FROM l [RANGE 4 SECONDS] LEFT JOIN r [RANGE 2 SECONDS] ON abs(l.v - r.v) <= 0.5D""",
    ),
    # Who is alone, told each time that it becomes so.
    _query(
        "cql-istream",
        """SELECT ISTREAM(l.id, l.k) FROM l [RANGE 4 SECONDS] LEFT ANTI JOIN r [RANGE 2 SECONDS] ON l.k = r.k""",
    ),
)
