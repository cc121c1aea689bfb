"""What `--report` and `--live` refuse before anything has started, and what a run that failed says in its report."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamjoin.cli import app, reported
from streamjoin.cli.reported import Reported, check_report
from streamjoin.errors import CallError
from tests.reporting.making import report


def test_what_cannot_be_written_or_served_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CallError, match=r"report\.html cannot be written"):
        check_report(tmp_path / "file" / "report.html", live=False, port=None)
    with pytest.raises(CallError, match="is a folder"):
        check_report(tmp_path, live=False, port=None)
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(CallError, match="cannot have port"):
        check_report(None, live=True, port=other.getsockname()[1])
    check_report(tmp_path / "new" / "report.html", live=True, port=None)
    assert list((tmp_path / "new").iterdir()) == []


def test_the_demo_refuses_it_before_the_match_is_played(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["demo", "--report", str(tmp_path)])
    assert refused.exit_code == 1
    assert "--report must be a file" in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


def fail(run: Reported) -> None:
    with run:
        run.follow(object(), None)
        raise OSError("there is no room")


@pytest.mark.parametrize("live", [True, False])
def test_an_error_that_is_not_the_querys_own_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    monkeypatch.setattr(reported.sj, "report", lambda *_, **__: report(2, active=False))
    said = list[str]()
    with pytest.raises(OSError, match="no room"):
        fail(Reported(tmp_path / "a.html", live, None, {}, said.append))
    text = (tmp_path / "a.html").read_text()
    assert ": failed</title>" in text
    assert '<pre class="warn">there is no room</pre>' in text
    assert said[-1] == f"report: {tmp_path / 'a.html'}"


def test_rows_that_finishing_has_written_are_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported.sj, "report", lambda *_, **__: report(2, active=False))
    with Reported(tmp_path / "a.html", False, None, {}, lambda _: None) as run:
        run.follow(object(), None)
        run.finished(5)
    assert "<b>805</b><span>rows out</span>" in (tmp_path / "a.html").read_text()
