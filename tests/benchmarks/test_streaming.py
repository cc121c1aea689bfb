"""The streaming benchmark's own rules, without a JVM. `./sj bench streaming --quick` runs the contenders themselves."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from benchmarks import streaming, streaming_peers, streaming_tables
from benchmarks.contenders import spark_query, stream_floor
from benchmarks.contenders.spark_end import ended
from benchmarks.digest import digest_of
from benchmarks.environments import ROOT, requirements_of
from benchmarks.errors import BenchmarkError, ContenderError, UnequalResultsError
from benchmarks.micro_batches import StreamRun, check_as_many, check_rows, speed_up
from benchmarks.one_shot import ask
from benchmarks.streaming import OURS, Track
from benchmarks.streams import COLUMNS, REACH, SIDES, Kind, Stream, link_batches, usual_step, write_csv, write_parquet
from streamjoin.cli import app

KINDS = tuple(COLUMNS)


def side(stream: Stream, number: int) -> dict[str, np.ndarray]:
    table = pa.concat_tables(stream.tables(number))
    return {
        name: (table["ts"].cast(pa.int64()) if name == "ts" else table[name]).to_numpy() for name in table.column_names
    }


def brute_force(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a small stream, by its definition in `streams.py`, with the bound on time included."""
    a = {name: column[:, None] for name, column in side(stream, 0).items()}
    b = {name: column[None, :] for name, column in side(stream, 1).items()}
    match = abs(b["ts"] - a["ts"]) <= stream.bound_seconds * 1_000_000
    if stream.kind == "equality":
        match &= a["k"] == b["k"]
    elif stream.kind == "band":
        match &= abs(b["x"] - a["x"]) <= REACH
    elif stream.kind == "overlap":
        match &= (a["lo"] < b["hi"]) & (b["lo"] < a["hi"])
    else:
        match &= (b["x"] - a["x"]) ** 2 + (b["y"] - a["y"]) ** 2 <= REACH**2
    i, j = np.nonzero(match)
    return a["p"][i, 0], b["p"][0, j]


class TestStreams:
    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "asof"])  # there a row always finds one
    @pytest.mark.parametrize("bound", [2, 20])
    def test_a_row_finds_about_one_partner_whatever_the_bound(self, kind: Kind, bound: int) -> None:
        stream = Stream(kind, 400, 20, usual_step(400), bound)  # 200 s: the rows at both ends hardly count
        found = len(brute_force(stream)[0])
        assert found / 4000 == pytest.approx(1, rel=0.15)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_longer_stream_begins_like_a_shorter_one(self, kind: Kind) -> None:
        short, long = (list(Stream(kind, 80, batches, 1000).tables(0)) for batches in (2, 3))
        assert long[: len(short)] == short

    def test_sides_kinds_and_sizes_differ(self) -> None:
        keys = [
            side(stream, number)["k"].tolist()
            for number in (0, 1)
            for stream in (Stream("equality", 400, 1, 1000), Stream("equality", 400, 1, 1000, 20))
        ]
        assert all(one != other for place, one in enumerate(keys) for other in keys[:place])

    def test_a_usual_micro_batch_spans_ten_seconds(self) -> None:
        assert usual_step(1_000_000) == 20
        assert Stream("equality", 1_000_000, 1, 20).in_bound == 200_000
        assert Stream("equality", 1_000_000, 1, 20, 200).in_bound == 20_000_000

    def test_files_arrive_in_order_and_hold_a_micro_batch(self, tmp_path: Path) -> None:
        stream = Stream("within", 400, 3, 1000)
        write_parquet(stream, tmp_path)
        for name in SIDES:
            files = sorted((tmp_path / name).iterdir(), key=lambda file: file.stat().st_mtime)
            assert [file.name for file in files] == [f"{number:04d}.parquet" for number in range(6)]
            numbers = [p for file in files for p in pq.read_table(file)["p"].to_pylist()]
            assert numbers == list(range(600))

    def test_some_micro_batches_of_a_stream_are_linked(self, tmp_path: Path) -> None:
        write_parquet(Stream("band", 400, 3, 1000), tmp_path / "all")
        some = link_batches(tmp_path / "all", 2, tmp_path / "some")
        for name in SIDES:
            files = sorted((some / name).iterdir())
            assert [file.name for file in files] == [f"{number:04d}.parquet" for number in range(4)]
            assert all(file.samefile(tmp_path / "all" / name / file.name) for file in files)

    def test_both_forms_of_csv_have_the_same_rows(self, tmp_path: Path) -> None:
        write_csv(Stream("equality", 400, 2, 300), tmp_path)
        for name in SIDES:
            several = pa.concat_tables(pa.csv.read_csv(file) for file in sorted((tmp_path / name).iterdir()))
            options = pa.csv.ReadOptions(column_names=list(COLUMNS["equality"]))
            assert pa.csv.read_csv(tmp_path / f"{name}.csv", read_options=options).equals(several.combine_chunks())
            assert several["ts"].to_numpy()[4] - several["ts"].to_numpy()[0] == 1, "times are milliseconds"


