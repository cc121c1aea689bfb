"""The options that every call takes: how rows come, and how results leave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql import SparkSession

from streamjoin.algebra import Adaptive, Emit, InvalidPolicy, LatePolicy, MergeStrategy, Method, OutputMode, TimeAxis
from streamjoin.algebra.policy import Algorithm, Hold, one_of
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.spark.session import PARTITIONS, tasks_at_once
from streamjoin.spark.told import context_of
from streamjoin.state.holders import MOST_BUCKETS

MOST_DEFAULT_BUCKETS: Final = 64
# Of a stream by keys, times as many buckets as tasks: no more tasks than buckets ever work on a query, and their number
# stays. Twice as many took 0.2% longer in micro-batches of 1,000 rows and 3.5% in those of 250,000.
ROOM_TO_GROW: Final = 2
# How many buckets a call has that does not say it, for jobs that are told from outside.
BUCKETS_SETTING: Final = "spark.streamjoin.buckets"
# The column that says how urgent results are.
PRIORITY_NAME: Final = "priority"
# How much memory state may use in each Python process, of a call that does not say it.
MEMORY_SETTING: Final = "spark.streamjoin.memory"
UNITS: Final = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}


@dataclass(frozen=True)
class Options:
    """As they were given. Those that may differ per source take one value, a list, or a dict by the source's name."""

    lateness: Any = None
    late: Any = None
    invalid: Any = "fail"
    idle_after: Any = None
    timers: bool = False
    emit: str = "eager"
    output: str = "append"
    method: str = "direct"
    validity: Any = ("valid_from", "valid_to")
    buckets: int | None = None
    memory: str | int | None = None
    schemas: Any = None
    streaming: Any = None
    priority_as: str = PRIORITY_NAME
    urgent: Any = None

    def checked_emit(self) -> Emit:
        """Eager or ordered."""
        return one_of(self.emit, Emit, "emit")  # type: ignore[return-value]

    def changelog(self) -> bool:
        """Whether changes leave, and not only what is final."""
        changes = one_of(self.output, OutputMode, "output") == "changelog"
        if changes and self.emit == "ordered":
            raise CallError(
                'output="changelog" cannot be combined with emit="ordered"',
                hint="a correction comes after the row that it corrects, so it cannot be in order of time",
            )
        return changes

    def checked_method(self) -> Method:
        """How lifetimes are managed."""
        return one_of(self.method, Method, "method")  # type: ignore[return-value]

    def late_of(self, sources: Sequence[str]) -> dict[str, LatePolicy]:
        """What happens to late rows of each source; where nothing is said they are dropped."""
        given = per_source(self.late, sources, "late", None)
        return {
            name: one_of("drop" if policy is None else policy, LatePolicy, "late")  # type: ignore[misc]
            for name, policy in given.items()
        }

    def invalid_of(self, sources: Sequence[str]) -> dict[str, InvalidPolicy]:
        """What happens to invalid rows of each source."""
        given = per_source(self.invalid, sources, "invalid", "fail")
        return {name: one_of(policy, InvalidPolicy, "invalid") for name, policy in given.items()}  # type: ignore[misc]

    def check_priority(self, *, prioritised: bool) -> None:
        """Refuse what is said of urgent rows where none is urgent."""
        if not isinstance(self.priority_as, str) or not self.priority_as:
            raise CallError(f"priority_as is the name of a column, got {self.priority_as!r}")
        if self.urgent is not None and not callable(self.urgent):
            raise CallError(
                f"urgent is called with urgent results, got {self.urgent!r}",
                hint="urgent=handler, with def handler(table, batch_id, bucket): ...",
            )
        given = {
            "urgent": self.urgent is not None,
            "new_priority": getattr(self, "new_priority", None) is not None,
            "priority_as": self.priority_as != PRIORITY_NAME,
        }
        for name, asked in given.items():
            if asked and not prioritised:
                raise CallError(
                    f"{name} is about urgent results, and nothing says which rows are urgent",
                    hint='give priority="priority", a column; in CQL R [NOW] AS R PRIORITY BY expression',
                )

    def idle_ticks(self) -> int | None:
        """After how many microseconds of the clock a source is idle."""
        if not isinstance(self.timers, bool):
            raise CallError(f"timers must be True or False, got {self.timers!r}")
        if self.idle_after is None:
            if self.timers and not self.puts_off:
                raise CallError(
                    "timers=True looks for idle inputs, and nothing says when an input is idle",
                    hint='give idle_after="30 seconds"',
                )
            return None
        ticks = TimeAxis.TIMESTAMP.ticks(self.idle_after, "idle_after")
        if ticks <= 0:
            raise CallError(f"idle_after must be positive, got {self.idle_after!r}", hint='idle_after="30 seconds"')
        return ticks

    @property
    def puts_off(self) -> bool:
        """Whether there is work that can wait until nothing comes, which timers then look after."""
        return False

    def memory_bytes(self, session: SparkSession) -> int | None:
        """How much memory state may use in each Python process: as given, as the session says, or without limit."""
        given = session.conf.get(MEMORY_SETTING, None) if self.memory is None else self.memory
        return None if given is None else checked_memory(given)

    def validity_names(self) -> tuple[str, str]:
        """The names of the result's validity columns."""
        names: Any = self.validity
        two = isinstance(names, list | tuple) and len(names) == 2 and all(isinstance(name, str) for name in names)
        if not two or names[0].lower() == names[1].lower():
            raise CallError(
                f"validity takes two different names, got {names!r}", hint='for example validity=("from", "to")'
            )
        return names[0], names[1]

    def buckets_for(self, session: SparkSession, *, streaming: bool) -> int:
        """How many buckets the work is cut into."""
        if self.buckets is None:
            return default_buckets(session, streaming=streaming)
        return checked_buckets(self.buckets)

    def leaves_buckets_open(self, session: SparkSession) -> bool:
        """Whether nobody has said how many they are."""
        return self.buckets is None and not session.conf.get(BUCKETS_SETTING, None)


