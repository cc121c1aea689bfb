"""Fail when a package's line coverage is below the limit: one total for all would hide a package that is hardly tested.

Usage: python tools/coverage_gate.py COVERAGE.json LIMIT PACKAGE...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(report: str, limit: str, *packages: str) -> int:
    files: dict[str, Any] = json.loads(Path(report).read_text())["files"]
    failed = False
    print(f"{'package':<12} {'lines':>6} {'missed':>6} {'covered':>8}")
    for package in packages:
        inside = {name: entry for name, entry in files.items() if f"streamjoin/{package}/" in Path(name).as_posix()}
        lines = sum(entry["summary"]["num_statements"] for entry in inside.values())
        missed = sum(entry["summary"]["missing_lines"] for entry in inside.values())
        # A package without a line has nothing to show for itself: more likely it was not measured.
        covered = 100 * (lines - missed) / lines if lines else 0.0
        enough = covered >= float(limit)
        print(f"{package:<12} {lines:>6} {missed:>6} {covered:>7.1f}%" + ("" if enough else f"  below {limit}%"))
        if not enough:
            failed = True
            for name, entry in inside.items():
                if entry["missing_lines"]:
                    print(f"    {name}: {', '.join(map(str, entry['missing_lines']))}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
