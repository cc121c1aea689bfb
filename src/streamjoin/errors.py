"""One hierarchy of errors. Each says what was wrong, what was got, why, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StreamjoinError(Exception):
    """The root of every error that streamjoin raises on purpose.

    >>> raise StreamjoinError("window size must be positive, got -1", hint="use Now() for the current instant only")
    Traceback (most recent call last):
    ...
    streamjoin.errors.StreamjoinError: window size must be positive, got -1. Hint: use Now() for the current instant
    only.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        text = message.rstrip(".") + "."
        if hint:
            text += f" Hint: {hint.rstrip('.')}" + ("" if hint.endswith("?") else ".")
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from a Python worker to the driver: keyword-only arguments need help to be rebuilt.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(kind: type[StreamjoinError], message: str, hint: str | None) -> StreamjoinError:
    return kind(message, hint=hint)


class CallError(StreamjoinError, ValueError):
    """A call that cannot mean anything: found when the call is made, never in a worker."""


class UnknownColumnError(CallError):
    """A column that the frame does not have."""


class UnsupportedError(StreamjoinError, NotImplementedError):
    """A call that makes sense, but that streamjoin does not carry out."""


class InvalidRowError(StreamjoinError, ValueError):
    """A row without a time, or whose validity ends before it begins, under the policy `invalid="fail"`."""


class LateRowError(StreamjoinError, ValueError):
    """A row that arrived behind its input's progress, under the policy `late="fail"`."""


class EvaluationError(StreamjoinError, ArithmeticError):
    """A row for which an expression has no value: overflow, or division by zero. Spark's ANSI mode fails there, too."""


class SnapshotError(StreamjoinError, ValueError):
    """A snapshot that does not belong to the operator it was given to."""


def unknown_column(name: str, known: Iterable[str], where: str) -> UnknownColumnError:
    """The error for a missing column, with the nearest names that exist.

    >>> raise unknown_column("spede", ["speed", "ts"], "input 0")
    Traceback (most recent call last):
    ...
    streamjoin.errors.UnknownColumnError: input 0 has no column 'spede'. Hint: did you mean 'speed'?
    """
    columns = list(known)
    near = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
    if not near:
        near = [column for column in columns if column.lower() == name.lower()]
    if near:
        hint = "did you mean " + " or ".join(repr(column) for column in near) + "?"
    else:
        hint = "it has " + ", ".join(repr(column) for column in columns)
    return UnknownColumnError(f"{where} has no column {name!r}", hint=hint)
