"""Whether some pieces of an expression are an operand of their own: a * b + c has a * b in it, but no b + c.

Operators bind as in Spark, each level tighter than the one before:

    OR   AND   NOT   BETWEEN IN LIKE IS   = <> < ...   |   ^   &   << >>   + - ||   * / % DIV   unary   :: . []

Those of one level bind from the left. What is not known here is an operand only where nothing can bind into it: between
parentheses, commas, and the words of CASE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamjoin.language.scalar import Piece

_LEVELS = """
    OR
    AND
    NOT !
    BETWEEN IN LIKE ILIKE RLIKE REGEXP IS
    = == <=> <> != < <= > >=
    |
    ^
    &
    << >>
    + - ||
    * / % DIV
"""
_LEVEL = {word: level for level, line in enumerate(_LEVELS.strip().splitlines()) for word in line.split()}
_PREDICATE: Final = _LEVEL["IS"]
_UNARY: Final = _LEVEL["*"] + 1
_POSTFIX: Final = _UNARY + 1
_OPERAND: Final = _POSTFIX + 1
_UNKNOWN: Final = -1

_OPEN, _CLOSE = ("(", "[", "CASE"), (")", "]", "END")
_BEGINS = ("", "(", "[", ",", "CASE", "WHEN", "THEN", "ELSE", "->", "=>")
_ENDS = ("", ")", "]", ",", "WHEN", "THEN", "ELSE", "END", "AS")
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")


def is_operand(pieces: Sequence[Piece], start: int, end: int) -> bool:
    """Whether `pieces[start:end]` are an operand of what stands around them.

    >>> words = [Piece(text, 0, True, word=text.isalpha()) for text in "a * b + c".split()]
    >>> is_operand(words, 0, 3), is_operand(words, 2, 5)
    (True, False)
    """
    own = _loosest(pieces[start:end])
    before, behind = _form(pieces, start - 1), _form(pieces, end)
    if before == ".":
        return False
    if own >= _POSTFIX or (before in _BEGINS and behind in _ENDS):
        return True
    left = _UNKNOWN if before in _BEGINS else _level_before(pieces, start - 1)
    right = _UNKNOWN if behind in _ENDS else _level_behind(behind)
    return left is not None and right is not None and left < own and right <= own


def _loosest(pieces: Sequence[Piece]) -> int:
    """The level of the outermost operator; `_UNKNOWN` where that is not clear."""
    found, depth, betweens, joined = _OPERAND, 0, 0, True  # joined: an operand may come
    for at, piece in enumerate(pieces):
        form = piece.form
        if form in _OPEN:
            depth += 1
        elif form in _CLOSE:
            depth -= 1
            joined = False
        elif depth == 0:
            if form == "AND" and betweens:
                betweens, joined = betweens - 1, True
                continue
            betweens += form == "BETWEEN"
            level = _level_inside(pieces, at, joined)
            if level is not None:
                found, joined = min(found, level), True
            elif joined or (_form(pieces, at - 1) in _TYPED and form[0] in "'\""):
                joined = False
            else:
                return _UNKNOWN
    return found


def _level_inside(pieces: Sequence[Piece], at: int, joined: bool) -> int | None:
    form = pieces[at].form
    if form in (".", "::"):
        return _POSTFIX
    if joined and form in ("+", "-", "~"):
        return _UNARY
    if form == "NOT" and (not joined or _form(pieces, at - 1) == "IS"):
        return _PREDICATE  # NOT IN, IS NOT
    return _LEVEL.get(form)


def _level_before(pieces: Sequence[Piece], at: int) -> int | None:
    """The level of an operator whose right operand begins behind it; None where it is none that is known."""
    form, before = pieces[at].form, _form(pieces, at - 1)
    if form in ("+", "-", "~") and (before in _BEGINS or before in _LEVEL):
        return _UNARY
    if form == ">" and before == ">>":
        return _LEVEL[">>"]  # >>> in two tokens
    if form == "NOT" and before == "IS":
        return _PREDICATE
    return _LEVEL.get(form)


def _level_behind(form: str) -> int | None:
    """The level of an operator whose left operand ends before it; None where it is none that is known."""
    if form in (".", "::", "["):
        return _POSTFIX
    return _PREDICATE if form == "NOT" else _LEVEL.get(form)


def _form(pieces: Sequence[Piece], at: int) -> str:
    return pieces[at].form if 0 <= at < len(pieces) else ""
