"""Driving an operator by hand: rows as `(id, ts, te)`, answers as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamjoin.operators import Operator, Output, Results, Rows, TemporalJoin
from streamjoin.operators.temporal_join import RunningTemporalJoin
from streamjoin.state import Batch, Matching
from tests.state.making import PAYLOAD, batch

SCHEMAS = (PAYLOAD, PAYLOAD)
Row = tuple[int, int, int]


def temporal(matching: Matching | None = None, **options: object) -> RunningTemporalJoin:
    """A running temporal join; without a matching by time alone."""
    return TemporalJoin(matching or Matching(), SCHEMAS, **options).build()


def rows(*some: Row, **arrays: object) -> Batch:
    """A batch of rows `(id, ts, te)`."""
    return batch([(ts, te) for _, ts, te in some], ids=[number for number, _, _ in some], **arrays)


def results(outputs: Iterable[Output]) -> list[tuple[int | None, int | None, int, int]]:
    """Results as `(left id, right id, ts, te)`, in order; nothing else may be among the outputs."""
    found = []
    for output in outputs:
        assert isinstance(output, Results), output
        columns = output.payload.column_names
        none = [None] * len(output)
        left = output.payload["0.id"].to_pylist() if "0.id" in columns else none
        right = output.payload["1.id"].to_pylist() if "1.id" in columns else none
        found += list(zip(left, right, output.ts.tolist(), output.te.tolist(), strict=True))
    return found


def named(outputs: Iterable[Output]) -> list[tuple[str, int, list[int]]]:
    """Rows that left unjoined, as `(name, input, origins or ids)`; nothing else may be among the outputs."""
    found = []
    for output in outputs:
        assert isinstance(output, Rows), output
        origin = output.batch.origin
        who = output.batch.payload["id"].to_pylist() if origin is None else origin.tolist()
        found.append((output.name, output.input, who))
    return found


def put(operator: Operator, number: int, *some: Row, **arrays: object) -> list[tuple]:
    """Rows arrive; the results that leave at once."""
    return results(operator.on_batch(number, rows(*some, **arrays)))


def progress(operator: Operator, *times: int) -> list[tuple]:
    """The progress of input 0, 1, ... moves; the results that leave."""
    return [result for number, time in enumerate(times) for result in results(operator.on_progress(number, time))]


def end(operator: Operator) -> list[tuple]:
    """Nothing comes any more; the results that leave."""
    return results(operator.on_end())


def micro_batch(operator: Operator, batches: Mapping[int, Batch], *times: int) -> Iterator[Output]:
    """One micro-batch, as a fragment runs it: rows of all inputs, word that they are there, then progress."""
    for number in sorted(batches):
        yield from operator.on_batch(number, batches[number])
    yield from operator.on_batches_end()
    for number, time in enumerate(times):
        yield from operator.on_progress(number, time)
