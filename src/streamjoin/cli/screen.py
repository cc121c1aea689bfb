"""The screen of a running query: a line for every micro-batch that has ended, and what is going on at the moment.

On a terminal the last line is alive; anywhere else (a file, a pipe) only the lines of the batches are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from rich.console import Console
from rich.filesize import decimal

HEADINGS: Final = ("batch", "rows in", "rows out", "late", "state rows", "state", "seconds", "rows/s")
WIDTHS: Final = (7, 12, 12, 8, 12, 10, 9, 11)
# Beside them, of a join to a recall target; what has two numbers has one for each input.
RECALL_HEADINGS: Final = ("target", "expected", "kept rows", "kept for", "delay p99", "late of one class")
RECALL_WIDTHS: Final = (9, 10, 19, 17, 17, 19)


class Screen:
    """Shows the figures of micro-batches, and adds them up."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.totals = Totals()
        self.warned = False
        self.told = False
        self.alive = console.status("starting") if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self.alive is not None:
            self.alive.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.alive is not None:
            self.alive.stop()

    def show(self, figures: Mapping[str, Any]) -> None:
        """A micro-batch has ended."""
        target = recall_of(figures)
        if not self.totals.batches:
            self.print(in_columns(HEADINGS) + ("" if target is None else in_columns(RECALL_HEADINGS, RECALL_WIDTHS)))
        self.totals.add(figures)
        self.print(batch_line(figures) + ("" if target is None else in_columns(recall_cells(target), RECALL_WIDTHS)))

    def warn(self, texts: list[str]) -> None:
        """Warnings of a micro-batch, unless the one before it had some, too."""
        if texts and not self.warned:
            for text in texts:
                self.print(f"warning: {text}")
        self.warned = bool(texts)

    def tell(self, text: str | None) -> None:
        """A warning of the whole run, if there is one: the first time only."""
        if text is not None and not self.told:
            self.print(f"warning: {text}")
            self.told = True

    def now(self, what: str) -> None:
        """What is going on at the moment."""
        if self.alive is not None:
            self.alive.update(what)

    def print(self, text: str) -> None:
        """A line as it is: no colours for numbers, no wrapping."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


@dataclass
class Totals:
    """The figures of all micro-batches so far. State is that of the last one."""

    batches: int = 0
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    state_bytes: int = 0

    def add(self, figures: Mapping[str, Any]) -> None:
        """One more micro-batch."""
        self.batches += 1
        self.seconds += figures["seconds"]
        self.rows_in += figures["rows_in"]
        self.rows_out += figures["rows_out"]
        self.late += figures["late"]
        self.state_rows, self.state_bytes = state_of(figures)


def state_of(figures: Mapping[str, Any]) -> tuple[int, int]:
    """Rows and bytes that all joins of a query keep."""
    joins = figures["joins"].values()
    return sum(join["state_rows"] for join in joins), sum(join["state_bytes"] for join in joins)


def batch_line(figures: Mapping[str, Any]) -> str:
    """One micro-batch, under the headings."""
    rows, size = state_of(figures)
    seconds = figures["seconds"]
    speed = f"{figures['rows_in'] / seconds:,.0f}" if seconds > 0 else "-"
    counts = (f"{figures[name]:,}" for name in ("rows_in", "rows_out", "late"))
    return in_columns((str(figures["batch"]), *counts, f"{rows:,}", decimal(size), f"{seconds:.1f}", speed))


def recall_of(figures: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The figures of the recall target of a query. There is one join in a query with a target."""
    return next((join["recall"] for join in figures["joins"].values() if "recall" in join), None)


def recall_cells(target: Mapping[str, Any]) -> tuple[str, ...]:
    """The figures of a recall target, under the headings."""
    late = [
        "-" if not each["rows"] else f"{each['most']:,} of {each['rows']:,}" for each in target["late"]
    ]  # fmt: skip
    return (
        f"{target['target']:g}",
        "-" if target["expected"] is None else f"{target['expected']:.4f}",
        " / ".join("-" if rows is None else f"{rows:,}" for rows in target["kept_rows"]),
        " / ".join(map(_lasting, target["kept_for"])),
        " / ".join(_lasting(each["p99"]) for each in target["delay"]),
        " / ".join(late),
    )


def _lasting(length: float | None) -> str:
    """A length of time: seconds over time stamps, otherwise what times count.

    >>> _lasting(1.25), _lasting(7), _lasting(None)
    ('1.2', '7', '-')
    """
    return "-" if length is None else f"{length:,.1f}" if isinstance(length, float) else f"{length:,}"


def in_columns(values: tuple[str, ...], widths: tuple[int, ...] = WIDTHS) -> str:
    """Values under each other, to the right.

    >>> in_columns(("batch", "rows in"))
    '  batch     rows in'
    """
    return "".join(value.rjust(width) for value, width in zip(values, widths, strict=False))
