"""The same streaming job, whole, against systems other than Spark: Flink SQL and Pathway.

Equal keys and a bound on time: CSV in, CSV out, two cores for everyone, the same rows. What counts is the time of the
whole process less its start: an almost empty job is run the same way, before and after, and the shorter of the two is
taken off. The digest is taken from the files that each run leaves behind.

Flink and Pathway pin what others pin differently, so each has an environment of its own. One that cannot be had is
named, and the others go on.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from benchmarks.digest import Digest, digest_of
from benchmarks.environments import ROOT, peers_python
from benchmarks.errors import BenchmarkError, UnequalResultsError
from benchmarks.one_shot import ask
from benchmarks.race import Verdict
from benchmarks.streams import Stream, usual_step, write_csv

TARGET: Final = 1.5
BATCHES: Final = 10  # ours takes the rows in so many micro-batches, the others as they come; enough for all to be warm
EMPTY_ROWS: Final = 8
PEERS: Final = {"Flink SQL": "flink", "Pathway": "pathway"}
REQUIREMENTS: Final = {label: Path(__file__).parent / f"{name}.txt" for label, name in PEERS.items()}
_RESULT: Final = ["ts", "k", "v", "p", "ts_right", "v_right", "p_right"]


@dataclass
class WholeRun:
    """A system that takes part with whole runs: its seconds, those of almost empty jobs, and what it delivered."""

    label: str
    module: str
    python: Path | str
    seconds: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    digest: Digest | None = None

    @property
    def start(self) -> float:
        """What the system takes before and after its work."""
        return min(self.starts)

    @property
    def net(self) -> float:
        """The time of the work. A quick run may have none that could be told from noise: a millisecond then."""
        return max(0.001, statistics.median(self.seconds) - self.start)

    def repeat(self, stream: Stream, data: Path, place: Path, *, empty: bool = False) -> None:
        """Run once. Every run with rows must deliver the same."""
        request = {"folder": str(data), "kind": stream.kind, "bound_seconds": stream.bound_seconds}
        request |= {name: str(place / name) for name in ("output", "checkpoint", "scratch")}
        place.mkdir(parents=True)
        try:
            _, seconds = ask(
                self.python, f"benchmarks.contenders.{self.module}", ROOT, request, place / "tmp", PATHWAY_THREADS="2"
            )
            if empty:
                self.starts.append(seconds)
                return
            digest = written_digest(place / "output")
            if self.digest not in (None, digest):
                raise UnequalResultsError(f"{self.label} delivered {self.digest}, and the next time {digest}")
            self.digest = digest
            self.seconds.append(seconds)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "net": self.net,
            "seconds": self.seconds,
            "starts": self.starts,
            "count": self.digest and self.digest.count,
            "checksum": self.digest and self.digest.pairs,
        }


def written_digest(folder: Path) -> Digest:
    """The digest of (p, p_right) in the CSV files of a result, with or without a header, whatever follows in a line."""
    files = sorted(file for file in folder.glob("*") if file.is_file() and file.name[0] not in "._")
    chunks = []
    for file in files:
        if not file.stat().st_size:
            continue
        with file.open("rb") as opened:
            first = opened.readline().decode().rstrip("\r\n").replace('"', "").split(",")
        header = first[: len(_RESULT)] == _RESULT
        names = _RESULT + [f"more_{number}" for number in range(len(first) - len(_RESULT))]
        table = pa.csv.read_csv(
            file,
            read_options=pa.csv.ReadOptions(column_names=names, skip_rows=int(header)),
            convert_options=pa.csv.ConvertOptions(
                include_columns=["p", "p_right"], column_types={"p": pa.int64(), "p_right": pa.int64()}
            ),
        )
        chunks.append((table["p"].to_numpy(), table["p_right"].to_numpy()))
    return digest_of(chunks)


@dataclass
class PeersOutcome:
    """A race of whole runs: ours first. Who could not take part, and why."""

    rows: int
    runs: list[WholeRun]
    missing: dict[str, str]

    def ratio(self, peer: WholeRun) -> float:
        """How many times as fast we are; only where the results are equal."""
        check_equal(self.runs[0], peer)
        return peer.net / self.runs[0].net

    @property
    def verdicts(self) -> list[Verdict]:
        ours, *peers = self.runs
        return [
            Verdict(
                f"whole run against {peer.label}",
                self.ratio(peer),
                TARGET,
                f"{self.ratio(peer):.2f} times as fast ({ours.net:.1f} s against {peer.net:.1f} s, without the start)",
            )
            for peer in peers
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [run.to_json() for run in self.runs],
            "missing": self.missing,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def check_equal(ours: WholeRun, other: WholeRun) -> None:
    """Refuse to go on unless both delivered the same."""
    if ours.digest is None or ours.digest != other.digest:
        raise UnequalResultsError(
            f"{other.label} delivered other results than {ours.label}, so their times cannot be compared:\n"
            f"  {ours.label}: {ours.digest}\n  {other.label}: {other.digest}"
        )


def measure(
    rows: int, repetitions: int, folder: Path, say: Callable[[str], None], announce: Callable[[str], None]
) -> PeersOutcome:
    """Whole runs in turn, `BATCHES` times `rows` rows; `announce` is for what must not be missed."""
    entrants, missing = [WholeRun("streamjoin", "stream_ours", sys.executable)], {}
    for label, name in PEERS.items():
        try:
            entrants.append(WholeRun(label, f"stream_{name}", peers_python(REQUIREMENTS[label], announce)))
        except BenchmarkError as error:
            missing[label] = f"could not be installed: {error}"
            announce(f"{label} {missing[label]}")
    stream = Stream("equality", rows, BATCHES, usual_step(rows))
    nothing = Stream("equality", EMPTY_ROWS, 1, usual_step(rows))
    write_csv(stream, folder / "rows")
    write_csv(nothing, folder / "nothing")
    runs: list[WholeRun] = []
    for entrant in entrants:
        try:
            say(f"{entrant.label}: whole runs over {BATCHES * rows:,} rows, and almost empty ones ...")
            entrant.repeat(nothing, folder / "nothing", folder / "run", empty=True)
            entrant.repeat(stream, folder / "rows", folder / "run")
            runs.append(entrant)
        except UnequalResultsError:
            raise
        except BenchmarkError as error:
            if entrant is entrants[0]:
                raise
            missing[entrant.label] = f"failed: {error}"
            announce(f"{entrant.label} {missing[entrant.label]}")
    for _ in range(repetitions - 1):
        for entrant in runs:
            say(f"{entrant.label}: once more ...")
            entrant.repeat(stream, folder / "rows", folder / "run")
    for entrant in runs:
        entrant.repeat(nothing, folder / "nothing", folder / "run", empty=True)
        check_equal(runs[0], entrant)
    return PeersOutcome(BATCHES * rows, runs, missing)
