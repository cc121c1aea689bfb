"""The guide to PostgreSQL on a server that is started for it: a table as an input, results there once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_documents import blocks_of
from tests.spark.postgresql import USER, Server, server

# Debian's packages: `./sj test-postgres` installs them, and runs this.
pytestmark = pytest.mark.long

GUIDE = ROOT / "docs" / "guides" / "postgresql.md"
DRIVER = Path("/usr/share/java/postgresql.jar")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    assert DRIVER.exists(), f"{DRIVER} is missing: ./sj test-postgres installs Debian's libpostgresql-jdbc-java"
    with server() as found:
        yield found


def test_results_are_there_once_though_micro_batches_run_again(running: Server) -> None:
    for block in blocks_of(GUIDE.read_text()):
        if block.info == "sql":
            running.execute(block.text)
    names = {"url": running.url, "user": USER, "password": running.password}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.docs.guide", str(GUIDE), json.dumps(names)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-5000:]}"
    # Seen by somebody else than Spark: six results, two of them alike, though some were written two and three times.
    assert running.execute("SELECT count(*), count(DISTINCT (symbol, at, size)) FROM priced") == "6|5\n"
    assert running.execute("SELECT batch, count(*) FROM priced GROUP BY batch ORDER BY batch") == "0|5\n1|1\n"
    calls = running.execute("SELECT calls FROM pg_stat_user_functions WHERE funcname = 'insert_once'")
    assert int(calls) == 2 + 5 + 5 + 1, "half of it, all of it, all of it again, and the second micro-batch"
