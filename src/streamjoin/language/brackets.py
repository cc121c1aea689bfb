"""Windows in brackets, as they are written:

    [RANGE 5 SECONDS]  [RANGE 5 SECONDS SLIDE 1 SECOND]  [5 SECONDS]  [FIXED 1 MINUTE]
    [ROWS 100]  [100 ROWS]  [PARTITION BY a, b ROWS 10]  [ROWS 5 DRAIN]
    [NOW]  [UNBOUNDED]  [VALID valid_from TO valid_to]

On a time column of numbers a size is a number alone: [RANGE 10000].
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from sqlglot.tokenizer_core import TokenType

from streamjoin.language.complaint import wrong
from streamjoin.language.dialect import Expressions
from streamjoin.language.syntax import Amount, Name, WindowClause

_HINT = (
    "a window is [RANGE 5 SECONDS], [RANGE 5 SECONDS SLIDE 1 SECOND], [FIXED 1 MINUTE], [ROWS 100], "
    "[PARTITION BY k ROWS 10], [NOW], [UNBOUNDED] or [VALID from TO to]"
)
_NOT_UNITS = {"SLIDE", "ROWS", "ROW", "DRAIN", "TO", "WHERE", "GROUP", "HAVING", "UNION", "ON", "AS"}


class Brackets(Expressions):
    """Reads a window."""

    def bracket(self) -> WindowClause:
        """The window whose opening bracket comes next."""
        start = self.place
        self.expect("[")
        found = self._inside(start)
        if not self.accept("]"):
            raise self.unexpected("] is expected", _HINT)
        return found

    def _inside(self, start: int) -> WindowClause:
        if self.accept("NOW"):
            return WindowClause("now", start)
        if self.accept("UNBOUNDED"):
            return WindowClause("unbounded", start)
        if self.accept("VALID"):
            first = self.column_name("the column where validity begins")
            self.expect("TO", "write [VALID valid_from TO valid_to]")
            return WindowClause("valid", start, names=(first, self.column_name("the column where validity ends")))
        if self.accept("FIXED"):
            return WindowClause("fixed", start, self.amount("a size"))
        if self.accept("PARTITION BY"):
            names = [self.column_name("a column")]
            while self.accept(","):
                names.append(self.column_name("a column"))
            self.expect("ROWS", "write [PARTITION BY a, b ROWS 10]")
            return self._rows(start, self.count(), tuple(names))
        if self.accept("ROWS"):
            return self._rows(start, self.count(), ())
        explicit = self.accept("RANGE")
        if not explicit and self._curr.token_type != TokenType.NUMBER and self.place not in self.parameters:
            raise self.unexpected("a window is expected", _HINT)
        if not explicit and self.keyword(1) in ("ROWS", "ROW"):
            size = self.count()
            self._advance()
            return self._rows(start, size, ())
        size = self.amount("a size")
        slide = self.amount("a slide") if self.accept("SLIDE") else None
        return WindowClause("range", start, size, slide)

    def _rows(self, start: int, size: Amount, names: tuple[Name, ...]) -> WindowClause:
        return WindowClause("rows", start, size, names=names, drain=self.accept("DRAIN"))

    def column_name(self, what: str) -> Name:
        """A name that must come; no word is reserved here."""
        start = self.place
        found = None if self.ended else self._parse_id_var(any_token=True)
        if found is None:
            raise self.unexpected(f"{what} is expected")
        return Name(found.name, start)

    def count(self) -> Amount:
        """A number of rows."""
        start = self.place
        given = self.parameter()
        if given is not None:
            if isinstance(given.value, bool) or not isinstance(given.value, int) or given.value < 1:
                hint = "a number of rows is a whole number from 1 on"
                raise wrong(self.sql, start, f"{given.name} is {given.value!r}, which is no number of rows", hint)
            return Amount(str(given.value), False, start)
        if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdecimal():
            raise self.unexpected("a number of rows is expected", "write [ROWS 100]")
        self._advance()
        written = self.sql[start : self._prev.end + 1]
        if not written.isdecimal():
            raise wrong(self.sql, start, f"{written!r} is no number of rows", "write [ROWS 100]")
        return Amount(written, False, start)

    def amount(self, what: str) -> Amount:
        """A number, or numbers with units: `5 SECONDS`, `1 HOUR 30 MINUTES`, `0.01`."""
        start = self.place
        words: list[str] = []
        while self._curr.token_type == TokenType.NUMBER or self.place in self.parameters:
            at, given = self.place, self.parameter()
            if given is not None and isinstance(given.value, str | timedelta) and not words:
                return Amount(_length(given.value), True, start)
            if given is None:
                self._advance()
            while not self.ended and self._curr.start == at:  # sqlglot makes several tokens of 5L
                self._advance()
            number = self.sql[at : self._prev.end + 1] if given is None else _plain(given.value)
            if not number.replace(".", "", 1).isdecimal():
                raise wrong(self.sql, at, f"{number!r} is not a plain number", f"write {what} as in 5 SECONDS or 10000")
            unit = self.keyword()
            if not unit.isalpha() or unit in _NOT_UNITS:
                if words:
                    raise self.unexpected("a unit is expected", f"write {what} as in 1 HOUR 30 MINUTES")
                return Amount(number, False, start)
            self._advance()
            words += [number, unit.lower()]
        if not words:
            raise self.unexpected(f"{what} is expected", "a time is 5 SECONDS; on a column of numbers, 10000")
        return Amount(" ".join(words), True, start)


def _plain(given: object) -> str:
    number = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
    return f"{Decimal(str(given)):f}" if number else repr(given)


def _length(given: str | timedelta) -> str:
    return given if isinstance(given, str) else f"{given // timedelta(microseconds=1)} microseconds"
