"""Simulated cases by their seeds: all of a part in a test, or any number from the command line.

A simulator is a function of a seed that raises an AssertionError, which says how to run that case again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

MOST_FAILURES = 10  # of a command, which then ends


def check_all(simulate: Callable[[int], Any], seeds: Iterable[int]) -> None:
    """Run every seed, so that one failure does not hide another."""
    failures = []
    for seed in seeds:
        try:
            simulate(seed)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, f"{len(failures)} failures, the first:\n" + "\n\n".join(failures[:3])


def parts(count: int) -> list[Any]:
    """So many parts to deal seeds out to like cards, as parameters of a test. The second half of them is `long`."""
    return [part if 2 * part < count else pytest.param(part, marks=pytest.mark.long) for part in range(count)]


def parser(doc: str | None, runs: int = 2000) -> argparse.ArgumentParser:
    """The options that every simulator has."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--runs", type=int, default=runs)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--replay", type=int)
    return made


def command(options: argparse.Namespace, simulate: Callable[[int], Any], told: Callable[[Any], str]) -> int:
    """Run one seed again, and say what it was; or as many as were asked for. The exit code."""
    if options.replay is not None:
        print(told(simulate(options.replay)))
        return 0
    started, runs, failures = time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + options.runs):
        runs += 1
        try:
            simulate(seed)
        except AssertionError as error:
            failures += 1
            print(error, file=sys.stderr)
            if failures >= MOST_FAILURES:
                break
    print(f"{runs} runs, {failures} mismatches, {time.monotonic() - started:.1f} s", flush=True)
    return 1 if failures else 0


def in_folders(
    doc: str | None, families: Iterable[str], simulate: Callable[[int, str, str], Any], runs: int = 2000
) -> int:
    """The command of a simulator with several families of cases, each of which has a folder of its own."""
    names, made = list(families), parser(doc, runs)
    made.add_argument("--family", choices=names)
    options = made.parse_args()

    def in_a_folder(family: str, seed: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            simulate(seed, family, folder)

    codes = []
    for family in [options.family] if options.family else names:
        print(f"{family}:", flush=True)
        codes.append(command(options, partial(in_a_folder, family), lambda _: "no mismatch"))
    return max(codes)
