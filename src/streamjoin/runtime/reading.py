"""Reading: how the rows of a source get their times. Names of time columns end here.

A row is invalid when its time is NULL, or when its validity ends before it begins. NULL as the end of a validity means
for ever. What happens to invalid rows is the policy's business: `fail` says which row it was, `drop` and `output` set
them apart. A *ghost* ends where it begins: it is in no snapshot, and whoever packs rows lets it go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER, NEVER, InvalidPolicy, Rows, Validity, Window
from streamjoin.algebra.interval import Mask, Times
from streamjoin.algebra.policy import ADDED
from streamjoin.errors import InvalidRowError
from streamjoin.operators import Results
from streamjoin.operators.urgency import at_least_0
from streamjoin.runtime.intake import KEEP
from streamjoin.state.batch import Priorities
from streamjoin.state.columns import time_values


@dataclass(frozen=True)
class Read:
    """Rows of a source with their times, and those that are invalid."""

    elements: Results
    invalid: pa.Table


@dataclass(frozen=True)
class Reading:
    """What gives the rows of a source their times.

    A `window` gives both ends; a row window only the start. Without a window they are events, whose ends are the
    business of whoever joins them. `timeless`: a row whose time is NULL is not invalid, it only matches nothing.
    `label` is what errors call the source, `shown` the columns that they show, by their names here and there, and
    `called` what its time columns are called there. `priority` is the column that says how urgent rows are.
    """

    label: str
    shown: tuple[tuple[str, str], ...]
    called: tuple[str, ...] = ()
    time: str | None = None
    window: Window | None = None
    invalid: InvalidPolicy = "fail"
    timeless: bool = False
    priority: str | None = field(default=None, metadata=ADDED)

    def read(self, table: pa.Table) -> Read:
        """The rows of `table` with their times."""
        table = table.combine_chunks()
        ts, te, valid = self._times(table)
        invalid = table.slice(0, 0)
        if not valid.all():
            invalid = table.filter(pa.array(~valid))
            if KEEP in invalid.column_names:  # what a selection drops anyway is nobody's business
                invalid = invalid.filter(invalid[KEEP])
            if self.invalid == "fail" and invalid.num_rows:
                raise self._invalid_row(invalid)
            table, ts, te = table.filter(pa.array(valid)).combine_chunks(), ts[valid], te[valid]
        return Read(Results(table, ts, te, priority=self.priorities(table)), invalid)

    def priorities(self, table: pa.Table) -> Priorities | None:
        """How urgent rows are, NULL or negative is not; None where none is."""
        if self.priority is None:
            return None
        values = pc.fill_null(table[self.priority].cast(pa.int64()), 0)
        return at_least_0(values.to_numpy())

    def _times(self, table: pa.Table) -> tuple[Times, Times, Mask]:
        rows = table.num_rows
        forever = np.full(rows, FOREVER)
        if isinstance(self.window, Validity):
            ts, valid = time_values(table[self.window.start])
            te, has_end = time_values(table[self.window.end])
            te = np.where(has_end, te, FOREVER)
            return ts, te, valid & (ts <= te)
        if self.time is None:
            return np.zeros(rows, np.int64), forever, np.ones(rows, np.bool_)
        ts, valid = time_values(table[self.time])
        if self.window is None or isinstance(self.window, Rows):
            valid = valid & (ts < FOREVER)  # infinity is no time at which an event could be
        if self.timeless:
            ts, valid = np.where(valid, ts, NEVER), np.ones(rows, np.bool_)
        if self.window is None or isinstance(self.window, Rows):
            return ts, forever, valid
        return ts, self.window.ends(ts), valid

    def _invalid_row(self, rows: pa.Table) -> InvalidRowError:
        first = {there: rows[here][0].as_py() for here, there in self.shown}
        if isinstance(self.window, Validity):
            why = f"a validity needs a start, and {self.called[1]} must not be before {self.called[0]}"
        else:
            missing = self.time is None or not rows[self.time][0].is_valid
            what = "NULL" if missing else "the largest number, which is no time"
            why = f"its time column {self.called[0]!r} is {what}"
        return InvalidRowError(
            f"{self.label} has {rows.num_rows} invalid row(s), the first is {first}: {why}",
            hint='repair or filter such rows, or choose invalid="drop" or invalid="output"',
        )
