"""The merge tree: groups in order of time, the merge that is under way, and how far results have left.

    add      a new group, the youngest
    work     as many steps of merging as a credit pays for
    finish   all inputs have ended: the root

Law: results that begin before `s` have left, all of them; no others have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from streamjoin.algebra.interval import FOREVER, NEVER
from streamjoin.operators.contract import Results
from streamjoin.operators.tpmj.configuration import Shares, Tpmj
from streamjoin.operators.tpmj.cursors import Cursor
from streamjoin.operators.tpmj.groups import Group, Parts, StoredRun, level_of
from streamjoin.operators.tpmj.merge import Join, Merge
from streamjoin.operators.tpmj.sorted_results import SortedResults
from streamjoin.state import Batch
from streamjoin.state.paged import MemoryPages, PageStore

Block = tuple[int, int]


@dataclass
class Tree:
    """Groups on disk, and what is done to them. `figures` is where it counts."""

    config: Tpmj
    join: Join
    shares: Shares
    store: PageStore
    figures: dict[str, int]
    groups: list[Group] = field(default_factory=list)
    s: int = NEVER
    credit: float = 0.0
    load: float = 0.0  # the share of the time that merging greedily would take
    merge: Merge | None = None
    block: Block = (0, 0)
    redoing: bool = False  # nothing is counted a second time

    def __post_init__(self) -> None:
        self.page_bytes = self.config.page_size(self.shares)
        self.fan_in = self.config.fan_in(self.shares)

    # -- groups --------------------------------------------------------------------------------------------------------

    def page_rows(self, width: float) -> int:
        """How many rows of so many bytes a page has."""
        return max(1, int(self.page_bytes // width))

    def run(self, number: int, rows: Batch | None, parts: Parts, width: float, *, in_memory: bool = False) -> StoredRun:
        """A run of rows that are in order and labelled; in memory it is not counted."""
        store = MemoryPages() if in_memory else self.store
        writer = store.writer(self.page_rows(width), 0 if rows is None else len(rows))
        if rows is not None:
            writer.append(rows)
        pages = writer.close()
        if not in_memory:
            self._count("pages_written", pages.pages)
        return StoredRun(pages, parts, width, in_memory)

    def add(self, group: Group) -> None:
        """The youngest group."""
        self.groups.append(group)

    # -- merging -------------------------------------------------------------------------------------------------------

    def work(self, credit: float) -> Iterator[Results]:
        """Merge as far as credit goes: `credit` bytes more than there is. What is not used is kept up to a limit, so
        that a large merge does not begin with a long one.
        """
        self.credit += credit
        while True:
            if self.credit <= 0 and not self._compulsory():
                return
            if self.merge is None and not self._begin():
                self.credit = min(self.credit, float(self.shares.lists))
                return
            yield from self._step()

    @property
    def owes(self) -> bool:
        """Whether there is a merge that waits for credit, begun or not."""
        return self.merge is not None or self._next() is not None

    def _next(self) -> Block | None:
        """The groups to be merged next, if any."""
        levels = [group.level for group in self.groups]
        block = self.config.merge.choose(levels, self.fan_in, self.load)
        if block is None and self._compulsory():
            block = 0, min(self.fan_in, len(self.groups))
        return block

    def _begin(self) -> bool:
        block = self._next()
        if block is None:
            return False
        self.start(block)
        return True

    def _compulsory(self) -> bool:
        if self.config.compulsory is None:
            return False
        levels = Counter(group.level for group in self.groups)
        return max(levels.values(), default=0) > self.config.compulsory * self.fan_in

    def _step(self) -> Iterator[Results]:
        assert self.merge is not None
        try:
            if not self.merge.done:  # as it is from the beginning where there are no rows
                read, written = self.merge.step()
                self._count("pages_read", read)
                self._count("pages_written", written)
                self.credit -= (read + written) * self.page_bytes
            runs = self._written() if self.merge.done else None
        except BaseException:
            self.merge.abandon()  # a full disk: whoever starts again needs the room
            raise
        if self.merge.done:
            yield from self._done(runs)

    def start(self, block: Block, *, root: bool = False) -> None:
        """Begin to merge neighbours."""
        first, behind = block
        groups = self.groups[first:behind]
        flank = first == 0
        e = FOREVER if root else groups[-1].e
        runs = [[group.runs[number] for group in groups] for number in range(self.join.inputs)]
        cursors = [cursor for number, mine in enumerate(runs) for cursor in _cursors(number, mine)]
        phases = [cursors] if flank else [[c for c in cursors if c.number == n] for n in range(self.join.inputs)]
        writers = None
        if not root:
            writers = [self.store.writer(self.page_rows(_width(mine)), sum(run.rows for run in mine)) for mine in runs]
        outputs = 0 if root else self.join.inputs if flank else 1
        ahead = [max(1, self.shares.pages // (self.page_bytes * max(1, len(each) + outputs))) for each in phases]
        found = SortedResults(self.store, self.shares.results, self.page_bytes)
        self.merge = Merge(
            self.join, phases, ahead, writers, (self.s, e) if flank else None, e if flank and not root else NEVER, found
        )
        self.block = block

    def _written(self) -> list[StoredRun] | None:
        """What a merge has written, when it has come to its end; the root writes nothing."""
        assert self.merge is not None
        if self.merge.writers is None:
            return None
        runs, groups = [], self.groups[slice(*self.block)]
        for number, writer in enumerate(self.merge.writers):
            filled = writer.pages
            pages = writer.close()
            self._count("pages_written", pages.pages - filled)
            mine = [group.runs[number] for group in groups]
            parts = Parts.together([run.parts for run in mine]).tidied(self.merge.left[number], _width(mine))
            runs.append(StoredRun(pages, parts, _width(mine)))
        return runs

    def _done(self, runs: list[StoredRun] | None) -> Iterator[Results]:
        """The merge has come to its end: one group instead of several, and results."""
        merge, (first, behind) = self.merge, self.block
        assert merge is not None
        groups = self.groups[first:behind]
        flank, root = first == 0, runs is None
        instead: list[Group] = []
        if runs is not None:
            merged = Group(tuple(runs), groups[-1].e, max(merge.cut, *(group.cut for group in groups)))
            level = level_of(merged.nbytes, self.shares.lists, self.fan_in)
            if not flank:
                level = max(level, 1 + min(group.level for group in groups))
            instead = [Group(merged.runs, merged.e, merged.cut, level)]
        self.groups[first:behind] = instead
        self.merge = None
        self._count("merges", 1)
        yield from merge.found.leave()
        self._count("result_pages", merge.found.pages)
        if flank:
            assert merge.within is not None
            self.s = max(self.s, merge.within[1])
        for group in groups:
            group.delete()
        if root:
            self.credit = 0.0

    # -- without waiting -----------------------------------------------------------------------------------------------

    def at_once(self, block: Block, *, root: bool = False) -> Iterator[Results]:
        """A whole merge."""
        assert self.merge is None
        self.start(block, root=root)
        yield from self.complete()

    def complete(self) -> Iterator[Results]:
        """The merge that is under way, to its end."""
        while self.merge is not None:
            yield from self._step()

    def close(self) -> None:
        """Nobody goes on with it here. Runs stay: who goes on elsewhere finds them, and begins the merge again."""
        if self.merge is not None:
            self.merge.abandon()
            self.merge = None

    def finish(self) -> Iterator[Results]:
        """All inputs have ended, and all groups are there."""
        postponed = self._full()
        while postponed is not None and len(self.groups) > self.fan_in:
            yield from self.at_once(postponed)
            postponed = self._full()
        while len(self.groups) > self.fan_in:
            yield from self.at_once((0, self.fan_in))
        if self.groups:
            yield from self.at_once((0, len(self.groups)), root=True)
        self.s = FOREVER

    def _full(self) -> Block | None:
        """Merges that the strategy asks for while more groups are left than the root can take."""
        return self.config.merge.choose([group.level for group in self.groups], self.fan_in, self.load)

    @property
    def in_memory(self) -> float:
        """About how many bytes a merge that is under way has in memory: pages, who is alive, results."""
        if self.merge is None:
            return 0.0
        widths = [_width([group.runs[number] for group in self.groups]) for number in range(self.join.inputs)]
        return self.merge.in_memory(widths)

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def nbytes_on_disk(self) -> int:
        """Bytes of files."""
        return sum(run.pages.nbytes for group in self.groups for run in group.runs)

    def cost_of_greed(self) -> float:
        """How many bytes a flank merge with the groups that are there, or with the next one, moves for each new one."""
        sizes = [group.nbytes for group in self.groups] or [0.0]
        new = max(float(self.shares.lists), sum(sizes[1:]))
        return 2 * (sizes[0] + new) / new

    def _count(self, name: str, more: int) -> None:
        if not self.redoing:
            self.figures[name] += more


def _width(runs: Sequence[StoredRun]) -> float:
    """Bytes of a row, on average."""
    rows = sum(run.rows for run in runs)
    return sum(run.nbytes for run in runs) / rows if rows else max(run.width for run in runs)


def _cursors(number: int, runs: Sequence[StoredRun]) -> list[Cursor]:
    cursors, first = [], 0
    for run in runs:
        cursors.append(Cursor(number, run.pages, partial(_relabelled, run.parts, first), not run.in_memory))
        first += len(run.parts.names)
    return [cursor for cursor in cursors if cursor.run.rows]


def _relabelled(parts: Parts, first: int, rows: Batch) -> Batch:
    return parts.relabelled(rows, first)
