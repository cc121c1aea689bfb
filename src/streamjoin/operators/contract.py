"""The one contract of all operators. An input has a number; there are no left and right twins.

    on_batch(input, batch)    rows arrive; results that can leave at once come back
    make_room()               more batches of the micro-batch follow, and what is kept may have to leave memory
    on_batches_end()          all batches of a micro-batch are there
    on_ends(input, ends)      ends of rows that came before, and were not known then
    on_seen(input, t)         the input has shown a row at `t`, here or elsewhere
    on_progress(input, t)     no on-time row with `ts < t` comes on this input any more
    on_idle()                 nothing comes just now: some of the work that was put off
    on_end()                  nothing comes any more on any input; everything held leaves
    progress                  no result with a smaller `ts` leaves any more
    joined                    rows that end here or earlier have met all whom they can meet
    owes                      whether work has been put off
    times, figures            how far each input is, and what has been counted
    footprint                 what is kept; kept_rows(input), of one input; probed, whom rows of a join have asked
    snapshot() / restore(s)   go on elsewhere, as if nothing had happened
    close()                   nobody goes on with it: what it has open is closed

Whoever runs an operator uses nothing else of it. What an operator means is a configuration, a frozen value that checks
itself; where it runs is a `Context`, and `build(context)` makes the running operator of the two. What is asked of a
configuration before it runs is declared beside that (`Configuration`), with what most would answer.

The caller hands over all batches of a micro-batch, then moves progress: a row is late only against progress that
earlier micro-batches made. What comes back is an iterator, so that a large result never lies in memory as a whole; the
caller exhausts it before the next call. What leaves has a name: results, and rows that are undecided or witnesses; and
ends of results that left before theirs were known.

Law of unknown ends: an end that is not known is not before the progress of its input. So ends come before the progress
that reaches them, and a row whose end is unknown can still meet everyone who comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import FOREVER, Emit, Outer, Progress
from streamjoin.algebra.interval import Mask
from streamjoin.algebra.policy import Hold
from streamjoin.state import Batch, Ends, Matching, PairTest, Snapshot, Spilling
from streamjoin.state.batch import NO_HOLDER, Indices, Priorities, Signs
from streamjoin.state.holders import first_holder
from streamjoin.state.links import Link
from streamjoin.state.row_table import RowTable, optional, whole
from streamjoin.state.spilling import FAN_IN
from streamjoin.state.stores import FileStore

RowsName = Literal["candidate", "witness"]
# Rows that claim to have met nobody, for a verdict. Stored plans have another word for them, by which they are read.
CLAIMANT: Final = "candidate"


@runtime_checkable
class OwnerOfPoints(Protocol):
    """Says by one point of each to which bucket results belong, whatever number of members they have."""

    def owns(self, points: npt.NDArray[Any]) -> Mask:
        """Which of the points lie in this bucket."""
        ...


@dataclass(frozen=True)
class Context:
    """Where an operator runs, and what it may use there."""

    bucket: int = 0
    producer: int = 0  # sets its holders apart from those of other operators
    owner: PairTest | None = None  # which pairs belong to this bucket, where they meet in several
    memory: int | None = None  # bytes it may use; None: no limit
    scratch: str | None = None  # a folder for what does not fit; without one nothing leaves memory

    def first_holder(self, producer: int = 0, bucket: int = 0) -> int:
        """The first of the holders that the operator may give out; its configuration may say whose they are.

        >>> Context(bucket=3).first_holder() == Context().first_holder(bucket=3) == first_holder(0, 3)
        True
        """
        return first_holder(producer or self.producer, bucket or self.bucket)

    def owned(self, matching: Matching) -> Matching:
        """The same matching, which finds only pairs that belong here, and not too many of them at a time."""
        matching = matching if self.memory is None else replace(matching, chunk=self.chunk(matching.chunk))
        return matching if self.owner is None else replace(matching, tests=(*matching.tests, self.owner))

    def spilling(self, areas: int, number: int = 0) -> Spilling | None:
        """Where the runs of an area go that do not fit, if the operator has so many areas, of which this one is number
        so and so: half of what it may use is for runs in memory, in equal shares; the other half for the work itself.
        """
        if self.memory is None or self.scratch is None:
            return None
        turn = (self.bucket * areas + number) % FAN_IN
        return Spilling(FileStore(folder=Path(self.scratch)), self.memory // (2 * areas), turn)

    def chunk(self, most: int) -> int:
        """How many pairs are found at a time."""
        return most if self.memory is None else min(most, PAIRS_UNDER_BUDGET)

    def result_bytes(self, most: int) -> int:
        """How large a result may become that leaves at once: an eighth of what the operator may use."""
        return most if self.memory is None else max(1, min(most, self.memory // 8))


PAIRS_UNDER_BUDGET: Final = 1 << 17
ALONE: Final = Context()  # one bucket, one operator


class Choice(Protocol):
    """Which of those that match a row takes."""

    def describe(self, in_units: Callable[[int], str] = str) -> str:
        """In words; `in_units` says a length of time."""
        ...


@runtime_checkable
class Worded(Protocol):
    """A test of pairs that was given as text."""

    @property
    def text(self) -> str:
        """As it was written."""
        ...


@dataclass(frozen=True)
class JoinTerms:
    """What a join says of itself to those who explain it, compare it with the one that wrote a checkpoint, or ask how
    late its results may be. `hold`: what waits for order, where that was chosen. Where rows choose, `choice` says which
    they take, `chooser` whose rows do, and `reach` how far before and after such a row, in time, what it takes can lie;
    None for any distance.
    """

    how: str
    outer: Outer = "row"
    emit: Emit = "eager"
    hold: Hold | None = None
    choice: Choice | None = None
    chooser: int | None = None
    reach: tuple[int | None, int | None] = (0, 0)
    links: tuple[Link, ...] = ()  # of a join of many inputs
    tests: tuple[PairTest, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Its tests as they were written; nothing for those that were not."""
        return tuple(test.text if isinstance(test, Worded) else "" for test in self.tests)


