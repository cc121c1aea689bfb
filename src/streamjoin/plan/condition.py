"""Conditions as text, taken apart: a bound expression is Spark SQL with its columns in backquotes.

Rules work on the text itself, by its tokens, so that every literal reaches Spark as the user wrote it. What a token
stands in (parentheses, brackets, CASE ... END) is its *depth*; operators at depth zero are the outermost.

    `R.a` > 3 AND (`R.b` = 1 OR `S.c` = 2)      two conjuncts: the OR is at depth one

What it does not do: check that the text is correct. It has been parsed before. Cost: one pass over the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from streamjoin.plan.expression import literals
from streamjoin.plan.expression.lexer import Token, tokens
from streamjoin.plan.expression.sqltypes import INTEGERS
from streamjoin.plan.expression.tree import Outside
from streamjoin.plan.expression.variables import is_variable, lambdas, renamed

_PLAIN_NAME: Final = re.compile(r"\w+")
_OPEN, _CLOSE = ("(", "["), (")", "]")
_COMPARISONS = ("=", "==", "<", "<=", ">", ">=", "<>", "!=", "<=>")
_USEFUL = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_PREDICATES = {"AND", "OR", "NOT", "!", "BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "ESCAPE"}
_LOOSER_THAN_PLUS = {"||", "&", "|", "^", "<<", ">>", "->", *_COMPARISONS, *_PREDICATES}
_UNARY_AFTER = {"INTERVAL", "+", "-", "*", "/", "%", "DIV", "(", ","}


def quoted(name: str) -> str:
    """The name of a column as it stands in a condition.

    >>> quoted("R.x")
    '`R.x`'
    """
    return "`" + name.replace("`", "``") + "`"


def readable(name: str) -> str:
    """The name of a column as people write it: in backquotes only where it needs them.

    >>> readable("x"), readable("a b")
    ('x', '`a b`')
    """
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def column_places(pieces: Sequence[Token]) -> list[int]:
    """Where columns stand among the tokens: names in backquotes that are no field, function or variable."""
    functions = lambdas(pieces)
    return [
        at
        for at, piece in enumerate(pieces)
        if piece.kind == "quoted"
        and (at == 0 or pieces[at - 1].text != ".")
        and (at + 1 == len(pieces) or pieces[at + 1].text != "(")
        and not is_variable(functions, pieces, at)
    ]


def columns(text: str) -> tuple[str, ...]:
    """The columns that a text uses, in the order of their first use.

    >>> columns("`R.x` + `S.y`.`field` > `R.x`")
    ('R.x', 'S.y')
    """
    pieces = tokens(text)
    return tuple(dict.fromkeys(pieces[at].name or "" for at in column_places(pieces)))


def one_column(text: str) -> str | None:
    """The column that a text is, if it is nothing else.

    >>> one_column("(`R.x`)"), one_column("`R.x` + 1")
    ('R.x', None)
    """
    pieces = tokens(bare(text))
    return pieces[0].name if len(pieces) == 1 and pieces[0].kind == "quoted" else None


def substituted(text: str, texts: Mapping[str, str]) -> str:
    """The text with columns replaced by other texts, in parentheses where they need them.

    A column keeps its type, and is no variable of a lambda function:

    >>> substituted("`Q.x` * 2", {"Q.x": "`R.a` + 1"}), substituted("`Q.x` * 2", {"Q.x": "`R.a`"})
    ('(`R.a` + 1) * 2', '`R.a` * 2')
    >>> substituted("`R.price` / `Q.x`", {"Q.x": "3"}), substituted("f(`a`, x -> x + `Q.x`)", {"Q.x": "`x`"})
    ('`R.price` / CAST(3 AS INT)', 'f(`a`, x_ -> x_ + `x`)')
    """
    text = _not_hidden(text, texts)
    pieces = tokens(text)
    written, at = [], 0
    for number in column_places(pieces):
        piece = pieces[number]
        new = texts.get(piece.name or "")
        if new is not None:
            written += [text[at : piece.start], new if len(pieces) == 1 else _operand(new)]
            at = piece.end
    return "".join([*written, text[at:]])


def _operand(text: str) -> str:
    typed = as_column(text)
    return typed if typed != text or len(tokens(text)) == 1 else f"({text})"


def as_column(text: str) -> str:
    """The text with the type that a column of it has: Spark takes an integer beside a decimal for as many digits as are
    written, where a column has all those of its type, and so divides to other digits.

    >>> as_column("-3"), as_column("3L"), as_column("1.5"), as_column("`R.a`")
    ('CAST(-3 AS INT)', 'CAST(3L AS BIGINT)', '1.5', '`R.a`')
    """
    pieces = tokens(bare(text))
    if not pieces or pieces[-1].kind != "number" or [piece.text for piece in pieces[:-1]] not in ([], ["-"]):
        return text
    try:
        kind = literals.number(pieces[-1].text, len(pieces) > 1).type
    except Outside:
        return text
    return f"CAST({bare(text)} AS {str(kind).upper()})" if kind in INTEGERS else text


def _not_hidden(text: str, texts: Mapping[str, str]) -> str:
    """The text with other names for variables that would hide a column of what is written in their place."""
    pieces = tokens(text)
    for one in lambdas(pieces):
        inside = (pieces[at].name or "" for at in column_places(pieces) if one.start <= at < one.end)
        coming = {name.lower() for column in inside if column in texts for name in columns(texts[column])}
        for variable in sorted(one.variables & coming):
            return _not_hidden(renamed(text, pieces, one, variable, coming), texts)
    return text


def bare(text: str) -> str:
    """The text without parentheses around all of it.

    >>> bare("((`a` > 1))"), bare("(`a`) + (`b`)")
    ('`a` > 1', '(`a`) + (`b`)')
    """
    pieces = tokens(text)
    while len(pieces) > 2 and pieces[0].text == "(" and _closing(pieces, 0) == len(pieces) - 1:
        pieces = pieces[1:-1]
    return text[pieces[0].start : pieces[-1].end] if pieces else text


def conjuncts(text: str) -> tuple[str, ...]:
    """The conditions that must all be true.

    >>> conjuncts("`a` BETWEEN 1 AND 2 AND (`b` > 3 AND NOT `c`)")
    ('`a` BETWEEN 1 AND 2', '`b` > 3', 'NOT `c`')
    >>> conjuncts("`a` AND `b` OR `c`")
    ('`a` AND `b` OR `c`',)
    """
    text, pieces, top = _taken_apart(text)
    if any(pieces[at].keyword == "OR" for at in top):
        return (text,)
    cuts, between = [], 0
    for at in top:
        if pieces[at].keyword == "BETWEEN":
            between += 1
        elif pieces[at].keyword == "AND":
            if between:
                between -= 1
            else:
                cuts.append(at)
    if not cuts:
        return (text,)
    return tuple(part for piece in _cut(text, pieces, cuts) for part in conjuncts(piece))


def conjunction(parts: Iterable[str]) -> str | None:
    """One condition of several that must all be true; None for none.

    >>> conjunction(["`a` OR `b`", "`c`"])
    '(`a` OR `b`) AND `c`'
    """
    parts = tuple(parts)
    if len(parts) < 2:
        return parts[0] if parts else None
    return " AND ".join(f"({part})" if _binds_loosely(part) else part for part in parts)


def comparison(text: str) -> tuple[str, str, str] | None:
    """Left operand, operator (one of = < <= > >=) and right operand, if the text is one comparison.

    >>> comparison("`a` - `b` <= 3"), comparison("`a` <> 3")
    (('`a` - `b`', '<=', '3'), None)
    """
    text, pieces, top = _taken_apart(text)
    if any(pieces[at].keyword in _PREDICATES for at in top):
        return None
    found = [at for at in top if pieces[at].text in _COMPARISONS]
    if len(found) != 1 or pieces[found[0]].text not in _USEFUL:
        return None
    left, right = _cut(text, pieces, found)
    return (bare(left), _USEFUL[pieces[found[0]].text], bare(right)) if left and right else None


def in_order(text: str) -> tuple[str, str, str] | None:
    """The smaller operand, < or <=, and the larger one, if the text is a comparison that says which is which.

    >>> in_order("`a` > `b` - 3"), in_order("`a` = `b`")
    (('`b` - 3', '<', '`a`'), None)
    """
    found = comparison(text)
    if found is None or found[1] == "=":
        return None
    left, operator, right = found
    return found if operator[0] == "<" else (right, operator.replace(">", "<"), left)


def halves(text: str) -> tuple[str, ...]:
    """A BETWEEN as the two comparisons that it is; anything else as it is.

    >>> halves("`a` BETWEEN `b` - 1 AND 2")
    ('`a` >= (`b` - 1)', '`a` <= 2')
    """
    whole, pieces, top = _taken_apart(text)
    found = [at for at in top if pieces[at].keyword in _PREDICATES or pieces[at].text in _COMPARISONS]
    if [pieces[at].keyword for at in found] != ["BETWEEN", "AND"] or not all(_cut(whole, pieces, found)):
        return (text,)
    parts = (bare(part) for part in _cut(whole, pieces, found))
    value, low, high = (part if len(tokens(part)) == 1 else f"({part})" for part in parts)
    return f"{value} >= {low}", f"{value} <= {high}"


def terms(text: str) -> tuple[tuple[int, str], ...] | None:
    """The terms of a sum, each with its sign; None where it is not plainly a sum.

    >>> terms("`a` - (`b` + 1) + 2 * 3")
    ((1, '`a`'), (-1, '`b` + 1'), (1, '2 * 3'))
    """
    text, pieces, top = _taken_apart(text)
    if any(pieces[at].keyword in _LOOSER_THAN_PLUS for at in top):
        return None
    signs = [at for at in top if pieces[at].text in ("+", "-")]
    binary = [at for at in signs if at > 0 and pieces[at - 1].keyword not in _UNARY_AFTER]
    parts = _cut(text, pieces, binary)
    signed = zip((1, *(1 if pieces[at].text == "+" else -1 for at in binary)), parts, strict=True)
    return tuple((sign, bare(part)) for sign, part in signed) if all(parts) else None


def call(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The name in lower case and the arguments, if the text is one call of a function.

    >>> call("abs(`a` - `b`)"), call("abs(`a`) + 1")
    (('abs', ('`a` - `b`',)), None)
    """
    text = bare(text)
    pieces = tokens(text)
    if len(pieces) < 3 or pieces[0].name is None or pieces[1].text != "(" or _closing(pieces, 1) != len(pieces) - 1:
        return None
    inner = pieces[2:-1]
    commas = [at for at in _top(inner) if inner[at].text == ","]
    return pieces[0].name.lower(), tuple(_cut(text[: pieces[-1].start], inner, commas)) if inner else ()


