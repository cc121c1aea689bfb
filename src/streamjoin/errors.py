"""One hierarchy of errors. Each says what was wrong, what was got, why, and what to write instead."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])


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


class ArgumentError(CallError, TypeError):
    """A call with an argument that the function does not take, or without one that it needs."""


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


class SpillError(StreamjoinError):
    """State that does not fit into memory, and could not be written to a file, or not be read from it again."""


def unknown_column(name: str, known: Iterable[str], where: str) -> UnknownColumnError:
    """The error for a missing column, with the nearest names that exist.

    >>> raise unknown_column("spede", ["speed", "ts"], "input 0")
    Traceback (most recent call last):
    ...
    streamjoin.errors.UnknownColumnError: input 0 has no column 'spede'. Hint: did you mean 'speed'?
    """
    return UnknownColumnError(f"{where} has no column {name!r}", hint=near_or_all(name, known, "it has"))


def near_or_all(name: str, known: Iterable[str], there_are: str) -> str:
    """A hint with the names that are nearest to one, or with all of them.

    >>> near_or_all("windw", ["time", "window"], "its options are"), near_or_all("q", ["time"], "its options are")
    ("did you mean 'window'?", "its options are 'time'")
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    near = near or [other for other in names if other.lower() == name.lower()]
    if near:
        return "did you mean " + " or ".join(repr(other) for other in near) + "?"
    return f"{there_are} " + ", ".join(repr(other) for other in names)


# -- calls that do not fit a signature ---------------------------------------------------------------------------------


def says_what_fits(called: C) -> C:
    """A public function or class whose refusal of arguments says what to write; otherwise it is as it was.

    Nothing is looked at until Python itself refuses the call.

    >>> @says_what_fits
    ... def wait(*, seconds): ...
    >>> wait(secnds=5)
    Traceback (most recent call last):
    ...
    streamjoin.errors.ArgumentError: wait has no option 'secnds'. Hint: did you mean 'seconds'?
    """
    if isinstance(called, type):
        type.__setattr__(called, "__init__", _explained(called.__init__, called.__name__))  # type: ignore[misc]
        return called
    explained: C = _explained(called, called.__name__)
    return explained


def _explained(function: Any, name: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError:
            wrong = _misfit(function, name, args, options)
            if wrong is None:  # it was called: the error is about something else
                raise
            raise wrong from None

    return call


def _misfit(function: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> ArgumentError | None:
    """What is wrong with a call, if it does not fit the signature."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        own = {key: each for key, each in signature.parameters.items() if key != "self"}
        unknown = next((option for option in options if option not in own), None)
        if unknown is not None:
            named = [key for key, each in own.items() if each.kind is not each.VAR_POSITIONAL]
            hint = near_or_all(unknown, named, "its options are")
            return ArgumentError(f"{name} has no option {unknown!r}", hint=hint)
        by_place = [key for key, each in own.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(args) > len(by_place) + ("self" in signature.parameters):
            shown = f"{name}({', '.join([*by_place, 'option=...'])})"
            what = f"got {args[-1]!r} without its name"
            return ArgumentError(f"{name} takes its options by name, {what}", hint=f"write {shown}")
        given = {*by_place[: len(args) - ("self" in signature.parameters)], *options}
        must = [key for key, each in own.items() if each.default is each.empty and each.kind < each.VAR_KEYWORD]
        missing = [key for key in must if key not in given and own[key].kind is not inspect.Parameter.VAR_POSITIONAL]
        return ArgumentError(f"{name} needs {' and '.join(missing)}" if missing else f"{name}: {error}")
    return None
