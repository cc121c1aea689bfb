"""The same calls through Spark Connect: a server from the pip package, a client that knows nothing of the JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.spark
def test_joins_work_through_a_connect_server(tmp_path: Path) -> None:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["batches"] >= 3
    assert told["rest"], "with this much slack something is still held"
    assert sorted(told["left"] + told["rest"], key=str) == told["batch"]
