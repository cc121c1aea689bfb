"""How CQL complains: where it is (line, column, a caret under the place), what is wrong, and what to write instead.

The query is wrong at line 1, column 15:
    SELECT * FROM R WHERE x > 3
                  ^
Stream 'R' has no window. Hint: write R [UNBOUNDED], R [RANGE 5 SECONDS] or R [ROWS 100].
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from streamjoin.errors import CallError, UnknownColumnError, UnsupportedError
from streamjoin.plan.expression.lexer import place


def wrong(text: str, at: int, reason: str, hint: str) -> CallError:
    """The error for a query that cannot mean anything.

    >>> print(wrong("SELECT 1", 7, "A query reads at least one stream", "write FROM").message)
    The query is wrong at line 1, column 8:
        SELECT 1
               ^
    A query reads at least one stream
    """
    return CallError(f"{place(text, at, 'The query is wrong')}\n{reason}", hint=hint)


def unknown(text: str, at: int, reason: str, hint: str) -> UnknownColumnError:
    """The error for a column that is not there."""
    return UnknownColumnError(f"{place(text, at, 'The query is wrong')}\n{reason}", hint=hint)


def refused(text: str, at: int, reason: str, hint: str) -> UnsupportedError:
    """The error for a query that makes sense, but that is not planned.

    >>> refused("SELECT 1", 7, "That is not planned", "write less").message.splitlines()[0]
    'The query cannot be planned at line 1, column 8:'
    """
    return UnsupportedError(f"{place(text, at, 'The query cannot be planned')}\n{reason}", hint=hint)


def nearest(name: str, known: Iterable[str], what: str) -> str:
    """A hint with the known names that are nearest to one, or with all of them.

    >>> nearest("spede", ["speed", "ts"], "columns"), nearest("q", ["R", "S"], "streams")
    ("did you mean 'speed'?", 'the streams are R, S')
    """
    names = list(dict.fromkeys(known))
    lowered = {other.lower(): other for other in names}
    near = [lowered[found] for found in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    if near:
        return "did you mean " + " or ".join(repr(other) for other in near) + "?"
    return f"the {what} are {', '.join(names)}" if names else f"there are no {what}"
