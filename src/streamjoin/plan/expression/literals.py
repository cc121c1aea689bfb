"""Literals of the declared subset, typed as Spark types them from the way they are written.

    12  12L  12S  12Y      int (bigint or decimal where it does not fit), bigint, smallint, tinyint
    1.5  1.5BD             decimal(2,1): the digits that are there
    1.5D  1.5E3            double
    'a\\%b'  "it''s"  r'\\d'
    DATE '2024-02-29'      TIMESTAMP_NTZ '2024-02-29 12:00:00.5'      TIMESTAMP '2024-02-29 12:00:00+01:00'

What it does not do: a TIMESTAMP without a zone, which Spark reads in the session's time zone; dates and times that are
not written in full; floats (1.5F); octal and Unicode escapes. Those raise `Outside`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from streamjoin.plan.expression.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_DIGITS,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
)
from streamjoin.plan.expression.tree import MICROS_PER_DAY, Literal, Outside

_NUMBER = re.compile(r"(?P<digits>[\d.]+(?P<exponent>E[+-]?\d+)?)(?P<suffix>BD|[LSYFD])?", re.IGNORECASE)
_WHOLE = {"Y": (TINYINT, 7), "S": (SMALLINT, 15), "L": (BIGINT, 63)}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "%": "\\%", "_": "\\_"}
_WRITTEN = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_ZONE = r"Z|[+-](?:0\d|1[0-7]):[0-5]\d"
UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": MICROS_PER_DAY,
    "WEEK": 7 * MICROS_PER_DAY,
}


def written(value: str) -> str:
    """A string as Spark reads it: it cannot close its quotes.

    >>> print(written("it's"))
    'it\\'s'
    """
    return "'" + "".join(_WRITTEN.get(character, character) for character in value) + "'"


def number(text: str, negative: bool = False) -> Literal:
    """The literal a number is; with its minus, because -2147483648 is an int and 2147483648 is not.

    >>> [str(number(text).type) for text in ("1", "3000000000", "1.50", "1.5D", "0.05", "1e3", "7L")]
    ['int', 'bigint', 'decimal(3,2)', 'double', 'decimal(2,2)', 'double', 'bigint']
    """
    match = _NUMBER.fullmatch(text)
    assert match is not None  # the lexer saw to it
    digits, suffix = ("-" if negative else "") + match["digits"], (match["suffix"] or "").upper()
    if suffix == "D" or (match["exponent"] and not suffix):
        value = float(digits)
        if math.isinf(value):
            raise Outside(f"the number {text}, which is too large")
        return Literal(DOUBLE, value)
    if match["exponent"] or suffix == "F":  # Python reads no float in one step, and in two it rounds twice
        raise Outside(f"the number {text}")
    exact = Decimal(digits)
    if "." not in digits:
        kinds = [_WHOLE[suffix]] if suffix in _WHOLE else [] if suffix == "BD" else [(INT, 31), (BIGINT, 63)]
        for kind, bits in kinds:
            if -(1 << bits) <= int(exact) < 1 << bits:
                return Literal(kind, int(exact))
    if suffix in _WHOLE:
        raise Outside(f"the number {text}, which does not fit its type")
    scale = -int(exact.as_tuple().exponent)
    places = max(len(exact.as_tuple().digits), scale)
    if places > MAX_DIGITS:
        raise Outside(f"the number {text}, which has more than 38 digits")
    return Literal(SqlType("decimal", places, scale), int(exact.scaleb(scale)))


def string(text: str) -> str:
    """The value of a string as it is written, with quotes and escapes. The backslash of \\% and \\_ stays, for LIKE.

    >>> string("'it''s'"), string(r"'50\\%'"), string(r"r'\\d'")
    ("it's", '50\\\\%', '\\\\d')
    """
    raw = text[0] in "rR"
    quote, body = text[-1], text[2 if raw else 1 : -1]
    if raw:
        return body
    return re.sub(rf"\\(.)|{quote}{quote}", lambda match: _unescape(match, quote), body, flags=re.DOTALL)


def _unescape(match: re.Match[str], quote: str) -> str:
    if match[1] is None:
        return quote
    if match[1] not in _ESCAPES:
        raise Outside(f"the escape {match[0]} in a string")
    return _ESCAPES[match[1]]


def moment(keyword: str, text: str) -> Literal:
    """The value of DATE, TIMESTAMP, TIMESTAMP_LTZ or TIMESTAMP_NTZ before a string.

    >>> moment("DATE", "1970-01-02").value, moment("TIMESTAMP", "1970-01-01 01:00:00+01:00").value
    (1, 0)
    """
    written = f"{keyword} '{text}'"
    if keyword == "DATE":
        if not re.fullmatch(_DATE, text):
            raise Outside(f"{written}: a date must be written as yyyy-mm-dd")
        return Literal(DATE, (_read(text, written).date() - date(1970, 1, 1)).days)
    zoned = keyword != "TIMESTAMP_NTZ"
    match = re.fullmatch(rf"{_DATE}(?:[ T]{_TIME}(?P<zone>{_ZONE})?)?", text)
    if match is None:
        raise Outside(f"{written}: a timestamp must be written as yyyy-mm-dd hh:mm:ss[.ffffff]" + "[+hh:mm]" * zoned)
    if zoned and not match["zone"]:
        raise Outside(f"{written}, which depends on the session time zone (write its offset, as in '{text}+00:00')")
    if not zoned and match["zone"]:
        raise Outside(f"{written}: a timestamp without time zone that has one")
    value = _read(text, written)
    since = value.astimezone(UTC) if zoned else value.replace(tzinfo=UTC)
    return Literal(TIMESTAMP if zoned else TIMESTAMP_NTZ, _micros(since - datetime(1970, 1, 1, tzinfo=UTC)))


def _read(text: str, written: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Outside(f"{written}, which does not exist ({error})") from None


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def is_unit(word: str) -> bool:
    """Whether a word is the unit of an interval in days and time.

    >>> is_unit("seconds"), is_unit("month")
    (True, False)
    """
    return word.upper().removesuffix("S") in UNITS


def interval(amounts: list[tuple[str, str]]) -> Literal:
    """An interval of amounts with units.

    >>> interval([("1", "minute"), ("-1.5", "SECONDS")]).value
    58500000
    """
    total = 0
    for amount, unit in amounts:
        fraction = r"(?:\.\d{1,6})?" if unit.upper().startswith("SECOND") else ""
        if not is_unit(unit) or not re.fullmatch(rf"[+-]?\d+{fraction}", amount):
            raise Outside(f"INTERVAL {amount} {unit}")
        total += int(Decimal(amount) * UNITS[unit.upper().removesuffix("S")])
    if abs(total) >= 1 << 63:
        raise Outside("an INTERVAL of more than 292000 years")
    return Literal(INTERVAL, total)