def described(*seconds: float, rows: int = 1000, results: int = 500, checksum: int = 7) -> list[dict[str, Any]]:
    """What a contender answers."""
    return [
        {"rows": rows, "seconds": value, "parts": {"addBatch": value / 2}, "results": results, "checksum": checksum}
        for value in seconds
    ]


def a_run(label: str, *seconds: float, cold: int | None = None, **options: int) -> StreamRun:
    return StreamRun.of(label, described(*seconds, **options), cold)


class TestMicroBatches:
    def test_the_later_half_counts_by_the_median(self) -> None:
        run = a_run("ours", 90, 80, 2, 1, 4)
        assert run.seconds == [2, 1, 4]
        assert (run.median, run.throughput) == (2, 500)
        assert run.mean_throughput == pytest.approx(3000 / 7)
        assert run.part("addBatch") == 1

    def test_what_counts_can_be_said(self) -> None:
        assert a_run("ours", 9, 9, 9, 9, 2, cold=4).seconds == [2]

    @pytest.mark.parametrize(("seconds", "cold"), [((1,), None), ((1, 1), 2), ((1, 1), 0)])
    def test_a_run_without_warm_up_or_without_more_is_refused(self, seconds: tuple[float, ...], cold: Any) -> None:
        with pytest.raises(BenchmarkError, match="at least one micro-batch to warm up"):
            a_run("ours", *seconds, cold=cold)

    def test_a_shorter_run_is_compared_as_far_as_it_goes(self) -> None:
        ours, short = a_run("ours", 9, 1, 1, 1), a_run("short", 9, 4)
        assert speed_up(ours, short) == 4

    @pytest.mark.parametrize("other", [{"results": 499}, {"checksum": 8}, {"rows": 999}])
    @pytest.mark.parametrize("place", [0, 2])
    def test_there_is_no_ratio_of_unequal_results_warm_or_cold(self, other: dict[str, int], place: int) -> None:
        batches = described(9, 2, 2)
        batches[place] |= other
        with pytest.raises(UnequalResultsError, match=f"micro-batch {place}"):
            speed_up(a_run("ours", 9, 1, 1), StreamRun.of("other", batches))

    def test_another_cut_is_noticed(self) -> None:
        check_rows(a_run("ours", 1, 1), 1000, 2)
        with pytest.raises(BenchmarkError, match="was to run 3 micro-batches of 1,000 rows"):
            check_rows(a_run("ours", 1, 1), 1000, 3)

    def test_other_joins_must_deliver_about_as_many(self) -> None:
        check_as_many(a_run("equality", 1, 1), a_run("band", 1, 1, results=520, checksum=1))
        for other in ({"results": 400}, {"rows": 900}):
            with pytest.raises(UnequalResultsError, match="cannot be compared"):
                check_as_many(a_run("equality", 1, 1), a_run("band", 1, 1, **other))

    def test_what_spark_says_about_a_micro_batch(self) -> None:
        progress = {
            "numInputRows": 10,
            "durationMs": {"triggerExecution": 2500, "addBatch": 2000},
            "observedMetrics": {"digest": {"count": 5, "low": 11, "high": 3}},
        }
        (batch,) = StreamRun.of("ours", [spark_query.described(progress)] * 2).warm
        assert (batch.rows, batch.seconds, batch.parts, batch.results) == (10, 2.5, {"addBatch": 2.0}, 5)
        assert batch.checksum == 11 + (3 << 32)
        nothing = spark_query.digested({"count": 0, "low": None, "high": None})
        assert nothing == {"results": 0, "checksum": 0}

    @pytest.mark.parametrize("before", ["", "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "])
    def test_the_reason_of_a_refusal_is_one_line(self, before: str) -> None:
        assert spark_query.reason(ValueError(f"{before}It is not supported;\nJoin Inner\n")) == "It is not supported"


