"""The dialect: Spark SQL as sqlglot reads it, for the expressions of a query. The clauses are read in `reader`.

sqlglot's parser has the word about where an expression ends and which of its names are columns. Its own SELECT is never
used: it reads every dialect's clauses, and drops some of them without a word.

What it does not do: subqueries inside expressions. They are refused where they begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from streamjoin.errors import StreamjoinError
from streamjoin.language.complaint import refused, wrong
from streamjoin.language.parameters import Parameter
from streamjoin.language.syntax import Name, Scalar

# Clauses of Spark SQL that have no meaning here, by the word they begin with: why, and what to do instead.
_NO_ORDER = "A continuous query has no last row to sort or count"
_REFUSED = {
    "ORDER BY": (f"{_NO_ORDER}: ORDER BY is not planned", "leave it out; results leave by their time"),
    "SORT BY": (f"{_NO_ORDER}: SORT BY is not planned", "leave it out; results leave by their time"),
    "CLUSTER BY": ("CLUSTER BY is not planned", "leave it out; the planner partitions by the query's keys"),
    "DISTRIBUTE BY": ("DISTRIBUTE BY is not planned", "leave it out; the planner partitions by the query's keys"),
    "LIMIT": (f"{_NO_ORDER}: LIMIT is not planned", "use a row window, as in R [ROWS 10]"),
    "OFFSET": (f"{_NO_ORDER}: OFFSET is not planned", "use a row window, as in R [ROWS 10]"),
    "FETCH": (f"{_NO_ORDER}: FETCH is not planned", "use a row window, as in R [ROWS 10]"),
    "LATERAL": ("LATERAL is not planned", "compute the columns on the frame before"),
    "PIVOT": ("PIVOT is not planned", "write one aggregate per column, or pivot the result"),
    "UNPIVOT": ("UNPIVOT is not planned", "write a UNION ALL with one SELECT per column"),
    "TABLESAMPLE": ("TABLESAMPLE is not planned", "sample the frame before"),
    "QUALIFY": ("Window functions are not planned, so there is nothing to QUALIFY", "use GROUP BY and HAVING"),
    "WINDOW": ("Window functions are not planned, and so is no WINDOW clause", "a stream's window is R [ROWS 10]"),
    "NATURAL": ("NATURAL JOIN is not planned", "say which columns are equal: JOIN ... ON R.k = S.k"),
    "USING": ("USING is not planned", "say which columns are equal: ON R.k = S.k"),
    "ROLLUP": ("ROLLUP is not planned", "write a UNION ALL with one GROUP BY per level"),
    "CUBE": ("CUBE is not planned", "write a UNION ALL with one GROUP BY per grouping"),
    "GROUPING SETS": ("GROUPING SETS is not planned", "write a UNION ALL with one GROUP BY per grouping"),
    "VALUES": ("VALUES is not planned", "make a frame of the rows, and give it to the query as a stream"),
    "UNNEST": ("UNNEST is not planned", "explode the column on the frame before"),
    "RECURSIVE": ("A recursive query is not planned", "leave RECURSIVE out if no query refers to itself"),
    "INSERT": ("Only queries are planned", "write the result with the frame's writeStream"),
    "CREATE": ("Only queries are planned", "name a query by WITH q AS (SELECT ...)"),
    "FOR": ("Time travel is not planned", "give the frame as it was to the query as a stream"),
    "VERSION": ("Time travel is not planned", "give the frame as it was to the query as a stream"),
}
_EXAMPLE = "a query is SELECT columns FROM R [RANGE 5 SECONDS] WHERE condition GROUP BY keys HAVING condition"
# Words that begin a clause, and so are no alias unless AS or backquotes say so.
_OTHER_CLAUSES = """
    ANTI AS ASOF BEST CROSS DRAIN EXCEPT FROM FULL GROUP HAVING INNER INTERSECT JOIN LEFT MATCH_CONDITION MINUS ON OUTER
    RIGHT SELECT SEMI UNION WHERE WITH WITHIN
