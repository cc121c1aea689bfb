"""The grammar of CQL's clauses: from text to `syntax`. Everything is either read by one of these rules, or refused.

    statement = (ISTREAM | DSTREAM | RSTREAM) ( query ) | query
    query     = [WITH name AS ( query ), ...] term { (UNION | EXCEPT | MINUS) [ALL | DISTINCT] term }
    term      = primary { INTERSECT [ALL | DISTINCT] primary }
    primary   = select | ( query )
    select    = SELECT [ALL | DISTINCT] (items | ISTREAM(items) | ...) FROM chain, ...
                [WHERE scalar] [GROUP BY scalar, ...] [HAVING scalar]
    chain     = source { join }
    source    = name [window] [[AS] alias] [window] | ( query ) [AS] alias
    join      = [INNER | LEFT [OUTER | SEMI | ANTI] | ...] JOIN source ON scalar | CROSS JOIN source
              | [INNER | LEFT [OUTER]] ASOF JOIN source MATCH_CONDITION ( scalar ) [ON scalar] [WITHIN amount]
              | [INNER | LEFT | RIGHT | FULL [OUTER]] BEST MATCH JOIN source [ON scalar] WITHIN column amount, ...

Windows are in `brackets`, expressions in `dialect`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import TokenError

from streamjoin.algebra import How
from streamjoin.algebra.policy import ToStream
from streamjoin.errors import CallError
from streamjoin.language.brackets import Brackets
from streamjoin.language.complaint import refused, wrong
from streamjoin.language.dialect import CQL
from streamjoin.language.parameters import Parameter
from streamjoin.language.syntax import (
    Body,
    Chain,
    DerivedClause,
    Dimension,
    Item,
    JoinClause,
    Name,
    QueryClause,
    Scalar,
    SelectClause,
    SetClause,
    Source,
    Star,
    StreamClause,
    WindowClause,
)

_TO_STREAM: dict[str, ToStream] = {"ISTREAM": "istream", "DSTREAM": "dstream", "RSTREAM": "rstream"}
_SIDES: dict[str, How] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}


def read(text: str, parameters: Mapping[int, Parameter] | None = None) -> QueryClause:
    """The clauses of a query; `parameters` says where literals are that are values of parameters.

    >>> read("SELECT a FROM R [NOW] WHERE a > 3").body.where.start
    28
    """
    try:
        pieces = CQL().tokenize(text)
    except TokenError as error:
        raise CallError(f"the query cannot be read: {error}", hint="look at its quotes and comments") from None
    reader = Reader(error_message_context=len(text) + 1, dialect=CQL)
    reader.begin(text, pieces, parameters or {})
    return reader.statement()


class Reader(Brackets):
    """Recursive descent: one method per rule."""

    def statement(self) -> QueryClause:
        start = self.place
        if self.keyword() in _TO_STREAM and self.keyword(1) == "(":
            to_stream = _TO_STREAM[self.keyword()]
            self._advance(2)
            inner = self.query()
            self.expect(")", "close the parenthesis that opened the query")
            found = QueryClause(inner, (), to_stream, start)
        else:
            found = self.query()
        self.accept(";")
        if not self.ended:
            raise self.unexpected()
        return found

    def query(self) -> QueryClause:
        start = self.place
        named = self.named() if self.accept("WITH") else ()
        body = self.term()
        while self.keyword() in ("UNION", "EXCEPT", "MINUS"):
            at, operator = self.place, self.keyword()
            self._advance()
            every = self.quantifier()
            body = SetClause("union" if operator == "UNION" else "except", every, body, self.term(), at)
        return QueryClause(body, named, None, start)

    def named(self) -> tuple[tuple[Name, QueryClause], ...]:
        found: list[tuple[Name, QueryClause]] = []
        while True:
            name = self.name("the name of a query")
            if self.keyword() == "(":
                raise refused(
                    self.sql, self.place, "Names for the columns are not planned here", "write aliases in its SELECT"
                )
            self.accept("AS")
            self.expect("(", "write WITH name AS (SELECT ...)")
            found.append((name, self.query()))
            self.expect(")", "close the parenthesis that opened the query")
            if not self.accept(","):
                return tuple(found)

    def term(self) -> Body:
        body = self.primary()
        while self.keyword() == "INTERSECT":
            at = self.place
            self._advance()
            every = self.quantifier()
            body = SetClause("intersect", every, body, self.primary(), at)
        return body

    def quantifier(self) -> bool:
        if self.accept("ALL"):
            return True
        self.accept("DISTINCT")
        return False

    def primary(self) -> Body:
        if self.accept("("):
            query = self.query()
            self.expect(")", "close the parenthesis that opened the query")
            return query
        if self.keyword() in _TO_STREAM:
            raise wrong(
                self.sql,
                self.place,
                f"{self.keyword()} makes a stream of a whole query, and nothing can be done with it inside a query",
                f"write it around everything: {self.keyword()} (SELECT ...)",
            )
        return self.select()

    # SELECT ----------------------------------------------------------------------------------------------------------

    def select(self) -> SelectClause:
        start = self.place
        self.expect("SELECT")
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        to_stream: ToStream | None = None
        if self.keyword() in _TO_STREAM and self.keyword(1) == "(":
            word = self.keyword()
            if distinct:
                raise wrong(
                    self.sql,
                    self.place,
                    f"DISTINCT is decided before {word}",
                    f"write {word} (SELECT DISTINCT ...)",
                )
            to_stream = _TO_STREAM[word]
            self._advance(2)
            items = self.items()
            self.expect(")", f"write SELECT {word}(a, b) FROM ..., or {word} (SELECT ...)")
            if self.keyword() == ",":
                raise wrong(
                    self.sql,
                    self.place,
                    f"{word} is about whole rows: nothing can stand beside it",
                    f"write all columns into its parentheses, or {word} (SELECT ...)",
                )
        else:
            items = self.items()
        if self.ended:
            raise wrong(self.sql, start, "A query reads at least one stream", "write FROM R [RANGE 5 SECONDS]")
        self.expect("FROM")
        chains = [self.chain()]
        while self.accept(","):
            chains.append(self.chain())
        where = self.scalar() if self.accept("WHERE") else None
        group = self.group() if self.accept("GROUP BY") else ()
        having = self.scalar() if self.accept("HAVING") else None
        return SelectClause(start, items, tuple(chains), distinct, where, group, having, to_stream)

    def items(self) -> tuple[Item, ...]:
        found = [self.item()]
        while self.accept(","):
            found.append(self.item())
        return tuple(found)

    def item(self) -> Item:
        start = self.place
        if self.accept("*"):
            return self.starred(Star(start))
        if self._next.text == "." and self._index + 2 < len(self._tokens) and self.keyword(2) == "*":
            qualifier = self.name("the name of a stream")
            self._advance(2)
            return self.starred(Star(start, qualifier))
        value = self.scalar()
        if self.accept("AS"):
            return Item(value, self.column_name("a name for the column"))
        return Item(value, self.optional_name())

    def starred(self, star: Star) -> Item:
        if self.keyword() in ("EXCEPT", "EXCLUDE", "REPLACE", "RENAME") and self.keyword(1) == "(":
            raise refused(
                self.sql, self.place, f"* {self.keyword()} is not planned", "name the columns that you want one by one"
            )
        return Item(star)

    def group(self) -> tuple[Scalar, ...]:
        if self.keyword() in ("ALL", "DISTINCT"):
            raise refused(
                self.sql, self.place, f"GROUP BY {self.keyword()} is not planned", "name the keys that you group by"
            )
        found = [self.scalar()]
        while self.accept(","):
            found.append(self.scalar())
        for key in found:
            if isinstance(key.tree, exp.Tuple):
                raise refused(self.sql, key.start, "Several keys in parentheses are not planned", "write GROUP BY a, b")
        if self.keyword() == "WITH":
            raise refused(
                self.sql, self.place, f"WITH {self.keyword(1)} is not planned", "write a UNION ALL, one per grouping"
            )
        return tuple(found)

    # FROM ------------------------------------------------------------------------------------------------------------

    def chain(self) -> Chain:
        source = self.source()
        joins: list[JoinClause] = []
        while (join := self.join()) is not None:
            joins.append(join)
        return Chain(source, tuple(joins))

    def source(self) -> Source:
        start = self.place
        if self.accept("("):
            if self.keyword() not in ("SELECT", "WITH", "(", *_TO_STREAM):
                raise refused(
                    self.sql, start, "Parentheses around a join are not planned", "write (SELECT * FROM ...) AS name"
                )
            query = self.query()
            self.expect(")", "close the parenthesis that opened the query")
            if self.keyword() == "[":
                raise self.window_of_a_query()
            self.accept("AS")
            alias = self.optional_name()
            if self.keyword() == "[":
                raise self.window_of_a_query()
            return DerivedClause(query, alias, start)
        name = self.name("the name of a stream")
        if self.keyword() in (".", "("):
            what = "A qualified name" if self.keyword() == "." else "A table function"
            raise refused(
                self.sql, name.start, f"{what} is no stream", "give the frame to the query under a plain name"
            )
        window = self.window()
        explicit = self.accept("AS")
        alias = self.name("an alias") if explicit else self.optional_name()
        if self.keyword() == "[":
            if window is not None:
                raise wrong(self.sql, self.place, "A stream has one window, this is the second", "leave one out")
            window = self.window()
        if self.keyword() == "(" and alias is not None:
            raise refused(self.sql, self.place, "Names for the columns are not planned here", "alias them in SELECT")
        priority = self.scalar() if self.accept("PRIORITY", "BY") else None
        return StreamClause(name, alias, window, priority)

    def window(self) -> WindowClause | None:
        return self.bracket() if self.keyword() == "[" else None

    def window_of_a_query(self) -> CallError:
        return wrong(
            self.sql,
            self.place,
            "Only a stream has a window: the rows of a query are valid already",
            "write the window behind the stream, inside of the parentheses",
        )

    def join(self) -> JoinClause | None:
        start = self.place
        how: How | None = None
        side = self.keyword()
        if side in ("INNER", "CROSS", "SEMI", "ANTI", *_SIDES):
            self._advance()
            how = _SIDES.get(side, "inner")
            if side == "LEFT" and self.keyword() in ("SEMI", "ANTI"):
                side = self.keyword()
                self._advance()
            if side in ("SEMI", "ANTI"):
                how = "semi" if side == "SEMI" else "anti"
            elif side in _SIDES:
                self.accept("OUTER")
        if self.accept("ASOF"):
            if how is None and self.keyword() in _SIDES:  # ASOF LEFT JOIN, as other systems spell it
                how = _SIDES[self.keyword()]
                self._advance()
                self.accept("OUTER")
            return self.asof(how or "inner", start)
        if self.accept("BEST", "MATCH"):
            return self.best_match(how or "inner", start)
        if not self.accept("JOIN"):
            if how is not None:
                raise self.unexpected("JOIN is expected")
            return None
        source = self.source()
        if side == "CROSS":
            if self.keyword() == "ON":
                raise wrong(self.sql, self.place, "A CROSS JOIN has no condition", "write JOIN ... ON, without CROSS")
            return JoinClause("cross", "inner", source, start)
        if not self.accept("ON"):
            raise self.unexpected("ON is expected", "write JOIN S [...] ON R.k = S.k, or CROSS JOIN S [...]")
        return JoinClause("theta", how or "inner", source, start, self.scalar())

    def asof(self, how: How, start: int) -> JoinClause:
        self.expect("JOIN")
        if how not in ("inner", "left"):
            raise refused(
                self.sql,
                start,
                f"{_a(how)} ASOF JOIN is not planned: each row of the left stream finds its partner",
                "write ASOF JOIN or LEFT ASOF JOIN, with the streams in the other order if needed",
            )
        source = self.source()
        hint = "write ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON R.k = S.k"
        self.expect("MATCH_CONDITION", hint)
        self.expect("(", hint)
        match = self.scalar()
        self.expect(")", hint)
        on = self.scalar() if self.accept("ON") else None
        tolerance = self.amount("the largest distance in time") if self.accept("WITHIN") else None
        return JoinClause("asof", how, source, start, on, match, (), tolerance)

    def best_match(self, how: How, start: int) -> JoinClause:
        self.expect("JOIN")
        if how in ("semi", "anti"):
            raise refused(
                self.sql, start, f"{_a(how)} BEST MATCH JOIN is not planned", "write INNER, LEFT, RIGHT or FULL"
            )
        source = self.source()
        on = self.scalar() if self.accept("ON") else None
        self.expect("WITHIN", "write BEST MATCH JOIN S ON R.k = S.k WITHIN ra 0.01, dec 0.01")
        within = [self.dimension()]
        while self.accept(","):
            within.append(self.dimension())
        return JoinClause("best match", how, source, start, on, None, tuple(within))

    def dimension(self) -> Dimension:
        columns = [self.operand()]
        if self.accept("="):
            columns.append(self.operand())
        return Dimension(tuple(columns), self.amount("the largest distance"))


def _a(word: str) -> str:
    return f"An {word}" if word[0] in "aeio" else f"A {word}"
