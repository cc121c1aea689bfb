"""The controller: what it does at the bounds, and step by step."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from streamjoin.algebra import NEVER
from streamjoin.operators.recall.controller import MARGIN, Aim, Controller, cheapest
from streamjoin.operators.recall.counts import counted
from streamjoin.operators.recall.model import RecallModel, RunningRecall
from streamjoin.operators.recall.needs import lost_at
from streamjoin.operators.recall.seen import MOST_ENTRIES
from streamjoin.state import Snapshot
from tests.operators.recall.streams import Streams, found_pairs, true_pairs

WINDOWS = (40, 40)


def run(streams: Streams, aim: Aim, running: RunningRecall | None = None) -> list[tuple[int, int]]:
    """The progress after each micro-batch."""
    model = running or RecallModel(aim, WINDOWS).build()
    reached = []
    largest = list(streams.largest())[1:]
    for counts, after in zip(streams.counts(aim.step), largest, strict=True):
        model.hear(counts, list(after), list(model.promised))
        reached.append((model.promised[0], model.promised[1]))
    return reached


def drawn(seed: int, delay: int = 300, rows: int = 3000) -> Streams:
    return Streams.drawn(np.random.default_rng(seed), rows, 20_000, delay, 50)


CHANGED = drawn(10, rows=1500)
HALF = len(CHANGED.batches) // 2


@pytest.mark.parametrize(
    "target", [pytest.param(0.8, marks=pytest.mark.compiled), 0.9, pytest.param(0.95, marks=pytest.mark.compiled)]
)
def test_the_target_is_reached_and_not_by_keeping_everything(target: float) -> None:
    streams = drawn(3)
    progress = run(streams, Aim(target, 1000, 50, 2))
    recall = found_pairs(streams, WINDOWS, progress) / true_pairs(streams, WINDOWS)
    assert target <= recall <= target + (1 - target) * 0.75


def test_a_target_of_0_keeps_the_bare_window() -> None:
    streams = drawn(4)
    assert run(streams, Aim(0.0, 1000, 50, 2)) == list(streams.largest())[1:]


@pytest.mark.compiled
def test_a_target_of_1_loses_nothing_within_the_largest_delay() -> None:
    streams = drawn(5)
    progress = run(streams, Aim(1.0, 1000, 50, 2, max_delay=350))
    assert found_pairs(streams, WINDOWS, progress) == true_pairs(streams, WINDOWS)


def test_no_slack_is_larger_than_the_largest_delay_allowed() -> None:
    streams = drawn(6)
    progress = run(streams, Aim(0.99, 1000, 50, 2, max_delay=70))
    for reached, largest in zip(progress, list(streams.largest())[1:], strict=True):
        assert all(one == NEVER or top - one <= 70 for one, top in zip(reached, largest, strict=True))


@pytest.mark.parametrize(("initial", "most"), [(0, 1000), (300, 1000), (700, 1400)])
def test_without_a_largest_delay_slack_is_ten_periods_at_most_or_twice_the_initial_one(initial: int, most: int) -> None:
    aim = Aim(0.99, 100, 50, 2, initial=initial)
    streams = some_far_behind(2000, 0.3, 12_000, 2000)
    slack = [top - one for one, top in zip(run(streams, aim)[-1], list(streams.largest())[-1], strict=True)]
    assert slack == [most, most]


def test_an_initial_slack_is_held_for_twice_its_length() -> None:
    streams = Streams.drawn(np.random.default_rng(1), 3000, 20_000, 0, 50)  # in order: nothing else would hold any
    progress = run(streams, Aim(0.9, 1000, 50, 2, initial=500))
    slack = [top[0] - one[0] for one, top in zip(progress, list(streams.largest())[1:], strict=True)]
    assert slack[10] == slack[19] == 500
    assert slack[-1] == 0


def test_progress_never_falls_and_moves_at_most_twice_as_fast_as_time() -> None:
    calm, burst = drawn(1, 5), drawn(2, 900)
    streams = Streams(calm.batches[:200] + burst.batches[200:250] + calm.batches[250:])
    progress, largest = run(streams, Aim(0.95, 1000, 50, 2)), list(streams.largest())
    for p in (0, 1):
        steps = np.diff([one[p] for one in progress][1:])
        times = np.diff([top[p] for top in largest][2:])
        assert (steps >= 0).all()
        assert (steps <= 2 * times).all()


def test_calm_burst_calm_moves_slack_up_and_down_again() -> None:
    calm, burst = drawn(1, 5), drawn(2, 500)
    streams = Streams(calm.batches[:160] + burst.batches[160:240] + calm.batches[240:])
    progress, largest = run(streams, Aim(0.95, 1000, 50, 2)), list(streams.largest())[1:]
    slack = np.array([max(top) - min(one) for one, top in zip(progress, largest, strict=True)])
    before, height = slack[40:160].max(), slack[160:240].max()
    assert before < 60
    assert slack[200:240].min() > 100, "up within two periods of 20 micro-batches"
    assert slack[240 + max(40, 5 * height // 50) :].max() < 60, "and down again"


def test_saved_in_the_middle_it_goes_on_the_same() -> None:
    streams, aim = drawn(7), Aim(0.9, 1000, 50, 2)
    whole = run(streams, aim)
    half = len(streams.batches) // 2
    model, again = RecallModel(aim, WINDOWS).build(), RecallModel(aim, WINDOWS).build()
    assert run(Streams(streams.batches[:half]), aim, model) == whole[:half]
    again.restore(model.snapshot())
    assert run_on(streams, half, again) == whole[half:]
    run_on(streams, half, model)
    assert again.expected == model.expected
    assert again.expected is not None
    assert 0.9 <= again.expected < 1


@pytest.mark.parametrize("aim", [Aim(0.0, 1000, 50, 2), Aim(0.8, 1000, 50, 2), Aim(1.0, 1000, 50, 2, max_delay=70)])
def test_what_nobody_looks_back_to_is_forgotten_with_every_target(aim: Aim) -> None:
    model = RecallModel(aim, WINDOWS).build()
    run(CHANGED, aim, model)
    assert len(model.controller.groups) <= 10 * 1000 // (1000 // 12) + 2


def test_what_is_older_than_ten_periods_is_remembered_by_the_period_and_forgotten_after_twenty() -> None:
    aim = Aim(0.9, 120, 10, 2)
    controller = Controller(aim)
    for now in range(0, 30 * 120, 10):
        controller.hear(now, np.zeros((2, len(controller.edges))), 1.0, 0.0, np.ones(2))
    # T is 3590; groups are of 10. Those before 2380 are older, and the periods that begin before 1190 are forgotten.
    assert [group.begin for group in controller.older] == list(range(1200, 2390, 120))
    assert [group.pairs for group in controller.older] == [12.0] * 9 + [10.0]
    assert controller.groups[0].begin == 2380


def test_a_state_of_before_older_periods_were_remembered_is_read() -> None:
    model, again, without = (RecallModel(Aim(0.9, 200, 50, 2), WINDOWS).build() for _ in range(3))
    run(Streams(CHANGED.batches[:HALF]), model.config.aim, model)
    assert model.controller.older
    stored = model.snapshot()
    again.restore(stored)
    assert [group.to_bytes() for group in again.controller.older] == [
        group.to_bytes() for group in model.controller.older
    ]
    parts = [{name: value for name, value in part.items() if name != "older"} for part in stored.manifest["parts"]]
    without.restore(Snapshot(stored.manifest | {"parts": parts}, stored.blobs))
    assert not without.controller.older
    assert len(without.controller.groups) == len(model.controller.groups)
    assert run_on(CHANGED, HALF, again) == run_on(CHANGED, HALF, model)


def test_nothing_is_expected_before_anything_is_known() -> None:
    model = RecallModel(Aim(0.8, 1000, 50, 2), WINDOWS).build()
    assert model.expected is None
    run(Streams(CHANGED.batches[:3]), model.config.aim, model)
    assert model.expected is None, "the first sixth of a period"
    alone = RecallModel(Aim(0.8, 1000, 50, 2), WINDOWS).build()
    run(
        Streams([([(ts, 1) for ts, _ in one], [(ts, 2) for ts, _ in two]) for one, two in CHANGED.batches]),
        alone.config.aim,
        alone,
    )
    assert alone.expected is None, "without pairs"


def some_far_behind(delay: int, share: float, length: int, rows: int) -> Streams:
    """A share of the rows come later by one delay; what comes after the time of the last row is left out."""
    rng, batches = np.random.default_rng(1), [([], []) for _ in range(length // 50)]
    for number in (0, 1):
        ts, keys = rng.integers(0, length, rows), rng.integers(0, 20, rows)
        came = ts + np.where(rng.random(rows) < share, delay, 0)
        for time, key, at in zip(ts.tolist(), keys.tolist(), (came // 50).tolist(), strict=True):
            if at < len(batches):
                batches[at][number].append((time, key))
    return Streams(batches)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("delay", "aim", "off"),
    [
        pytest.param(2000, Aim(0.9, 1000, 50, 2, max_delay=500), 0.01, id="max_delay binds, windows and more"),
        pytest.param(2000, Aim(0.9, 1000, 50, 2, max_delay=1800), 0.01, id="max_delay binds, by little"),
        pytest.param(2000, Aim(0.9, 1000, 50, 2), 0.01, id="within reach"),
        pytest.param(3000, Aim(0.9, 200, 50, 2), 0.03, id="behind ten periods: by what rows meet on average"),
    ],
)
def test_what_is_lost_is_known_where_rows_are_later_than_any_slack(delay: int, aim: Aim, off: float) -> None:
    streams = some_far_behind(delay, 0.08, 20_000, 4000)
    model, heard = RecallModel(aim, WINDOWS).build(), np.zeros(2)
    reached = []
    for counts, after in zip(streams.counts(2), list(streams.largest())[1:], strict=True):
        told, met = list(model.promised), model.meet(counts)
        slack = [0 if NEVER in pair else pair[0] - pair[1] for pair in zip(model.largest, told, strict=True)]
        heard += met.pairs, sum(lost_at(each, one, aim.edges) for each, one in zip(met.needs, slack, strict=True))
        model.decide(met, list(after), told)
        reached.append((model.promised[0], model.promised[1]))
    true = true_pairs(streams, WINDOWS)
    assert heard[0] == pytest.approx(true, rel=off)
    assert 1 - heard[1] / heard[0] == pytest.approx(found_pairs(streams, WINDOWS, reached) / true, abs=off)


def test_rows_of_no_time_at_all_have_lost_nothing() -> None:
    """A device without a clock: rows of time 0 in a stream that began long after."""
    aim = Aim(0.9, 200, 50, 2)
    calm = Streams([([(ts + 10**6, key) for ts, key in one], [(ts + 10**6, key) for ts, key in two])
                    for one, two in drawn(1, 5, 1500).batches])  # fmt: skip
    broken = Streams([([*one, (0, 1)] if one else one, two) for one, two in calm.batches])
    assert run(broken, aim) == run(calm, aim)
    # They match each other if both inputs have them, and nothing can be done about that.
    both = [(one and [*one, (0, 1)], two and [*two, (0, 1)]) for one, two in calm.batches[1:]]
    assert run(Streams([calm.batches[0], *both]), aim) == run(calm, aim)


def test_what_was_stored_before_rows_behind_all_were_counted_is_read() -> None:
    model, again = (RecallModel(Aim(0.9, 1000, 50, 2), WINDOWS).build() for _ in range(2))
    run(Streams(CHANGED.batches[:HALF]), model.config.aim, model)
    stored = model.snapshot()
    again.restore(Snapshot({key: value for key, value in stored.manifest.items() if key != "known"}, stored.blobs))
    assert again.known.tolist() == [0, 0, 0] != model.known.tolist()
    assert run_on(CHANGED, HALF, again) == run_on(CHANGED, HALF, model)


def test_a_snapshot_writes_each_part_once() -> None:
    streams, aim = drawn(8), Aim(0.9, 1000, 50, 2)
    model, written, size = RecallModel(aim, WINDOWS).build(), set(), 0
    for counts, after in zip(streams.counts(2), list(streams.largest())[1:], strict=True):
        model.hear(counts, list(after), list(model.promised))
        blobs = model.snapshot().blobs
        size += sum(len(blobs[name]) for name in set(blobs) - written)
        written |= set(blobs)
    whole = sum(len(blob) for blob in model.snapshot().blobs.values())
    assert size < len(streams.batches) * whole / 8


def test_another_aim_forgets_what_was_learned_but_not_the_slack() -> None:
    streams = drawn(9)
    model = RecallModel(Aim(0.9, 1000, 50, 2), WINDOWS).build()
    run(streams, model.config.aim, model)
    other = RecallModel(Aim(0.9, 2000, 50, 2), WINDOWS).build()
    other.restore(model.snapshot())
    assert other.controller.slack.tolist() == model.controller.slack.tolist()
    assert not other.controller.groups


AIMS = {
    "0": Aim(0.0, 1000, 50, 2),
    "0.8": Aim(0.8, 1000, 50, 2),
    "0.95, at most 120": Aim(0.95, 1000, 50, 2, max_delay=120),
    "1, at most 70": Aim(1.0, 1000, 50, 2, max_delay=70),
    "1, at most 350": Aim(1.0, 1000, 50, 2, max_delay=350),
}


@cache
def progress_of(name: str) -> list[tuple[int, int]]:
    return run(CHANGED, AIMS[name])


@cache
def stored_of(name: str) -> Snapshot:
    model = RecallModel(AIMS[name], WINDOWS).build()
    run(Streams(CHANGED.batches[:HALF]), AIMS[name], model)
    return model.snapshot()


@pytest.mark.parametrize("then", AIMS)
@pytest.mark.parametrize("first", AIMS)
def test_another_aim_after_a_restart_is_what_holds(first: str, then: str) -> None:
    """Some time after the restart progress is that of a run with the second aim from the start. One that chooses its
    slack has learned in another way, and has another debt, which it repays: it is near.
    """
    again = RecallModel(AIMS[then], WINDOWS).build()
    again.restore(stored_of(first))
    whole, goes_on = progress_of(then)[HALF:], run_on(CHANGED, HALF, again)
    settled = 2 * 350 // 50  # micro-batches in which slack can have fallen from, or risen to, the largest
    if 0 < AIMS[then].target < 1:
        ours, theirs = (float(np.mean(progress[settled:])) for progress in (goes_on, whole))
        assert ours == pytest.approx(theirs, abs=80)
    else:
        assert goes_on[settled:] == whole[settled:]


def run_on(streams: Streams, since: int, model: RunningRecall) -> list[tuple[int, int]]:
    reached = []
    for counts, after in list(zip(streams.counts(2), list(streams.largest())[1:], strict=True))[since:]:
        model.hear(counts, list(after), list(model.promised))
        reached.append((model.promised[0], model.promised[1]))
    return reached


def test_histograms_by_another_ladder_of_the_same_length_are_not_misread() -> None:
    one, two = Aim(0.9, 1000, 50, 2, max_delay=400), Aim(0.9, 1000, 50, 2, max_delay=395)
    assert len(one.edges) == len(two.edges)
    model, again, same = (RecallModel(each, WINDOWS).build() for each in (one, two, one))
    run(drawn(9), one, model)
    stored = model.snapshot()
    again.restore(stored)
    assert not again.controller.groups
    controller, *others = stored.manifest["parts"]
    before = {key: value for key, value in controller.items() if key != "ladder"}  # as it was stored once
    same.restore(Snapshot({**stored.manifest, "parts": [before, *others]}, stored.blobs))
    assert len(same.controller.groups) == len(model.controller.groups)


def test_without_pairs_nothing_is_decided() -> None:
    controller = Controller(Aim(0.9, 100, 10, 1))
    for now in range(0, 300, 10):
        slack = controller.hear(now, np.zeros((2, len(controller.edges))), 0.0, 0.0, np.ones(2))
    assert slack.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("aim", "slack"),
    [
        (Aim(0.9, 1000, 50, 2), 0),
        (Aim(0.9, 1000, 50, 2, initial=300), 300),
        (Aim(0.0, 1000, 50, 2), 0),
        (Aim(1.0, 1000, 50, 2, max_delay=70), 70),
    ],
)
def test_an_input_is_as_far_as_its_own_rows_say_while_the_other_has_none(aim: Aim, slack: int) -> None:
    streams = Streams([(one, []) for one, _ in drawn(2, 5).batches])
    assert run(streams, aim) == [(largest - slack, NEVER) for largest, _ in list(streams.largest())[1:]]


def test_what_is_remembered_of_an_input_is_bounded_while_the_other_has_no_rows() -> None:
    aim, rng = Aim(0.9, 1000, 50, 2), np.random.default_rng(0)
    model = RecallModel(aim, WINDOWS).build()
    for start in range(0, 30_000, 1000):
        keys, ts = rng.integers(0, 5000, 6000), start + rng.integers(0, 1000, 6000)
        model.hear([counted(keys, ts, width=2, bits=16), None], [int(ts.max()), NEVER], list(model.promised))
    assert sum(len(part) for _, part in model.seen[0].parts) <= MOST_ENTRIES


def test_the_cheapest_pair_of_slacks_is_that_of_trying_all() -> None:
    rng = np.random.default_rng(2)
    edges = np.arange(0, 120, 10)
    for _ in range(200):
        mean = -np.sort(-rng.integers(0, 50, (2, 12)), axis=1).astype(float)
        var = -np.sort(-rng.integers(0, 20, (2, 12)), axis=1).astype(float)
        cost, budget = rng.integers(1, 9, 2).astype(float), float(rng.integers(0, 120))
        fine = [
            (cost[0] * edges[i] + cost[1] * edges[j], i, j)
            for i in range(12)
            for j in range(12)
            if mean[0, i] + mean[1, j] + MARGIN * np.sqrt(var[0, i] + var[1, j]) <= budget
        ]
        i, j = cheapest(mean, var, budget, cost, edges)
        assert (i, j) == (11, 11) if not fine else cost[0] * edges[i] + cost[1] * edges[j] == min(fine)[0]