def calls(text: str, names: Iterable[str]) -> tuple[tuple[int, int, str, tuple[str, ...]], ...]:
    """The calls of some functions anywhere in a text, none inside another: start, end, name and arguments of each.

    >>> calls("2 * distance(`a`, `b`) > 1", ["distance"])
    ((4, 22, 'distance', ('`a`', '`b`')),)
    """
    pieces = tokens(text)
    found: list[tuple[int, int, str, tuple[str, ...]]] = []
    for at in range(len(pieces) - 1):
        name = (pieces[at].name or "").lower()
        free = not found or pieces[at].start >= found[-1][1]
        if name in names and pieces[at + 1].text == "(" and free and (at == 0 or pieces[at - 1].text != "."):
            end = pieces[_closing(pieces, at + 1)].end
            whole = call(text[pieces[at].start : end])
            assert whole is not None
            found.append((pieces[at].start, end, *whole))
    return tuple(found)


def _binds_loosely(text: str) -> bool:
    pieces = tokens(text)
    return any(pieces[at].keyword in ("OR", "->") for at in _top(pieces))


def _closing(pieces: Sequence[Token], at: int) -> int:
    depth = 0
    for number in range(at, len(pieces)):
        depth += (pieces[number].text in _OPEN) - (pieces[number].text in _CLOSE)
        if depth == 0:
            return number
    return len(pieces)


def _taken_apart(text: str) -> tuple[str, Sequence[Token], list[int]]:
    """The text without parentheses around it, its tokens, and which of them are outermost."""
    text = bare(text)
    pieces = tokens(text)
    return text, pieces, _top(pieces)


def _top(pieces: Sequence[Token]) -> list[int]:
    """The tokens at depth zero, without the parentheses and CASE ... END themselves."""
    found, depth = [], 0
    for at, piece in enumerate(pieces):
        word = "" if at and pieces[at - 1].text == "." else piece.keyword
        if word in _OPEN or word == "CASE":
            depth += 1
        elif word in _CLOSE or word == "END":
            depth -= 1
        elif depth == 0:
            found.append(at)
    return found


def _cut(text: str, pieces: Sequence[Token], at: Sequence[int]) -> list[str]:
    """The texts between the tokens at these places."""
    starts = [0, *(number + 1 for number in at)]
    ends = [*at, len(pieces)]
    return [
        text[pieces[start].start : pieces[end - 1].end] if start < end else ""
        for start, end in zip(starts, ends, strict=True)
    ]
