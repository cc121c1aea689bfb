"""What went wrong in Spark, in one line instead of a Java stack trace.

An error in a worker reaches us as text inside the text of other errors. What the reader wants is in it: streamjoin's
own message, or the last line of a Python traceback, or else what Spark itself says first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

from streamjoin import StreamjoinError
from streamjoin.api import log_no_errors

# A message may have several lines; it ends where the traces go on. A finished query says why in a log that Spark reads.
_OURS: Final = re.compile(r"streamjoin(?:\.errors\.\w+)?: (.+?)(?=\s+SQLSTATE: |\n\s*\n|\n\s*at |\n=== |\Z)", re.DOTALL)
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_BEFORE: Final = re.compile(r"^\[STREAM_FAILED\].*?terminated with exception: |^Job aborted due to stage failure: ")
_AFTER: Final = re.compile(
    r"\n=== Streaming Query ===|\n\s*at |\n\nJVM stacktrace:|\nDriver stacktrace:|\n\n| SQLSTATE: "
)


@contextmanager
def readable_failures(*, verbose: bool = False) -> Iterator[None]:
    """Turn Spark's errors into streamjoin's, with a message of one line; `verbose` shows the whole text before."""
    if not verbose:
        log_no_errors()
    try:
        yield
    except Exception as error:
        if not from_spark(error):
            raise
        if verbose:
            typer.echo(str(error), err=True)
        raise StreamjoinError(reason(str(error)), hint=None if verbose else "--verbose shows all of it") from None


def from_spark(error: BaseException) -> bool:
    """Whether Spark raised it, in Java or in Python."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


def reason(text: str) -> str:
    """The part of an error's text that says what happened.

    >>> reason('''[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure:
    ... org.apache.spark.api.python.PythonException: Traceback (most recent call last):
    ...   File "worker.py", line 7, in main
    ... streamjoin.errors.LateRowError: input 0 brought 1 row(s) behind its progress. Hint: allow more lateness.
    ...
    ...     at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:500)''')
    'input 0 brought 1 row(s) behind its progress. Hint: allow more lateness.'
    >>> reason("Failed to read log file /c/offsets/7: no version in streamjoin: this query was ended. SQLSTATE: KD002")
    'this query was ended.'
    >>> reason("[UNRESOLVED_COLUMN] A column cannot be resolved. SQLSTATE: 42703;\\n'Project ['x]")
    '[UNRESOLVED_COLUMN] A column cannot be resolved.'
    """
    # The last one: an error that was raised from another one stands behind it.
    for pattern in (_OURS, _TRACEBACK):
        found = pattern.findall(text)
        if found:
            return str(found[-1]).strip()
    while _BEFORE.search(text):
        text = _BEFORE.sub("", text)
    return _AFTER.split(text.strip(), maxsplit=1)[0].strip()
