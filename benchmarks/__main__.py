"""One question, as `streamjoin bench all` asks it: `python -m benchmarks recall --only ends --json figures.json`.

It is what `streamjoin bench recall` does, without loading the rest of the command line and the other commands: an
answer stands as long as the files that its processes load (`benchmarks.measured_code`), so they load what they need.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.commands import command_of, run
from benchmarks.errors import BenchmarkError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="One question of streamjoin bench.")
    parser.add_argument("command")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--against", default="")
    told = parser.parse_args()
    repetitions = command_of(told.command).repetitions if told.repetitions is None else told.repetitions
    only = [told.only] if told.only else []
    try:
        run(
            Console(width=140), told.command, quick=told.quick, only=only, json_path=told.json,
            repetitions=repetitions, against=told.against,
        )  # fmt: skip
    except BenchmarkError as error:
        sys.exit(f"streamjoin bench: {error}")


main()
