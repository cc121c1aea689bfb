"""Rows of one input in the order of the matching, whose payload lies where it came. It is gathered for results only.

run       what decides, sorted                    [b a c]
place     where each row's payload is              2 0 1
payload   in any order                            [a c b]
label     the generation of each row
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask
from streamjoin.kernels import sort_order
from streamjoin.operators.contract import Results, side_by_side
from streamjoin.state import Batch, Matching, Run
from streamjoin.state.batch import Indices


@dataclass(frozen=True)
class Side:
    """Rows of one input."""

    run: Run
    label: Indices
    payload: pa.Table
    place: Indices

    def __len__(self) -> int:
        return len(self.run)

    @property
    def width(self) -> float:
        """Bytes of a row's payload, about."""
        return float(self.payload.nbytes / max(1, self.payload.num_rows))

    @staticmethod
    def sorted(matching: Matching, rows: Batch, label: Indices) -> Side:
        """Rows that came in any order, with their labels."""
        bare = without_payload(rows)
        order = sort_order(matching.run_of(bare).sort_columns)
        return Side(matching.run_of(bare.take(order)), label[order], rows.payload, order)

    def part(self, start: int, stop: int) -> Batch:
        """Some rows with their payload, in their order."""
        return replace(self.run.rows.part(start, stop), payload=taken(self.payload, self.place[start:stop]))

    def only(self, matching: Matching, keep: Mask) -> Side:
        """Some rows, with no more payload than theirs."""
        rows = np.flatnonzero(keep)
        run = matching.run_of(self.run.rows.take(rows))
        return Side(run, self.label[rows], taken(self.payload, self.place[rows]), np.arange(len(rows)))

    @staticmethod
    def together(matching: Matching, one: Side, two: Side) -> Side:
        """Rows, and others that do not come before any of them."""
        payload = pa.concat_tables([one.payload, two.payload]).combine_chunks()
        run = matching.run_of(Batch.concat([one.run.rows, two.run.rows]))
        place = np.concatenate([one.place, two.place + one.payload.num_rows])
        return Side(run, np.concatenate([one.label, two.label]), payload, place)


def without_payload(rows: Batch) -> Batch:
    """What decides about rows, alone."""
    return replace(rows, payload=pa.table({}))


def taken(table: pa.Table, rows: npt.NDArray[Any]) -> pa.Table:
    """Rows of a table; one without columns stays as it is."""
    return table.take(pa.array(rows)) if table.num_columns else table


def results_of(
    matching: Matching, one: Side, two: Side, nbytes: int, *, apart: bool, validity: bool
) -> Iterator[Results]:
    """Pairs that match, as results of at most so many bytes; `apart`: only those of different generations."""
    most = max(1, int(nbytes / max(1.0, one.width + two.width)))
    for i, j in matching.pairs(one.run, two.run):
        if apart:
            keep = one.label[i] != two.label[j]
            if not keep.all():
                i, j = i[keep], j[keep]
        for start in range(0, len(i), most):
            yield _paired(one, i[start : start + most], two, j[start : start + most], validity=validity)


def _paired(one: Side, i: Indices, two: Side, j: Indices, *, validity: bool) -> Results:
    ts = np.maximum(one.run.rows.ts[i], two.run.rows.ts[j])
    te = np.minimum(one.run.rows.te[i], two.run.rows.te[j]) if validity else ts
    members = [taken(one.payload, one.place[i]), taken(two.payload, two.place[j])]
    return Results(side_by_side(members), ts, te)
