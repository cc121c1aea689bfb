"""The benchmarks' own rules. No peers are installed or started here; `./sj bench kernels --quick` does that."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import growth, workloads
from benchmarks.contenders import ours
from benchmarks.digest import Digest, digest_of
from benchmarks.environments import ROOT, requirements_of
from benchmarks.errors import BenchmarkError, ContenderError, UnequalResultsError
from benchmarks.race import Contender, check_one_core, judge, race, ratio
from benchmarks.worker import Measurement, Worker
from benchmarks.workloads import Workload
from streamjoin.cli import app, checkout

QUESTIONS = ("overlap", "band", "within", "validity")


def brute_force(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a small workload, by its definition in `workloads.py`."""
    a = {name: column[:, None] for name, column in workload.left.items()}
    b = {name: column[None, :] for name, column in workload.right.items()}
    if workload.name == "overlap":
        match = (a["lo"] < b["hi"]) & (b["lo"] < a["hi"])
    elif workload.name == "band":
        match = abs(b["x"] - a["x"]) <= workload.bounds["reach"]
    elif workload.name == "within":
        match = (b["x"] - a["x"]) ** 2 + (b["y"] - a["y"]) ** 2 <= workload.bounds["radius"] ** 2
    else:
        match = (a["key"] == b["key"]) & (a["ts"] < b["te"]) & (b["ts"] < a["te"])
    i, j = np.nonzero(match)
    return workload.left["id"][i], workload.right["id"][j]


class TestWorkloads:
    @pytest.mark.parametrize("name", QUESTIONS)
    def test_the_same_call_gives_the_same_data(self, name: str) -> None:
        one, two = workloads.make(name, 500), workloads.make(name, 500)
        assert one.bounds == two.bounds
        for side in ("left", "right"):
            for column, values in getattr(one, side).items():
                np.testing.assert_array_equal(values, getattr(two, side)[column])

    def test_sides_and_sizes_differ(self) -> None:
        small, large = workloads.make("band", 500), workloads.make("band", 1000)
        assert not np.array_equal(small.left["x"], small.right["x"])
        assert not np.array_equal(small.left["x"], large.left["x"][:500])

    @pytest.mark.parametrize("name", QUESTIONS)
    @pytest.mark.parametrize("per_row", [1, 10])
    def test_pairs_per_row_are_as_declared_at_every_size(self, name: str, per_row: int) -> None:
        for rows in (1000, 2000):
            found = len(brute_force(workloads.make(name, rows, per_row))[0])
            assert found / rows == pytest.approx(per_row, rel=0.15)

    def test_written_and_read_again(self, tmp_path: Path) -> None:
        made = workloads.make("within", 100)
        made.write(tmp_path / "data")
        read = Workload.read(tmp_path / "data")
        assert (read.name, read.bounds, len(read)) == ("within", made.bounds, 100)
        assert list(read.left) == sorted(made.left)
        np.testing.assert_array_equal(read.right["y"], made.right["y"])

    @pytest.mark.parametrize("name", QUESTIONS)
    def test_oracle_our_contender_finds_the_declared_pairs(self, name: str) -> None:
        workload = workloads.make(name, 1000)
        assert digest_of(ours._QUESTIONS[name](workload)) == digest_of([brute_force(workload)])


class TestDigest:
    v, w = np.arange(1000), np.arange(1000) * 7 % 1000

    def test_neither_order_nor_cut_matters(self) -> None:
        order = np.random.default_rng(1).permutation(1000)
        cut = [
            (self.v[order][start : start + 300], self.w[order][start : start + 300]) for start in range(0, 1000, 300)
        ]
        assert digest_of(cut) == digest_of([(self.v, self.w)])

    def test_nothing_found_is_a_digest_too(self) -> None:
        assert digest_of([]) == Digest(0, 0, 0, 0)

    @pytest.mark.parametrize("change", ["partners swapped", "sides swapped", "one missing", "one twice", "one value"])
    def test_any_other_result_is_noticed(self, change: str) -> None:
        v, w = self.v.copy(), self.w.copy()
        if change == "partners swapped":
            w[[3, 5]] = w[[5, 3]]
        elif change == "sides swapped":
            v, w = w, v
        elif change == "one missing":
            v, w = v[1:], w[1:]
        elif change == "one twice":
            v[1], w[1] = v[0], w[0]
        else:
            w[8] += 1
        assert digest_of([(v, w)]).pairs != digest_of([(self.v, self.w)]).pairs

    def test_columns_of_different_length_are_refused(self) -> None:
        with pytest.raises(ValueError, match="equally long"):
            digest_of([(self.v, self.w[1:])])

    def test_an_aggregate_is_compared_by_what_it_knows(self) -> None:
        full = digest_of([(self.v, self.w)])
        assert Digest(1000).agrees_with(full)
        assert Digest(1000, None, full.left, full.right).agrees_with(full)
        assert not Digest(999).agrees_with(full)
        assert not Digest(1000, None, full.left, 0).agrees_with(full)


