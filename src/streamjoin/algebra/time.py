"""The time axis: what one tick is, and how a duration becomes ticks.

| axis      | column                              | one tick      | durations                       |
|-----------|-------------------------------------|---------------|---------------------------------|
| timestamp | timestamp, with or without a zone   | a microsecond | Spark strings, `timedelta`      |
| date      | date                                | a day         | the same, whole days only       |
| integer   | any integer column                  | one           | integers                        |

A bare number on a timestamp axis is refused: nobody can tell whether it meant milliseconds.
"""

from __future__ import annotations

import datetime
import enum
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from streamjoin.errors import CallError, says_what_fits

Duration = str | datetime.timedelta | int

_MICROSECONDS: Final[dict[str, int]] = {
    unit: microseconds
    for microseconds, units in {
        1: "us microsecond microseconds",
        1_000: "ms millisecond milliseconds",
        1_000_000: "s sec secs second seconds",
        60_000_000: "m min mins minute minutes",
        3_600_000_000: "h hour hours",
        86_400_000_000: "d day days",
        604_800_000_000: "w week weeks",
    }.items()
    for unit in units.split()
}
_DAY: Final = 86_400_000_000
_PART: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*,?")
_EXAMPLE: Final = 'write it as "5 seconds", "1 hour 30 minutes" or datetime.timedelta(seconds=5)'


@dataclass(frozen=True)
class Arrival:
    """The time of a row is when it arrives: the clock of its micro-batch. Rows of one micro-batch are simultaneous."""


@says_what_fits
def arrival() -> Arrival:
    """For rows without a time column: `time=sj.arrival()` stamps them on arrival.

    The stamp is the clock of the micro-batch. Should the clock be set back, or the query go on where it is behind, rows
    are late until it has caught up; `lateness=sj.Grace("5 seconds")` allows for that.

    >>> arrival()
    Arrival()
    """
    return Arrival()


class TimeAxis(enum.Enum):
    """What the int64 numbers on the time axis count."""

    TIMESTAMP = "timestamp"
    DATE = "date"
    INTEGER = "integer"

    def ticks(self, duration: Duration, what: str = "duration") -> int:
        """The length of `duration` in ticks of this axis; may be negative (bounds of an interval can be).

        >>> TimeAxis.TIMESTAMP.ticks("2 seconds")
        2000000
        >>> TimeAxis.DATE.ticks("1 week")
        7
        >>> TimeAxis.INTEGER.ticks(10_000)
        10000
        """
        if self is TimeAxis.INTEGER:
            return _integer(duration, what)
        microseconds = _microseconds(duration, what)
        unit = 1 if self is TimeAxis.TIMESTAMP else _DAY
        ticks = Fraction(microseconds, unit)
        if ticks.denominator != 1:
            raise CallError(
                f"{what} must be a whole number of {'microseconds' if unit == 1 else 'days'}, got {duration!r}",
                hint="one tick of this time axis cannot be divided",
            )
        return int(ticks)

    def moment(self, ticks: int) -> datetime.datetime | datetime.date | int:
        """The time at a tick, as Python has it.

        >>> str(TimeAxis.TIMESTAMP.moment(5_000_000)), str(TimeAxis.DATE.moment(1)), TimeAxis.INTEGER.moment(7)
        ('1970-01-01 00:00:05+00:00', '1970-01-02', 7)
        """
        try:
            if self is TimeAxis.TIMESTAMP:
                return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=ticks)
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=ticks) if self is TimeAxis.DATE else ticks
        except OverflowError:  # Python has ten thousand years
            return ticks


def _integer(duration: Duration, what: str) -> int:
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise CallError(
            f"{what} must be an integer on an integer time axis, got {duration!r}",
            hint="use the unit of the time column, for example 10_000; or make the column a timestamp",
        )
    return duration


def _microseconds(duration: Duration, what: str) -> Fraction:
    if isinstance(duration, datetime.timedelta):
        return Fraction(duration // datetime.timedelta(microseconds=1))
    if not isinstance(duration, str):
        raise CallError(
            f"{what} must say its unit on a timestamp or date axis, got {duration!r}",
            hint=_EXAMPLE,
        )
    text = duration.strip()
    if text.lower().startswith("interval "):
        text = text[len("interval ") :]
    total, position = Fraction(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[2].lower() not in _MICROSECONDS:
            why = " (months and years have no fixed length)" if re.search(r"month|year", text, re.I) else ""
            raise CallError(f"{what} {duration!r} is not a duration{why}", hint=_EXAMPLE)
        total += Fraction(part[1]) * _MICROSECONDS[part[2].lower()]
        position = part.end()
    if not text:
        raise CallError(f"{what} is empty", hint=_EXAMPLE)
    return total
