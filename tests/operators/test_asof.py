"""As-of joins, row by row: which right row is taken, when a left row leaves, and what is kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, AsOf
from streamjoin.errors import StreamjoinError, UnsupportedError
from streamjoin.operators import AsofJoin, Results
from streamjoin.operators.asof import RunningAsofJoin
from streamjoin.state import Batch
from tests.operators.driving import micro_batch
from tests.state.making import PAYLOAD, batch

Taken = list[tuple[int, int | None]]


def join(choice: AsOf | None = None, **options: object) -> RunningAsofJoin:
    return AsofJoin(choice or AsOf(), (PAYLOAD, PAYLOAD), **options).build()


def left(*rows: tuple[int, int], group: int = 0) -> Batch:
    """Rows (id, time)."""
    return batch([(ts, ts) for _, ts in rows], ids=[number for number, _ in rows], group=[group] * len(rows))


def right(*rows: tuple[int, int], group: int = 0, tolerance: int | None = None) -> Batch:
    ends = [FOREVER if tolerance is None else ts + tolerance + 1 for _, ts in rows]
    times = [ts for _, ts in rows]
    return batch(list(zip(times, ends, strict=True)), ids=[number for number, _ in rows], group=[group] * len(rows))


def step(running: RunningAsofJoin, batches: dict[int, Batch], *progress: int) -> Taken:
    """What leaves in one micro-batch, after which the inputs are so far."""
    taken: Taken = []
    for output in micro_batch(running, batches, *progress):
        assert isinstance(output, Results)
        taken += zip(output.payload["0.id"].to_pylist(), output.payload["1.id"].to_pylist(), strict=True)
    return taken


def ended(running: RunningAsofJoin) -> Taken:
    taken: Taken = []
    for output in running.on_end():
        assert isinstance(output, Results)
        taken += zip(output.payload["0.id"].to_pylist(), output.payload["1.id"].to_pylist(), strict=True)
    return sorted(taken)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (AsOf(), [10, 11, 11]),
        (AsOf(exact=False), [None, 10, 11]),
        (AsOf(tolerance=1), [10, 11, None]),
        (AsOf("forward"), [10, 11, 12]),
        (AsOf("forward", exact=False), [11, 12, 12]),
        (AsOf("forward", tolerance=1), [10, 11, None]),
        (AsOf("nearest"), [10, 11, 11]),
        (AsOf("nearest", exact=False), [11, 10, 11]),
    ],
)
def test_oracle_every_direction(choice: AsOf, expected: list[int | None]) -> None:
    """Right rows at 1, 3 and 9; left rows at 1, 3 and 6: the last is as far from 3 as from 9, and the earlier wins."""
    running = join(choice)
    step(running, {0: left((0, 1), (1, 3), (2, 6)), 1: right((10, 1), (11, 3), (12, 9), tolerance=choice.tolerance)})
    assert ended(running) == list(enumerate(expected))


def test_a_row_leaves_when_nothing_nearer_can_come() -> None:
    running = join()
    assert step(running, {0: left((0, 5)), 1: right((10, 2))}, 0, 5) == [], "a row at 5 may still come"
    assert step(running, {1: right((11, 5))}, 0, 6) == [(0, 11)]


def test_forward_leaves_when_its_answer_is_behind_progress() -> None:
    running = join(AsOf("forward"))
    assert step(running, {0: left((0, 5)), 1: right((10, 8))}, 0, 8) == [], "another row at 8 could win the tie"
    assert step(running, {}, 0, 9) == [(0, 10)]


def test_forward_gives_up_beyond_the_tolerance() -> None:
    running = join(AsOf("forward", tolerance=3))
    assert step(running, {0: left((0, 5))}, 0, 8) == []
    assert step(running, {}, 0, 9) == [(0, None)]


def test_nearest_leaves_when_the_mirror_of_its_answer_is_behind_progress() -> None:
    running = join(AsOf("nearest"))
    assert step(running, {0: left((0, 5)), 1: right((10, 2))}, 0, 7) == [], "a row at 7 would be nearer"
    assert step(running, {}, 0, 8) == [(0, 10)], "one at 8 would not: at equal distance the earlier wins"


def test_ties_are_won_by_the_greatest_wherever_they_lie() -> None:
    for batches in ([(10, 3), (12, 3), (11, 3)], [(12, 3), (11, 3), (10, 3)]):
        running = join()
        for number, row in enumerate(batches):  # each comes alone, and at first lies in a run of its own
            running.area.insert(running.area.matching.sorted_run(right(row)))
            assert running.area.runs == number + 1
        step(running, {0: left((0, 3))})
        assert ended(running) == [(0, 12)]


def test_what_can_no_longer_be_the_answer_goes() -> None:
    running = join()
    step(running, {1: right((9, 1), (10, 2), (11, 3), (12, 7))}, 5, 8)
    assert running.state_rows == 2, "the newest up to 5, and what is after it"
    assert step(running, {0: left((0, 5), (1, 7))}, 5, 8) == [(0, 11), (1, 12)]


def test_waiting_rows_hold_back_what_they_may_take() -> None:
    running = join()
    step(running, {0: left((0, 2)), 1: right((10, 1), (11, 3), (12, 7))}, 9, 2)
    assert running.state_rows == 4
    assert step(running, {}, 9, 3) == [(0, 10)]
    assert running.state_rows == 1, "left rows to come are at 9 or later"


def test_tolerance_empties_the_history() -> None:
    running = join(AsOf(tolerance=5))
    step(running, {1: right((10, 1), tolerance=5)}, 6, 2)
    assert running.state_rows == 1
    step(running, {}, 7, 2)
    assert running.state_rows == 0


@pytest.mark.compiled
def test_a_million_rows_leave_at_most_two_per_key() -> None:
    keys, rows, pieces = 10_000, 1_000_000, 20
    rng, running = np.random.default_rng(3), join()
    for piece in range(pieces):
        times = np.sort(rng.integers(piece * rows // pieces, (piece + 1) * rows // pieces, rows // pieces))
        ids = pa.array(np.arange(len(times)))
        payload = pa.table({"id": ids, "note": pa.nulls(len(times), pa.string())}, schema=PAYLOAD)
        some = Batch(payload, times, np.full(len(times), FOREVER), rng.integers(0, keys, len(times)))
        step(running, {1: some}, *[int(times[-1])] * 2)
    assert keys * 0.99 < running.state_rows <= 2 * keys
    assert running.area.removed + running.area.rows == rows


def test_late_rows_of_the_right_input_may_join() -> None:
    running = join(late=("drop", "join"))
    step(running, {1: right((10, 1))}, 5, 5)
    assert list(running.on_batch(0, left((0, 4)))) == []
    assert list(running.on_batch(1, right((11, 4)))) == [], "kept: rows from 5 on may take it"
    assert running.figures["late"] == 2
    assert step(running, {0: left((1, 5))}, 5, 6) == [(1, 11)]
    with pytest.raises(UnsupportedError, match="left input"):
        join(late=("join", "drop"))


def test_two_keys_with_one_hash_are_an_error_and_no_wrong_result() -> None:
    def rows(*keys: str) -> Batch:
        return batch([(0, FOREVER)] * len(keys), proof=pa.table({"k": list(keys)}))

    with pytest.raises(StreamjoinError, match="same hash"):
        step(join(), {1: rows("a", "b")})
    running = join()
    step(running, {0: rows("a"), 1: rows("b")})
    with pytest.raises(StreamjoinError, match="same hash"):
        ended(running)


def test_numbers_at_the_ends_of_the_axis() -> None:
    big = 2**63 - 2
    for choice in (AsOf("nearest"), AsOf("forward"), AsOf(tolerance=big)):
        running = join(choice)
        step(running, {0: left((0, -big), (1, big)), 1: right((10, big - 1))})
        assert ended(running) == [
            (0, 10 if choice.looks_ahead else None),
            (1, None if choice.direction == "forward" else 10),
        ]
