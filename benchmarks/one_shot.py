"""A contender of a streaming question: a process that does one job, says what it measured, and ends.

    standard input   one JSON object, the request
    standard output  one JSON object, the answer; and behind it, where its end was not as it should be, what was wrong

Every job gets a process of its own, so that one job's warm JVM, caches and heap do not help or hurt another.
`answer` is the contender's half and needs the standard library only, since it runs in the peers' environments too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import ContenderError

Answer = dict[str, Any]


def answer(do: Callable[[dict[str, Any]], Answer], end: Callable[[], str | None] | None = None) -> None:
    """Read the request, do it, and write the answer.

    `end`: what is to be done before the process may end; it says what was wrong with that. The answer is written
    before, so that what was measured is not lost.
    """
    # Whatever a library prints goes to standard error: standard output belongs to the answer.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        done = do(json.load(sys.stdin))
    except Exception:
        done = {"error": traceback.format_exc()}
    print(json.dumps(done), file=channel, flush=True)
    wrong = None if end is None else end()
    if wrong is not None:
        print(json.dumps(wrong), file=channel, flush=True)


def ask(
    python: Path | str, module: str, root: Path, request: Mapping[str, Any], scratch: Path, **environment: str
) -> tuple[Answer, float]:
    """The answer of `python -m module`, and the seconds from the start of the process to its end.

    What it and its workers keep in temporary files goes to `scratch`: the caller can remove it. What was wrong with its
    end is said on standard error: what it measured counts all the same.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    # Spark's Python workers and Flink's are started elsewhere: they find the benchmarks by this.
    paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [str(python), "-m", module],
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(scratch), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            said, _ = process.communicate(json.dumps(request))
        except BaseException:
            process.kill()  # whoever is asked to end does not wait for an answer
            process.wait()
            raise
        seconds = time.perf_counter() - start
        log.seek(0)
        noise = log.read()
    try:
        answered: Answer
        answered, *wrong = map(json.loads, said.splitlines())
    except ValueError:
        raise ContenderError(f"{module} ended with {process.returncode} at {request}:\n{noise[-4000:]}") from None
    if "error" in answered:
        raise ContenderError(f"{module} failed at {request}:\n{answered['error'][-4000:]}")
    for each in wrong:
        print(f"{module}: {each}", file=sys.stderr)
    return answered, seconds
