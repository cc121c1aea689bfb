"""What went wrong in Spark, in one line instead of a Java stack trace.

An error in a worker reaches us as text inside the text of other errors. What the reader wants is in it: streamjoin's
own message, or the last line of a Python traceback, or else what Spark itself says first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

import typer

from streamjoin import StreamjoinError
from streamjoin.api import log_no_errors

# A message may have several lines; it ends where the traces go on. A finished query says why in a log that Spark reads.
_OURS: Final = re.compile(r"streamjoin(?:\.errors\.\w+)?: (.+?)(?=\s+SQLSTATE: |\n\s*\n|\n\s*at |\n=== |\Z)", re.DOTALL)
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
# Spark about a file, a row of it, the first line of CSV; and what stands around the words of the last cause.
_FILE: Final = re.compile(r"while reading file (\S+?)\.\s")
_ROW: Final = re.compile(r"detected in record parsing: (.+?)\.\s+Parse Mode", re.DOTALL)
_NAMES: Final = re.compile(r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)")
_WHY: Final = re.compile(r"^[\w.$]+(Exception|Error): |^\[[\w.]+\] | Correct the value as per.*| SQLSTATE: .*")
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
        raise in_words(error, hint=None if verbose else "--verbose shows all of it") from None


def in_words(error: BaseException, hint: str | None = None) -> StreamjoinError:
    """An error of Spark's as one of streamjoin's, with a message of one line."""
    return bad_row(causes_of(error)) or StreamjoinError(reason(str(error)), hint=hint)


def from_spark(error: BaseException) -> bool:
    """Whether Spark raised it, in Java or in Python."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


def causes_of(error: BaseException | None) -> Iterator[str]:
    """What an error says, and those behind it, which Spark does not always repeat."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None)


def bad_row(causes: Iterable[str]) -> StreamjoinError | None:
    """What is wrong with a file that does not fit the columns of its stream; None when it is something else.

    >>> print(bad_row(["Encountered error while reading file file:///in/3.csv. SQLSTATE: KD001",
    ...     "Malformed records are detected in record parsing: [b,null].\\nParse Mode: FAILFAST.",
    ...     'java.lang.NumberFormatException: For input string: "7.5"']))
    /in/3.csv has a row that does not fit its columns, [b,null]: For input string: "7.5". Hint: --bad-rows PATH puts
    such rows aside; --schema says other columns to a new query.
    """
    texts = list(causes)
    whole = "\n".join(texts)
    file, row, names = _FILE.search(whole), _ROW.search(whole), _NAMES.search(whole)
    where = "a file" if file is None else unquote(re.sub("^file:(//)?", "", file[1]))
    if names is not None:
        return StreamjoinError(
            f"{where} has other columns than its stream: the first line says {names[1]}, the stream has {names[2]}",
            hint="take the file out of the folder, or bring its columns into their order",
        )
    if row is None:
        return None
    why = _WHY.sub("", texts[-1].split("\n")[0])
    return StreamjoinError(
        f"{where} has a row that does not fit its columns, {row[1]}: {why}",
        hint="--bad-rows PATH puts such rows aside; --schema says other columns to a new query",
    )


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