SAME = Digest(2, 77)


def contender(
    label: str, *seconds: float, digest: Digest = SAME, equal_work: bool = True, at_most: int | None = None
) -> Contender:
    times = itertools.cycle(seconds)
    return Contender(label, lambda: Measurement(next(times), 0.5, 0.0, digest), equal_work, at_most)


class TestRace:
    def test_contenders_take_turns_and_the_first_round_does_not_count(self) -> None:
        turns: list[str] = []

        def entrant(label: str) -> Contender:
            def run() -> Measurement:
                turns.append(label)
                return Measurement(len(turns), 0.0, 0.0, SAME)

            return Contender(label, run)

        entrants = [entrant("a"), entrant("b")]
        race(entrants, 2)
        assert turns == ["a", "b"] * 3
        assert [entrant.seconds for entrant in entrants] == [[3, 5], [4, 6]]

    def test_a_slow_one_runs_as_often_as_it_says_and_every_run_counts(self) -> None:
        ours, slow = contender("ours", 1, 2, 3, 4), contender("slow", 60, 80, 99, at_most=2)
        race([ours, slow], 3)
        assert (ours.seconds, slow.seconds) == ([2, 3, 4], [60, 80])
        assert judge("asof", ours, [slow], 10).measured == 70 / 3

    def test_a_slow_one_must_deliver_the_same_in_its_only_run(self) -> None:
        with pytest.raises(UnequalResultsError, match="slow"):
            race([contender("ours", 1), contender("slow", 60, digest=Digest(2, 78), at_most=1)], 5)

    def test_the_verdict_is_by_the_best_median(self) -> None:
        ours, slow, fast = contender("ours", 1, 9, 1), contender("slow", 5), contender("fast", 3, 2, 99)
        race([ours, slow, fast], 3)
        verdict = judge("band", ours, [slow, fast], 1.5)
        assert (verdict.measured, verdict.met) == (3.0, True)
        assert "fast" in verdict.text

    def test_a_loss_is_a_verdict_like_a_win(self) -> None:
        ours, peer = contender("ours", 2), contender("peer", 1)
        race([ours, peer], 5)
        verdict = judge("band", ours, [peer], 1.5)
        assert (verdict.measured, verdict.met) == (0.5, False)

    def test_who_only_aggregates_is_never_the_best_peer(self) -> None:
        ours, peer = contender("ours", 1), contender("peer", 4)
        aggregate = contender("peer, aggregate only", 2, digest=Digest(2), equal_work=False)
        race([ours, peer, aggregate], 1)
        assert judge("band", ours, [peer, aggregate], 1.5).measured == 4.0
        assert ratio(ours, aggregate) == 2.0

    @pytest.mark.parametrize("other", [Digest(3, 77), Digest(2, 78), Digest(2, None)])
    def test_unequal_results_end_the_race(self, other: Digest) -> None:
        with pytest.raises(UnequalResultsError, match="peer"):
            race([contender("ours", 1), contender("peer", 2, digest=other)], 5)

    def test_an_aggregate_must_agree_too(self) -> None:
        with pytest.raises(UnequalResultsError, match="aggregate"):
            race([contender("ours", 1), contender("aggregate", 2, digest=Digest(3), equal_work=False)], 5)

    def test_there_is_no_ratio_of_unequal_results(self) -> None:
        ours, peer = contender("ours", 1), contender("peer", 2, digest=Digest(2, 78))
        ours.repeat(counted=True)
        peer.repeat(counted=True)
        for refused in (lambda: ratio(ours, peer), lambda: judge("band", ours, [peer], 1.5)):
            with pytest.raises(UnequalResultsError, match="cannot be compared"):
                refused()

    def test_there_is_no_ratio_without_a_result(self) -> None:
        with pytest.raises(UnequalResultsError, match="not both delivered"):
            ratio(contender("ours", 1), contender("peer", 2))

    def test_more_than_one_core_is_noticed(self) -> None:
        ours, peer = contender("ours", 1), contender("peer", 0.25)
        race([ours, peer], 1)
        check_one_core([ours])
        with pytest.raises(BenchmarkError, match=r"peer was to use one thread, but kept 2\.00 cores busy"):
            check_one_core([ours, peer])

    def test_a_contender_must_repeat_itself(self) -> None:
        digests = iter([Digest(2, 77), Digest(2, 78)])
        moody = Contender("moody", lambda: Measurement(1.0, 0.0, 0.0, next(digests)))
        moody.repeat(counted=True)
        with pytest.raises(UnequalResultsError, match="the next time"):
            moody.repeat(counted=True)


