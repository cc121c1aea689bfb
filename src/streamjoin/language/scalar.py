"""Expressions: the user's own words, with every column replaced by its name in the tree.

    R.speed > 1.5D * q        ->        `R.speed` > 1.5D * `S.q`

An expression is a row of *pieces*, one per token or column. It is never written anew from a parser's tree, so literals
reach Spark as they were typed (1.5 is a decimal, 1.5D a double). What one row cannot decide, or what would not be the
same twice, is refused here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from streamjoin.errors import CallError
from streamjoin.language.complaint import refused, wrong
from streamjoin.language.scope import Scope
from streamjoin.language.syntax import Name, Scalar
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression.functions import BARE, BEYOND_A_ROW
from streamjoin.plan.expression.lexer import Token, tokens

AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "std": "stddev",
}
_AGGREGATE_HINT = "COUNT, SUM, AVG, MIN, MAX and STDDEV are planned"
_CHANGING_FUNCTIONS = """
    rand random randn uuid shuffle uniform randstr monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length now current_timestamp current_date curdate current_time
    localtime localtimestamp unix_timestamp current_catalog current_database current_schema current_user session_user
    user version raise_error assert_true reflect java_method try_reflect
"""
_CHANGING = frozenset(_CHANGING_FUNCTIONS.split())


@dataclass(frozen=True)
class Piece:
    """A token of an expression, or a column of it. `space` says whether space stands before it."""

    text: str
    start: int
    space: bool
    column: str | None = None
    word: bool = False

    @property
    def form(self) -> str:
        """How it is compared with another piece: words without regard to case."""
        return self.text.upper() if self.word else self.text


Pieces = tuple[Piece, ...]


def rendered(pieces: Sequence[Piece]) -> str:
    """The pieces as text, with one space where there was any.

    >>> rendered([Piece("`R.x`", 0, False), Piece(">", 4, True), Piece("3", 6, True)])
    '`R.x` > 3'
    """
    return "".join((" " if number and piece.space else "") + piece.text for number, piece in enumerate(pieces))


def bind_scalar(
    scalar: Scalar,
    scope: Scope,
    *,
    aggregates: str | None = None,
    aliases: Mapping[str, Pieces] | None = None,
    keys: Collection[str] | None = None,
) -> Pieces:
    """The pieces of an expression. `aggregates` says why there can be none here; `aliases` are names that stand for
    other expressions, where no column has them; with `keys`, where none of those columns has them, but inside of an
    aggregate, which is of the rows before the groups.
    """
    text = scope.text
    inside = [token for token in tokens(text) if scalar.start <= token.start < scalar.end]
    hiding = None if keys is None else _Hiding(frozenset(keys), _aggregate_spans(inside))
    spans = _spans(scalar, scope, aliases or {}, hiding)
    _check(text, scalar, inside, set(spans), scope, aggregates)
    found: list[Piece] = []
    end = scalar.start
    for token in inside:
        if token.start < end:
            continue  # the rest of a dotted name
        space = token.start > end and bool(found)
        if token.start in spans:
            new, end = spans[token.start]
            found += [replace(new[0], space=space), *new[1:]]
        else:
            found.append(Piece(token.text, token.start, space, word=token.kind == "word"))
            end = token.end
    _check_own_functions(text, found)
    return tuple(found)


@dataclass(frozen=True)
class _Hiding:
    """Where aliases hide columns: all but the keys, and not between these places."""

    keys: frozenset[str]
    exempt: Sequence[tuple[int, int]]

    def hides(self, names: Sequence[Name], scope: Scope) -> bool:
        """Whether a name is an alias before it is a column; it is one of the two."""
        if any(start <= names[0].start < end for start, end in self.exempt):
            return False
        if len(names) > 1 and scope.entry(names[0]) is not None:
            return False
        try:
            found = scope.column(names)
        except CallError:  # ambiguous, as a column
            return True
        return found is None or found[0] not in self.keys


def _aggregate_spans(inside: Sequence[Token]) -> list[tuple[int, int]]:
    """From where to where aggregates stand."""
    found = []
    for at, (before, token, after) in enumerate(_neighbours(inside)):
        if (token.name or "").lower() not in AGGREGATES or after != "(" or before == ".":
            continue
        depth, end = 0, at + 1
        while end < len(inside):
            depth += (inside[end].text == "(") - (inside[end].text == ")")
            if depth == 0:
                break
            end += 1
        found.append((token.start, inside[min(end, len(inside) - 1)].end))
    return found


def _spans(
    scalar: Scalar, scope: Scope, aliases: Mapping[str, Pieces], hiding: _Hiding | None
) -> dict[int, tuple[Pieces, int]]:
    """By its start, what each column is replaced by, and where it ends."""
    found: dict[int, tuple[Pieces, int]] = {}
    columns = [scalar.tree] if isinstance(scalar.tree, exp.Column) else scalar.tree.find_all(exp.Column)
    for column in columns:
        if isinstance(column.this, exp.Star):
            start = column.parts[0].meta.get("start", scalar.start)
            raise wrong(scope.text, start, "A star stands for many columns", "name the columns one by one")
        parts = [(Name(part.name, part.meta.get("start", -1)), part.meta.get("end", -2) + 1) for part in column.parts]
        names = [name for name, _ in parts]
        if names[0].start < 0:
            raise wrong(
                scope.text, scalar.start, f"The name {names[0].text!r} is not understood", "write it as source.column"
            )
        alias = names[0].text.lower()
        hidden = hiding is not None and alias in aliases and hiding.hides(names, scope)
        resolved = None if hidden else scope.column(names)
        if resolved is not None:
            internal, taken = resolved
            piece = Piece(quoted(internal), names[0].start, False, internal)
            found[names[0].start] = ((piece,), parts[taken - 1][1])
            continue
        if alias in aliases:
            pieces = aliases[alias]
            if len(pieces) > 1:
                pieces = (Piece("(", names[0].start, False), replace(pieces[0], space=False), *pieces[1:])
                pieces = (*pieces, Piece(")", names[0].start, False))
            found[names[0].start] = (pieces, parts[0][1])
        elif not (len(names) == 1 and alias in BARE):
            raise scope.unknown(names)
    return found


def _neighbours(pieces: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    keywords = ["", *(piece.keyword for piece in pieces), ""]
    return zip(keywords, pieces, keywords[2:], strict=False)


def _check(
    text: str, scalar: Scalar, inside: Sequence[Token], found: set[int], scope: Scope, aggregates: str | None
) -> None:
    """Refuse what one row cannot decide, what changes from call to call, and what was not understood."""
    parameters = scalar.tree.find(exp.Placeholder, exp.Parameter, exp.SessionParameter) is not None
    shift = scalar.tree.find(exp.BitwiseRightShift) is not None
    window = scalar.tree.find(exp.Window) is not None
    for before, token, after in _neighbours(inside):
        name = (token.name or "").lower()
        called = after == "(" and before != "."
        if token.start in found:
            continue
        if token.keyword == "OVER" and window and before == ")":
            raise refused(
                text, token.start, "Window functions are not planned", "use a stream's own window, and GROUP BY"
            )
        if token.keyword in ("FILTER", "WITHIN", "IGNORE", "RESPECT") and before == ")":
            raise refused(
                text, token.start, f"{token.keyword} after a function is not planned", "aggregate CASE WHEN ... END"
            )
        bare = name in BARE or name.startswith(("current_", "local"))
        if name in _CHANGING and before != "." and (called or bare):
            raise refused(
                text, token.start, f"{name}() does not give the same value twice", "compute it as a column before"
            )
        if called and not (name in ("any", "some", "all") and before in ("LIKE", "ILIKE")):
            _check_call(text, token, name, aggregates)
        if token.text in ("?", ":", "@") and parameters:
            raise refused(
                text, token.start, "A parameter cannot stand here", "write it with space before it, as in x > :limit"
            )
        if token.text == before == ">" and shift:  # sqlglot reads `> >` as `>>`, Spark does not
            raise wrong(text, token.start, "'>' is not expected here", "write one comparison")
        if after == "." and before != "." and token.name is not None and scope.entry(Name(token.name, 0)) is not None:
            raise wrong(text, token.start, "This reference is not understood", "write it as source.column")


def _check_call(text: str, token: Token, name: str, aggregates: str | None) -> None:
    what = BEYOND_A_ROW.get(name)
    if what is not None and token.kind == "quoted":
        raise refused(text, token.start, f"{name}() is {what}, in backquotes", "write it without them")
    if what is None or (name in AGGREGATES and aggregates is None):
        return
    if name in AGGREGATES:
        raise wrong(text, token.start, f"There can be no aggregate {aggregates}", "use HAVING, or an outer query")
    if what == "an aggregate function":
        raise refused(text, token.start, f"The aggregate {name}() is not planned", _AGGREGATE_HINT)
    raise refused(text, token.start, f"{name}() is {what}, which is not planned", "compute it on the frame before")


def _check_own_functions(text: str, pieces: Sequence[Piece]) -> None:
    """The functions that CQL has and Spark has not: how many arguments they take."""
    for at, piece in enumerate(pieces[:-1]):
        name = piece.text.lower()
        if not piece.word or name not in ("distance", "overlaps", "similar") or pieces[at + 1].text != "(":
            continue
        depth, arguments = 0, 1
        for inner in pieces[at + 1 :]:
            depth += (inner.text in ("(", "[")) - (inner.text in (")", "]"))
            arguments += depth == 1 and inner.text == ","
            if depth == 0:
                break
        if name == "overlaps" and arguments != 4:
            hint = "write overlaps(R.lo, R.hi, S.lo, S.hi)"
            raise wrong(
                text, piece.start, f"overlaps takes the ends of two intervals, got {arguments} argument(s)", hint
            )
        if name == "similar" and arguments != 2:
            hint = "write similar(R.tokens, S.tokens) >= 0.8"
            raise wrong(text, piece.start, f"similar takes two arrays, got {arguments} argument(s)", hint)
        if name == "distance" and arguments % 2:
            hint = "write distance(R.x, R.y, S.x, S.y)"
            raise wrong(
                text, piece.start, f"distance takes two points of as many axes, got {arguments} argument(s)", hint
            )
