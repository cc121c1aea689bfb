"""Rows that no join can use: late ones, and those that meet nobody. Where they go, for every operator alike."""

from __future__ import annotations

from collections.abc import Generator

from streamjoin.algebra import LatePolicy
from streamjoin.algebra.interval import Mask
from streamjoin.errors import LateRowError
from streamjoin.operators.contract import HomeTest, Rows
from streamjoin.state import Batch


def without_late(
    number: int,
    batch: Batch,
    late: Mask,
    policy: LatePolicy,
    progress: int,
    figures: dict[str, int],
    home_test: HomeTest | None = None,
) -> Generator[Rows, None, Batch]:
    """The rows to go on with. Late ones are counted, and leave, fail, go on or are dropped, as the policy says."""
    if not late.any():
        return batch
    at_home = late.copy()
    if batch.home is not None:
        at_home &= batch.home
    elif home_test is not None:
        at_home[late] = home_test(number, batch.take(late))
    figures["late"] += int(at_home.sum())
    if policy == "fail":
        raise _late_row(number, batch.take(late), progress)
    if policy == "output":
        yield Rows("late", number, batch.take(at_home))
    return batch if policy == "join" else batch.take(~late)


def with_hope(batch: Batch, figures: dict[str, int], *, validity: bool = True) -> tuple[Batch, Batch]:
    """Rows that may meet someone, and those that are valid and can match nothing. Both kinds of others are counted; as
    ghosts they are where they got their ends.
    """
    if validity:
        ghosts = batch.ts >= batch.te
        figures["never_valid"] += int(ghosts.sum())
        _, batch = batch.split(ghosts)
    if batch.matchable is None:
        return batch, batch.empty()
    batch, hopeless = batch.split(batch.matchable)
    figures["unmatchable"] += len(hopeless)
    return batch.without_matchable(), hopeless


def _late_row(number: int, late: Batch, progress: int) -> LateRowError:
    row = late.payload.slice(0, 1).to_pylist()[0]
    return LateRowError(
        f"input {number} brought {len(late)} row(s) behind its progress {progress}, the first is {row}",
        hint='allow more lateness, or choose late="drop", "output" or "join"',
    )
