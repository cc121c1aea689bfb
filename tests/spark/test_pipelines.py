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


@pytest.mark.spark
def test_a_pipeline_joins_its_own_tables(tmp_path: Path) -> None:
    project(tmp_path)
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    of_the_server = {"SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        [Path(pyspark.__file__).parent / "bin" / "spark-pipelines", "run"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, **of_the_server},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    priced = sorted((row["symbol"], row["size"], row["bid"]) for row in table(tmp_path, "priced") if row["bid"])
    assert priced == [("A", 10, 9.0), ("A", 100, 9.5)]
    assert max(row["paid"] or 0 for row in table(tmp_path, "turnover")) == 950 + 90
    # What can still find a partner is held: order 9 waits for its payment.
    paid = sorted((row["account"], row["amount"]) for row in table(tmp_path, "paid"))
    assert paid == [(7, 3.5), (8, None)]
