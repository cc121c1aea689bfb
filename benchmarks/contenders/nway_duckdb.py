"""DuckDB on one thread: four tables of its own, joined in one query; each level carries the intersection so far."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.nway_data import SHIFT, read
from benchmarks.worker import Delivered, Loaded, serve

_QUERY = """
    WITH ab AS (SELECT a.key, greatest(a.lo, b.lo) AS lo, least(a.hi, b.hi) AS hi, a.id AS ia, b.id AS ib
                FROM a JOIN b ON {ab} a.lo < b.hi AND b.lo < a.hi),
         abc AS (SELECT x.key, greatest(x.lo, c.lo) AS lo, least(x.hi, c.hi) AS hi, ia, ib, c.id AS ic
                 FROM ab x JOIN c ON {xc} x.lo < c.hi AND c.lo < x.hi)
    SELECT (ia << {shift}) + ib AS v, (ic << {shift}) + d.id AS w FROM abc x JOIN d ON {xd} x.lo < d.hi AND d.lo < x.hi
"""


def load(folder: Path) -> Loaded:
    question, inputs = read(folder)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    for name, columns in zip("abcd", inputs, strict=True):
        connection.register("arrays", pa.table(columns))
        connection.execute(f"CREATE TABLE {name} AS FROM arrays")
        connection.unregister("arrays")
    keyed = question == "equality"
    conditions = {pair: f"{pair[0]}.key = {pair[1]}.key AND" if keyed else "" for pair in ("ab", "xc", "xd")}
    query = _QUERY.format(**conditions, shift=SHIFT)

    def pairs() -> Delivered:
        table = connection.sql(query).to_arrow_table()
        return [(batch["v"].to_numpy(), batch["w"].to_numpy()) for batch in table.to_batches()]

    return Loaded({"pairs": pairs})


if __name__ == "__main__":
    serve(load)
