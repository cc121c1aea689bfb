"""The overload on Spark without Spark: which rows arrive when, the model, latencies from micro-batches, verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from benchmarks.asking import registry
from benchmarks.digest import Digest
from benchmarks.errors import BenchmarkError, UnequalResultsError
from benchmarks.priority_lanes import report, task
from benchmarks.priority_lanes.arrivals import (
    EPOCH_US,
    LANES,
    LIMITS_EVERY,
    PLANTS,
    STEP,
    STEP_US,
    Feeder,
    Step,
    overload_rows,
    steps_of,
    write_files,
)
from benchmarks.priority_lanes.model import DRAWS, Load, Policy, drawn, modelled
from benchmarks.priority_lanes.overload import FREE_RUN, LANES_RUN, LIMITED_RUN, Calibration, Outcome, straight
from benchmarks.priority_lanes.waits import Came, LaneBatch, LaneRun, check_same, percentile
from streamjoin.cli import app
from streamjoin.spark.stored import bucket
from streamjoin.spark.stored.blob_cache import cache_root
from tests.plane import own_cache

__all__ = ["own_cache"]


class TestArrivals:
    def test_steps_number_all_rows_once_and_one_in_a_hundred_is_urgent(self) -> None:
        steps = steps_of(overload_rows(2000, 2.0, warm=3))
        assert len(steps) == 3 + round(2.0 / STEP)
        tables = [step.status(lane) for step in steps for lane in ("urgent", "normal")]
        assert sorted(pa.concat_tables(tables)["id"].to_pylist()) == list(range(200 * len(steps)))
        assert {(step.urgent, step.normal) for step in steps} == {(2, 198)}

    def test_the_step_of_a_row_is_in_its_time(self) -> None:
        for step in steps_of([500, 700, 300]):
            for lane in ("urgent", "normal"):
                ts = step.status(lane)["ts"].cast(pa.int64()).to_numpy()
                assert set((ts - EPOCH_US) // STEP_US) == {step.number}
                assert (np.diff(ts) >= 0).all()

    def test_every_row_finds_one_limit_before_it_and_limits_are_ahead_of_the_rows(self) -> None:
        steps = steps_of([200] * (2 * LIMITS_EVERY + 1))
        limits = [step.limits() for step in steps if step.files()[0][0] == "limits"]
        plants = [plant for table in limits for plant in table["plant"].to_pylist() if plant >= 0]
        assert sorted(plants) == list(range(PLANTS))
        said = [step.number for step in steps if step.files()[0][0] == "limits"]
        assert said == [0, LIMITS_EVERY, 2 * LIMITS_EVERY]
        last_row = steps[LIMITS_EVERY - 1].status("normal")["ts"][-1].value
        assert steps[0].limits()["ts"][-1].value > last_row

    def test_files_appear_whole_and_in_order_in_the_folders_of_their_lanes(self, tmp_path: Path) -> None:
        steps = steps_of([100] * 6)
        write_files(steps, tmp_path / "prepared")
        for run in ("first", "second"):
            one, limits = tmp_path / run / "all", tmp_path / run / "limits"
            one.mkdir(parents=True)
            limits.mkdir()
            feeder = Feeder(tmp_path / "prepared", dict(zip(LANES, (limits, one, one), strict=True)))
            for step in steps:
                feeder.let_in(step)
            seen = sorted(one.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            assert [file.name[:6] for file in seen] == ["urgent", "normal"] * 6
            assert len({file.stat().st_mtime_ns // 1_000_000 for file in seen}) == 12  # Spark compares milliseconds
            assert [pq.read_table(file)["id"][0].as_py() // 100 for file in seen] == sorted([*range(6)] * 2)
            assert list(feeder.arrived) == list(range(6))
            assert len(list(limits.iterdir())) == 1

    def test_the_clock_is_kept_and_a_query_that_ended_is_noticed(self, tmp_path: Path) -> None:
        steps = steps_of([100] * 3)
        write_files(steps, tmp_path)
        folders = {lane: tmp_path / f"{lane}-seen" for lane in LANES}
        for folder in folders.values():
            folder.mkdir()
        feeder = Feeder(tmp_path, folders)
        late = list(feeder.by_the_clock(steps[:2], lambda: None))
        assert min(late) >= 0
        assert feeder.arrived[1] - feeder.arrived[0] >= STEP - late[0] - 1e-6

        def ended() -> None:
            raise BenchmarkError("the query has ended")

        with pytest.raises(BenchmarkError, match="ended"):
            list(feeder.by_the_clock(steps[2:], ended))
        assert 2 not in feeder.arrived


class TestModel:
    load = Load(steps=600, step=0.2, urgent=3, normal=297)  # 1,500 rows a second

    def test_a_lone_step_takes_one_micro_batch(self) -> None:
        left = modelled(0.5, 0.001, Load(1, 0.2, 10, 90), Policy(lanes=True, limit=1))
        assert left.urgent.tolist() == left.normal.tolist() == left.batches.tolist() == [0.5 + 0.001 * 100]
        assert left.drain == pytest.approx(0.4)

    def test_by_hand_urgent_steps_overtake_in_their_lane_only(self) -> None:
        load = Load(3, 1.0, 1, 1)
        # At 0 the first step; from 2 on all steps are there, and a limit takes them one by one.
        lanes = modelled(2.0, 0.0, load, Policy(lanes=True, limit=1))
        assert lanes.urgent.tolist() == [2.0, 3.0, 2.0]
        assert lanes.normal.tolist() == [2.0, 3.0, 4.0]
        limited = modelled(2.0, 0.0, load, Policy(lanes=False, limit=1))
        assert limited.urgent.tolist() == limited.normal.tolist() == [2.0, 3.0, 4.0]
        free = modelled(2.0, 0.0, load, Policy(lanes=False, limit=None))
        assert free.urgent.tolist() == [2.0, 3.0, 2.0]
        assert (lanes.drain, limited.drain, free.drain) == (3.0, 3.0, 1.0)

    def test_under_overload_lanes_wait_for_two_micro_batches_and_the_others_for_the_backlog(self) -> None:
        """1.5 times the largest throughput for two minutes, micro-batches of 1.5 s at most, in steps of 0.25 s. An
        independent model of the same gave 2.9 s, 34 times below no limit, and 70 times below one lane with the limit.
        """
        load = Load(steps=480, step=0.25, urgent=4, normal=371)
        ran = {
            policy: percentile(modelled(0.6, 0.001, load, policy).urgent, 99)
            for policy in (Policy(True, 2), Policy(False, 2), Policy(False, None))
        }
        lanes, limited, free = ran.values()
        assert 2.6 < lanes < 3.0
        assert 30 < free / lanes < 40
        assert 60 < limited / lanes < 80

    def test_nothing_is_lost_whatever_the_policy(self) -> None:
        for policy in (Policy(True, 4), Policy(False, 4), Policy(False, None)):
            left = modelled(0.3, 0.001, self.load, policy)
            assert (left.urgent > 0).all()
            assert (left.normal > 0).all()
            busy = 0.3 * len(left.batches) + 0.001 * 300 * 600
            assert left.batches.sum() == pytest.approx(busy)

    def test_micro_batches_of_equal_size_differ_and_urgent_rows_wait_longer_for_it(self) -> None:
        steady, several = (how(0.3, 0.001, self.load, Policy(True, 4)) for how in (modelled, drawn))
        assert len(several.urgent) == DRAWS * len(steady.urgent)
        full = steady.batches.max()
        assert 1.1 * full < percentile(several.batches, 99) < 1.4 * full
        assert percentile(steady.urgent, 99) < percentile(several.urgent, 99) < 1.4 * percentile(steady.urgent, 99)


def batch(began: float, seconds: float, urgent: Came | None, normal: Came | None, checksum: int = 7) -> LaneBatch:
    results = sum(came.count for came in (urgent, normal) if came)
    return LaneBatch(began, seconds, results, results, checksum, urgent, normal)


STEPS: list[Step] = steps_of([100] * 4)
BATCHES = (
    batch(0.0, 1.0, Came(0, 0, 1), Came(0, 0, 99)),
    batch(10.0, 2.0, Came(1, 2, 2), Came(1, 1, 99)),
    batch(12.0, 3.0, Came(3, 3, 1), Came(2, 3, 198)),
)


def run(label: str = "lanes", batches: tuple[LaneBatch, ...] = BATCHES) -> LaneRun:
    return LaneRun(label, batches, np.array([0.0, 10.0, 11.0, 12.0]), STEPS, 1, 0.01)


class TestWaits:
    def test_a_result_waits_from_its_arrival_to_the_end_of_its_micro_batch(self) -> None:
        assert run().latencies("urgent").tolist() == [2.0, 1.0, 3.0]
        assert run().latencies("normal").tolist() == [2.0, 4.0, 3.0]
        assert run().seconds == [2.0, 3.0]
        assert run().drain == 3.0
        assert run().digest == (400, 21)

    @pytest.mark.parametrize("change", ["one missing", "a step missing", "out of order", "the last missing"])
    def test_results_that_are_missing_are_noticed(self, change: str) -> None:
        first, second, third = BATCHES
        changed = {
            "one missing": (first, replace(second, urgent=Came(1, 2, 1)), third),
            "a step missing": (first, replace(second, urgent=Came(2, 2, 1)), third),
            "out of order": (first, third, second),
            "the last missing": (first, second),
        }[change]
        with pytest.raises(BenchmarkError, match="urgent results"):
            run(batches=changed).latencies("urgent")

    def test_percentiles_are_values_that_were_measured(self) -> None:
        assert percentile(range(1, 201), 99) == 198.0
        assert percentile([5.0], 99) == 5.0

    def test_different_results_are_not_compared(self) -> None:
        other = run("other", (*BATCHES[:2], replace(BATCHES[2], checksum=8)))
        check_same([run(), run("again", BATCHES[::-1])])
        with pytest.raises(UnequalResultsError, match="other: 400 results"):
            check_same([run(), other])

    def test_what_spark_told_becomes_a_micro_batch(self) -> None:
        told = {"began": 1.0, "seconds": 0.5, "rows": 9, "results": 2, "checksum": 3}
        none, two = {"first": None, "last": None, "count": 0}, {"first": 4, "last": 5, "count": 2}
        made = LaneBatch.of({**told, "urgent": none, "normal": two})
        assert (made.urgent, made.normal, made.ended) == (None, Came(4, 5, 2), 1.5)


def test_the_command_knows_its_options_and_refuses_no_time_at_all() -> None:
    """What it does with them needs Spark: `./sj bench lanes --quick`."""
    assert registry.COMMANDS["lanes"].names == ["overload", "task"]
    refused = CliRunner().invoke(app, ["bench", "lanes", "--quick", "--seconds", "0"])
    assert refused.exit_code == 2
    assert "--seconds" in refused.output


class TestOutcome:
    found = Calibration(large=200_000, throughput=100_000, a=0.6, b=8e-6, limit_rows=150_000)

    def outcome(self, *, slower: float = 100.0, model: float = 100.0) -> Outcome:
        late = tuple(replace(each, began=each.began + slower) for each in BATCHES[1:])
        others = {name: run(name, (BATCHES[0], *late)) for name in (LIMITED_RUN, FREE_RUN)}
        lanes = modelled(1.0, 0.0, Load(3, 0.2, 1, 1), Policy(True, 1))
        waits = replace(lanes, urgent=np.full(3, model * percentile(lanes.urgent, 99)))
        models = {LANES_RUN: lanes, LIMITED_RUN: waits, FREE_RUN: waits}
        return Outcome(self.found, 0.5, 7e-6, 0.6, {LANES_RUN: run(LANES_RUN), **others}, models, models)

    def test_the_limit_is_in_whole_steps_and_has_room_for_urgent_rows(self) -> None:
        # A step has 14,850 normal rows, and 1,800 urgent ones arrive in 1.2 s.
        assert self.found.limit == 9
        assert replace(self.found, limit_rows=1_800 + 10 * 14_850).limit == 10
        assert replace(self.found, limit_rows=10).limit == 1

    def test_an_overload_that_is_none_is_told(self) -> None:
        assert not replace(self.outcome(), b=6e-6).verdicts[0].met

    def test_the_model_is_asked_with_what_the_micro_batches_of_the_runs_took(self) -> None:
        small, large = (
            tuple(replace(batch, rows=rows, seconds=0.4 + 0.002 * rows) for batch in BATCHES) for rows in (100, 900)
        )
        assert straight([run(LANES_RUN, small), run(FREE_RUN, large)]) == pytest.approx((0.4, 0.002))
        early = tuple(replace(each, seconds=each.seconds - 0.5) for each in small)
        assert straight([run(LANES_RUN, early), run(FREE_RUN, large)]) == (0.0, pytest.approx(0.00244, rel=0.01))

    def test_verdicts(self) -> None:
        overload, median, times, limited, free = self.outcome().verdicts
        # A large micro-batch takes 0.5 + 0.000007 * 200,000 = 1.9 s, in which 1.5 * 190,000 rows came.
        assert (overload.measured, overload.met) == (pytest.approx(1.425), True)
        assert (median.measured, median.met) == (2.5, False)
        assert (times.measured, times.met) == (1.0, True)
        assert limited.measured == free.measured == pytest.approx(103 / 3)
        assert limited.target == free.target == 20.0
        assert limited.met

    def test_a_machine_that_cannot_gain_as_much_is_held_to_its_model(self) -> None:
        missed = self.outcome(slower=20, model=10).verdicts[3]
        assert (missed.target, missed.met) == (pytest.approx(8.0), False)
        assert self.outcome(slower=22, model=10).verdicts[3].met

    def test_the_report_shows_all_three_and_the_plot_all_lines(self, tmp_path: Path) -> None:
        made = self.outcome()
        assert report.table_of(made).row_count == 6
        drawn = report.plot_of(made).svg()
        for name, kind, _ in report.LINES:
            assert f"{kind}: {name}" in drawn
        assert made.to_json()["runs"][LANES_RUN]["checksum"] == f"{21:016x}"
        assert (made.to_json()["a"], made.to_json()["b"]) == (0.5, 7e-6)


def test_urgent_results_of_a_task_leave_before_the_others_and_nothing_else_changes() -> None:
    outcome = task.measure(task.Effort(rows=3_000, share=0.05, batches=4, rounds=1), lambda _: None)
    plain, waves = outcome.took[task.PLAIN], outcome.took[task.WAVES]
    assert [each.digest for each in plain] == [each.digest for each in waves]
    assert task.total(waves).count == sum(each.digest.count for each in waves) > 0
    assert all(each.left for each in waves)
    assert not any(each.left for each in plain)
    for each in plain + waves:
        assert 0 < each.saving < each.task
        assert 0 < each.joins < each.task - each.saving
    for whole in task.WHOLES:
        assert 0 < min(outcome.last(whole)) <= max(outcome.last(whole)) < 1
    assert outcome.last("task") < outcome.last("without saving")
    assert [verdict.target for verdict in outcome.verdicts] == [0.6, 1.1]
    told = outcome.to_json()
    assert told["marks"]["task"].keys() == {"mean", "p50", "p90", "p99", "last", "latest"}
    assert told["marks"].keys() == {"task", "without saving", "joins"}
    assert len(told["costs"]) == len(told["left"]["plain"]["saving"]) == 2
    assert len(task.table_of(outcome).rows) == 6


def took(seconds: float, *left: float) -> task.Took:
    """A task in which each result leaves at this second; a tenth of it is saving, and half are joins."""
    return task.Took(seconds, seconds / 10, seconds / 2, tuple((at, at / 2, 1) for at in left), Digest(1, 1, 1, 1))


def test_of_a_task_counts_the_median_of_micro_batches_each_beside_itself() -> None:
    waves = [took(10, 1, 5), took(11, 1, 5.5), took(22, 2, 20)]
    outcome = task.Outcome(task.QUICK, {task.PLAIN: [took(10), took(10), took(10)], task.WAVES: waves})
    assert outcome.last() == pytest.approx([0.5, 0.5, 20 / 22])
    assert outcome.last("without saving")[0] == pytest.approx(5 / 9)
    assert outcome.last("joins")[0] == pytest.approx(0.5)
    left, cost = outcome.verdicts
    assert (left.measured, left.met) == (pytest.approx(0.5), True), "not what the noisiest one says"
    assert "the latest of 3 micro-batches at 91%" in left.text
    assert (cost.measured, cost.met) == (pytest.approx(1.1), True)
    late = task.Outcome(task.QUICK, {task.PLAIN: [took(10)] * 2, task.WAVES: [took(12, 8)] * 2})
    assert [verdict.met for verdict in late.verdicts] == [False, False]


def test_a_task_that_gives_other_results_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    real = task.Way.take

    def lossy(self: task.Way, batch: dict[str, pa.Table]) -> task.Took:
        return real(self, batch if self.bucket.urgent is None else {name: batch[name].slice(2_000) for name in batch})

    monkeypatch.setattr(task.Way, "take", lossy)
    with pytest.raises(UnequalResultsError, match="priorities changed the results"):
        task.measure(task.Effort(rows=3_000, batches=4, rounds=1), lambda _: None)


@pytest.mark.usefixtures("own_cache")
def test_a_task_leaves_nothing_on_its_host() -> None:
    before = set(bucket._remembered)
    task.measure(task.Effort(rows=500, batches=2, rounds=1), lambda _: None)
    assert not list(cache_root().iterdir())
    assert set(bucket._remembered) <= before


@pytest.mark.usefixtures("own_cache")
def test_a_task_whose_state_was_forgotten_is_not_measured() -> None:
    way, effort = task.Way(task.PLAIN), task.Effort(rows=500)
    way.take(task.micro_batch(effort, 0))
    bucket.forget_all()
    with pytest.raises(BenchmarkError, match="forgotten between micro-batches"):
        way.take(task.micro_batch(effort, 1))
