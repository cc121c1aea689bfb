"""The interval join of Flink SQL, in its own environment: CSV in, CSV out, two slots, streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.one_shot import Answer, answer

SLOTS: Final = 2
_SOURCE: Final = """
    CREATE TABLE {name} (
        ts BIGINT, k BIGINT, v DOUBLE, p BIGINT,
        rowtime AS TO_TIMESTAMP_LTZ(ts, 3),
        -- rows come in order of time, and several have the same
        WATERMARK FOR rowtime AS rowtime - INTERVAL '0.001' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
_SINK: Final = """
    CREATE TABLE joined (
        ts BIGINT, k BIGINT, v DOUBLE, p BIGINT, ts_right BIGINT, v_right DOUBLE, p_right BIGINT
    ) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
_JOIN: Final = """
    INSERT INTO joined
    SELECT l.ts, l.k, l.v, l.p, r.ts, r.v, r.p FROM l JOIN r ON l.k = r.k
    AND r.rowtime BETWEEN l.rowtime - INTERVAL '{bound}' SECOND AND l.rowtime + INTERVAL '{bound}' SECOND
"""


def do(request: dict[str, Any]) -> Answer:
    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    flink.get_config().set("parallelism.default", str(SLOTS))
    for name, side in (("l", "left"), ("r", "right")):
        flink.execute_sql(_SOURCE.format(name=name, path=(Path(request["folder"]) / f"{side}.csv").as_uri()))
    flink.execute_sql(_SINK.format(path=Path(request["output"]).as_uri()))
    flink.execute_sql(_JOIN.format(bound=request["bound_seconds"])).wait()
    return {}


if __name__ == "__main__":
    answer(do)