class TestGrowth:
    def test_the_prediction_is_a_little_more_than_twice(self) -> None:
        for rows in (1000, 62_500, 1_000_000):
            assert 2.0 < growth.cost(2 * rows, 20 * rows) / growth.cost(rows, 10 * rows) < 2.2

    @pytest.mark.parametrize(("power", "met"), [(1.0, True), (1.1, True), (2.0, False)])
    def test_the_verdict_tells_linear_from_quadratic(self, power: float, met: bool) -> None:
        rows = [1000 << doubling for doubling in range(6)]
        contenders = [contender(str(size), size**power, digest=Digest(10 * size, 1)) for size in rows]
        for entrant in contenders:
            entrant.repeat(counted=True)
        assert growth.GrowthOutcome("band", rows, contenders).verdict.met == met


class TestPeers:
    def test_what_the_file_asks_for_is_pinned_and_has_no_address(self) -> None:
        text = (ROOT / "benchmarks" / "peers.txt").read_text()
        names = {line.split("==")[0] for line in requirements_of(text)}
        assert names == {"duckdb", "ncls", "numpy", "polars", "pyarrow", "scipy"}
        assert "://" not in text

    def test_a_version_that_is_not_pinned_is_refused(self) -> None:
        with pytest.raises(BenchmarkError, match="pinned, got 'polars'"):
            requirements_of("duckdb==2.0.0  # good\npolars\n")


class TestWorker:
    def test_a_contender_is_asked_repetition_by_repetition(self, tmp_path: Path) -> None:
        workload = workloads.make("overlap", 300)
        workload.write(tmp_path / "data")
        with Worker(sys.executable, "benchmarks.contenders.ours", ROOT) as worker:
            assert worker.load("some", tmp_path / "data") == (["pairs"], {})
            runs = [worker.run("some", "pairs") for _ in range(2)]
            with pytest.raises(ContenderError, match="KeyError: 'other'"):
                worker.run("other", "pairs")
        assert {run.digest for run in runs} == {digest_of([brute_force(workload)])}
        assert all(run.seconds > 0 for run in runs)

    def test_a_contender_that_dies_says_why(self, tmp_path: Path) -> None:
        with (
            Worker(sys.executable, "benchmarks.contenders.nobody", ROOT) as worker,
            pytest.raises(ContenderError, match=r"No module named benchmarks\.contenders\.nobody"),
        ):
            worker.load("some", tmp_path)


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--only", "overlap,bend"], "no question 'bend'"),
            (["--repetitions", "4"], "at least 5 repetitions, got 4"),
        ],
    )
    def test_a_wrong_call_is_one_sentence(self, arguments: list[str], message: str) -> None:
        result = CliRunner().invoke(app, ["bench", "kernels", *arguments])
        assert result.exit_code == 1
        assert message in result.output

    def test_outside_a_checkout_it_says_where_to_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(checkout, "__file__", str(tmp_path / "lib" / "streamjoin" / "cli" / "checkout.py"))
        result = CliRunner().invoke(app, ["bench", "kernels"])
        assert result.exit_code == 2
        assert "run ./sj bench in a checkout" in result.output
