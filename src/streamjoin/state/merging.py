"""When runs are merged, and how. The policy of sweep areas; whoever wants another one changes this file.

Law: runs merge geometrically. After a purge each is more than twice as large as all younger ones together, so there are
few, which is what counts where few rows come at a time: whoever looks for partners in a run spends some time on any.

Where many come at a time copying counts more. So as long as a large run (`LARGE`) that came at once is here, or in one
of those here, and all of it will expire, large ones and what is older than they follow another law: four neighbours of
one level become one of the next. From the second level on only as long as that has at most a quarter of all rows, so
that most runs expire as a whole. The level of a run is that of the largest one from there on. Small ones that a large
one has followed become one first, lest a large one is copied for them alone. So a row is copied about once per level,
levels are of four times the size, and there are at most twelve runs that are too large to be merged, and three more of
each level, before small ones. A stream that turns from one law to the other copies no more than both do: geometrically
a run is copied when it grows by half, whoever made it. Of a run that was restored it is not known how it came: the next
one tells.

A run that has expired as a whole is dropped, and one of which half has expired, as a sample tells, is made anew without
it: copying the other half is paid for by what goes. So about half of what is kept is expired at most. By the second law
large ones wait while those together are at most a quarter of all rows, for they soon expire as a whole: there half of
three quarters and all of one may be expired, five eighths.

Rows without an end, a table's or those whose ends are not known yet, do not expire as a whole, and a history (of an
as-of join) forgets rows only when they are merged: there all runs merge geometrically.

Urgent rows have runs of their own, which merge among themselves: whoever finds pairs need not tell urgent ones apart in
runs that have none, and a few urgent rows that come before the others of a micro-batch are no reason to copy those. So
there are at most twice as many runs. Together they are only in a history, of which a row is forgotten by the rows
beside it; in runs that left memory (`spilling`); and in what was kept so by an earlier version.

A merge leaves the expired behind. It happens in memory only: what has been stored of a row stays where it is (see
`layout`), and whoever restores a run merges its parts in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from streamjoin.algebra.interval import FOREVER
from streamjoin.kernels import expired_mask
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.kept import Kept
from streamjoin.state.layout import Layout
from streamjoin.state.matching import Matching
from streamjoin.state.meetings import Meetings
from streamjoin.state.run import Run, merged_order

LARGE: Final = 1 << 15  # rows that come at once, from which on copying them takes longer than looking into more runs
FAN_IN: Final = 4


def tidied(kept: Sequence[Kept], matching: Matching, progress: int, heard: int) -> list[Kept]:
    """The same runs by the law, when progress is here; `heard`: how many times ends have become known by now."""
    left = [each for each in kept if not each.all_expired(progress)]
    large = _large(left, matching)
    anew = {id(each) for each in _worn(left, large, progress)}
    left = [merged([each], matching, progress, heard) if id(each) in anew else each for each in left]
    left = [each for each in left if len(each.run)]  # ends that were learned may have left nothing
    urgent = [] if matching.regards_neighbours else [each for each in left if each.run.rows.priority is not None]
    if not urgent:
        return _by_size(left, large, matching, progress, heard)
    others = [each for each in left if each.run.rows.priority is None]
    return [
        *_by_size(urgent, large, matching, progress, heard),
        *_by_size(others, large, matching, progress, heard),
    ]


def _large(left: Sequence[Kept], matching: Matching) -> int | None:
    """From how many rows on a run is large; None where none counts as such."""
    if matching.regards_neighbours:
        return None
    large = (each.run for each in left if each.came >= LARGE)
    return LARGE if any(run.last_end < FOREVER for run in large) else None


def _worn(left: Sequence[Kept], large: int | None, progress: int) -> list[Kept]:
    """Runs to be made anew without the expired."""
    worn = [each for each in left if each.half_expired(progress)]
    if large is None or not worn:
        return worn
    small = [each for each in worn if len(each.run) < large]
    # What is left of small ones may be next to nothing: they do not count among all rows here.
    return small if FAN_IN * (_rows(worn) - _rows(small)) <= _rows(left) - _rows(small) else worn


def _rows(runs: Sequence[Kept]) -> int:
    return sum(len(each.run) for each in runs)


def _by_size(left: list[Kept], large: int | None, matching: Matching, progress: int, heard: int) -> list[Kept]:
    """Runs merged by the two laws."""
    while (block := to_merge([len(each.run) for each in left], large)) is not None:
        first, last = block
        together = merged(left[first:last], matching, progress, heard)
        left = [*left[:first], *([together] if len(together.run) else []), *left[last:]]
    return left


def to_merge(sizes: Sequence[int], large: int | None) -> tuple[int, int] | None:
    """From where to before where runs of these sizes, the oldest first, are to be merged; None where they need not be.

    >>> to_merge([100, 9, 3, 1], 50), to_merge([100, 2, 1], 50), to_merge([400, 100, 100, 100, 100], 50)
    (None, (1, 3), (1, 5))
    >>> to_merge([100, 100, 100], 50), to_merge([100, 3, 100, 3, 100], 50), to_merge([400, 400, 400, 400], 50)
    (None, (0, 4), None)
    >>> to_merge([100, 9, 3, 100], 50)
    (1, 3)
    """
    tail = 0 if large is None else max((at + 1 for at, size in enumerate(sizes) if size >= large), default=0)
    first = tail + first_to_merge(sizes[tail:])
    if first < len(sizes) - 1:
        return first, len(sizes)
    if large is None:
        return None
    for first in range(tail - 1):
        last = next(at for at in range(first, tail) if sizes[at] >= large)
        if last > first + 1:  # small ones that a large one has followed
            return first, last
    levels = [_level(max(sizes[at:]), large) for at in range(tail)]
    for first in range(tail - FAN_IN + 1):
        last = first + FAN_IN
        fits = levels[first] == 0 or FAN_IN * sum(sizes[first:last]) <= sum(sizes)
        if fits and levels[first] == levels[last - 1]:  # and all between: they never rise
            return first, last
    return None


def _level(size: int, large: int) -> int:
    """How many times four runs of the least large size would have to become one to be as large."""
    level = 0
    while size >= large * FAN_IN:
        size, level = size // FAN_IN, level + 1
    return level


def first_to_merge(sizes: Sequence[int]) -> int:
    """From here on runs of these sizes, the oldest first, are to be merged: the oldest one that is not more than twice
    as large as all younger ones together. Several may be new, so a large one in between does not end the search.

    >>> first_to_merge([9, 3, 1]), first_to_merge([11, 3, 1, 1]), first_to_merge([1, 9, 1])
    (3, 1, 0)
    """
    first, younger = len(sizes), 0
    for position in reversed(range(len(sizes))):
        if sizes[position] <= 2 * younger:
            first = position
        younger += sizes[position]
    return first


def merged(parts: Sequence[Kept], matching: Matching, progress: int, heard: int) -> Kept:
    """Several runs as one, without what has expired."""
    everything, order = merged_rows([part.run for part in parts], matching, progress)
    # Where each run follows the one before nothing need be moved. Ends are written in place: only into a copy.
    copied = len(parts) > 1 and len(order) == len(everything) and everything.te.flags.writeable
    stays = copied and bool((order == np.arange(len(order))).all())
    run = matching.run_of(_known(everything if stays else everything.take(order)))
    layouts = [_layout(part, progress) for part in parts]
    layout = Layout.merged(layouts, [len(part.run) for part in parts], order)
    layout = layout.tidied(run.rows.nbytes / max(1, len(run)))
    meetings = [part.meetings for part in parts if part.meetings is not None]
    noted = Meetings.merged(meetings, order) if meetings else None
    return Kept(run, noted, 0, False, layout, progress, heard, came=max(part.came for part in parts))


def merged_rows(runs: Sequence[Run], matching: Matching, cut: int) -> tuple[Batch, Indices]:
    """The rows of several runs one after the other, and the order that makes them one without what ends at `cut`."""
    everything = Batch.concat([run.rows for run in runs])
    order = matching.in_tie_order(everything, merged_order(runs))
    alive, gone = expired_mask(matching.ends(everything, order), cut)
    return everything, order[alive] if gone else order


def _layout(kept: Kept, progress: int) -> Layout:
    """Where a run is stored, or will be: of one that is not stored yet, what has expired never will."""
    return kept.layout or Layout.whole(len(kept.run) - expired_mask(kept.run.rows.te, progress)[1])


def _known(rows: Batch) -> Batch:
    """The same rows, without holders when all ends are known."""
    if rows.holder is None or ((rows.holder >= 0) & (rows.te == FOREVER)).any():
        return rows
    return replace(rows, holder=None)
