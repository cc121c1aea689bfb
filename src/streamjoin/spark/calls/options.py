"""The options that every call takes: how rows come, and how results leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from streamjoin.algebra import Emit, InvalidPolicy, LatePolicy, Method, OutputMode, TimeAxis
from streamjoin.algebra.policy import one_of
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.state.holders import MOST_BUCKETS

MOST_DEFAULT_BUCKETS: Final = 64


@dataclass(frozen=True)
class Options:
    """As they were given. Those that may differ per source take one value, a list, or a dict by the source's name."""

    lateness: Any = None
    late: Any = "drop"
    invalid: Any = "fail"
    idle_after: Any = None
    timers: bool = False
    emit: str = "eager"
    output: str = "append"
    method: str = "direct"
    validity: Any = ("valid_from", "valid_to")
    buckets: int | None = None

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
        """What happens to late rows of each source."""
        given = per_source(self.late, sources, "late", "drop")
        return {name: one_of(policy, LatePolicy, "late") for name, policy in given.items()}  # type: ignore[misc]

    def invalid_of(self, sources: Sequence[str]) -> dict[str, InvalidPolicy]:
        """What happens to invalid rows of each source."""
        given = per_source(self.invalid, sources, "invalid", "fail")
        return {name: one_of(policy, InvalidPolicy, "invalid") for name, policy in given.items()}  # type: ignore[misc]

    def idle_ticks(self) -> int | None:
        """After how many microseconds of the clock a source is idle."""
        if not isinstance(self.timers, bool):
            raise CallError(f"timers must be True or False, got {self.timers!r}")
        if self.idle_after is None:
            if self.timers:
                raise CallError(
                    "timers=True looks for idle inputs, and nothing says when an input is idle",
                    hint='give idle_after="30 seconds"',
                )
            return None
        ticks = TimeAxis.TIMESTAMP.ticks(self.idle_after, "idle_after")
        if ticks <= 0:
            raise CallError(f"idle_after must be positive, got {self.idle_after!r}", hint='idle_after="30 seconds"')
        return ticks

    def validity_names(self) -> tuple[str, str]:
        """The names of the result's validity columns."""
        names: Any = self.validity
        two = isinstance(names, list | tuple) and len(names) == 2 and all(isinstance(name, str) for name in names)
        if not two or names[0].lower() == names[1].lower():
            raise CallError(
                f"validity takes two different names, got {names!r}", hint='for example validity=("from", "to")'
            )
        return names[0], names[1]

    def buckets_for(self, frames: Sequence[DataFrame]) -> int:
        """How many buckets the work is cut into."""
        if self.buckets is None:
            return default_buckets(next((frame for frame in frames if frame.isStreaming), frames[0]))
        if isinstance(self.buckets, bool) or not isinstance(self.buckets, int) or self.buckets < 1:
            raise CallError(f"buckets must be at least 1, got {self.buckets!r}")
        if self.buckets > MOST_BUCKETS:
            raise UnsupportedError(f"a query has at most {MOST_BUCKETS} buckets, got {self.buckets}")
        return self.buckets


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
    if isinstance(option, list | tuple):
        if len(option) != len(sources):
            raise CallError(f"{what} needs one value, or one per input, got {len(option)} for {len(sources)} inputs")
        return dict(zip(sources, option, strict=True))
    return dict.fromkeys(sources, option)


def per_input(option: Any, inputs: int, what: str) -> list[Any]:
    """One value for each input, from one for all or a list."""
    if not isinstance(option, list | tuple):
        return [option] * inputs
    if len(option) != inputs:
        raise CallError(f"{what} needs one value, or one per input, got {len(option)} for {inputs} inputs")
    return list(option)


def default_buckets(frame: DataFrame) -> int:
    """As many buckets as tasks can run at once.

    A query that goes on must find its buckets again. How many tasks a cluster runs at once depends on who has joined it
    so far, and Spark Connect does not say at all: there it is as many as shuffle partitions, which are a setting.
    """
    session = frame.sparkSession
    partitions = int(session.conf.get("spark.sql.shuffle.partitions", "8") or 8)
    try:
        context = session.sparkContext
        steady = not frame.isStreaming or str(context.master).startswith("local")
        parallel = context.defaultParallelism if steady else partitions
    except Exception:  # Spark Connect has no context, and says so in its own way
        parallel = partitions
    if frame.isStreaming:
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
