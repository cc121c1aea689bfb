"""TPMJ, the temporal progressive merge join: an ordered join of n inputs whose state does not fit into memory. Inner.

After Cammert, Heinz, Kraemer, Seeger: Sortierbasierte Joins ueber Datenstroemen, sections 5.3 and 6, with the
corrections that brute force asked for.

    rows --> [lists in memory] --full--> a group: one run per input, sorted by value
                                           |
    oldest                                 v
    [flank] [group] [group] [group] ... [group]         neighbours are merged, as the strategy says
       |_______|  with the flank: rows find each other, results in [s, e) leave sorted by (ts, te),
                  rows that end at e or earlier are left behind
               |_______|  without: only sorted

1. A group is written when the lists reach their share of the memory. Its `e` is the least progress of the inputs then:
   no row that begins earlier is missing in it and in those before.
2. A flank merge gives exactly the results that begin in [s, e), `e` that of its newest group; then s := e. So merges
   give disjoint pieces of the output, in order, and each result leaves once.
3. A row that ends at `e` or earlier is in no result that begins at `e` or later: it is not written on.
4. When all inputs have ended, the root merges all that is left, up to the end of time.

Merging is cooperative and deterministic: after each micro-batch as many steps as a credit pays for, which grows by
three times the bytes that came; then the merge waits where it is. Above twice the fan-in of groups on one level it goes
on without credit. Where timers look after it, a moment in which nothing comes pays what has been borrowed that way, and
as much as a full list does. A micro-batch that is run again gives the same rows.

Needs  a common order of the values (see `order`), known ends, no late rows that join
Cost   sorting what comes; then log_F(state / memory) copies of a row until it ends. Memory: lists, a page of each run
       that is merged, who is alive at one value, results of a merge (beyond their share they are sorted on disk)
Not here: outer, semi and anti joins, row windows, a bound on when a result leaves
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import Emit, How, LatePolicy
from streamjoin.algebra.merging import MaxFanIn, MergeStrategy
from streamjoin.errors import CallError
from streamjoin.operators.contract import ALONE, Configuration, Context
from streamjoin.operators.joining import described
from streamjoin.operators.tpmj.order import Between, ValueOrder
from streamjoin.state.paged import FilePages, MemoryPages, PageStore

DEFAULT_MEMORY: Final = 256 << 20
SMALLEST_PAGE: Final = 1 << 10
LARGEST_PAGE: Final = 1 << 18
# A merge that takes so many groups is worth smaller pages.
WISHED_FAN_IN: Final = 16
# Of all inputs together, in one merge, where the strategy says nothing else. MaxFanIn waits for so many until results
# leave, and each run has files open: more than that is no gain, however much memory there is.
MOST_RUNS: Final = 64


@dataclass(frozen=True)
class Shares:
    """Bytes of memory: for rows that have not been written yet, for pages of merges, for results that wait.

    >>> Shares.of(1000)
    Shares(lists=400, pages=400, results=200)
    """

    lists: int
    pages: int
    results: int

    @staticmethod
    def of(memory: int) -> Shares:
        """A budget, divided."""
        return Shares(memory * 2 // 5, memory * 2 // 5, memory // 5)


@dataclass(frozen=True)
class Tpmj(Configuration):
    """What to join and how. `build()` makes the running operator.

    `order` and `tests`: what holds between the inputs. `memory`: bytes, or how they are shared; None: what the context
    says. `folder`: where runs lie; None: in the context's scratch folder. `row_bytes`: how large rows of each input are
    taken to be; None: as they are. `credit`: bytes that may be moved in merges for every byte that comes; 0: whoever
    runs it calls `work`.
    `compulsory`: more groups on one level than so many times the fan-in are merged without credit; None: never.

    Ways to spare accesses: `leaf_emits`: the first group gives results when it is written. `ends_in_memory`: at the end
    the lists are joined from memory. `merges_lists`: under a greedy strategy a full list is merged with the flank
    without being written first; that merge is not cut into steps.
    """

    schemas: tuple[pa.Schema, ...]
    order: ValueOrder = field(default_factory=ValueOrder)
    tests: tuple[Between, ...] = ()
    merge: MergeStrategy = field(default_factory=MaxFanIn)
    late: tuple[LatePolicy, ...] = ()
    memory: int | Shares | None = None
    page_bytes: int | None = None
    row_bytes: tuple[int, ...] | None = None
    credit: float = 3.0
    compulsory: int | None = 2
    leaf_emits: bool = True
    ends_in_memory: bool = True
    merges_lists: bool = False
    folder: str | None = None
    producer: int = 0
    bucket: int = 0

    def __post_init__(self) -> None:
        inputs = len(self.schemas)
        if inputs < 2:
            raise CallError(f"a join needs two inputs or more, got {inputs}")
        object.__setattr__(self, "late", self.late or ("drop",) * inputs)
        if "join" in self.late:
            raise CallError(
                'late="join" cannot be combined with algorithm="tpmj"',
                hint='its results leave in order, and those of a late row would not: use late="output"',
            )

    @property
    def how(self) -> How:
        """Every result has a row of each input."""
        return "inner"

    @property
    def emit(self) -> Emit:
        """Results leave in order, by the way they are found."""
        return "ordered"

    @property
    def replicated(self) -> tuple[bool, ...]:
        """No row's fate is decided elsewhere."""
        return (False,) * len(self.schemas)

    @property
    def areas(self) -> int:
        """What it may use of memory is counted as for as many sweep areas."""
        return len(self.schemas)

    @property
    def validity(self) -> bool:
        """Results have one."""
        return True

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal. Strategy and memory may change."""
        return repr(("tpmj", self.order, self.tests, self.late, described(self.schemas), self.producer))

    def shares(self, context: Context = ALONE) -> Shares:
        """How the memory is divided."""
        memory = context.memory or DEFAULT_MEMORY if self.memory is None else self.memory
        return memory if isinstance(memory, Shares) else Shares.of(memory)

    def page_size(self, shares: Shares) -> int:
        """Bytes of a page; two groups must have one of each run in memory, and one of each that is written."""
        inputs = len(self.schemas)
        wished = shares.pages // (inputs * (WISHED_FAN_IN + 1))
        size = self.page_bytes or min(LARGEST_PAGE, max(SMALLEST_PAGE, wished))
        if shares.pages < 3 * inputs * size:
            least = -(-3 * inputs * size * 5 // 2)
            raise CallError(
                f"memory is too small: a merge of {inputs} inputs needs {3 * inputs} pages of {size} bytes, and has "
                f"{shares.pages} bytes for them",
                hint=f"the least that works is memory={least}",
            )
        return size

    def fan_in(self, shares: Shares) -> int:
        """How many groups a merge takes: as the strategy says, or as many as there is memory for, within reason.

        >>> schema = pa.schema([("id", pa.int64())])
        >>> [Tpmj((schema, schema)).fan_in(Shares.of(megabytes << 20)) for megabytes in (2, 20, 32, 64, 4096)]
        [16, 16, 24, 32, 32]
        """
        inputs = len(self.schemas)
        most = shares.pages // (inputs * self.page_size(shares)) - 1
        return min(most, self.merge.fan_in or max(WISHED_FAN_IN, MOST_RUNS // inputs))

    def store(self, context: Context) -> PageStore:
        """Where runs lie: in the scratch folder, or in memory where there is none."""
        folder = self.folder or context.scratch
        if folder is None:
            return MemoryPages()
        return FilePages(Path(folder) / f"tpmj-{context.producer or self.producer}-{context.bucket}")

    def build(self, context: Context = ALONE) -> Any:
        """The running operator, empty."""
        from streamjoin.operators.tpmj.running import RunningTpmj

        return RunningTpmj(self, context, len(self.schemas))
