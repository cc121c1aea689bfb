"""The time queue: rows leave in time, and what is not due is not sorted."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.state import TimeQueue
from streamjoin.state.time_queue import FEW, MOST_PARTS
from tests.state.storing import Store, moved


def add(queue: TimeQueue, *times: int, first_id: int = 0) -> None:
    ids = np.arange(first_id, first_id + len(times))
    queue.add(np.array(times, np.int64), pa.table({"id": ids}))


def taken(queue: TimeQueue, before: int) -> list[tuple[int, int]]:
    """What is due, as (time, id)."""
    due = queue.take(before)
    return [] if due is None else list(zip(due[0].tolist(), due[1]["id"].to_pylist(), strict=True))


def sorted_parts(queue: TimeQueue) -> list[bool]:
    return ["order" in vars(part) for part in queue.parts]


@pytest.mark.parametrize("seed", range(30))
def test_oracle_rows_leave_when_their_time_has_come(seed: int) -> None:
    """Against a plain list; restored now and then, into a store that writes every part once."""
    rng = random.Random(seed)
    queue, store, waiting, reached = TimeQueue(), Store(), [], 0
    for step in range(60):
        times = [reached + rng.choice([0, 1, 2, 5, 40]) for _ in range(rng.randint(0, 4))]
        times = [FOREVER if rng.random() < 0.05 else time for time in times]
        add(queue, *times, first_id=10 * step)
        waiting += [(time, 10 * step + place) for place, time in enumerate(times)]
        if rng.random() < 0.7:
            reached += rng.choice([0, 1, 3, 9])
            due = [row for row in waiting if row[0] < reached]
            waiting = [row for row in waiting if row[0] >= reached]
            assert Counter(taken(queue, reached)) == Counter(due), f"seed {seed}, step {step}"
        assert len(queue) == len(waiting)
        assert queue.first == min((time for time, _ in waiting), default=FOREVER)
        if rng.random() < 0.3:
            queue = moved(queue, TimeQueue(), store)
            assert len(queue) == len(waiting), f"seed {seed}, step {step}"
    assert Counter(taken(queue, FOREVER)) == Counter(row for row in waiting if row[0] < FOREVER)
    assert all(time == FOREVER for part in queue.parts for time in part.left()[0].tolist())


def test_parts_that_are_not_due_are_not_sorted() -> None:
    queue = TimeQueue()
    add(queue, 9, 5, 7)
    add(queue, 8, 9, 8)
    assert taken(queue, 5) == []
    assert sorted_parts(queue) == [False, False]
    assert taken(queue, 6) == [(5, 1)]
    assert sorted_parts(queue) == [True, False]
    assert taken(queue, 8) == [(7, 2)]
    assert sorted_parts(queue) == [True, False]
    assert taken(queue, 9) == [(8, 0), (8, 2)]
    assert taken(queue, 10) == [(9, 0), (9, 1)]
    assert queue.parts == []
    assert queue.first == FOREVER


def test_a_restored_part_of_which_nothing_has_left_is_not_sorted() -> None:
    queue = TimeQueue()
    add(queue, 9, 5, 7)
    add(queue, 8, 9, 8)
    taken(queue, 6)
    again = moved(queue, TimeQueue())
    assert sorted_parts(again) == [True, False]
    assert taken(again, 9) == [(7, 2), (8, 0), (8, 2)]


def test_rows_of_a_part_leave_in_the_order_of_time_and_equal_ones_as_they_came() -> None:
    queue = TimeQueue()
    add(queue, 3, 1, 3, 2, 1)
    assert taken(queue, 4) == [(1, 1), (1, 4), (2, 3), (3, 0), (3, 2)]


def test_many_small_parts_are_merged_and_large_ones_stay() -> None:
    queue = TimeQueue()
    add(queue, *([100] * 50))
    large = queue.parts[0]
    for number in range(3 * MOST_PARTS):
        add(queue, 1, 200 - number, first_id=1000 + 2 * number)
    assert taken(queue, 1) == []
    assert len(queue.parts) == 3 * MOST_PARTS + 1  # nothing was due, so nothing was touched
    assert len(taken(queue, 2)) == 3 * MOST_PARTS
    assert len(queue.parts) == MOST_PARTS // 2 + 1
    assert large in queue.parts
    assert not large.taken
    assert len(queue) == 50 + 3 * MOST_PARTS
    rest = taken(moved(queue, TimeQueue()), FOREVER)
    assert Counter(rest) == Counter(
        [(100, number) for number in range(50)] + [(200 - n, 1001 + 2 * n) for n in range(3 * MOST_PARTS)]
    )


def test_a_stored_part_is_written_once_and_forgotten_with_its_last_row() -> None:
    queue, store = TimeQueue(), Store()
    add(queue, 5, 3, 9)
    for before in (4, 6):
        store.save(queue.snapshot("queue"))
        taken(queue, before)
    assert store.written == 1
    again = TimeQueue()
    store.save(queue.snapshot("queue"))
    again.restore(store.load())
    assert store.written == 1
    assert taken(again, FOREVER) == [(9, 2)]
    taken(queue, 10)
    store.save(queue.snapshot("queue"))
    assert store.blobs == {}


def test_what_is_due_before_it_is_stored_is_not_stored() -> None:
    times = [7, *np.random.default_rng(3).permutation(2 * FEW).tolist(), 9 * FEW]
    queue, store = TimeQueue(), Store()
    add(queue, *times)
    due = taken(queue, 2 * FEW - 3)
    assert due == sorted((time, place) for place, time in enumerate(times) if time < 2 * FEW - 3)
    assert [len(part.times) for part in queue.parts] == [4]
    store.save(queue.snapshot("queue"))
    assert sum(map(len, store.blobs.values())) < FEW
    rest = sorted((time, place) for place, time in enumerate(times) if time >= 2 * FEW - 3)
    assert taken(moved(queue, TimeQueue(), store), FOREVER) == rest


def test_what_is_stored_is_not_written_again_when_most_of_it_has_left() -> None:
    queue, store = TimeQueue(), Store()
    add(queue, *range(2 * FEW))
    for before in (0, 2 * FEW - 3):
        taken(queue, before)
        store.save(queue.snapshot("queue"))
    assert store.written == 1
    assert len(queue) == 3


def test_an_empty_queue_and_no_rows() -> None:
    queue = TimeQueue()
    add(queue)
    assert (len(queue), queue.parts, queue.nbytes) == (0, [], 0)
    assert queue.take(NEVER) is None
    assert queue.reached == NEVER
    add(queue, 1)
    assert queue.nbytes == 16
    assert len(moved(queue, TimeQueue())) == 1
