"""Operands of a join's conditions: which side an expression belongs to, its type, and the column that it is.

An expression of one side becomes a column of that side, computed below the join: `` `R.a` + 1 = `S.b` `` is an equality
of the columns `R.a + 1` and `S.b`.

Below the join it is computed for every row that the conditions on its own side let through. In an inner join those have
gone below before. In `ON R.n <> 0 AND 10 / R.n = S.b` of a left join the first cannot go below, because a row for which
it is false is kept; but that row matches nobody. So where an expression can fail, it is computed only where they are
true, and is NULL elsewhere, which matches nobody either.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from streamjoin.plan.column_types import Schemas, Types, column_types, type_of
from streamjoin.plan.condition import columns, conjunction, conjuncts, one_column, quoted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.sqltypes import SqlType
from streamjoin.plan.naming import free_name
from streamjoin.plan.relation import Join, Projection, Relation

LEFT, RIGHT = 0, 1

_CAN_FAIL = {"/", "%", "DIV", "[", "::"}
_NEVER_FAIL = """
    abs upper lower ucase lcase trim ltrim rtrim initcap replace translate concat substring substr left right length
    char_length coalesce nvl ifnull greatest least md5 sha1 sha2 hex hash xxhash64 year month day dayofmonth hour minute
    date_add date_sub unix_seconds unix_millis unix_micros floor ceil ceiling try_cast
"""


class Operands:
    """The two sides of a join, and the columns that its predicates need of them.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s = Stream("R", (("R.a", "a"),), "ts", None), Stream("S", (("S.b", "b"),), "ts", None)
    >>> operands = Operands(Join(r, s), {})
    >>> operands.side("`R.a` + 1"), operands.side("`R.a` + `S.b`"), operands.column("`R.a` + 1")
    (0, None, 'R.a + 1')
    >>> operands.sides()[0].columns
    ('R.a', 'R.a + 1')
    """

    def __init__(self, join: Join, schemas: Schemas) -> None:
        self.children = join.children
        self.conditions = () if join.theta is None else conjuncts(join.theta)
        self.schemas = schemas
        self.computed: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def side(self, text: str) -> int | None:
        """The side that an expression belongs to; None for a constant, and for one of both sides."""
        used = set(columns(text))
        for number, child in enumerate(self.children):
            if used and used <= set(child.columns):
                return number
        return None

    def type(self, text: str) -> SqlType | None:
        """The type of an expression; None where it is not known."""
        return type_of(text, self._types)

    @cached_property
    def _types(self) -> Types:
        both = (column_types(child, self.schemas) for child in self.children)
        return {name: kind for types in both for name, kind in types.items()}

    def column(self, text: str) -> str:
        """The column that an expression of one side is, or is computed as."""
        found = one_column(text)
        if found is not None:
            return found
        number = self.side(text)
        assert number is not None
        if can_fail(text):
            guard = conjunction([part for part in self.conditions if self.side(part) == number])
            text = text if guard is None else f"CASE WHEN {guard} THEN {text} END"
        taken = {other: quoted(other) for child in self.children for other in child.columns}
        name = free_name(readable(text), text, taken | self.computed[0] | self.computed[1])
        self.computed[number][name] = text
        return name

    def sides(self) -> tuple[Relation, Relation]:
        """The children, with what has been computed."""
        left, right = (
            Projection(child, (*((name, quoted(name)) for name in child.columns), *computed.items()))
            if computed
            else child
            for child, computed in zip(self.children, self.computed, strict=True)
        )
        return left, right


def readable(text: str) -> str:
    """An expression as a column's name: without backquotes.

    >>> readable("`R.a`  + 1")
    'R.a + 1'
    """
    shown, end = "", 0
    for piece in tokens(text):
        space = " " if shown and piece.start > end else ""
        shown += space + ((piece.name or "") if piece.kind == "quoted" else piece.text)
        end = piece.end
    return shown


def can_fail(text: str) -> bool:
    """Whether an expression may have no value for some row, so that Spark fails: not surely, but better safe.

    >>> can_fail("upper(`k`)"), can_fail("CAST(`k` AS STRING)"), can_fail("10 / `n`"), can_fail("CAST(`k` AS INT)")
    (False, False, True, True)
    """
    pieces = tokens(text)
    words = [piece.keyword for piece in pieces]
    to_string = sum(words[at : at + 3] == ["AS", "STRING", ")"] for at in range(len(words)))
    if _CAN_FAIL & set(words) or words.count("CAST") > to_string:
        return True
    names = {word.lower() for word, after in pairwise(words) if after == "(" and word.isidentifier()}
    return not names <= {*_NEVER_FAIL.split(), "cast"}
