"""Commands over two streams of CSV files, R and S, for tests of the command line."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner, Result

from streamjoin.cli import app

JOIN = """
    return sj.join([R, S], by="k", time="ts", window=sj.Range("4 seconds"), how="{how}", late="{late}",
                   lateness=sj.Grace("5 seconds"), buckets=2)
"""
# Rows of input R and of input S in files: (k, v, second). The last file of R brings a row that is late.
R_FILES = [[("a", 1, 0), ("b", 2, 1), ("c", 3, 2)], [("a", 4, 3), ("b", 5, 30)], [("a", 6, 4), ("a", 7, 31)]]
S_FILES = [[("a", 10, 1), ("c", 20, 2)], [("b", 30, 28), ("b", 40, 31)]]


def write_job(folder: Path, how: str = "inner", late: str = "drop") -> None:
    (folder / "job.py").write_text("import streamjoin as sj\n\ndef job(R, S):" + JOIN.format(how=how, late=late))


def add_file(folder: Path, rows: list[tuple[str, int, int]]) -> None:
    """One more CSV file, younger than all before it."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("*.csv")))
    lines = [f"{k},{v},2024-01-01 10:00:{second:02d}" for k, v, second in rows]
    file = folder / f"{number}.csv"
    file.write_text("\n".join(["k,v,ts", *lines, ""]))
    os.utime(file, (1_700_000_000 + number,) * 2)  # a stream takes its files by their age


def run(
    folder: Path,
    *options: str,
    streams: str = "RS",
    out: str = "out",
    checkpoint: str = "checkpoint",
    job: str = "job.py",
) -> Result:
    named = [word for name in streams for word in ("--stream", f"{name}={folder / name}")]
    places = ["--out", str(folder / out), "--checkpoint", str(folder / checkpoint)]
    return CliRunner().invoke(app, ["run", str(folder / job), *named, *places, *options])


def refused(folder: Path, *options: str, **places: str) -> str:
    """The one line that a wrong call gets."""
    result = run(folder, *options, **places)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    line, nothing = result.output.split("\n", 1)
    assert not nothing
    return line.removeprefix("error: ")


def two_streams(folder: Path) -> Path:
    """Two streams, two files each, nothing late; and a job."""
    for name, files in (("R", R_FILES[:2]), ("S", S_FILES)):
        for rows in files:
            add_file(folder / name, rows)
    write_job(folder)
    return folder