class TestOneShot:
    def test_a_contender_answers_and_its_noise_does_not_matter(self, tmp_path: Path) -> None:
        answered, seconds = ask(sys.executable, "tests.benchmarks.echo", ROOT, {"one": 1}, tmp_path / "tmp")
        assert answered == {"request": {"one": 1}, "temporary": str(tmp_path / "tmp")}
        assert seconds > 0

    def test_what_was_measured_counts_though_the_end_was_not_as_it_should_be(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        request = {"wrong": "a process had to be killed"}
        answered, _ = ask(sys.executable, "tests.benchmarks.echo", ROOT, request, tmp_path / "tmp")
        assert answered["request"] == request
        assert capsys.readouterr().err == "tests.benchmarks.echo: a process had to be killed\n"

    def test_a_process_that_does_not_end_is_killed_and_it_is_said_what_it_was_doing(self) -> None:
        stays = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"],
                                 stdout=subprocess.PIPE)  # fmt: skip
        assert stays.stdout is not None
        assert stays.stdout.readline() == b"1\n"
        wrong = ended(stays, 0.0, 0.0)
        assert stays.returncode == -signal.SIGKILL
        assert wrong is not None
        assert f"process {stays.pid} had not ended after 0 s and was killed; its threads: 1 x python" in wrong
        assert ended(stays, 0.0, 0.0) is None

    @pytest.mark.parametrize(
        ("module", "message"),
        [("tests.benchmarks.echo", "asked to fail"), ("benchmarks.contenders.nobody", "No module named")],
    )
    def test_a_contender_that_fails_says_why(self, tmp_path: Path, module: str, message: str) -> None:
        with pytest.raises(ContenderError, match=message):
            ask(sys.executable, module, ROOT, {"fail": True}, tmp_path)


class Stage:
    """Takes the place of contenders: answers with set seconds, and remembers who was asked."""

    def __init__(self, **seconds: float) -> None:
        self.seconds, self.asked = seconds, list[str]()

    def __call__(self, _: object, module: str, root: Path, request: dict[str, Any], *__: object) -> tuple[Any, float]:
        name = request.get("store") or request.get("do") or module.rpartition("_")[2]
        self.asked.append(name)
        if name == "refuse":
            return {"refusal": "not supported"}, 1.0
        files = [pq.read_metadata(file).num_rows for file in sorted((Path(request["folder"]) / "left").iterdir())]
        seconds = self.seconds.get(name, 1.0)
        # As if everyone found one partner per left row; whoever is to cheat finds one more.
        batches = [
            {"rows": 4 * rows, "seconds": seconds, "parts": {}, "results": 2 * rows + (name == "cheat"), "checksum": 1}
            for rows in files[::2]
        ]
        return {"batches": batches}, 1.0


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    acting = Stage(ours=1.0, hdfs=4.0, rocksdb=20.0, floor=0.8, read=0.2)
    monkeypatch.setattr(streaming, "ask", acting)
    return acting


