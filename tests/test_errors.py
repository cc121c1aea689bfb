"""Errors: what they say, that they survive the way from a worker to the driver, and that they can be caught by kind."""

from __future__ import annotations

import pickle

import pytest

from streamjoin import errors
from streamjoin.errors import (
    CallError,
    StreamjoinError,
    UnknownColumnError,
    UnsupportedError,
    unknown_column,
)

KINDS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]


@pytest.mark.parametrize(
    ("message", "hint", "text"),
    [
        ("it is wrong", None, "it is wrong."),
        ("it is wrong.", None, "it is wrong."),
        ("it is wrong", "do it right", "it is wrong. Hint: do it right."),
        ("it is wrong", "do it right.", "it is wrong. Hint: do it right."),
        ("it is wrong", "did you mean 'x'?", "it is wrong. Hint: did you mean 'x'?"),
    ],
)
def test_text_ends_its_sentences_once(message: str, hint: str | None, text: str) -> None:
    assert str(StreamjoinError(message, hint=hint)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling(kind: type[StreamjoinError]) -> None:
    error = pickle.loads(pickle.dumps(kind("what", hint="how")))
    assert type(error) is kind
    assert (error.message, error.hint, str(error)) == ("what", "how", "what. Hint: how.")


def test_every_error_of_the_module_is_a_streamjoin_error() -> None:
    assert len(KINDS) >= 7
    assert all(issubclass(kind, StreamjoinError) for kind in KINDS)


def test_wrong_calls_are_value_errors_and_gaps_are_not_implemented() -> None:
    assert issubclass(CallError, ValueError)
    assert issubclass(UnknownColumnError, CallError)
    assert issubclass(UnsupportedError, NotImplementedError)
    assert not issubclass(UnsupportedError, ValueError)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("spede", ["speed", "ts"], "did you mean 'speed'?"),
        ("Q", ["q", "zzzz"], "did you mean 'q'?"),
        ("aaab", ["aaaa", "aaac"], "did you mean 'aaac' or 'aaaa'?"),
        ("nothing like it", ["a", "b"], "it has 'a', 'b'"),
    ],
)
def test_an_unknown_column_suggests_the_nearest(name: str, known: list[str], hint: str) -> None:
    error = unknown_column(name, known, "input 1")
    assert error.message == f"input 1 has no column {name!r}"
    assert error.hint == hint
