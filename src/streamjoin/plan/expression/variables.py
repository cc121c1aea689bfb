"""Variables of lambda functions: in `transform(a, x -> x + 1)` x is no column, whatever columns there are.

A variable hides a column of its name, in backquotes too. So a text that names a column `x` must not be written where
`x` is a variable: the variable gets another name before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from streamjoin.plan.expression.lexer import Token

_DEEPER = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass(frozen=True)
class Lambda:
    """A lambda function among tokens: its variables in lower case, and its tokens from the first variable on."""

    variables: frozenset[str]
    start: int
    end: int


def lambdas(pieces: Sequence[Token]) -> list[Lambda]:
    """The lambda functions in an expression.

    >>> from streamjoin.plan.expression.lexer import tokens
    >>> [(sorted(one.variables), one.start, one.end) for one in lambdas(tokens("f(a, (x, y) -> x + y, 3)"))]
    [(['x', 'y'], 4, 13)]
    """
    found = []
    for arrow in range(1, len(pieces)):
        if pieces[arrow].text != "->":
            continue
        start = arrow - 1
        while pieces[arrow - 1].text == ")" and start > 0 and pieces[start].text != "(":
            start -= 1
        end, depth = arrow + 1, 0
        while end < len(pieces):
            depth += _DEEPER.get(pieces[end].text, 0)
            if depth < 0 or (depth == 0 and pieces[end].text == ","):
                break
            end += 1
        names = frozenset((piece.name or "").lower() for piece in pieces[start:arrow] if piece.name)
        found.append(Lambda(names, start, end))
    return found


def is_variable(found: Collection[Lambda], pieces: Sequence[Token], at: int) -> bool:
    """Whether a name is a variable where it stands.

    >>> from streamjoin.plan.expression.lexer import tokens
    >>> pieces = tokens("f(`x`, `x` -> `x` + `y`)")
    >>> [pieces[at].name for at in range(len(pieces)) if is_variable(lambdas(pieces), pieces, at)]
    ['x', 'x']
    """
    name = (pieces[at].name or "").lower()
    return any(one.start <= at < one.end and name in one.variables for one in found)


def renamed(text: str, pieces: Sequence[Token], one: Lambda, variable: str, taken: Collection[str]) -> str:
    """The text with a variable of a lambda function called by another name.

    >>> from streamjoin.plan.expression.lexer import tokens
    >>> text = "f(`x`, x -> x + `s`.x)"
    >>> renamed(text, tokens(text), lambdas(tokens(text))[0], "x", {"x_"})
    'f(`x`, x__ -> x__ + `s`.x)'
    """
    used = {*taken, *((piece.name or "").lower() for piece in pieces)}
    name = variable if variable.isidentifier() else "variable"
    while name in used:
        name += "_"
    written, at = [], 0
    for number in range(one.start, one.end):
        piece = pieces[number]
        before = pieces[number - 1].keyword if number else ""
        behind = pieces[number + 1].text if number + 1 < len(pieces) else ""
        # Fields, functions, and names that are given by AS or => are no variables.
        if (piece.name or "").lower() == variable and before not in (".", "AS") and behind not in ("(", "=>"):
            written += [text[at : piece.start], name]
            at = piece.end
    return "".join([*written, text[at:]])
