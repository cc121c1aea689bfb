"""CQL, the continuous query language: Spark SQL with a window in brackets behind each stream.

    SELECT R.k, COUNT(*) FROM R [RANGE 5 SECONDS], S [ROWS 100] WHERE R.k = S.k AND R.x > 3 GROUP BY R.k

A query is read, its names are found in the streams' schemas, and it becomes a tree of relations. Whatever cannot be
planned is refused with a reason, and its place in the text; nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streamjoin.language.parameters import Arguments, with_values
from streamjoin.plan.relation import Query


def parse_cql(
    text: str, schemas: Mapping[str, pa.Schema], *, times: Mapping[str, str | None], args: Arguments = None
) -> Query:
    """The tree of a query over streams with these schemas; `times` has the time column of each stream, `args` the
    values of its parameters.

    The tree is as written: `plan.rules.optimise` makes joins of its conditions.

    >>> schema = pa.schema({"ts": pa.int64(), "x": pa.int32()})
    >>> query = parse_cql("SELECT ISTREAM(x) FROM R [RANGE 10] WHERE x > 3", {"R": schema}, times={"R": "ts"})
    >>> query.to_stream, query.relation.computed
    ('istream', (('x', '`R.x`'),))
    >>> query.relation.child.condition
    '`R.x` > 3'
    >>> parse_cql("SELECT y FROM R [NOW]", {"R": schema}, times={"R": "ts"})
    Traceback (most recent call last):
    ...
    streamjoin.errors.UnknownColumnError: The query is wrong at line 1, column 8:
        SELECT y FROM R [NOW]
               ^
    There is no column 'y' here. Hint: the columns are ts, x.
    """
    # Imported when first used: sqlglot takes a while to load, and most of streamjoin does without it.
    from streamjoin.language.binder import Binder
    from streamjoin.language.reader import read

    text, parameters = with_values(text, args)
    return Binder(text, schemas, times).statement(read(text, parameters))
