"""What a session must have is looked at when a call is made: a worker would say it under a hundred lines of Java.

Rows are joined in Spark's Python workers. Do they have streamjoin? Three cases:

    workers run here, the Python that runs this        nothing to ask
    workers run here, another Python                   a process of that Python is asked, some 50 ms
    workers run elsewhere, or nobody knows (Connect)   one task is asked: the only job that a call ever runs

What a session has once been found to have is not asked again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

from streamjoin.errors import CallError
from streamjoin.spark.session import PARTITIONS, PROVIDER, ROCKSDB, tasks_at_once
from streamjoin.spark.told import asked, context_of

# What a Python says of itself. As text: a function of ours would be looked for where streamjoin may be missing.
_LOOK: Final = """
import importlib.util, json, sys
def look():
    needed = ("streamjoin", "pyarrow", "pandas", "numba", "google")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    version = None if "streamjoin" in missing else __import__("streamjoin").__version__
    python = ".".join(map(str, sys.version_info[:2]))
    return json.dumps({"executable": sys.executable, "python": python, "missing": missing, "streamjoin": version})
"""
_TURNS: Final = 8  # a micro-batch runs every partition, and an empty one costs a quarter of a second

_found_good: set[tuple[str, str]] = set()


def check_session(session: SparkSession, *, streaming: bool) -> None:
    """Refuse a session in which a call would fail, or a query never get anywhere, and say what to write instead."""
    context = context_of(session)
    if streaming:
        _check_state_store(session)
        _check_partitions(session, context)
    if context is None:
        _check_elsewhere(session, (str(getattr(session, "session_id", id(session))), ""))
        return
    name = (str(context.applicationId), str(context.pythonExec))
    if not str(context.master).startswith("local"):
        if streaming:
            _check_python_of_driver(context.pythonExec)
        _check_elsewhere(session, name)
    elif not is_this_python(context.pythonExec) and name not in _found_good:
        _check_report(_asked_here(context), here=True)
        _found_good.add(name)


def _check_state_store(session: SparkSession) -> None:
    provider = session.conf.get(PROVIDER, "")
    if provider != ROCKSDB:
        raise CallError(
            f"streaming joins keep their state in RocksDB, and this session has {PROVIDER}={provider}",
            hint=f'use sj.session(), or spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def _check_partitions(session: SparkSession, context: SparkContext | None) -> None:
    if PARTITIONS in session.conf.getAll:
        return  # whoever has chosen is left alone
    partitions = int(session.conf.get(PARTITIONS, "200") or 200)
    parallel = tasks_at_once(context) if context is not None else 0
    if partitions > _TURNS * parallel:
        at_once = f" and runs {parallel} tasks at once" if parallel else ""
        raise CallError(
            "state lies in as many pieces as there are shuffle partitions, for good, and every micro-batch runs all: "
            f"this session has Spark's default of {partitions}{at_once}, so a micro-batch would take minutes",
            hint=f'spark.conf.set("{PARTITIONS}", {parallel or 8}), as many as tasks run at once',
        )


def _check_python_of_driver(executable: str) -> None:
    """Spark asks a Python process beside the driver which state a stateful operator has, by the workers' path."""
    if shutil.which(executable) is None:
        raise CallError(
            f"workers run {executable}, and a streaming query runs it beside the driver too, where it is not",
            hint="unpack the archive that the executors get where the driver is started, under the same name",
        )


def is_this_python(executable: str) -> bool:
    """Whether a command runs the Python that runs this.

    Two virtual environments may link to one interpreter, so it has to lie in the same folder too.

    >>> is_this_python(sys.executable), is_this_python("no-python")
    (True, False)
    """
    found = shutil.which(executable)
    return found is not None and (
        os.path.dirname(os.path.abspath(found)) == os.path.dirname(os.path.abspath(sys.executable))
        and os.path.samefile(found, sys.executable)
    )


def _asked_here(context: SparkContext) -> dict[str, Any]:
    """What the workers' Python says of itself, when it runs here."""
    root = SparkFiles.getRootDirectory()
    shipped = [root, *(os.path.join(root, name) for name in context._python_includes or ())]
    paths = [*shipped, context.environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    env = {**os.environ, **context.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [context.pythonExec, "-c", f"{_LOOK}\nprint(look())"]
    try:
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise _no_python(context.pythonExec, here=True) from error
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _check_elsewhere(session: SparkSession, name: tuple[str, str]) -> None:
    if name in _found_good:
        return
    try:
        [(report,)] = asked(session, lambda: _look_elsewhere(session))
    except Exception as error:
        # Where actions are not allowed, or the cluster is not well, it is not for us to say so.
        if not _is_about_python(str(error)):
            return
        raise _no_python(name[1] or "a Python", here=False) from error
    _check_report(json.loads(report), here=False)
    _found_good.add(name)


def _look_elsewhere(session: SparkSession) -> list[Any]:
    return session.range(1, numPartitions=1).mapInArrow(_looking(), "report string").collect()


def _looking() -> Any:
    text = _LOOK

    def looking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        known: dict[str, Any] = {}
        exec(text, known)
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"report": [known["look"]()]})

    return looking  # a function within another is sent as it is, not by name


def _is_about_python(error: str) -> bool:
    return any(each in error for each in ("No module named", "PYTHON_VERSION_MISMATCH", "Cannot run program"))


def _check_report(report: dict[str, Any], *, here: bool) -> None:
    known: dict[str, Any] = {}
    exec(_LOOK, known)
    mine, who = json.loads(known["look"]()), f"Spark's workers run {report['executable']}"
    if report["missing"]:
        raise CallError(f"{who}, which has no module {', '.join(report['missing'])}", hint=_fix(here=here))
    for what in ("python", "streamjoin"):
        if report[what] != mine[what]:
            raise CallError(f"{who}, which has {what} {report[what]}, and here is {mine[what]}", hint=_fix(here=here))


def _no_python(executable: str, *, here: bool) -> CallError:
    return CallError(f"Spark's workers run {executable}, which cannot run streamjoin", hint=_fix(here=here))


def _fix(*, here: bool) -> str:
    if here:
        return (
            'os.environ["PYSPARK_PYTHON"] = sys.executable before the session is made, or make it with '
            "sj.configure(SparkSession.builder).getOrCreate(); in a session that runs, "
            "spark.sparkContext.pythonExec = sys.executable"
        )
    return (
        "install streamjoin where the executors are, or send it along (--archives, --py-files), and let PYSPARK_PYTHON "
        "name their Python; docs/guides/deploying.md has the recipe"
    )