def shown(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


FEW = {OURS: (4, 4, 4), "hdfs": (3, 4, 3), "rocksdb": (2, 2, 0)}


class TestQuestions:
    @pytest.fixture
    def track(self, tmp_path: Path, stage: Stage) -> Track:
        return Track(tmp_path, lambda _: None)

    def test_equality_is_against_the_best_and_against_rocksdb(self, track: Track, stage: Stage) -> None:
        outcome = streaming.measure_equality(track, 400, 1, FEW)
        assert outcome is not None
        assert stage.asked == ["ours", "hdfs", "rocksdb"]
        assert [(verdict.measured, verdict.target) for verdict in outcome.verdicts] == [(4.0, 3.0), (20.0, 10.0)]
        assert "20.00 times" in shown(streaming_tables.equality_table(outcome))

    def test_a_size_is_run_by_who_is_to_run_it(self, track: Track, stage: Stage) -> None:
        outcome = streaming.measure_equality(track, 400, 2, FEW)
        assert outcome is not None
        assert stage.asked == ["ours", "hdfs"]
        assert outcome.rows == 1600
        assert streaming.measure_equality(track, 400, 0, {**FEW, OURS: (0, 4, 4)}) is None

    def test_other_results_end_the_benchmark(self, track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(streaming.NATIVE, "cheat", "a cheat")
        with pytest.raises(UnequalResultsError, match="a cheat delivered other results"):
            streaming.measure_equality(track, 400, 1, {**FEW, "cheat": (4, 4, 4)})

    def test_our_usual_run_is_made_once(self, track: Track, stage: Stage) -> None:
        streaming.measure_equality(track, 400, 1, {**FEW, "hdfs": (0, 0, 0), "rocksdb": (0, 0, 0)})
        keyless = streaming.measure_keyless(track, 400, FEW, quick=True)
        assert stage.asked == ["ours", "refuse", "ours", "ours", "ours"]
        assert [verdict.met for verdict in keyless.verdicts] == [True, True, True]
        assert "not supported" in shown(streaming_tables.keyless_table(keyless))

    def test_breakdown_says_what_we_add_to_the_floor(self, track: Track, stage: Stage) -> None:
        outcome = streaming.measure_breakdown(track, 400, quick=True)
        assert stage.asked == ["read", "floor", "ours"]
        assert outcome.added == pytest.approx(25)
        assert outcome.verdicts[0].met
        assert "floor" in shown(streaming_tables.breakdown_table(outcome))

    def test_state_counts_once_it_is_full(self, track: Track) -> None:
        outcome = streaming.measure_state(track, 400, FEW, quick=True)
        assert [run.cold for run in outcome.runs.values()] == [2, 4, 21]
        assert outcome.verdicts[0].measured == 1.0
        assert "200 s" in shown(streaming_tables.state_table(outcome))

    def test_a_loss_is_a_verdict_like_a_win(self) -> None:
        lost = streaming.EqualityOutcome(1000, a_run(OURS, 9, 2), {"hdfs": a_run("Spark", 9, 1)})
        assert [(verdict.measured, verdict.met) for verdict in lost.verdicts] == [(0.5, False)]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", (2, 2, 0)),
            ("rocksdb=5", (5, 5, 0)),
            ("rocksdb=5/3/2, hdfs=3", (5, 3, 2)),
        ],
    )
    def test_micro_batches_can_be_chosen(self, text: str, expected: tuple[int, ...]) -> None:
        assert streaming.chosen_batches(text, FEW)["rocksdb"] == expected

    @pytest.mark.parametrize("text", ["spark=5", "hdfs", "hdfs=1", "hdfs=5/3", "hdfs=a", "streamjoin=4/0/4"])
    def test_a_wrong_choice_is_refused(self, text: str) -> None:
        with pytest.raises(BenchmarkError, match="Hint"):
            streaming.chosen_batches(text, FEW)


class TestFloor:
    def test_it_hands_back_as_many_rows_as_the_join_finds(self) -> None:
        stream = Stream("equality", 4000, 1, usual_step(4000))
        packed = [
            batch.to_pandas()
            for number in range(2)
            for table in stream.tables(number)
            for batch in stream_floor.packer(number, [3, 8])(table.to_batches())
        ]
        assert sum(len(frame) for frame in packed) == 8, "two sides, two files, two buckets"
        handed = pd.concat(
            frame
            for label in (3, 8)
            for frame in stream_floor.HandBack().handleInputRows(
                label, [piece for piece in packed if piece["label"][0] == label], None
            )
        )
        rows = pa.Table.from_batches(stream_floor.unpack(pa.Table.from_pandas(handed).to_batches()))
        assert rows.column_names == spark_query.columns_of_result("equality")
        assert rows.num_rows == pytest.approx(2000, rel=0.05)


