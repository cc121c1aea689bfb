"""What `--report` and `--live` add to a run: figures kept from its start, shown while it runs, written at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import streamjoin as sj
from streamjoin import CallError
from streamjoin.cli.failure import from_spark, in_words
from streamjoin.reporting.live import LivePage
from streamjoin.reporting.report import Report


class Reported:
    """A run with a report, or without: then it does nothing."""

    def __init__(
        self, path: Path | None, live: bool, port: int | None, settings: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self.path, self.settings, self.say = path, settings, say
        self.query: Any = None
        self.held: int | None = None
        self.spark: Any = None
        self.page = LivePage(self.report, port) if live else None

    def __enter__(self) -> Reported:
        if self.page is not None:
            self.page.start()
        return self

    def follow(self, query: Any, spark: Any) -> Any:
        """A query has started, or goes on; it is given back."""
        first, self.query, self.spark = self.query is None, query, spark
        if self.path is not None or self.page is not None:
            self.report()
        if first and self.page is not None:
            self.say(f"live: {self.page.address}")
        return query

    def finished(self, held: int) -> None:
        """So many rows have left because the query was finished."""
        self.held = held

    def report(self) -> Report:
        """What is known by now."""
        return replace(sj.report(self.query, settings=self.settings, spark=self.spark), held=self.held)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.page is not None:
            self.page.stop()
        if self.path is None:
            return
        if self.query is None:
            self.say("report: none, because no query has started")
            return
        try:
            report = self.report()
            if isinstance(error, Exception):
                # Spark's own text is a stack trace in Java; what went wrong is one line of it.
                report = replace(report, error=str(in_words(error) if from_spark(error) else error))
            self.say(f"report: {report.write(self.path)}")
        except Exception as failed:
            if error is None:
                raise
            self.say(f"warning: the report could not be written: {failed}")  # what ended the run is said after this


def _nothing() -> Report:
    return Report("nothing", False, ())


def check_report(path: Path | None, *, live: bool, port: int | None, starts: bool = True) -> None:
    """Refuse what cannot be written or served, before Spark starts. If no run `starts`, no folder is left either."""
    if path is not None and path.is_dir():
        raise CallError(f"--report must be a file, and {path} is a folder", hint=f"--report {path / 'report.html'}")
    if path is not None:
        there, new = path.exists(), [folder for folder in path.parents if not folder.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a").close()
        except OSError as error:
            raise CallError(f"--report {path} cannot be written: {error.strerror}", hint="give another file") from None
        if not there:
            path.unlink()
        for folder in () if starts else new:
            folder.rmdir()
    if port is not None and live:
        LivePage(_nothing, port).stop()
    if port is not None and not live:
        raise CallError("--live-port is for a live page", hint=f"add --live, or leave --live-port {port} out")
