"""The experiments of the documents, each at its smallest; and the Window Algorithm in cases made by hand."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import sweep, window_algorithm
from benchmarks.errors import BenchmarkError
from benchmarks.priority_room.claims import CLAIMS
from benchmarks.reproduce import best_inputs, prio_reasons, qjoin_rivals, qjoin_sweep, running, sweep_pages
from benchmarks.reproduce.best_inputs import Answer
from benchmarks.reproduce.best_window import WAYS, Faults
from benchmarks.reproduce.documents import BEST, DOCUMENTS
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings
from benchmarks.window_algorithm import AS_PRINTED, CORRECTED, Joined, WindowAlgorithm, nested_loops
from streamjoin.cli import app


def rows(*values: float) -> np.ndarray:
    """A table of one dimension."""
    return np.array(values, np.float64).reshape(-1, 1)


def joined(left: np.ndarray, right: np.ndarray, epsilon: float, **corrections: bool) -> Joined:
    return WindowAlgorithm(left, right, (epsilon,), replace(CORRECTED, **corrections)).run()


class TestWindowAlgorithm:
    def test_the_examples_of_its_docstrings(self) -> None:
        assert doctest.testmod(window_algorithm).failed == 0
        assert doctest.testmod(best_inputs).failed == 0

    def test_all_four_cases_are_taken(self) -> None:
        cases = joined(rows(0, 1, 9, 10), rows(1, 9), 2).cases
        assert all(cases[case] for case in (1, 2, 3, 4)), cases

    def test_a_better_pair_pushes_an_earlier_one_out_of_the_buffer(self) -> None:
        found = joined(rows(5), rows(3, 4, 6), 2)
        assert found.pairs == [(0, 1), (0, 2)]
        assert (found.most_buffered, found.pushed_out) == (2, 0)  # 3 and 4 come together
        found = joined(rows(5), rows(3, 6), 2)
        assert found.pairs == [(0, 1)]
        assert found.pushed_out == 1

    def test_rows_leave_in_the_order_of_the_left_input_unmatched_ones_too(self) -> None:
        found = joined(rows(0, 50, 51, 99), rows(0, 51, 100), 2)
        assert found.pairs == [(0, 0), (1, 1), (2, 1), (3, 2)]
        unmatched = joined(rows(0, 50, 99), rows(0, 100), 2)
        assert unmatched.results == [(0, 0), (1, None), (2, 1)]
        assert unmatched.in_order
        assert not Joined([(1, None), (0, 0)]).in_order

    def test_a_pair_that_leaves_twice_is_a_fault_and_so_is_another_order(self) -> None:
        truth = Answer.of(Joined([(0, 0), (1, None)]))
        for wrong, count in (
            (Joined([(0, 0), (0, 0), (1, None)]), "again"),
            (Joined([(1, None), (0, 0)]), "unordered"),
            (Joined([(0, 0), (1, None), (1, None)]), "padded_too"),
        ):
            faults = Faults()
            faults.add(truth, wrong)
            assert (faults.wrong, vars(faults)[count]) == (1, 1), count
        faults = Faults()
        faults.add(truth, Joined([(0, 0), (1, None)]))
        assert faults.wrong == 0

    def test_without_its_start_right_rows_below_zero_are_lost_for_left_rows_above(self) -> None:
        assert joined(rows(1), rows(-1), 2).pairs == [(0, 0)]
        assert joined(rows(1), rows(-1), 2, start=False).pairs == []

    def test_without_its_start_a_left_input_that_begins_below_zero_goes_well_all_the_same(self) -> None:
        # The first windows stay empty, and its fourth case begins where the corrected algorithm does.
        left, right = rows(-5, 3), rows(-6, 3)
        assert joined(left, right, 2).pairs == [(0, 0), (1, 1)]
        assert joined(left, right, 2, start=False).pairs == [(0, 0), (1, 1)]

    def test_without_throwing_away_a_right_row_that_never_fits_blocks_all_behind_it(self) -> None:
        left, right = rows(0, 20), rows(10, 20)
        assert joined(left, right, 2).pairs == [(1, 1)]
        assert joined(left, right, 2, throw_away=False).pairs == []

    def test_without_differences_the_bounds_can_stand_still_for_ever(self) -> None:
        # 5.2 - 1.1 + 1.1 is less than 5.2, so the next row does not fit into the window that was made for it.
        left, right = rows(4.8, 5.2), rows(5.2)
        assert (5.2 - 1.1) + 1.1 < 5.2
        assert joined(left, right, 1.1).pairs == [(0, 0), (1, 0)]
        found = joined(left, right, 1.1, differences=False)
        assert found.stuck
        assert (1, 0) not in found.pairs

    def test_as_printed_nothing_is_said_of_unmatched_rows(self) -> None:
        found = WindowAlgorithm(rows(1, 50), rows(1), (2.0,), AS_PRINTED).run()
        assert (found.pairs, found.padded) == ([(0, 0)], [])

    @pytest.mark.parametrize("kind", best_inputs.KINDS)
    def test_oracle_corrected_it_is_the_definition_and_so_is_ours(self, kind: best_inputs.Kind) -> None:
        for seed in range(1000, 1010):
            inputs = best_inputs.draw(kind, seed, 30)
            tables = inputs.left, inputs.right, inputs.epsilons
            truth = Answer.of(nested_loops(*tables))
            found = WindowAlgorithm(*tables).run()
            assert Answer.of(found) == truth, (kind, seed)
            assert found.in_order, (kind, seed)
            assert best_inputs.by_our_operator(*tables) == truth, (kind, seed)

    def test_what_begins_at_zero_goes_wrong_only_where_the_right_side_is_below(self) -> None:
        wrong = dict.fromkeys(best_inputs.KINDS, 0)
        for kind in best_inputs.KINDS:
            for seed in range(20):
                inputs = best_inputs.draw(kind, seed, 40)
                tables = inputs.left, inputs.right, inputs.epsilons
                found = WindowAlgorithm(*tables, WAYS["begins at [0, epsilon]"]).run()
                wrong[kind] += Answer.of(found) != Answer.of(nested_loops(*tables))
        assert wrong.pop("right below") > 0
        assert not any(wrong.values()), wrong


class TestExperiments:
    def test_every_document_has_some_and_they_take_at_most_forty_minutes(self) -> None:
        assert {each.document for each in running.EXPERIMENTS} == set(DOCUMENTS)
        assert sum(each.minutes for each in running.EXPERIMENTS) <= 40
        assert len({each.name for each in running.EXPERIMENTS}) == len(running.EXPERIMENTS)

    @pytest.mark.compiled
    @pytest.mark.parametrize("experiment", running.EXPERIMENTS, ids=lambda each: each.name)
    def test_it_runs_and_its_checks_hold(self, experiment: Experiment, tmp_path: Path) -> None:
        findings = experiment.measure(Effort(True, tmp_path, lambda _: None))
        assert [check.words for check in findings.checks if not check.held] == []
        assert findings.checks
        assert findings.lines
        assert all(line.claim and line.measured for line in findings.lines)
        assert findings.plots
        for plot in findings.plots:
            assert plot.spec["$schema"], plot.title
            assert all(line.points for line in plot.lines), plot.title
        json.dumps(findings.figures)


class TestReasons:
    """What the page says changes with what was measured."""

    def test_the_examples_of_its_docstrings(self) -> None:
        assert doctest.testmod(prio_reasons).failed == 0

    def test_a_reason_of_long_queues_is_not_given_where_the_claim_holds_with_longer_ones(self) -> None:
        words = "priorities 8, 9 and 10 do not differ (direct, weak)"
        assert "higher load" in prio_reasons.by_load(words, [1.2], [0.7, 0.9, 1.0])
        assert prio_reasons.by_load(words, [0.9], [0.7, 1.0, 1.2]) == ""
        assert prio_reasons.by_load("one sorted list: latencies multiply", [0.7, 1.2], []) == ""

    def test_every_reason_belongs_to_a_claim(self) -> None:
        words = [claim.words for claim in CLAIMS]
        for begin in {**prio_reasons.BELOW, **prio_reasons.ABOVE}:
            assert sum(each.startswith(begin) for each in words) == 1, begin

    @pytest.mark.parametrize(
        ("waits", "verdict", "why"), [(10.0, "yes", ""), (100.0, "no", "More"), (0.6, "no", "Less")]
    )
    def test_a_gain_above_or_below_the_documents_is_not_the_same(self, waits: float, verdict: str, why: str) -> None:
        found = {"kept": [(0.9, 40.0)], "k_slack": 100.0, "waits": waits, "ours": 0.5, "slack": 9.0, "window": 2.0}
        latency, memory = qjoin_rivals._lines("D1", found)
        assert latency.verdict == verdict
        assert latency.why.startswith(why)
        assert memory.verdict == "yes"
        assert [line.verdict for line in qjoin_rivals._lines("exp", found)] == ["not claimed", "not claimed"]

    @pytest.mark.parametrize(
        ("swept", "finer", "wider", "why"),
        [
            ("P", 120.0, 100.0, "P says over how long"),
            ("P", 100.0, 120.0, "P = 30 s keeps no more than P = 90 s"),
            ("P", 100.0, 101.0, "No difference to speak of"),
            ("g", 100.0, 120.0, "Needs are counted pair by pair"),
            ("g", 120.0, 100.0, "A wider step keeps less"),
        ],
    )
    def test_why_rows_are_kept_depends_on_where_they_are_fewest(
        self, swept: str, finer: float, wider: float, why: str
    ) -> None:
        least, most = (30.0, 90.0) if swept == "P" else (0.001, 0.1)
        found = {"P": {}, "L": {}, "g": {}} | {swept: {"0.9": [(least, finer), (most, wider)]}}
        (line,) = qjoin_sweep._lines(found)
        assert line.verdict == "no"
        assert line.why.startswith(why)

    def test_a_count_that_no_chance_explains_is_not_explained_by_chance(self) -> None:
        counts = dict.fromkeys(sweep.DOCUMENT, 1)
        for count, why in ((sweep.EXPECTED, "random permutations"), (300_000, "why is not known")):
            assert why in sweep_pages._results(count).why
        assert all("None of the four" in line.why for line in sweep_pages._accesses(counts))
        first = next(iter(counts))
        one_near = sweep_pages._accesses(counts | {first: sweep.DOCUMENT[first]})
        assert [line.verdict for line in one_near] == ["yes", "no", "no", "no"]
        assert "1 of them are within 10%" in one_near[1].why


def one_experiment(findings: Findings | Exception) -> Experiment:
    def measure(_: Effort) -> Findings:
        if isinstance(findings, Exception):
            raise findings
        return findings

    return Experiment("best-made-up", BEST, "nowhere", "Made up", measure)


class TestRunning:
    def run(
        self, monkeypatch: pytest.MonkeyPatch, path: Path, *experiments: Experiment, quick: bool = False
    ) -> tuple[bool, str]:
        monkeypatch.setattr(running, "EXPERIMENTS", experiments)
        printed = StringIO()
        return running.run(Console(file=printed, width=160), quick=quick, only=[], to=path), printed.getvalue()

    def test_the_page_has_claims_beside_what_was_measured_and_why_they_differ(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        lines = [Finding("as fast", "1.0 times"), Finding("< 5", "7", "It is the <moon>.")]
        lines.append(Finding("more", "9", claimed=False))
        made = one_experiment(
            Findings(lines, checks=[Check("equal", True)], shortened="By half.", different="A clock.")
        )
        held, printed = self.run(monkeypatch, tmp_path / "page.html", made)
        page = (tmp_path / "page.html").read_text()
        assert held
        assert "1 of 2 claims as in the document" in printed
        assert "&lt; 5" in page
        assert "It is the &lt;moon&gt;." in page
        assert "By half." in page
        assert "Different: A clock." in page
        found = json.loads((tmp_path / "page.json").read_text())["experiments"]["best-made-up"]
        assert [line["agrees"] for line in found["findings"]] == [True, False, False]

    def test_a_check_that_fails_or_an_experiment_that_cannot_go_on_is_said_and_others_run(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        failed = one_experiment(Findings([Finding("a", "b")], checks=[Check("both agree", False)]))
        broken = one_experiment(BenchmarkError("nothing is there"))
        unforeseen = one_experiment(ValueError("not in [/0, 1]"))
        held, printed = self.run(monkeypatch, tmp_path / "page.html", broken, unforeseen, failed)
        assert not held
        assert "nothing is there" in printed
        assert "not in [/0, 1]" in printed
        assert "does not hold: both agree" in printed
        assert "DOES NOT HOLD: both agree" in (tmp_path / "page.html").read_text()

    def test_a_quick_run_explains_nothing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        made = one_experiment(Findings([Finding("as fast", "half", "It is slow.")]))
        self.run(monkeypatch, tmp_path / "page.html", made, quick=True)
        page = (tmp_path / "page.html").read_text()
        assert "It is slow." not in page
        assert running.TOO_SMALL in page

    def test_experiments_are_chosen_by_name_or_by_document(self) -> None:
        assert [each.name for each in running.chosen(["best", "life-share"])] == [
            "life-share", "best-window", "best-cost",
        ]  # fmt: skip
        refused = CliRunner().invoke(app, ["reproduce", "--only", "worst"])
        assert refused.exit_code == 1
        assert "there is no experiment 'worst'. Hint: choose from SWEEP" in " ".join(refused.output.split())
