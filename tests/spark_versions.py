"""Other versions of Spark than the one of the lock: what gives there what it gives here.

    ./sj test-spark 4.2     makes build/spark-4.2, tries every part there and here, and compares

The environment has the newest PySpark of that version, and all else as locked. What is found has to be what the guide
to deploying says (`docs/guides/deploying.md`): the command also fails when a part passes that is said not to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.spark.version_parts import CONNECT, GOES_ON, HERE, PARTS, PIPELINES

ROOT: Final = Path(__file__).parent.parent
GUIDE: Final = ROOT / "docs" / "guides" / "deploying.md"
_LOCKED: Final = re.compile(r"^([\w.-]+==[^\s;]+)((?: ; [^\\]+)?) \\$", re.MULTILINE)
_VERSION: Final = re.compile(r"\d+\.\d+")


def said(guide: str) -> dict[str, dict[str, str]]:
    """What the guide says: for each version and part "yes" or "no"."""
    lines = iter(guide.splitlines())
    head = next(line for line in lines if line.startswith("| tried |"))
    versions = [cell.split()[-1] for cell in _cells(head)[1:]]
    next(lines)  # the rule
    found: dict[str, dict[str, str]] = {version: {} for version in versions}
    for line in lines:
        if not line.startswith("|"):
            break
        part, *answers = _cells(line)
        for version, answer in zip(versions, answers, strict=True):
            found[version][part] = answer
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def constraints(lock: str) -> Iterator[str]:
    """All that is locked but PySpark, as pip takes it beside another PySpark: without hashes.

    >>> list(constraints("numpy==2.4 ; python_version > '3' \\\\\\n    --hash=sha256:1\\npyspark[sql]==4.3.0 \\\\\\n"))
    ["numpy==2.4 ; python_version > '3'"]
    """
    for package, condition in _LOCKED.findall(lock):
        yield package + condition


def environment(version: str) -> Path:
    """The Python of an environment with this version of Spark; made if it is not there, or the lock is another."""
    folder = ROOT / "build" / f"spark-{version}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    locked = "\n".join(constraints((ROOT / "requirements.lock").read_text()))
    if stamp.exists() and stamp.read_text() == locked:
        return python
    print(f"making {folder.relative_to(ROOT)}; Spark alone is 450 MB ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (folder / "constraints.txt").write_text(locked)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    others = [each for each in needed if not each.startswith("pyspark")]
    install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--use-pep517"]
    wanted = [f"pyspark[connect,pipelines]=={version}.*", *others, "pytest"]
    subprocess.run([*install, "--constraint", folder / "constraints.txt", *wanted], check=True)
    stamp.write_text(locked)
    return python


def told_by(python: Path, what: str, folder: Path) -> Mapping[str, Any]:
    """What parts give with a Python, in a process of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    ran = subprocess.run(
        [python, "-m", "tests.spark.version_parts", what, str(folder)],
        cwd=ROOT,
        env=env | {"PYTHONPATH": paths, "PYSPARK_PYTHON": str(python), "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if ran.returncode == 0:
        return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]
    names = {"here": tuple(HERE), "connect": (CONNECT,), "pipelines": (PIPELINES,)}.get(what, (GOES_ON,))
    return {name: {"failed": ran.stderr[-2000:]} for name in names}


def compared(version: str, folder: Path) -> dict[str, str | None]:
    """Of each part None where it gives there what it gives here, or why it does not."""
    there, here = environment(version), Path(sys.executable)
    found: dict[str, str | None] = {}
    for what in ("here", "connect", "pipelines"):
        ours, theirs = (
            told_by(python, what, folder / f"{name}-{what}") for python, name in ((here, "a"), (there, "b"))
        )
        for part, given in ours.items():
            assert not _failure(given), f"{part} fails here: {_failure(given)}"
            other = theirs[part]
            found[part] = _failure(other) or (None if other == given else "it gives something else")
    begun = told_by(there, "begin", folder / "moved")
    went_on = begun if _failure(begun[GOES_ON]) else told_by(here, "go-on", folder / "moved")
    found[GOES_ON] = _failure(went_on[GOES_ON])
    return found


def _failure(given: Any) -> str | None:
    return str(given["failed"]) if isinstance(given, dict) and "failed" in given else None


def main(version: str) -> int:
    """0 if what is found is what the guide says."""
    documented = said(GUIDE.read_text())
    if not _VERSION.fullmatch(version) or version not in documented:
        print(f"a version is one of {', '.join(documented)}, of which the guide to deploying speaks; got {version!r}")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        found = compared(version, Path(folder))
    wrong = 0
    for part in PARTS:
        answer, why = ("yes", "") if found[part] is None else ("no", f": {str(found[part])[-600:]}")
        differs = answer != documented[version].get(part)
        wrong += differs
        print(f"{'NOT AS THE GUIDE SAYS  ' if differs else ''}{answer:4} {part}{why}")
    print(f"Spark {version}: {'as the guide says' if not wrong else f'{wrong} parts are not as {GUIDE.name} says'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) == 2 else ""))