def write_pairs(folder: Path, header: bool, *pairs: tuple[int, int]) -> None:
    folder.mkdir(parents=True)
    lines = ["ts,k,v,p,ts_right,v_right,p_right,time,diff"] * header
    lines += [f"1,2,0.5,{p},1,0.5,{q}" + ",0,1" * header for p, q in pairs]
    (folder / "part-0.csv").write_text("\n".join(lines) + "\n")


class TestPeers:
    def test_a_result_is_read_with_and_without_a_header(self, tmp_path: Path) -> None:
        expected = digest_of([(np.array([1, 3]), np.array([2, 4]))])
        for header in (True, False):
            write_pairs(tmp_path / str(header), header, (3, 4), (1, 2))
            (tmp_path / str(header) / "_SUCCESS").touch()
            (tmp_path / str(header) / "part-1.csv").touch()
            assert streaming_peers.written_digest(tmp_path / str(header)) == expected

    @pytest.mark.parametrize(("name", "package"), [("flink", "apache-flink"), ("pathway", "pathway")])
    def test_what_the_files_ask_for_is_pinned_and_has_no_address(self, name: str, package: str) -> None:
        text = (ROOT / "benchmarks" / f"{name}.txt").read_text()
        assert requirements_of(text)[0].split("==")[0] == package
        assert "://" not in text

    def race(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **behaviour: str) -> Any:
        """A race in which ours works for 1 s, Flink for 3 s and Pathway for 2 s, each after a start of 5 s."""
        seconds = {"ours": 1.0, "flink": 3.0, "pathway": 2.0}
        told: list[str] = []

        def python(requirements: Path, _: object) -> str:
            if behaviour.get(requirements.stem) == "cannot be installed":
                raise BenchmarkError("no such package")
            return "python"

        def act(_: object, module: str, __: object, request: dict[str, Any], *___: object, **____: str) -> Any:
            name = module.rpartition("_")[2]
            if behaviour.get(name) == "fails":
                raise ContenderError("it fell over")
            pairs = [(1, 2)] if behaviour.get(name) != "cheats" else [(2, 1)]
            write_pairs(Path(request["output"]), name == "pathway", *pairs)
            return {}, 5.0 + (seconds[name] if Path(request["folder"]).name == "rows" else 0.0)

        monkeypatch.setattr(streaming_peers, "peers_python", python)
        monkeypatch.setattr(streaming_peers, "ask", act)
        return streaming_peers.measure(400, 2, tmp_path, lambda _: None, told.append), told

    def test_the_start_is_taken_off(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        outcome, told = self.race(monkeypatch, tmp_path)
        assert [verdict.measured for verdict in outcome.verdicts] == [3.0, 2.0]
        assert [len(run.seconds) for run in outcome.runs] == [2, 2, 2]
        assert not told
        assert "3.00 times" in shown(streaming_tables.peers_table(outcome))

    @pytest.mark.parametrize("trouble", ["cannot be installed", "fails"])
    def test_a_peer_that_cannot_take_part_is_named_and_the_others_go_on(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trouble: str
    ) -> None:
        outcome, told = self.race(monkeypatch, tmp_path, flink=trouble)
        assert [run.label for run in outcome.runs] == ["streamjoin", "Pathway"]
        assert list(outcome.missing) == ["Flink SQL"]
        assert len(told) == 1
        assert "not measured" in shown(streaming_tables.peers_table(outcome))

    def test_other_results_end_the_benchmark(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        with pytest.raises(UnequalResultsError, match="Pathway delivered other results"):
            self.race(monkeypatch, tmp_path, pathway="cheats")


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--only", "equality,stat"], "no question 'stat'"),
            (["--rows", "1001"], "a multiple of 40 rows, got 1,001"),
            (["--batches", "spark=3"], "no contender 'spark'"),
        ],
    )
    def test_a_wrong_call_is_one_sentence(self, arguments: list[str], message: str) -> None:
        result = CliRunner().invoke(app, ["bench", "streaming", *arguments])
        assert result.exit_code == 1
        assert message in result.output
