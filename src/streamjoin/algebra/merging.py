"""Merge strategies: which sorted groups on disk become one, and when. Plain values.

Groups stand in order of time, the oldest first: the *flank*. Only a merge with the flank gives results, and drops rows
that have ended; any other merge only makes fewer groups of many. A group's *level* is the logarithm of its size to the
base of the fan-in.

    MaxFanIn    waits until as many groups of one level are there as one merge can take: few page accesses, late results
    Greedy      merges the flank with whatever has come since: early results, more page accesses
    Adaptive    is Greedy while there is time for it, and MaxFanIn while more comes than can be merged that way

After Cammert, Heinz, Kraemer, Seeger: Sortierbasierte Joins ueber Datenstroemen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamjoin.algebra.policy import one_of
from streamjoin.errors import CallError, says_what_fits

Traversal = Literal["postorder", "level order"]
Block = tuple[int, int]  # the first group, and the one behind the last


@dataclass(frozen=True)
class MergeStrategy(ABC):
    """Which groups are merged next. `fan_in`: at most so many at a time; None: as many as there is memory for."""

    fan_in: int | None = None

    def __post_init__(self) -> None:
        if self.fan_in is not None and (not isinstance(self.fan_in, int) or self.fan_in < 2):
            raise CallError(
                f"a merge takes two groups or more, got fan_in={self.fan_in!r}",
                hint="leave it out, then it follows from the memory",
            )

    @abstractmethod
    def choose(self, levels: Sequence[int], fan_in: int, load: float) -> Block | None:
        """The groups to be merged, if any; `levels` of all groups, and `load`: the share of the time that merging
        greedily would take.
        """

    def greedy(self, load: float) -> bool:
        """Whether the flank is merged with whatever is there."""
        return False


@says_what_fits
@dataclass(frozen=True)
class MaxFanIn(MergeStrategy):
    """Merge when a merge is full. Where several are, by `traversal`: the oldest groups first, which are highest in the
    tree (postorder), so that results come early; or level by level, and on each the flank after the others.

    >>> MaxFanIn().choose([1, 0, 0], 2, 0.0)
    (1, 3)
    >>> MaxFanIn().choose([1, 0], 2, 0.0)
    >>> MaxFanIn().choose([1, 1, 0, 0], 2, 0.0), MaxFanIn(traversal="level order").choose([1, 1, 0, 0], 2, 0.0)
    ((0, 2), (2, 4))
    """

    traversal: Traversal = "postorder"

    def __post_init__(self) -> None:
        MergeStrategy.__post_init__(self)
        one_of(self.traversal, Traversal, "traversal")

    def choose(self, levels: Sequence[int], fan_in: int, load: float) -> Block | None:
        alike: list[Block] = []
        start = 0
        for at in range(1, len(levels) + 1):
            if at == len(levels) or levels[at] != levels[start]:
                alike.append((start, at))
                start = at
        if self.traversal == "level order":
            alike.sort(key=lambda block: levels[block[0]])
        for start, behind in alike:
            if self.traversal == "level order" and start == 0 and behind - 1 >= fan_in:
                start = 1
            if behind - start >= fan_in:
                # Off the flank inputs are merged one after the other, so there is room for more.
                return start, min(behind, start + (fan_in if start == 0 else 2 * fan_in))
        return None


@says_what_fits
@dataclass(frozen=True)
class Greedy(MergeStrategy):
    """Merge the flank with as many of its neighbours as a merge can take, whenever there is time.

    >>> Greedy().choose([2, 0, 0, 0], 3, 0.0)
    (0, 3)
    """

    def choose(self, levels: Sequence[int], fan_in: int, load: float) -> Block | None:
        return (0, min(fan_in, len(levels))) if len(levels) > 1 else None

    def greedy(self, load: float) -> bool:
        return True


@says_what_fits
@dataclass(frozen=True)
class Adaptive(MergeStrategy):
    """Greedy, or MaxFanIn while merging greedily would take more than the share `high` of the time there is.

    >>> Adaptive().choose([1, 0], 2, load=0.1), Adaptive().choose([1, 0], 2, load=0.9)
    ((0, 2), None)
    """

    high: float = 0.5

    def __post_init__(self) -> None:
        MergeStrategy.__post_init__(self)
        if not self.high > 0:
            raise CallError(f"high is a share of the time, above 0, got {self.high!r}")

    def choose(self, levels: Sequence[int], fan_in: int, load: float) -> Block | None:
        rule = Greedy() if self.greedy(load) else MaxFanIn()
        return rule.choose(levels, fan_in, load)

    def greedy(self, load: float) -> bool:
        return load <= self.high
