"""The screen of a running query: lines for micro-batches, totals, and what a terminal sees besides."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

from rich.console import Console

from streamjoin.cli.interrupts import Interrupts
from streamjoin.cli.run import summary, watch
from streamjoin.cli.screen import HEADINGS, RECALL_HEADINGS, Screen, Totals


def figures(batch: int, **changed: Any) -> dict[str, Any]:
    """The figures of a micro-batch, as `sj.progress` has them."""
    join = {"state_rows": 1000 * batch, "state_bytes": 80_200}
    whole = {
        "batch": batch,
        "seconds": 2.0,
        "rows_in": 3000,
        "rows_out": 20,
        "late": 1,
        "joins": {"a": join, "b": join},
    }
    return whole | changed


def screen(*, terminal: bool) -> Screen:
    return Screen(Console(file=io.StringIO(), force_terminal=terminal, width=60))


def text(shown: Screen) -> str:
    assert isinstance(shown.console.file, io.StringIO)
    return shown.console.file.getvalue()


def test_a_line_for_every_batch_below_one_heading() -> None:
    with screen(terminal=False) as shown:
        for batch in (4, 5):
            shown.show(figures(batch))
        shown.now("something that is not worth a line in a file")
    heading, *lines = text(shown).splitlines()
    assert heading.split() == " ".join(HEADINGS).split()
    assert [line.split() for line in lines] == [
        ["4", "3,000", "20", "1", "8,000", "160.4", "kB", "2.0", "1,500"],
        ["5", "3,000", "20", "1", "10,000", "160.4", "kB", "2.0", "1,500"],
    ]
    assert len({len(heading), *map(len, lines)}) == 1, "columns stand under each other"


def test_a_recall_target_has_columns_of_its_own() -> None:
    delay = [{"p50": 0.0, "p90": 0.5, "p99": 7.25, "max": 9.0}, dict.fromkeys(("p50", "p90", "p99", "max"))]
    target = {
        "target": 0.9, "expected": 0.91234, "slack": [5.0, 0.0], "kept_rows": [1200, 7], "kept_for": [2.0, 7.5],
        "delay": delay, "late": [{"rows": 1500, "classes": 3, "most": 1400}, {"rows": 0, "classes": 0, "most": 0}],
    }  # fmt: skip
    with screen(terminal=False) as shown:
        for batch, expected in ((1, None), (2, 0.91234)):
            told = {"state_rows": 1, "state_bytes": 1, "recall": target | {"expected": expected}}
            shown.show(figures(batch, joins={"a": told}))
    heading, *lines = text(shown).splitlines()
    assert heading.split() == " ".join((*HEADINGS, *RECALL_HEADINGS)).split()
    cells = "1,200 / 7 2.0 / 7.5 7.2 / - 1,400 of 1,500 / -"
    assert [" ".join(line.split()[-16:]) for line in lines] == [f"0.9 {each} {cells}" for each in ("-", "0.9123")]
    assert len({len(heading), *map(len, lines)}) == 1, "columns stand under each other"


def test_a_batch_without_duration_has_no_speed() -> None:
    with screen(terminal=False) as shown:
        shown.show(figures(1, seconds=0.0))
    assert text(shown).split()[-1] == "-"


def test_a_terminal_also_sees_what_is_going_on() -> None:
    with screen(terminal=True) as shown:
        shown.now("Waiting for data to arrive")
        shown.show(figures(1))
    assert "Waiting for data to arrive" in text(shown)


def test_the_summary_adds_up_and_takes_state_from_the_last() -> None:
    totals = Totals()
    for batch in (1, 2):
        totals.add(figures(batch))
    lines = summary(totals, Path("out"), "csv", Path("checkpoint"), None)
    assert lines == [
        "2 micro-batches, 4.0 s: 6,000 rows in, 40 rows out, 2 late",
        "kept: 4,000 rows, 160.4 kB  (streamjoin state checkpoint)",
        "output: out  (csv)",
    ]
    finished = summary(totals, Path("out"), "csv", Path("checkpoint"), 7)
    assert finished[0].endswith(" 47 rows out, 2 late")
    assert finished[1] == "finished: 7 of them had still been held; the query is over"
    assert summary(Totals(), Path("out"), "csv", Path("checkpoint"), None) == [
        "No micro-batch: there was nothing new to read."
    ]


class Query:
    """A query that goes through states as it is asked, and can be stopped."""

    def __init__(self, active: list[bool], interrupt_at: tuple[int, ...] = ()) -> None:
        self.active, self.interrupt_at, self.asked, self.stopped = active, interrupt_at, 0, False
        self.lastProgress, self.recentProgress = None, []

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        if self.asked in self.interrupt_at:
            signal.raise_signal(signal.SIGINT)
        self.asked += 1
        return self.stopped

    @property
    def isActive(self) -> bool:  # noqa: N802
        return not self.stopped

    @property
    def status(self) -> dict[str, Any]:
        return {"message": "Processing new data", "isTriggerActive": self.active[min(self.asked, len(self.active)) - 1]}

    def stop(self) -> None:
        self.stopped = True


def asks_until_stopped(query: Query) -> int:
    with screen(terminal=False) as shown, Interrupts() as interrupts:
        watch(query, shown, interrupts)
    return query.asked


def test_an_interrupt_waits_for_the_running_micro_batch() -> None:
    assert asks_until_stopped(Query([True, True, True, False], interrupt_at=(0,))) == 5


def test_a_second_interrupt_does_not_wait() -> None:
    assert asks_until_stopped(Query([True], interrupt_at=(0, 1))) == 3


def test_interrupts_work_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
