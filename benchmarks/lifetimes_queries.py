"""The experiment of Imaki and Nishizawa ("Data Lifetime Management Method in Stream Data Processing", section 5): its
schemas, its four queries word for word, and its data.

    WINu    the window of a query with one input: 10 to 1,000,000 rows, or 10 ms to 1,000 s
    WINb    that of each of two inputs: 5 to 500,000 rows, or 5 ms to 500 s; together they hold as many tuples

Data: one tuple per millisecond and stream, so a window of N ms always holds as many tuples as one of N rows. `ca` of
STRb0 and STRb1 counts up, and both streams are aligned: whatever the window, each pair of tuples gives one result.
The document does not print STRu. Here `ca` is the count as text, `cb` the count modulo 10, so `cb > 3` keeps six tuples
of ten, and `cc` is constant, as `cb` is in the other two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa

from streamjoin.language import parse_cql
from streamjoin.plan.relation import Relation
from streamjoin.plan.rules import optimise

QueryName = Literal["selection", "projection", "union", "join"]
WindowKind = Literal["rows", "time"]
QUERIES: Final[tuple[QueryName, ...]] = get_args(QueryName)
KINDS: Final[tuple[WindowKind, ...]] = get_args(WindowKind)

# Figure 3, word for word.
CQL: Final[dict[QueryName, str]] = {
    "selection": "select * from STRu[WINu] where cb > 3",
    "projection": "select ca, cb from STRu[WINu]",
    "union": "select * from STRb0[WINb]\nunion all\nselect * from STRb1[WINb]",
    "join": "select * from STRb0[WINb],\nSTRb1[WINb]\nwhere STRb0.ca = STRb1.ca",
}
SELECTED: Final = 0.6  # the share that `cb > 3` keeps

# (ca varchar, cb int, cc varchar) and (ca int, cb varchar, cc int); beside them the time stamp, in milliseconds.
_UNARY: Final = pa.schema([("ts", pa.int64()), ("ca", pa.string()), ("cb", pa.int32()), ("cc", pa.string())])
_BINARY: Final = pa.schema([("ts", pa.int64()), ("ca", pa.int32()), ("cb", pa.string()), ("cc", pa.int32())])
SCHEMAS: Final = {"STRu": _UNARY, "STRb0": _BINARY, "STRb1": _BINARY}

Tables = dict[str, pa.Table]


def sources(query: QueryName) -> tuple[str, ...]:
    """The streams that a query reads."""
    return ("STRu",) if query in ("selection", "projection") else ("STRb0", "STRb1")


def window_of_each(query: QueryName, tuples: int) -> int:
    """The size of the window of each input, when all of them together hold so many tuples."""
    return tuples // len(sources(query))


def cql_of(query: QueryName, kind: WindowKind, size: int) -> str:
    """The query's text with its windows.

    >>> cql_of("selection", "rows", 10)
    'select * from STRu[ROWS 10] where cb > 3'
    """
    # The time stamps are numbers of milliseconds, so a window of time has no unit.
    window = f"ROWS {size}" if kind == "rows" else f"RANGE {size}"
    return CQL[query].replace("WINu", window).replace("WINb", window)


def tree_of(query: QueryName, kind: WindowKind, size: int) -> Relation:
    """The query as it runs, with a window of this size over each input. `*` has the time stamp too."""
    used = {name: SCHEMAS[name] for name in sources(query)}
    written = parse_cql(cql_of(query, kind, size), used, times=dict.fromkeys(used, "ts"))
    return optimise(written.relation, used)


def tuples_of(query: QueryName, first: int, count: int) -> Tables:
    """Tuples number `first` and so many following of each stream that the query reads.

    >>> tuples_of("join", 532, 2)["STRb1"].to_pylist()[0]
    {'ts': 532, 'ca': 532, 'cb': 's1', 'cc': 1}
    """
    ts = np.arange(first, first + count)
    if sources(query) == ("STRu",):
        columns = [pa.array(ts), pa.array(ts).cast(pa.string()), pa.array((ts % 10).astype(np.int32))]
        return {"STRu": pa.table([*columns, pa.repeat("su", count)], schema=_UNARY)}
    number = pa.array(ts.astype(np.int32))
    return {
        f"STRb{each}": pa.table(
            [pa.array(ts), number, pa.repeat(f"s{each}", count), pa.array(np.full(count, each, np.int32))],
            schema=_BINARY,
        )
        for each in (0, 1)
    }


def micro_batches(query: QueryName, first: int, tuples: int, size: int) -> Iterator[tuple[Tables, dict[str, int]]]:
    """So many tuples of each stream, in micro-batches of `size`, and progress up to the last of each."""
    for start in range(first, first + tuples, size):
        count = min(size, first + tuples - start)
        yield tuples_of(query, start, count), dict.fromkeys(sources(query), start + count - 1)