@dataclass(frozen=True)
class Joining(Options):
    """What all joins of two frames take besides: keys, the kind of join, names, what waits, and where rows meet."""

    by: Any = None
    left_by: Any = None
    right_by: Any = None
    how: str = "inner"
    suffix: Any = "_right"
    hold: str = "auto"
    cell: Any = None
    priority: Any = None
    new_priority: Any = None
    algorithm: str = "auto"
    merge: Any = None

    @property
    def puts_off(self) -> bool:
        return self.algorithm == "tpmj"

    def strategy(self) -> MergeStrategy | None:
        """How sorted runs are merged; None where state is kept in sweep areas."""
        if one_of(self.algorithm, Algorithm, "algorithm") == "auto":
            if self.merge is not None:
                raise CallError(
                    f"merge={self.merge!r} says how sorted runs are merged, and there are none",
                    hint='give algorithm="tpmj"',
                )
            return None
        if self.hold != "auto":
            raise CallError(
                f'hold={self.hold!r} says what waits for order, and with algorithm="tpmj" results leave in order of '
                "themselves",
                hint="leave hold out",
            )
        if self.merge is not None and not isinstance(self.merge, MergeStrategy):
            raise CallError(
                f"merge must be a strategy, got {self.merge!r}", hint="sj.MaxFanIn(), sj.Greedy() or sj.Adaptive()"
            )
        return Adaptive() if self.merge is None else self.merge

    def checked_hold(self) -> Any:
        """What ordered emission holds back."""
        hold = one_of(self.hold, Literal["auto", Hold], "hold")
        if hold != "auto" and self.emit != "ordered":
            raise CallError(f"hold={hold!r} says what waits for order, and nothing does", hint='give emit="ordered"')
        return hold


def per_source(option: Any, sources: Sequence[str], what: str, default: Any) -> dict[str, Any]:
    """One value for each source, from one for all, a list, or a dict by name.

    >>> per_source(["a", "b"], ["0", "1"], "late", None), per_source({"R": 1}, ["R", "S"], "late", 0)
    ({'0': 'a', '1': 'b'}, {'R': 1, 'S': 0})
    """
    if isinstance(option, Mapping):
        for name in option:
            if name not in sources:
                raise CallError(
                    f"{what} names a stream {name!r}, and the query has none of that name",
                    hint=f"there is {', '.join(sources)}",
                )
        return {name: option.get(name, default) for name in sources}
    return dict(zip(sources, per_input(option, len(sources), what), strict=True))


def per_input(option: Any, inputs: int, what: str) -> list[Any]:
    """One value for each input, from one for all or a list."""
    if not isinstance(option, list | tuple):
        return [option] * inputs
    if len(option) != inputs:
        raise CallError(f"{what} needs one value, or one per input, got {len(option)} for {inputs} inputs")
    return list(option)


def checked_buckets(buckets: Any) -> int:
    """A number of buckets that can be."""
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1:
        raise CallError(f"buckets must be at least 1, got {buckets!r}")
    if buckets > MOST_BUCKETS:
        raise UnsupportedError(f"a query has at most {MOST_BUCKETS} buckets, got {buckets}")
    return buckets


def checked_memory(memory: Any) -> int:
    """A number of bytes, from a text with a unit or from a number.

    >>> checked_memory("64 MB"), checked_memory("1.5gb"), checked_memory(4096)
    (67108864, 1610612736, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b?)\s*", str(memory), re.IGNORECASE)
    unit = "" if found is None else found[2].lower()
    unit = unit if unit in UNITS else unit + "b"
    if isinstance(memory, bool) or not isinstance(memory, str | int) or found is None or float(found[1]) <= 0:
        raise CallError(
            f"memory is a number of bytes with its unit, got {memory!r}", hint='for example memory="256 MB", or "2 GB"'
        )
    return int(float(found[1]) * UNITS[unit])


def default_buckets(session: SparkSession, *, streaming: bool) -> int:
    """As many buckets as the session says (`spark.streamjoin.buckets`), or else as tasks can run at once.

    Streams by keys then have more, see `ROOM_TO_GROW`.

    A query that goes on must find its buckets again. How many tasks a cluster runs at once depends on who has joined it
    so far, and Spark Connect does not say at all: there it is as many as shuffle partitions, which are a setting.
    """
    said = session.conf.get(BUCKETS_SETTING, None)
    if said:
        return checked_buckets(int(said) if said.isdigit() else said)
    parallel = partitions = int(session.conf.get(PARTITIONS, "8") or 8)
    context = context_of(session)
    if context is not None and (not streaming or str(context.master).startswith("local")):
        parallel = tasks_at_once(context)
    if streaming:
        parallel = min(parallel, partitions)
    return max(1, min(parallel, MOST_DEFAULT_BUCKETS))


def listed(option: Any) -> list[Any]:
    """One or several values as a list.

    >>> listed(None), listed("a"), listed(("a", "b"))
    ([], ['a'], ['a', 'b'])
    """
    if option is None:
        return []
    return list(option) if isinstance(option, list | tuple) else [option]
