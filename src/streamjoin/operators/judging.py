"""Judging: the second stage of a join whose rows are replicated over buckets.

    input 0                results of the first stage: they pass, or wait for what could precede them
    inputs 1 + 2i, 2 + 2i  claimants and witnesses of the i-th verdict, about rows of its input of the join

Law: nothing is decided before *every* bucket of the first stage has said that it is past the row's end, because each of
them may hold the one witness. So progress means two things here:

    of input 0             nothing with a smaller `ts` comes any more from the first stage, neither a result nor a
                           claimant: what a join calls its `progress`
    of the others          all testimony about rows that end here or earlier has been given: what a join calls `joined`

Whoever has several buckets of the first stage takes the least over them; one that has not spoken yet blocks.

Results may have unknown ends: holders go through, and so do their ends, unless the result still waits here and takes
its own. Claimants have left their areas, so their ends are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamjoin.algebra import Progress
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, Output, Results
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.operators.verdict import Verdict
from streamjoin.state import Batch, Ends, Snapshot


@dataclass(frozen=True)
class Judging(Configuration):
    """Verdicts for those inputs of a join that need one; `ordered`: results leave in order. `build()` makes the
    running operator.
    """

    verdicts: tuple[Verdict, ...]
    ordered: bool = False

    @property
    def inputs(self) -> int:
        """How many there are."""
        return 1 + 2 * len(self.verdicts)

    @property
    def passes(self) -> bool:
        """Whether results go on as they come. Rows that wait for their verdict are fewer, as a rule."""
        return not self.ordered

    @property
    def judges(self) -> bool:
        """That is what it does."""
        return True

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr(("judging", [verdict.fingerprint for verdict in self.verdicts], self.ordered))

    def build(self, context: Context = ALONE) -> RunningJudging:
        """The running operator, empty."""
        return RunningJudging(self, context)


@dataclass
class RunningJudging(OperatorOfParts):
    """A second stage at work."""

    config: Judging
    context: Context = ALONE
    figures: dict[str, int] = field(default_factory=lambda: {"rows_in": 0, "results": 0})

    def __post_init__(self) -> None:
        self.inputs = self.config.inputs
        self.times = Progress(self.inputs)
        self.held = HeldResults()
        self.verdicts = [verdict.build(self.context) for verdict in self.config.verdicts]

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        if number == 0:
            results = Results(
                batch.payload, batch.ts, batch.te, holder=batch.holder, sign=batch.sign, priority=batch.priority
            )
            yield from self._leave(results)
            return
        which, kind = divmod(number - 1, 2)
        for output in self.verdicts[which].on_batch(kind, batch):
            raise AssertionError(f"a verdict gives nothing before progress, but gave {output}")

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        if number == 0:
            ends = self.held.settle(ends)
            if len(ends):
                yield ends

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        if not self.times.advance(number, time):
            return
        if number > 0:
            which, kind = divmod(number - 1, 2)
            yield from self._judged(self.verdicts[which].on_progress(kind, time))
        yield from self._release()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        for verdict in self.verdicts:
            yield from self._judged(verdict.on_end())
        yield from self._release()

    def _judged(self, outputs: Iterator[Output]) -> Iterator[Output]:
        for output in outputs:
            assert isinstance(output, Results), "a verdict gives nothing but results"
            yield from self._leave(output)

    def _leave(self, results: Results) -> Iterator[Output]:
        leaving = self.held.kept_back(results) if self.config.ordered else results
        if len(leaving):
            self.figures["results"] += len(leaving)
            yield leaving

    def _release(self) -> Iterator[Output]:
        for results in self.held.release(self._first_to_come()):
            self.figures["results"] += len(results)
            yield results

    def _first_to_come(self) -> int:
        """No result with a smaller `ts` comes, or is decided on, any more."""
        return min([self.times.of(0), *(verdict.first_undecided for verdict in self.verdicts)])

    @property
    def progress(self) -> int:
        return min(self._first_to_come(), self.held.first)

    @property
    def footprint(self) -> Footprint:
        return sum((verdict.footprint for verdict in self.verdicts), self.held.footprint)

    def _parts(self) -> dict[str, HeldResults | HeldRows]:
        parts: dict[str, HeldResults | HeldRows] = {"held": self.held}
        for which, verdict in enumerate(self.verdicts):
            parts |= {f"verdict{which}/{kind}": waiting for kind, waiting in enumerate(verdict.waiting)}
        return parts

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        for which, verdict in enumerate(self.verdicts):
            verdict.times = Progress(2, self.times.times[1 + 2 * which : 3 + 2 * which])
