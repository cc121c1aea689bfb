"""A temporal progressive merge join at work: rows into lists, lists into groups, and then it is the tree's turn.

What it means, and why it is right, is said in `configuration`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from streamjoin.algebra import NEVER, Progress
from streamjoin.operators.contract import ALONE, Context, Footprint, Operator, Output, OwnerOfPoints, Results
from streamjoin.operators.lateness import with_hope, without_late
from streamjoin.operators.saving import check_snapshot, restored_figures
from streamjoin.operators.tpmj.configuration import Tpmj
from streamjoin.operators.tpmj.groups import Group, StoredRun
from streamjoin.operators.tpmj.lists import Lists, in_room, thinned, width_of
from streamjoin.operators.tpmj.merge import Join
from streamjoin.operators.tpmj.rates import Rates
from streamjoin.operators.tpmj.saving import restore_tree, tree_snapshot
from streamjoin.operators.tpmj.tree import Tree
from streamjoin.state import Batch, Snapshot
from streamjoin.state.snapshot import FORMAT

FIGURES: Final = (
    "rows_in", "results", "late", "unmatchable", "never_valid", "pages_read", "pages_written", "result_pages", "merges",
    "groups", "bytes_on_disk",
)  # fmt: skip


@dataclass
class RunningTpmj(Operator):
    """One join at work."""

    config: Tpmj
    context: Context = ALONE
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config, context = self.config, self.context
        self.times = Progress(self.inputs)
        self.figures = dict.fromkeys(FIGURES, 0)
        self.shares = config.shares(context)
        owner = context.owner if isinstance(context.owner, OwnerOfPoints) else None
        self.join = Join(self.inputs, config.order, config.tests, owner)
        self.lists = Lists(config.order, self.inputs)
        self.tree = Tree(config, self.join, self.shares, config.store(context), self.figures)
        self.rates = Rates()

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = batch.ts < self.times.of(number)
        batch = without_late(batch, late, self.config.late[number], self.figures)
        batch, _ = with_hope(batch, self.figures)
        if len(batch):
            yield from self._insert(number, batch)

    def _insert(self, number: int, batch: Batch) -> Iterator[Results]:
        """Rows into the lists; whenever these are full, they become a group."""
        width = width_of(number, batch, self.config.row_bytes)
        self.rates.come(len(batch) * width)
        for some in in_room(batch, width, lambda: self.shares.lists - self.lists.nbytes):
            self.lists.add(number, some, width)
            if self.lists.nbytes + width > self.shares.lists:
                yield from self._spill()

    # -- groups --------------------------------------------------------------------------------------------------------

    def _spill(self) -> Iterator[Results]:
        """The lists become a group."""
        tree, config = self.tree, self.config
        self.figures["groups"] += 1
        e = self.times.least()
        greedy = config.merge.greedy(tree.load)
        if config.merges_lists and greedy and len(tree.groups) == 1 and tree.merge is None:
            tree.add(self._group(e, in_memory=True))
            yield from self._leaving(tree.at_once((0, 2)))
        elif config.leaf_emits and not tree.groups and e > tree.s:
            # The same as a merge of one group, but that nothing has to be read.
            tree.add(self._group(e, in_memory=True))
            yield from self._leaving(tree.at_once((0, 1)))
        else:
            tree.add(self._group(e))
        self._count_disk()

    def _group(self, e: int, *, in_memory: bool = False) -> Group:
        runs: list[StoredRun] = []
        for number in range(self.inputs):
            rows, parts, width = self.lists.sorted(number)
            rows, left = thinned(rows, NEVER)
            runs.append(self.tree.run(number, rows, parts.tidied(left, width), width, in_memory=in_memory))
        self.lists.clear()
        return Group(tuple(runs), e, NEVER)

    def _leaving(self, results: Iterator[Results]) -> Iterator[Results]:
        for some in results:
            self.figures["results"] += len(some)
            yield some

    # -- progress moves ------------------------------------------------------------------------------------------------

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        if self.config.credit <= 0:
            return  # whoever runs it says when to merge
        credit = self.config.credit * self.rates.paid()
        self.rates.moved(self.times.least())
        self.tree.load = self.rates.load(self.tree.cost_of_greed(), self.config.credit)
        yield from self.work(credit)

    def work(self, credit: float, load: float | None = None) -> Iterator[Results]:
        """Merge as far as so many bytes of credit go, and as what is left of earlier credit goes. `load`: instead of
        what the operator itself takes it to be.
        """
        if load is not None:
            self.tree.load = load
        yield from self._leaving(self.tree.work(credit))
        self._count_disk()

    def on_idle(self) -> Iterator[Output]:
        if self.owes:
            self.tree.credit = max(0.0, self.tree.credit)  # what compulsory merges have borrowed while rows came
            yield from self.work(self.config.credit * self.shares.lists)

    @property
    def owes(self) -> bool:
        return self.config.credit > 0 and self.tree.owes

    def on_end(self) -> Iterator[Output]:
        tree = self.tree
        yield from self._leaving(tree.complete())
        self.times.finish()
        if len(self.lists):
            in_memory = self.config.ends_in_memory
            if in_memory:
                while len(tree.groups) + 1 > tree.fan_in:
                    yield from self._leaving(tree.at_once((0, tree.fan_in)))
            tree.add(self._group(self.times.least(), in_memory=in_memory))
        yield from self._leaving(tree.finish())
        self._count_disk()

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def progress(self) -> int:
        return self.tree.s

    @property
    def footprint(self) -> Footprint:
        groups = self.tree.groups
        rows = len(self.lists) + sum(group.rows for group in groups)
        runs = [run for group in groups for run in group.runs]
        # Of files the bytes are known, of what is in memory about.
        nbytes = self.lists.nbytes + sum(run.pages.nbytes or run.nbytes for run in runs)
        done = (self.figures[name] for name in ("groups", "merges", "pages_read", "pages_written"))
        return Footprint(rows, int(nbytes), len(runs), 0, self.tree.nbytes_on_disk, *done)

    def kept_rows(self, number: int) -> int:
        return self.lists.rows(number) + sum(group.runs[number].rows for group in self.tree.groups)

    def _count_disk(self) -> None:
        self.figures["bytes_on_disk"] = self.tree.nbytes_on_disk

    def snapshot(self) -> Snapshot:
        lists, tree = self.lists.snapshot(), tree_snapshot(self.tree)
        manifest = {
            "format": FORMAT, "fingerprint": self.config.fingerprint, "progress": list(self.times.times),
            "figures": dict(self.figures), "rates": self.rates.saved(), "lists": lists.manifest, "tree": tree.manifest,
        }  # fmt: skip
        blobs: Any = ChainMap(lists.blobs, tree.blobs)  # type: ignore[arg-type]
        return Snapshot(manifest, blobs)

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        manifest = snapshot.manifest
        self.times = Progress(self.inputs, list(manifest["progress"]))
        self.figures.update(restored_figures(self.figures, snapshot))
        self.rates = Rates(*manifest["rates"])
        self.lists.restore(Snapshot(manifest["lists"], snapshot.blobs))
        restore_tree(self.tree, Snapshot(manifest["tree"], snapshot.blobs))

    def close(self) -> None:
        self.tree.close()