class Configuration(ABC):
    """What an operator is to do: a frozen value."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal, and they run in the same bucket."""

    @abstractmethod
    def build(self, context: Context = ALONE) -> Operator:
        """The running operator, empty."""

    @property
    def areas(self) -> int:
        """How many sweep areas it has, which share what it may use of memory."""
        return 0

    @property
    def passes(self) -> bool:
        """Of one without areas, whether it lets its rows go on as they come, piece by piece. Most wait for them all."""
        return False

    @property
    def terms(self) -> JoinTerms | None:
        """What it says of itself as a join; None for all others."""
        return None

    @property
    def probes_many(self) -> bool:
        """Whether it counts whom rows of its many inputs have asked (`Operator.probed`)."""
        return False

    @property
    def judges(self) -> bool:
        """Whether it decides about rows of a join before it, and is a stage of its own for that."""
        return False

    @property
    def puts_off(self) -> bool:
        """Whether it may put work off until nothing comes (`Operator.owes`)."""
        return False


@dataclass(frozen=True)
class Footprint:
    """What an operator keeps: rows, bytes, in how many runs or parts; and what it has done so far: rows purged, times
    that rows left memory for files (`spills`), runs made of others (`merges`), and pages of files read and written.

    >>> Footprint(2, 80, 1) + Footprint(1, 40, 1, purged=7)
    Footprint(rows=3, nbytes=120, runs=2, purged=7, spilled=0, spills=0, merges=0, pages_read=0, pages_written=0)
    """

    rows: int = 0
    nbytes: int = 0
    runs: int = 0
    purged: int = 0
    spilled: int = 0  # of the bytes, those that are not in memory
    spills: int = 0
    merges: int = 0
    pages_read: int = 0
    pages_written: int = 0

    def __add__(self, other: Footprint) -> Footprint:
        # Not `astuple`: it looks into each number for something to copy, and a stage adds up after every call.
        return Footprint(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Results(RowTable):
    """Result rows: the members' payloads side by side, columns named `<input>.<column>`, and the validity. In a
    changelog they may be `retracted`: results no longer. Where an end is not known yet, `holder` says who will know it.
    With a `sign` they are plus and minus tuples: what appears or disappears at `ts`, told apart by `holder`. Where
    some are urgent, `priority` says which.
    """

    retracted: bool = field(default=False, metadata=whole())
    holder: Indices | None = field(default=None, metadata=optional(NO_HOLDER))
    sign: Signs | None = None
    priority: Priorities | None = field(default=None, metadata=optional(0))

    def sorted(self) -> Results:
        """The same results ordered by (ts, te)."""
        return self.take(np.lexsort((self.te, self.ts)))


@dataclass(frozen=True)
class Rows:
    """Rows of one input that leave under a name, unjoined."""

    name: RowsName
    input: int
    batch: Batch


Output = Results | Rows | Ends


class Operator(ABC):
    """A running operator."""

    inputs: int
    figures: dict[str, int]  # what has been counted so far, by name
    times: Progress  # of each input

    @abstractmethod
    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        """Rows arrive on an input."""

    def make_room(self) -> None:
        """More batches of a micro-batch follow, and progress waits for them: what is kept by now, and does not fit,
        goes to files. Most operators keep nothing that can.
        """
        return

    def on_batches_end(self) -> Iterator[Output]:
        """All batches of a micro-batch are there, before progress moves. Most operators have nothing to say then."""
        yield from ()

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        """Ends of an input's rows become known, before its progress reaches them. Most inputs have only known ends."""
        yield from ()

    def on_seen(self, number: int, largest: int) -> None:
        """The largest time stamp that the input has shown, in whichever bucket. Most operators go by progress alone."""
        return

    @abstractmethod
    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        """An input's progress has reached `time`."""

    def on_idle(self) -> Iterator[Output]:
        """Nothing comes just now: a part of the work that was put off (see `owes`). Most operators put off nothing."""
        yield from ()

    @property
    def owes(self) -> bool:
        """Whether work has been put off that could be done while nothing comes."""
        return False

    def on_end(self) -> Iterator[Output]:
        """All inputs have ended. For many operators that is progress like any other."""
        for number in range(self.inputs):
            yield from self.on_progress(number, FOREVER)

    @property
    def progress(self) -> int:
        """No result with a smaller `ts` leaves any more. Many operators are as far as all of their inputs are."""
        return self.times.least()

    @property
    def joined(self) -> int:
        """Rows that end here or earlier have met all whom they can meet: nothing more is said of them."""
        return self.progress

    @property
    @abstractmethod
    def footprint(self) -> Footprint:
        """What is kept, of inputs and of results."""

    def kept_rows(self, number: int) -> int:
        """Rows of an input that are kept, where those of inputs can be told apart. Most operators keep other things."""
        return 0

    @property
    def probed(self) -> Mapping[str, int] | None:
        """Of a join of many inputs, whom rows have asked since it was built (see `probed`); None for all others."""
        return None

    @property
    def state_rows(self) -> int:
        """Rows kept, of inputs and of results."""
        return self.footprint.rows

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of an operator with the same configuration."""

    def close(self) -> None:
        """Nobody goes on with it here: files that it is writing are closed, and go. Most operators have none."""
        return


def side_by_side(members: Sequence[pa.Table]) -> pa.Table:
    """One table of the members' columns, each named `<input>.<column>`."""
    columns, names = [], []
    for number, member in enumerate(members):
        columns += member.columns
        names += [f"{number}.{name}" for name in member.column_names]
    return pa.table(columns, names=names)


def null_rows(schema: pa.Schema, rows: int) -> pa.Table:
    """As many rows of NULLs."""
    return pa.table(
        [pa.nulls(rows, column.type) for column in schema],
        schema=pa.schema([column.with_nullable(True) for column in schema]),
    )
