"""GROUP BY and aggregates: what is computed before, what is grouped, and expressions over the groups.

    SELECT R.k, SUM(R.a * 2) / COUNT(*) + 1 FROM R [NOW] GROUP BY R.k

becomes a projection of `R.k` and `R.a * 2`, an aggregation, and a projection of `` `SUM(R.a * 2)` / `COUNT(*)` + 1 ``.
A key is found word for word, also as an operand: `R.a % 2 + 1` is `` `R.a % 2` + 1 `` where R.a % 2 is a key. Whatever
is neither an aggregate nor a key is a mistake, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from streamjoin.algebra import Aggregate, AggregateFunction
from streamjoin.language.complaint import refused, wrong
from streamjoin.language.precedence import is_operand
from streamjoin.language.scalar import AGGREGATES, Piece, Pieces, rendered
from streamjoin.plan.column_types import Types
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression.sqltypes import VOID, is_numeric
from streamjoin.plan.naming import free_name
from streamjoin.plan.relation import Aggregation, Projection, Relation


def has_aggregate(pieces: Sequence[Piece]) -> bool:
    """Whether an expression has an aggregate in it.

    >>> has_aggregate([Piece("SUM", 0, False, word=True), Piece("(", 3, False)])
    True
    """
    return any(_is_aggregate(pieces, at) for at in range(len(pieces)))


class Grouping:
    """The keys and aggregates of one SELECT, collected from its expressions."""

    def __init__(self, text: str, keys: Sequence[Pieces]) -> None:
        self.text = text
        self.computed: dict[str, str] = {}  # the columns that the aggregation reads, by name
        self.aggregates: dict[tuple[str, str | None], str] = {}
        self.places: dict[str, int] = {}  # where each aggregate is written
        self.keys: dict[tuple[str, ...], str] = {}
        for key in keys:
            if has_aggregate(key):
                raise wrong(text, key[0].start, "Groups are made before aggregates", "group by columns of the streams")
            self.keys.setdefault(_form(key), self._column(key))

    def relation(self, child: Relation) -> Aggregation:
        """The aggregation of a relation."""
        plain = all(text == quoted(name) for name, text in self.computed.items())
        below = child if plain else Projection(child, tuple(self.computed.items()))
        aggregates = tuple(
            Aggregate(cast(AggregateFunction, function), column, name)
            for (function, column), name in self.aggregates.items()
        )
        return Aggregation(below, tuple(dict.fromkeys(self.keys.values())), aggregates)

    def check_types(self, types: Types) -> None:
        """Refuse sums of what surely are no numbers; `types` are those of the columns that are aggregated."""
        for (function, column), name in self.aggregates.items():
            kind = None if column is None else types.get(column)
            if function in ("sum", "avg", "stddev") and kind is not None and not is_numeric(kind) and kind != VOID:
                raise wrong(
                    self.text,
                    self.places[name],
                    f"{function}() is of numbers, but {column} is {kind}",
                    f"cast it: {function.upper()}(CAST({column} AS DOUBLE))",
                )

    def over_groups(self, pieces: Pieces) -> Pieces:
        """An expression of the SELECT list or of HAVING, over the columns of the aggregation."""
        found: list[Piece] = []
        at = 0
        while at < len(pieces):
            piece = pieces[at]
            if _is_aggregate(pieces, at):
                end = closing(pieces, at + 1)
                name = self._aggregate(piece, pieces[at + 2 : end])
                found.append(Piece(quoted(name), piece.start, piece.space, name))
                at = end + 1
                continue
            taken, key = self._key(pieces, at)
            if key is not None:
                found.append(Piece(quoted(key), piece.start, piece.space, key))
                at += taken
                continue
            if piece.column is not None:
                raise wrong(
                    self.text,
                    piece.start,
                    f"{piece.column} is neither grouped nor inside an aggregate: a group can have many values of it",
                    f"write GROUP BY ..., {piece.column}, or an aggregate such as MAX({piece.column})",
                )
            found.append(piece)
            at += 1
        return tuple(found)

    def _key(self, pieces: Pieces, at: int) -> tuple[int, str | None]:
        for form, name in sorted(self.keys.items(), key=lambda key: -len(key[0])):
            end = at + len(form)
            # An operator beside it might bind tighter than those inside: a * b + c is no a * (b + c).
            if _form(pieces[at:end]) == form and is_operand(pieces, at, end):
                return len(form), name
        return 0, None

    def _aggregate(self, function: Piece, argument: Pieces) -> str:
        name = function.text.lower()
        if argument and argument[0].form in ("DISTINCT", "ALL") and argument[0].word:
            raise refused(
                self.text,
                argument[0].start,
                f"{argument[0].form} inside an aggregate is not planned",
                "aggregate over a subquery: FROM (SELECT DISTINCT ...) AS q",
            )
        if has_aggregate(argument):
            raise wrong(self.text, function.start, "An aggregate inside an aggregate", "use a subquery in FROM")
        depth = 0
        for piece in argument:
            depth += (piece.text in ("(", "[")) - (piece.text in (")", "]"))
            if depth == 0 and (piece.text == "," or (piece.word and piece.form in ("ORDER", "LIMIT"))):
                raise refused(
                    self.text, piece.start, f"{name}() takes one expression here", "write one aggregate per expression"
                )
        column: str | None
        if _form(argument) == ("*",) or (name == "count" and len(argument) == 1 and _is_literal(argument[0])):
            if name != "count":
                raise wrong(self.text, argument[0].start, f"{name}(*) has no meaning", f"write {name}(column)")
            column, shown = None, "*"
        elif not argument:
            raise wrong(self.text, function.start, f"{name}() needs an argument", f"write {name}(column)")
        else:
            column = shown = self._column(argument)
        canonical = AGGREGATES[name]
        found = self.aggregates.setdefault((canonical, column), f"{canonical.upper()}({shown})")
        self.places.setdefault(found, function.start)
        return found

    def _column(self, pieces: Pieces) -> str:
        """The name of an expression as a column below the aggregation."""
        text = rendered(pieces)
        name = pieces[0].column if len(pieces) == 1 and pieces[0].column else readable(pieces)
        name = free_name(name, text, self.computed)
        self.computed[name] = text
        return name


def readable(pieces: Sequence[Piece]) -> str:
    """An expression as a column's name: without backquotes.

    >>> readable([Piece("`R.x`", 0, False, "R.x"), Piece("+", 4, True), Piece("1", 6, True)])
    'R.x + 1'
    """
    return "".join(
        (" " if number and piece.space else "") + (piece.column or piece.text) for number, piece in enumerate(pieces)
    )


def _is_aggregate(pieces: Sequence[Piece], at: int) -> bool:
    return (
        pieces[at].word
        and pieces[at].text.lower() in AGGREGATES
        and at + 1 < len(pieces)
        and pieces[at + 1].text == "("
        and (at == 0 or pieces[at - 1].text != ".")
    )


def closing(pieces: Sequence[Piece], at: int) -> int:
    """Where the parenthesis is closed that opens at a place.

    >>> closing([Piece("(", 0, False), Piece("1", 1, False), Piece(")", 2, False)], 0)
    2
    """
    depth = 0
    for number in range(at, len(pieces)):
        depth += (pieces[number].text == "(") - (pieces[number].text == ")")
        if depth == 0:
            return number
    return len(pieces)


def _form(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(piece.form for piece in pieces)


def _is_literal(piece: Piece) -> bool:
    return piece.column is None and (piece.text[0].isdigit() or piece.text[0] in "'\"")
