"""Do two methods say the same? Compared in normal form, without a loop over rows.

Two results are equal when at every instant every payload is there equally often. How often that is only changes where
an element starts (one more) or ends (one less). So the changes, added up for each payload and instant and without those
that cancel out, are a form that equal results share, however their elements were cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.errors import UnequalResultsError
from benchmarks.lifetimes_queries import QueryName, micro_batches
from streamjoin.plan.physical import PhysicalPlan
from tests.interpreter import InProcess

VALIDITY = ("valid_from", "valid_to")


def changes_of(tables: Sequence[pa.Table]) -> pa.Table:
    """When each payload becomes how much more, or less, frequent. What never ends has no end here.

    >>> element = lambda start, end: pa.table({"a": [1], "valid_from": [start], "valid_to": [end]})
    >>> changes_of([element(0, 5), element(5, 9)]).to_pydict()
    {'a': [1, 1], 'time': [0, 9], 'change': [1, -1]}
    """
    whole = pa.concat_tables(tables)
    payload = [name for name in whole.column_names if name not in VALIDITY]
    both = []
    for name, change in zip(VALIDITY, (1, -1), strict=True):
        rows = whole.select([*payload, name]).rename_columns([*payload, "time"])
        rows = rows.filter(pc.is_valid(rows["time"]))
        both.append(rows.append_column("change", pa.array(np.full(rows.num_rows, change))))
    keys = [*payload, "time"]
    added = pa.concat_tables(both).group_by(keys, use_threads=False).aggregate([("change", "sum")])
    added = added.rename_columns([*keys, "change"]).filter(pc.not_equal(added["change_sum"], 0))
    return added.sort_by([(name, "ascending") for name in keys]).combine_chunks()


def results_of(plan: PhysicalPlan, query: QueryName, tuples: int, batch: int) -> list[pa.Table]:
    """All that a query gives for the first tuples of its streams, which then end."""
    running, out = InProcess(plan), []
    for rows, _ in micro_batches(query, 0, tuples, batch):
        out += running.micro_batch({name: [table] for name, table in rows.items()})
    return [*out, *running.end()]


def check_equal(what: str, one: Sequence[pa.Table], two: Sequence[pa.Table]) -> int:
    """Refuse to go on unless both are equal in normal form, and something at all; how many changes they are."""
    if not one or not two:
        raise UnequalResultsError(f"{what}: nothing came out, so there is nothing to compare")
    mine, others = changes_of(one), changes_of(two)
    if not mine.equals(others):
        raise UnequalResultsError(
            f"{what}: the two methods give different results, so their times cannot be compared "
            f"({mine.num_rows} and {others.num_rows} changes of multiplicity)"
        )
    return int(mine.num_rows)
