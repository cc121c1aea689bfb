"""What has been said of Spark's settings before a session is made: to `spark-submit`, in `spark-defaults.conf`.

Python starts the JVM by `spark-submit` as well. Its words come after those of a builder, and before Spark's defaults.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext


def jvm_runs() -> bool:
    """Whether there is a JVM already: this program has started it, or was started by it (`spark-submit`)."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def said_before(name: str, flag: str, variable: str = "") -> str | None:
    """A setting as it was given to `spark-submit`, or as its file of defaults or an environment variable has it; None
    where nobody has said it.

    >>> said_before("spark.streamjoin.none", "--none") is None
    True
    """
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for word, after in pairwise([*words, ""]):
        if word == flag:
            return after
        for form in (f"{flag}=", f"{name}=", f"--conf={name}="):
            if word.startswith(form):
                return word.removeprefix(form)
    return _by_default(name) or os.environ.get(variable) or None


def _by_default(name: str) -> str | None:
    """What `spark-defaults.conf` says, a file of Java properties: a name, then space, `=` or `:`, then the value."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")) / "spark-defaults.conf"
    lines = defaults.read_text().splitlines() if defaults.is_file() else []
    found = [re.fullmatch(rf"\s*{re.escape(name)}(?:\s*[=:]\s*|\s+)(.*?)\s*", line) for line in lines]
    return next((each[1] for each in reversed(found) if each), None)


def said_master(*, earlier: bool = False) -> str | None:
    """The master that a session has whose builder does not say it; None where Spark takes its default, `local[*]`.

    A builder also finds what an `earlier` session has told the JVM that it left.
    """
    context = SparkContext._active_spark_context
    if context is not None:
        return str(context.master)
    if "PYSPARK_GATEWAY_PORT" in os.environ or (earlier and jvm_runs()):
        SparkContext._ensure_initialized()  # a JVM that runs: this connects to it
        return SparkConf().get("spark.master")
    return said_before("spark.master", "--master", "MASTER")
