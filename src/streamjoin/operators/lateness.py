"""Rows that no join can use: late ones, and those that meet nobody. Where they go, for every operator alike."""

from __future__ import annotations

from typing import Literal

from streamjoin.algebra.interval import Mask
from streamjoin.state import Batch

# Of an input of a join: whether rows behind its progress meet whom they still can. That is all a join has to know.
# What else becomes of them is decided where rows come in (`runtime.intake`), once for all operators: there they are
# counted, shown, refused or dropped.
LateRows = Literal["drop", "join"]


def without_late(batch: Batch, late: Mask, policy: LateRows, figures: dict[str, int]) -> Batch:
    """The rows to go on with: without the late ones, unless they join."""
    if not late.any():
        return batch
    figures["late"] += int(late.sum())
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
