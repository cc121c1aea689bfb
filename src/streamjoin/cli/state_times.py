"""Times of stored rows, as a reader writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from streamjoin.algebra import FOREVER, NEVER, TimeAxis


def shown(time: int | None, axis: TimeAxis) -> str:
    """A time as a reader writes it; time stamps in UTC.

    >>> shown(1_500_000, TimeAxis.TIMESTAMP), shown(1, TimeAxis.DATE), shown(7, TimeAxis.INTEGER)
    ('1970-01-01 00:00:01.500', '1970-01-02', '7')
    >>> shown(FOREVER, TimeAxis.DATE), shown(None, TimeAxis.DATE)
    ('for ever', '-')
    """
    if time is None or time == NEVER:
        return "-"
    if time == FOREVER:
        return "for ever"
    try:
        if axis is TimeAxis.TIMESTAMP:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
            return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
        if axis is TimeAxis.DATE:
            return (date(1970, 1, 1) + timedelta(days=time)).isoformat()
    except OverflowError:
        pass  # beyond the years that Python knows
    return f"{time:,}" if axis is not TimeAxis.INTEGER else str(time)
