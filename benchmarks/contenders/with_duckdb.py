"""DuckDB on one thread: a range join in SQL, which it runs as an IEJoin, or ASOF (the notes say what it planned).

The tables are its own, filled before the clock starts; the result is an Arrow table in whatever order DuckDB likes.
`connection.sql` hands it over without the copy that `connection.execute` makes, which is a fifth of the time.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.digest import Digest
from benchmarks.worker import Delivered, Loaded, serve
from benchmarks.workloads import Workload

_CONDITIONS = {
    "overlap": "a.lo < b.hi AND b.lo < a.hi",
    "band": "b.x BETWEEN a.x - {reach} AND a.x + {reach}",
    "asof": "a.key = b.key AND a.ts >= b.ts",
}
_OPERATORS = ("Asof Join", "IE Join", "Piecewise Merge Join", "Nested Loop Join", "Hash Join")


def load(folder: Path) -> Loaded:
    workload = Workload.read(folder)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    for name, side in (("a", workload.left), ("b", workload.right)):
        connection.register("arrays", pa.table(side))
        connection.execute(f"CREATE TABLE {name} AS FROM arrays")
        connection.unregister("arrays")
    kind = "ASOF JOIN" if workload.name == "asof" else "JOIN"
    condition = _CONDITIONS[workload.name].format(**workload.bounds)
    query = f"SELECT a.id AS v, b.id AS w FROM a {kind} b ON {condition}"

    def pairs() -> Delivered:
        table = connection.sql(query).to_arrow_table()
        return [(batch["v"].to_numpy(), batch["w"].to_numpy()) for batch in table.to_batches()]

    def aggregate() -> Digest:
        ((count, left, right),) = connection.sql(f"SELECT count(*), sum(v), sum(w) FROM ({query})").fetchall()
        return Digest(count, None, int(left), int(right))

    plan = connection.execute(f"EXPLAIN {query}").fetchall()[0][1]
    operators = [
        name
        for name in ("Asof Join", "IE Join", "Piecewise Merge Join", "Nested Loop Join", "Hash Join")
        if name in plan
    ]
    return Loaded({"pairs": pairs, "aggregate": aggregate}, {"DuckDB's plan": ", ".join(operators) or plan})


if __name__ == "__main__":
    serve(load)