"""
RESERVED = {*(word.split()[0] for word in _REFUSED), *_OTHER_CLAUSES.split()}


class Expressions(SparkParser):
    """sqlglot's parser of Spark SQL, with what a reader of clauses needs: words, and complaints with a place."""

    def begin(self, text: str, pieces: list[Token], parameters: Mapping[int, Parameter]) -> None:
        """Stand before the first token."""
        self.reset()
        self.parameters = parameters
        self.sql = text
        self._tokens = pieces
        self._tokens_size = len(pieces)
        self._index = -1
        self._advance()

    def keyword(self, ahead: int = 0) -> str:
        """The word or symbol that comes, in capitals; nothing for a quoted name, a literal, or the end."""
        at = self._index + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER):
            return ""
        return token.text.upper()

    def accept(self, *words: str) -> bool:
        """Step over the words if all of them come next."""
        if any(self.keyword(ahead) != word for ahead, word in enumerate(words)):
            return False
        self._advance(len(words))
        return True

    def expect(self, word: str, hint: str = _EXAMPLE) -> None:
        """Step over a word that must come."""
        if not self.accept(word):
            raise self.unexpected(f"{word} is expected", hint)

    @property
    def place(self) -> int:
        """The offset of what comes next; the end of the text if nothing does."""
        return self._curr.start if self._index < len(self._tokens) else len(self.sql.rstrip())

    @property
    def ended(self) -> bool:
        """Whether nothing comes any more."""
        return self._index >= len(self._tokens)

    def unexpected(self, expected: str = "", hint: str = _EXAMPLE) -> StreamjoinError:
        """The complaint about what comes next: refused with its own reason if it is known, wrong otherwise."""
        reason = _REFUSED.get(self.keyword())
        if reason is not None:
            return refused(self.sql, self.place, *reason)
        found = "The query ends here" if self.ended else f"{self._curr.text!r} is not expected here"
        return wrong(self.sql, self.place, f"{found}; {expected}" if expected else found, hint)

    def parameter(self) -> Parameter | None:
        """Step over the value of a parameter, if one comes."""
        found = self.parameters.get(self.place)
        while found is not None and not self.ended and self._curr.start < found.end:
            self._advance()
        return found

    def name(self, what: str) -> Name:
        """A name that must come."""
        found = self.optional_name()
        if found is None:
            raise self.unexpected(f"{what} is expected")
        return found

    def optional_name(self) -> Name | None:
        """A name, if one comes that is no reserved word."""
        start = self.place
        if self.ended or self.keyword().split(" ")[0] in RESERVED:
            return None
        if self.keyword() == "PRIORITY" and self.keyword(1) == "BY":  # alone it may be anybody's name
            return None
        found = self._parse_id_var(any_token=False)
        return None if found is None else Name(found.name, start)

    def scalar(self) -> Scalar:
        """An expression that must come."""
        return self._spanned(self._parse_disjunction)

    def operand(self) -> Scalar:
        """A column that must come."""
        return self._spanned(self._parse_column)

    def _spanned(self, parse: Any) -> Scalar:
        if self.keyword() in _REFUSED and self.keyword(1) == "(":
            raise self.unexpected()
        first = self._index
        try:
            tree = parse()
        except ParseError as error:
            raise self._syntax_error(error) from None
        except RecursionError:
            raise wrong(
                self.sql, self._tokens[first].start, "The expression is too deep", "write it in parts"
            ) from None
        if tree is None or self._index == first:
            raise self.unexpected("an expression is expected")
        return Scalar(self._tokens[first].start, self._tokens[self._index - 1].end + 1, tree)

    def _syntax_error(self, error: ParseError) -> StreamjoinError:
        # The context is as long as the text, so what stands before the error is its offset.
        details = error.errors[0] if error.errors else {}
        at, word = len(str(details.get("start_context") or "")), str(details.get("highlight") or "")
        description = str(details.get("description") or "")
        if description == "Expecting )":
            reason = "A closing parenthesis is missing"
        elif description.startswith("Required keyword"):
            reason = f"Something is missing at {word!r}"
        elif description.startswith("Expect"):
            reason = description
        else:
            reason = f"{word!r} is not expected here"
        return wrong(self.sql, at, reason, _EXAMPLE)

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        if self.keyword() in ("SELECT", "WITH"):
            raise refused(
                self.sql,
                self.place,
                "A subquery inside an expression is not planned",
                "join with it: LEFT SEMI JOIN for IN and EXISTS, LEFT ANTI JOIN for NOT EXISTS, JOIN for a value",
            )
        return None


class CQL(Spark):
    """Spark SQL with windows in brackets. Only the tokens and expressions are sqlglot's."""

    class Tokenizer(Spark.Tokenizer):
        """sqlglot knows an operator OVERLAPS, which Spark has not, and which is a function here."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word != "OVERLAPS"
        }

    Parser = Expressions
