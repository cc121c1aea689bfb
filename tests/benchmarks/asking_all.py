"""What tests of `streamjoin bench all` share: asking, and what stands around an answer."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import all_questions

AROUND = {"machine": "two cores", "started": "2026-01-02 03:04:05", "commit": "abc", "python": "3.11", "load": 0.0}


def ask_all(path: Path, only: str, **options: Any) -> tuple[bool, str]:
    """Whether all had an answer, and what was printed; quick where nobody says otherwise."""
    printed = StringIO()
    usual = {"quick": True, "json_path": path, "again": False, "against": ""}
    done = all_questions.run_all(Console(file=printed, width=200), only=[only], **usual | options)
    return done, printed.getvalue()
