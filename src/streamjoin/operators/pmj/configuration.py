"""PMJ, the progressive merge join: inner joins of two finite inputs that do not fit into memory, with early results.

After Dittrich, Seeger, Taylor, Widmayer: Progressive Merge Join, as section 3.2 of "Sortierbasierte Joins ueber
Datenstroemen" has it, with a number per row instead of runs that stay paired.

    rows --> [lists in memory] --full--> sorted, joined with each other (early results), written as a *generation*
    end  --> all runs of both inputs are merged, and joined as they merge

Law: rows that were together in a generation have found each other then, and nobody else has. So a merge lets those
results go that have members of different generations, and what it writes is one generation.

A merge takes as many generations as the budget allows; while there are more, the smallest become one. The last merge
writes nothing, and what came last need not be written. Inputs that fit are joined in memory. Results leave as they are
found, in no order.

Needs  inputs that end: rows are not forgotten before. Any predicate (see `state.matching`), known ends
Cost   sorting, one copy of every row to disk and back, and one more for each merge before the last. Payload is gathered
       when it is written and for results, not when rows are merged
Not here: outer, semi and anti joins, which must know who met nobody; ordered emission
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Emit, How
from streamjoin.operators.contract import ALONE, Configuration, Context
from streamjoin.operators.joining import described
from streamjoin.operators.pmj.budget import DEFAULT_MEMORY, Budget
from streamjoin.state import Matching


@dataclass(frozen=True)
class Pmj(Configuration):
    """What to join and how. `build()` makes the running operator.

    `budget`: how memory is divided; None: what the context allows. `row_bytes`: how large rows are taken to be; None:
    as they are.
    """

    matching: Matching
    schemas: tuple[pa.Schema, pa.Schema]
    validity: bool = True
    budget: Budget | None = None
    row_bytes: int | None = None
    producer: int = 0

    @property
    def how(self) -> How:
        """Every result has a row of each input."""
        return "inner"

    @property
    def emit(self) -> Emit:
        """Results leave as they are found."""
        return "eager"

    @property
    def areas(self) -> int:
        """What it may use of memory is counted as for two sweep areas."""
        return 2

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        matching = (self.matching.first, self.matching.tests, self.matching.timed)
        return repr(("pmj", *matching, self.validity, described(self.schemas), self.producer))

    def divided(self, context: Context) -> Budget:
        """How memory is divided."""
        return self.budget or Budget.of(context.memory or DEFAULT_MEMORY)

    def build(self, context: Context = ALONE) -> Any:
        """The running operator, empty."""
        from streamjoin.operators.pmj.running import RunningPmj

        return RunningPmj(self, context)
