"""The replay of streams out of order on small data: its truth is what a join finds, its rivals what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import recall
from benchmarks.disorder import DATA, MS, SECOND, Arriving, Both
from benchmarks.recall_checks import CHECKS
from benchmarks.recall_figures import as_printed
from benchmarks.recall_foresight import chosen_by, foresight, periods_reached
from benchmarks.recall_replay import Replay, least_pair, may_lose
from streamjoin.algebra import NEVER, Equals, Range
from streamjoin.cli import app
from streamjoin.operators.recall.controller import Aim
from streamjoin.operators.recall.counts import MANY_ROWS
from streamjoin.plan.relation import Join, Stream
from streamjoin.runtime.recall import ToRecall
from tests.function_trees import plan_of, tree
from tests.in_process import plan_of as plan_of_tree
from tests.interpreter import InProcess

GENERATED = [name for name, data in DATA.items() if not data.real]
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])


def small(name: str, seconds: float = 40) -> Both:
    return DATA[name].draw(7, seconds)


@pytest.mark.parametrize("name", GENERATED)
def test_streams_are_seeded_and_in_order_of_arrival(name: str) -> None:
    one, two = small(name), small(name)
    for mine, again in zip(one, two, strict=True):
        assert np.array_equal(mine.ts, again.ts)
        assert (np.diff(mine.arrival) >= 0).all()
        assert (mine.arrival >= mine.ts).all(), "nobody arrives before it is sent"
    assert not np.array_equal(one[0].ts[:50], one[1].ts[:50])


@pytest.mark.parametrize("name", ["D1", "D2"])
def test_the_football_streams_have_the_shape_of_the_document(name: str) -> None:
    rate, mean, late, longest = {"D1": (8514, 34.133e-3, 0.83, 142.2), "D2": (10037, 29.597e-3, 0.87, 171)}[name]
    streams = DATA[name].draw(1, DATA[name].seconds)
    delay = np.concatenate([each.arrival - each.ts for each in streams]) / SECOND
    assert len(delay) / DATA[name].seconds == pytest.approx(0.04 * rate, rel=0.02)
    assert delay.mean() == pytest.approx(mean, rel=0.3)
    assert delay.max() < longest
    # At 4% of the rate fewer rows overtake one another; with the rate of the document it is this share.
    body = 1 - 1 / (rate * {"D1": 10.4e-3, "D2": 14.2e-3}[name])
    assert body > late


@pytest.mark.parametrize("windows", [(200 * MS, 200 * MS), (50 * MS, 800 * MS), (800 * MS, 50 * MS)])
def test_replayed_and_joined_give_the_same(windows: tuple[int, int]) -> None:
    """The truth of the replay is what a stage finds: row for row it is lost or not by the same progress."""
    streams = small("exp")
    replay = Replay(streams, SECOND, windows[0], 10 * SECOND, windows[1])
    aim = Aim(0.9, 10 * SECOND, SECOND, replay.step)
    (ours,) = replay.run([aim])
    sides = [
        Stream(name, tuple((f"{name}.{each}", each) for each in ("ts", "k")), "ts", Range(window))
        for name, window in zip("RS", windows, strict=True)
    ]
    target = ToRecall(0.9, 10 * SECOND, SECOND)
    join = Join(*sides, (Equals("R.k", "S.k"),))
    plan = plan_of_tree(join, dict.fromkeys("RS", SCHEMA), dict.fromkeys("RS", target), late="join")
    running, found = InProcess(plan), 0
    for at in range(replay.steps):
        rows = {}
        for name, stream, batch in zip("RS", streams, replay.batch, strict=True):
            some = batch == at
            rows[name] = [pa.table({"ts": stream.ts[some], "k": stream.key[some]})]
        found += sum(table.num_rows for table in running.micro_batch(rows))
        told = running.running[0, 0].intake.progress()
        assert told == [int(progress[at + 1]) for progress in ours.progress]
    assert found == replay.pairs.sum() - replay.lost(ours.progress).sum()
    assert 0.85 < found / replay.pairs.sum() < 1


def test_a_task_of_very_many_rows_reaches_the_target_as_one_of_fewer_does() -> None:
    """One key has few rows, which are up to 15 s late: a table of all keys and all of those cells would be large, and
    there are few entries. Of the other input there are few rows, so that the truth is known soon.
    """
    rng, seconds = np.random.default_rng(1), 24
    rows, others = (MANY_ROWS + 1000) * seconds, 300 * seconds
    sent = [np.sort(rng.integers(0, seconds * SECOND, each)) for each in (rows, others)]
    keys = [np.where(rng.random(len(each)) < share, 0, rng.integers(1, 300, len(each)))
            for each, share in zip(sent, (0.01, 0.05), strict=True)]  # fmt: skip
    late = np.where(keys[0] == 0, rng.integers(3 * SECOND, 15 * SECOND, rows), 0)
    streams = Arriving.of(sent[0], sent[0] - late, keys[0]), Arriving.of(sent[1], sent[1], keys[1])
    replay = Replay(streams, SECOND, 2 * SECOND, 4 * SECOND)
    (ours,) = replay.run([Aim(0.9, 4 * SECOND, SECOND, replay.step)])
    lost = replay.lost(ours.progress)[2:-1].sum() / replay.pairs[2:-1].sum()
    assert 0.9 <= 1 - lost < 0.97
    assert ours.predicted == pytest.approx(1 - replay.lost(ours.progress).sum() / replay.pairs.sum(), abs=0.02)


def test_the_best_fixed_pair_is_the_best_of_all() -> None:
    replay = Replay(small("bimodal"), SECOND, 500 * MS, 10 * SECOND)
    edges = np.array([0, 1, 4, 9, 16, 25]) * SECOND
    best = replay.best_fixed(replay.hindsight(edges), 0.9)
    tried = []
    for one in edges:
        for two in edges:
            progress = replay.fixed((int(one), int(two)))
            reached = 10 * replay.lost(progress) <= replay.pairs
            if reached[replay.pairs > 0].mean() >= 0.95:
                tried.append(replay.kept(progress))
    assert best == pytest.approx(min(tried))


def test_k_slack_waits_for_the_largest_delay() -> None:
    replay = Replay(small("bimodal"), SECOND, 500 * MS, 10 * SECOND)
    progress, rows, waits = replay.k_slack()
    for reached, most in zip(progress, replay.largest, strict=True):
        known = most != NEVER
        assert (np.diff(reached[known]) >= 0).all()
        assert (reached[known] <= most[known]).all()
        assert most[-1] - reached[-1] > 20 * SECOND, "one row was 30 s late"
    assert waits > 5
    assert rows > replay.kept(progress), "its buffer is beside the windows"


def test_a_result_waits_until_the_last_of_its_rows_is_let_go() -> None:
    replay = Replay(small("bimodal"), SECOND, 500 * MS, 10 * SECOND)
    progress, _, _ = replay.k_slack()
    for released in (replay.batch, replay.released(progress)):
        waits = []
        one, two = (
            [*zip(each.ts, each.key, each.arrival, let_go, strict=True)]
            for each, let_go in zip(replay.streams, released, strict=True)
        )
        for ts, key, arrival, let_go in one:
            waits += [
                (max(let_go, other[3]) + 1) * SECOND + replay.first - max(arrival, other[2])
                for other in two
                if other[1] == key and abs(ts - other[0]) < 500 * MS
            ]
        assert len(waits) == replay.pairs.sum()
        assert replay.result_waits(released) == pytest.approx(np.mean(waits) / SECOND)


def test_the_command_prints_cases_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DATA, "exp", replace(DATA["exp"], period=20))
    monkeypatch.setattr(recall, "QUICK", ((0.99,), (200 * MS,), (SECOND,), 0.01))
    shown = CliRunner().invoke(app, ["bench", "recall", "--quick", "--only", "exp"])
    assert shown.exit_code == 0, shown.output
    assert "prediction off" in shown.output
    assert "0.99" in shown.output
    wrong = CliRunner().invoke(app, ["bench", "recall", "--only", "nobody"])
    assert wrong.exit_code == 1
    assert "there is no question 'nobody'" in wrong.output


@pytest.mark.parametrize("name", ["ends", "calm-burst-calm", "unequal"])
def test_what_must_hold_on_small_streams_holds(name: str) -> None:
    checked = CHECKS[name](7, True, lambda words: None)
    assert checked.verdicts
    assert [verdict.question for verdict in checked.verdicts if not verdict.met] == []
    assert checked.plot is None or checked.plot.svg().startswith("<svg")


@pytest.mark.parametrize("seed", range(20))
def test_the_best_pair_is_the_best_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lost = [np.sort(rng.integers(0, 9, (6, 5)), axis=1)[:, ::-1] for _ in (0, 1)]
    rows = [np.sort(rng.integers(0, 30, 5)) for _ in (0, 1)]
    allowed, share = rng.integers(0, 9, 6), rng.choice([0.5, 0.9, 1.0])
    good = [
        rows[0][one] + rows[1][two]
        for one in range(5)
        for two in range(5)
        if (lost[0][:, one] + lost[1][:, two] <= allowed).mean() >= share
    ]
    one, two = least_pair(lost, rows, allowed, share)
    assert rows[0][one] + rows[1][two] == min(good, default=rows[0][-1] + rows[1][-1])


@pytest.mark.parametrize("target", [0.8, 0.85, 0.9, 0.95, 0.99])
def test_a_period_that_loses_just_what_it_may_reaches_the_target(target: float) -> None:
    pairs, hundredths = np.arange(0, 5000), 100 - round(100 * target)
    most = may_lose(pairs, target)
    assert (100 * most <= hundredths * pairs).all()
    assert (100 * (most + 1) > hundredths * pairs).all()


def test_the_best_fixed_pair_may_lose_what_a_period_may(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = Replay(small("exp"), SECOND, 500 * MS, 10 * SECOND)
    monkeypatch.setitem(replay.__dict__, "pairs", np.array([100]))
    known = [np.array([[20, 10, 0]]), np.array([[0, 0, 0]])], [np.array([5, 7, 9]), np.array([0, 1, 2])]
    assert replay.best_fixed(known, 0.9) == 7


def test_slacks_chosen_by_other_runs_reach_the_target_in_those_and_know_nothing_of_this_one() -> None:
    checked = foresight(7, True, lambda words: None)
    (case,) = checked.found["cases"]
    assert case["target"] == 0.99
    assert [each["rows"] > 0 for each in (*case["chosen"], case["ours"])] == [True] * 3
    others = [Replay(DATA["phone"].draw(seed, 360), 5 * SECOND, 200 * MS, 60 * SECOND) for seed in (201, 202)]
    edges = Aim(0.99, 60 * SECOND, SECOND, others[0].step).edges
    known = [each.hindsight(edges) for each in others]
    for share in (0.5, 0.9):
        slacks = chosen_by(others, known, edges, 0.99, share)
        met = [periods_reached(each, each.fixed(slacks), 0.99) * (each.pairs > 0).sum() for each in others]
        assert sum(met) / sum((each.pairs > 0).sum() for each in others) >= share
    assert chosen_by(others[:1], known[:1], edges, 0.99, 0.9) != chosen_by(others[1:], known[1:], edges, 0.99, 0.9)


def test_the_printed_prediction_is_wrong_where_ours_is_right() -> None:
    replay = Replay(small("exp", 60), SECOND, 2 * SECOND, 10 * SECOND)
    (never,) = replay.run([Aim(0.0, 10 * SECOND, SECOND, replay.step)])
    true = 1 - replay.lost(replay.fixed((0, 0))).sum() / replay.pairs.sum()
    assert 1 - never.lost_at(0) / never.pairs == pytest.approx(true, abs=0.01)
    assert abs(as_printed(replay, 0) - true) > 0.05


def test_plans_are_bound_by_windows() -> None:
    both = plan_of(tree("keys"), dict.fromkeys("01", ToRecall(0.9, 100, 10)), late=("join", "join"))
    assert {source.lateness.model.windows for source in both.sources} == {(5, 5)}  # type: ignore[attr-defined]
