"""The row window: an element ends when the n-th later one starts, by (time stamp, arrival)."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Rows
from streamjoin.operators import Results, RowWindow
from streamjoin.operators.row_window import RunningRowWindow
from streamjoin.plan.relation import Stream
from streamjoin.state import Batch, Ends
from tests.operators.elements import Reader, form
from tests.relational_oracle import lifetimes
from tests.state.storing import Store, moved

PAYLOAD = pa.schema([("id", pa.int64())])
BY = pa.schema([("k", pa.string())])
Row = tuple[int, int, str | None]  # id, ts, group


def batch(*some: Row) -> Batch:
    ids, ts, keys = ([row[place] for row in some] for place in range(3))
    payload = pa.table({"id": pa.array(ids, pa.int64())})
    zeros = np.zeros(len(some), np.int64)
    proof = pa.table({"k": pa.array(keys, pa.string())})
    return Batch(payload, np.array(ts, np.int64), np.full(len(some), FOREVER), zeros, proof=proof)


def ungrouped(some: Batch) -> Batch:
    return Batch(some.payload, some.ts, some.te, some.group)


def step(window: RunningRowWindow, rows: list[Row], progress: int) -> tuple[dict[int, tuple[int, int]], list]:
    """Elements by id: their holder (or -1) and end; and the ends that follow."""
    outputs = list(window.on_batch(0, batch(*rows))) if rows else []
    assert not outputs, "elements leave when progress has been told"
    seen, ends = {}, []
    for output in window.on_progress(0, progress):
        if isinstance(output, Ends):
            ends += list(zip(output.holder.tolist(), output.te.tolist(), strict=True))
        else:
            holder = np.full(len(output), -1) if output.holder is None else output.holder
            values = zip(holder.tolist(), output.te.tolist(), strict=True)
            seen |= dict(zip(output.payload["id"].to_pylist(), values, strict=True))
    return seen, ends


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_oracle_row_windows(seed: int, by: bool, drain: bool) -> None:
    """Against the definition; nothing is told before progress has reached it."""
    rng = random.Random(seed)
    size, slack = rng.randint(1, 4), rng.choice([0, 3])
    rows = [(number, rng.randint(0, 12), rng.choice([None, "a", "b"])) for number in range(rng.randint(1, 40))]
    rows.sort(key=lambda row: row[1] + rng.randint(0, slack))
    config = RowWindow(size, BY if by else pa.schema([]), drain)
    window, reader, store, largest = config.build(), Reader(), Store(), 0
    while rows[window.figures["rows_in"] :]:
        at = window.figures["rows_in"]
        piece = rows[at : at + rng.choice([1, 3, 20])]
        largest = max(largest, *(row[1] for row in piece))
        outputs = list(window.on_batch(0, batch(*piece) if by else ungrouped(batch(*piece))))
        outputs += window.on_progress(0, largest - slack)
        for output in outputs:
            known = output.te if isinstance(output, Ends) else output.te[output.te < FOREVER]
            assert (known <= largest - slack).all(), "an end was told before progress has reached it"
        reader.read(outputs)
        window = moved(window, config.build(), store, None) if rng.random() < 0.3 else window
    assert window.footprint.rows > 0
    reader.read(window.on_end())
    assert window.footprint.rows == 0
    leaf = Stream("R", (("id", "id"),), "ts", Rows(size, by=("k",) if by else None, drain=drain))
    expected = lifetimes(leaf, [{"id": number, "ts": ts, "k": key} for number, ts, key in rows])
    assert form(reader.elements()) == form(expected), f"seed {seed}"
    assert window.figures["ghosts"] == len(rows) - len(expected), f"seed {seed}: ghosts, each of them once"


def test_elements_go_on_at_once_and_ends_follow() -> None:
    window = RowWindow(2).build()
    assert step(window, [(0, 3, "a"), (1, 5, "a")], 5) == ({0: (0, FOREVER), 1: (1, FOREVER)}, [])
    assert step(window, [(2, 8, "a")], 7) == ({2: (2, FOREVER)}, [])  # the one at 8 may not be the second
    assert step(window, [(3, 7, "a")], 8) == ({3: (3, FOREVER)}, [(0, 7), (1, 8)])


def test_an_end_that_is_known_in_the_same_micro_batch_needs_no_holder() -> None:
    window = RowWindow(1).build()
    assert step(window, [(0, 3, "a"), (1, 5, "a")], 5) == ({0: (-1, 5), 1: (1, FOREVER)}, [])
    (results,) = [*window.on_batch(0, batch((2, 5, "a"))), *window.on_end()][:1]
    assert isinstance(results, Results)
    assert results.holder is None  # nobody will know the end of the last one, and that is known


def test_among_equal_time_stamps_arrival_decides() -> None:
    window = RowWindow(1).build()
    seen, _ = step(window, [(7, 4, "a"), (8, 4, "a"), (9, 4, "a")], 4)
    assert seen == {7: (-1, 4), 8: (-1, 4), 9: (2, FOREVER)}
    assert step(window, [(1, 4, "a")], 4) == ({1: (3, FOREVER)}, [(2, 4)])


def test_groups_count_for_themselves_and_nulls_are_one() -> None:
    window = RowWindow(1, BY).build()
    seen, _ = step(window, [(0, 1, None), (1, 2, "a"), (2, 3, None), (3, 4, "b")], 9)
    assert seen == {0: (-1, 3), 1: (1, FOREVER), 2: (2, FOREVER), 3: (3, FOREVER)}


def test_at_the_end_the_last_ones_end_just_after_the_last_or_never() -> None:
    for drain, expected in ((True, 9), (False, FOREVER)):
        window = RowWindow(2, BY, drain).build()
        step(window, [(0, 3, "a"), (1, 8, "b")], 8)
        (ends,) = window.on_end()
        assert isinstance(ends, Ends)
        assert ends.te.tolist() == [expected, expected]
        assert window.state_rows == 0
        assert list(window.on_end()) == []


def test_holders_tell_operators_and_buckets_apart() -> None:
    holders = set()
    for producer, bucket in ((0, 0), (0, 1), (1, 0)):
        seen, _ = step(RowWindow(1, producer=producer, bucket=bucket).build(), [(0, 1, "a")], 1)
        holders.add(seen[0][0])
    assert len(holders) == 3


def test_a_snapshot_is_taken_between_micro_batches() -> None:
    window = RowWindow(1).build()
    list(window.on_batch(0, batch((0, 1, "a"))))
    with pytest.raises(AssertionError, match="between micro-batches"):
        window.snapshot()
