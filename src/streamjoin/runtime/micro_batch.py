"""One micro-batch through one operator.

Law: a batch is joined with itself and with what earlier batches left, *then* progress moves, then areas are purged and
held results released. So a row is late only against the progress that earlier micro-batches made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamjoin.operators import Operator, Output
from streamjoin.state import Batch


def run_micro_batch(operator: Operator, batches: Mapping[int, Batch], progress: Mapping[int, int]) -> Iterator[Output]:
    """Hand over the rows of each input, then each input's progress; an input without news is left out."""
    for number in sorted(batches):
        if len(batches[number]):
            yield from operator.on_batch(number, batches[number])
    yield from operator.on_batches_end()
    for number in sorted(progress):
        yield from operator.on_progress(number, progress[number])


def finish(operator: Operator) -> Iterator[Output]:
    """All inputs have ended: everything held leaves."""
    yield from operator.on_end()
