"""Parameters of a query: values of Python's that become literals of its text, as in `spark.sql(text, args=...)`.

    WHERE x > :limit                 args={"limit": 5}
    [RANGE :size]  [ROWS ?]          in windows, too: "5 seconds", a timedelta or a number

A value is written as the literal that has its type in Spark; so a query with parameters is the query with these
literals, plans and restarts included. It is never read as anything else: a text cannot close its quotes.

What it does not do: names of columns or streams. `v:a`, without space, is a path into `v`, and no parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from streamjoin.errors import CallError, near_or_all
from streamjoin.language.complaint import wrong
from streamjoin.plan.expression import literals
from streamjoin.plan.expression.lexer import Token, tokens

Arguments = Mapping[str, Any] | Sequence[Any] | None


@dataclass(frozen=True)
class Parameter:
    """A parameter that has got its value: what it is called, and where its literal ends in the text."""

    name: str
    value: Any
    end: int


def with_values(text: str, args: Arguments) -> tuple[str, dict[int, Parameter]]:
    """The text with literals in place of its parameters, and by their starts what these were.

    >>> with_values("SELECT * FROM R [ROWS :n] WHERE k = :k", {"n": 3, "k": "it's"})[0]
    "SELECT * FROM R [ROWS 3] WHERE k = 'it\\\\'s'"
    >>> with_values("SELECT * FROM R [NOW] WHERE x > ?", [1.5])[0]
    'SELECT * FROM R [NOW] WHERE x > 1.5D'
    """
    if not isinstance(text, str):
        raise CallError(f"a query is text, got {type(text).__name__}", hint='for example "SELECT * FROM R [NOW]"')
    if args is not None and (isinstance(args, str | bytes) or not isinstance(args, Mapping | Sequence)):
        raise CallError(
            f"args are the values of parameters, got {args!r}",
            hint='args={"limit": 5} for :limit, or a list for one ? after the other',
        )
    found, written, at, used = {}, "", 0, set()
    for number, (name, token, end) in enumerate(_places(text, tokens(text, "The query is wrong"))):
        key = number if name is None and not isinstance(args, Mapping) else name
        known: Mapping[Any, Any] = args if isinstance(args, Mapping) else dict(enumerate(args or ()))
        if key not in known:
            raise wrong(text, token.start, f"The parameter {text[token.start : end]} has no value", _give(name, args))
        used.add(key)
        written += text[at : token.start]
        start = len(written)
        written += _literal(known[key], text[token.start : end])
        found[start] = Parameter(text[token.start : end], known[key], len(written))
        at = end
    _check_all_used(args, used)
    return written + text[at:], found


def _places(text: str, pieces: Sequence[Token]) -> Iterator[tuple[str | None, Token, int]]:
    """The name of each parameter (none for ?), its first token, and its end."""
    for before, token, after in zip((None, *pieces), pieces, (*pieces[1:], None), strict=False):
        if token.text == "?":
            yield None, token, token.end
        elif token.text == ":" and after is not None and after.kind == "word" and after.start == token.end:
            path = before is not None and before.end == token.start and (before.kind != "symbol" or before.text in ")]")
            if not path:
                yield after.text, token, after.end


def _give(name: str | None, args: Arguments) -> str:
    if name is None:
        return "give a list with a value for each ?: args=[...]"
    return near_or_all(name, args, "args has") if isinstance(args, Mapping) and args else f'args={{"{name}": ...}}'


def _check_all_used(args: Arguments, used: set[Any]) -> None:
    known = args if isinstance(args, Mapping) else range(len(args or ()))
    unused = [key for key in known if key not in used]
    if not unused:
        return
    if not isinstance(args, Mapping):
        raise CallError(f"args has {len(known)} values, and the query has {len(used)} ?", hint="write a ? for each")
    hint = near_or_all(str(unused[0]), sorted(used), "it has") if used else "leave args out, or write it into the text"
    raise CallError(f"the query has no parameter :{unused[0]}", hint=hint)


def _literal(value: Any, name: str) -> str:
    """A value as Spark reads it with its type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return literals.written(value)
    if isinstance(value, bytes | bytearray):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):  # without a zone it is local time, as everywhere in PySpark
        return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if isinstance(value, date):
        return f"DATE '{value:%Y-%m-%d}'"
    if isinstance(value, timedelta):
        return f"INTERVAL '{value.days}' DAY '{value.seconds}.{value.microseconds:06}' SECOND"
    if isinstance(value, int):
        return _signed(str(int(value)))
    if isinstance(value, float):
        return _signed(f"{float(value)!r}D") if math.isfinite(value) else f"CAST('{float(value)}' AS DOUBLE)"
    if isinstance(value, Decimal) and value.is_finite():
        return _signed(f"{value:f}BD")
    raise CallError(
        f"the parameter {name} is a {type(value).__name__}, which has no literal in SQL",
        hint="str, int, float, bool, None, Decimal, date, datetime, timedelta and bytes have",
    )


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number  # x -:n would be a comment
