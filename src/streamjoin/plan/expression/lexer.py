"""Cut the text of an expression into tokens, as Spark's own lexer does, with their places.

A parser's tree forgets how a literal was written, but Spark types it by that: `1.5` is DECIMAL(2,1), `1.5D` is DOUBLE,
`'a\\%b'` keeps its backslash. And every complaint wants a caret under its place. So tokens are text and offsets.

What it does not do: hints, nested comments, and checking that operators exist. Cost: one regular expression per token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamjoin.errors import CallError

_TOKEN = re.compile(
    r"""
    (?P<space>   \s+ | --[^\n]* | /\*.*?\*/ )
  | (?P<number>  (?: \d+ (?: \.\d* )? | \.\d+ ) (?: E[+-]?\d+ )? (?: BD | [LSYFD] )? (?!\w) )
  | (?P<string>  R?'(?: [^'\\] | \\. | '' )*' | R?"(?: [^"\\] | \\. | "" )*" )
  | (?P<quoted>  `(?: [^`] | `` )*` )
  | (?P<word>    \w+ )
  | (?P<symbol>  <=> | <> | <= | >= | == | != | :: | -> | => | \|\| | << | >> | [^\s\w'"`] )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of the text: `kind` is number, string, quoted (a name in backquotes), word or symbol.

    >>> [token.kind for token in tokens("l.`my col` > 1.5D")]
    ['word', 'symbol', 'quoted', 'symbol', 'number']
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset just behind it.

        >>> tokens("l.speed > 25")[2].end
        7
        """
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in capitals, a symbol as it is; nothing for literals and quoted names, which are never keywords.

        >>> [token.keyword for token in tokens("`not` Not <=>")]
        ['', 'NOT', '<=>']
        """
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def name(self) -> str | None:
        """The name it spells, where it can be one.

        >>> [token.name for token in tokens("speed `a``b` 25")]
        ['speed', 'a`b', None]
        """
        if self.kind == "word":
            return self.text
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else None


def tokens(text: str, what: str = "The expression is wrong") -> tuple[Token, ...]:
    """The tokens of the text, without space and comments. `what` begins the complaint about a quote that stays open.

    >>> [token.text for token in tokens("l.a >= 1.5 -- fast")]
    ['l', '.', 'a', '>=', '1.5']
    """
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # only a quote can start what no alternative matches
            raise CallError(
                f"{place(text, at, what)}\nThis {text[at]} is never closed", hint=f"close it with another {text[at]}"
            )
        if match.lastgroup != "space":
            assert match.lastgroup is not None  # every alternative is a named group
            found.append(Token(match.lastgroup, match.group(), at))
        at = match.end()
    return tuple(found)


def place(text: str, offset: int, what: str = "The expression is wrong") -> str:
    """The line and column of an offset, and the line with a caret under the place: how every complaint begins.

    >>> print(place("l.speed >\\n  AND r.x > 1", 12))
    The expression is wrong at line 2, column 3:
        AND r.x > 1
        ^
    """
    before = text[:offset].rpartition("\n")
    line = before[2] + text[offset:].partition("\n")[0]
    indent = len(line) - len(line.lstrip())
    # A tab under a tab keeps the caret in place whatever the width of a tab is.
    margin = "".join("\t" if character == "\t" else " " for character in before[2][indent:])
    return f"{what} at {position(text, offset)}:\n    {line.strip()}\n    {margin}^"


def position(text: str, offset: int) -> str:
    """The line and column of an offset in words, both from 1.

    >>> position("l.speed > 25", 8)
    'line 1, column 9'
    """
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"
