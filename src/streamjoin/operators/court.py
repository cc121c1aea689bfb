"""The court: the second stage of a join whose rows are replicated, in one of its buckets.

    results      of the first stage pass; under ordered emission they wait for what could precede them
    candidates   and witnesses of the buckets go to the verdict of their input
    progress     every bucket of the first stage says how far it has joined, and what can still leave it

Law: nothing is decided before *every* bucket has said that it is past the row's end, because each of them may hold the
one witness. So the court's progress is the least over the buckets, and a bucket that has not spoken yet blocks.

Not an operator itself, since it is fed with results; its verdicts are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamjoin.algebra import FOREVER, Progress
from streamjoin.operators.contract import Footprint, Results
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.saving import check_snapshot, whole_snapshot
from streamjoin.operators.verdict import RunningVerdict, Verdict
from streamjoin.state import Batch, Snapshot
from streamjoin.state.snapshot import restore_parts


@dataclass(frozen=True)
class Court:
    """Verdicts for the inputs that need them, over so many buckets of the first stage."""

    verdicts: tuple[Verdict, ...]
    buckets: int
    ordered: bool

    @property
    def fingerprint(self) -> str:
        """Two courts may share a snapshot iff this is equal."""
        return repr(([verdict.fingerprint for verdict in self.verdicts], self.buckets, self.ordered))

    def build(self) -> RunningCourt:
        """The running court, empty."""
        return RunningCourt(self)


@dataclass
class RunningCourt:
    """A court at work."""

    config: Court
    held: HeldResults = field(default_factory=HeldResults)
    figures: dict[str, int] = field(default_factory=lambda: {"results": 0})

    def __post_init__(self) -> None:
        self.verdicts: dict[int, RunningVerdict] = {verdict.number: verdict.build() for verdict in self.config.verdicts}
        self.joined, self.to_come = Progress(self.config.buckets), Progress(self.config.buckets)
        self.news = False  # whether any bucket has come further since the last decision

    def on_results(self, results: Results) -> Iterator[Results]:
        """Results of the first stage."""
        if self.config.ordered:
            self.held.add(results)
        else:
            yield from self._leave(results)

    def on_testimony(self, number: int, name: str, rows: Batch) -> None:
        """Candidates or witnesses of input `number`."""
        for _ in self.verdicts[number].on_batch(0 if name == "candidate" else 1, rows):
            raise AssertionError("a verdict gives nothing before progress")

    def on_progress(self, bucket: int, joined: int, to_come: int) -> None:
        """A bucket has joined all that starts before `joined`, and no result before `to_come` leaves it any more."""
        further = self.joined.advance(bucket, joined), self.to_come.advance(bucket, to_come)
        self.news |= any(further)

    def decide(self) -> Iterator[Results]:
        """Whatever can be decided by now."""
        if not self.news:
            return
        self.news = False
        for verdict in self.verdicts.values():
            for number in (0, 1):
                for output in verdict.on_progress(number, self.joined.least()):
                    assert isinstance(output, Results)
                    yield from self.on_results(output)
        if self.config.ordered:
            first = min(verdict.progress for verdict in self.verdicts.values())
            for results in self.held.release(min(self.to_come.least(), first)):
                yield from self._leave(results)

    def on_end(self) -> Iterator[Results]:
        """Nothing comes any more."""
        for bucket in range(self.config.buckets):
            self.on_progress(bucket, FOREVER, FOREVER)
        yield from self.decide()
        for results in self.held.release(FOREVER):
            yield from self._leave(results)

    def _leave(self, results: Results) -> Iterator[Results]:
        self.figures["results"] += len(results)
        yield results

    @property
    def footprint(self) -> Footprint:
        """What is kept."""
        return sum((verdict.footprint for verdict in self.verdicts.values()), self.held.footprint)

    def _parts(self) -> dict[str, HeldResults | HeldRows]:
        parts: dict[str, HeldResults | HeldRows] = {"held": self.held}
        for number, verdict in self.verdicts.items():
            parts |= {f"verdict{number}/{n}": waiting for n, waiting in enumerate(verdict.waiting)}
        return parts

    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""
        whole = whole_snapshot(self.config.fingerprint, self.joined, self.figures, self._parts())
        whole.manifest["to_come"] = list(self.to_come.times)
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from the snapshot of a court with the same configuration."""
        check_snapshot(snapshot, self.config.fingerprint)
        self.joined = Progress(self.config.buckets, list(snapshot.manifest["progress"]))
        self.to_come = Progress(self.config.buckets, list(snapshot.manifest["to_come"]))
        self.figures = dict(snapshot.manifest["figures"])
        restore_parts(self._parts(), snapshot)
        for verdict in self.verdicts.values():
            verdict.times = Progress(2, [self.joined.least()] * 2)
