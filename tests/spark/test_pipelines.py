"""The pipeline of the guide, as it is written there, run by Spark's own command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyspark
import pytest

from tests.conftest import ROOT
from tests.docs.test_documents import blocks_of

GUIDE = ROOT / "docs" / "guides" / "connect-and-pipelines.md"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.python.daemon.module": "streamjoin.spark.daemon",
}
INPUTS: dict[str, list[dict[str, Any]]] = {
    "trades": [
        {"symbol": "A", "ts": "2024-01-01T10:00:05Z", "size": 100},
        {"symbol": "A", "ts": "2024-01-01T10:00:30Z", "size": 10},
        {"symbol": "B", "ts": "2024-01-01T10:00:05Z", "size": 1},
    ],
    "quotes": [
        {"symbol": "A", "ts": "2024-01-01T10:00:03Z", "bid": 9.5},
        {"symbol": "A", "ts": "2024-01-01T10:00:28Z", "bid": 9.0},
    ],
    "orders": [
        {"account": 7, "ts": "2024-01-01T10:00:00Z", "item": "cup"},
        {"account": 8, "ts": "2024-01-01T10:01:00Z", "item": "jug"},
        {"account": 9, "ts": "2024-01-01T12:00:00Z", "item": "pan"},
    ],
    "payments": [
        {"account": 7, "ts": "2024-01-01T10:04:00Z", "amount": 3.5},
        {"account": 1, "ts": "2024-01-01T12:00:00Z", "amount": 0.0},
    ],
}


def project(folder: Path) -> None:
    """The guide's pipeline in a folder, over small inputs."""
    blocks = list(blocks_of(GUIDE.read_text()))
    spec = next(block.text for block in blocks if block.info == "yaml")
    code = next(block.text for block in blocks if block.info == "python no-run" and "dp.table" in block.text)
    (folder / "transformations").mkdir(parents=True)
    defaults = "".join(f"{name} {value}\n" for name, value in SETTINGS.items())
    (folder / "spark-defaults.conf").write_text(defaults)
    (folder / "spark-pipeline.yml").write_text(spec.replace("/data/trading", str(folder)))
    (folder / "transformations" / "trading.py").write_text(code.replace("/data/trading", str(folder)))
    for name, rows in INPUTS.items():
        (folder / name).mkdir()
        (folder / name / "rows.json").write_text("\n".join(map(json.dumps, rows)))


def table(folder: Path, name: str) -> list[Mapping[str, Any]]:
    files = sorted((folder / "spark-warehouse" / name).glob("*.parquet"))
    return ds.dataset(files, format="parquet").to_table(use_threads=False).to_pylist()


def spark_pipelines(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Spark's own command over the pipeline in a folder."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    of_the_server = {"SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [Path(pyspark.__file__).parent / "bin" / "spark-pipelines", command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, **of_the_server},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.spark
def test_a_pipeline_joins_its_own_tables(tmp_path: Path) -> None:
    project(tmp_path)
    ran = spark_pipelines("run", tmp_path)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    priced = sorted((row["symbol"], row["size"], row["bid"]) for row in table(tmp_path, "priced") if row["bid"])
    assert priced == [("A", 10, 9.0), ("A", 100, 9.5)]
    assert max(row["paid"] or 0 for row in table(tmp_path, "turnover")) == 950 + 90
    # What can still find a partner is held: order 9 waits for its payment.
    paid = sorted((row["account"], row["amount"]) for row in table(tmp_path, "paid"))
    assert paid == [(7, 3.5), (8, None)]


STREAMS_OF_ITS_OWN = """
@dp.table
def placed():
    return spark.readStream.schema(ORDERS).json("/data/trading/orders")


@dp.table
def paid():
    orders = spark.readStream.table("placed")
    payments = spark.readStream.schema(PAYMENTS).json("/data/trading/payments")
    known = {"schemas": [ORDERS, PAYMENTS], "streaming": True, "lateness": sj.Grace("1 minute")}
    return sj.join_interval(orders, payments, on="ts", by="account", lower="0 s", upper="1 hour", **known)
"""


@pytest.mark.long
@pytest.mark.spark
def test_spark_refuses_state_over_streams_of_the_pipelines_own_tables(tmp_path: Path) -> None:
    """As the guide says. When Spark has learned it this fails, and the guide may say more."""
    project(tmp_path)
    file = tmp_path / "transformations" / "trading.py"
    head, _, _ = file.read_text().partition("@dp.")
    file.write_text(head + STREAMS_OF_ITS_OWN.replace("/data/trading", str(tmp_path)))
    ran = spark_pipelines("dry-run", tmp_path)
    assert ran.returncode != 0
    assert "TABLE_OR_VIEW_NOT_FOUND" in ran.stdout + ran.stderr, (ran.stdout + ran.stderr)[-4000:]
    assert "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" not in ran.stdout + ran.stderr, "the call itself asks nothing"
