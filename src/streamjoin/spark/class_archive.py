"""Spark's classes in an archive that Java maps into memory (class data sharing), instead of reading them from jars.

A session that is started loads some twenty thousand classes, and the first query as many again: a quarter of what the
JVM does until the first micro-batch is over. The first session of ours on a machine has its JVM write them down when it
ends, and those after it find them. Java itself refuses an archive that was made by another Java, or of other jars, and
goes on without. But a Java that is asked to write one where it cannot does not start at all, or complains on the
program's output when it ends: so it is asked to only where nothing is in the way.

    ~/.cache/streamjoin/classes-<Java and jars>.jsa          the archive; some 200 MB
    ~/.cache/streamjoin/classes-<Java and jars>.<...>.new    one that a JVM writes, or has written, when it ends
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import time
import uuid
from pathlib import Path
from typing import Final

from pyspark.find_spark_home import _find_spark_home

_COMPLETE: Final = (0xF00BABA8).to_bytes(4, "little")  # the first bytes of an archive; Java writes them last
_CHOSEN: Final = ("-Xshare", "SharedArchive", "ArchiveClasses")  # somebody has decided about archives already
# With agents and patched modules Java writes none; folders of settings on the class path must be empty.
_IN_THE_WAY: Final = ("-agent", "-javaagent", "--patch-module", "--upgrade-module-path")
_SETTINGS: Final = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
# Java says of hundreds of classes why they cannot be in an archive.
_QUIET: Final = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds*=off"


def archive_options(folder: Path | None = None) -> str:
    """Options for a JVM that is about to start: to use the archive, or to write it at the end; empty where neither can
    be.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     "-XX:ArchiveClassesAtExit=" in archive_options(Path(empty)) or not java()
    True
    """
    said = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS"))
    command, jars = java(), Path(_find_spark_home(), "jars")
    if command is None or not jars.is_dir() or any(word in said for word in _CHOSEN):
        return ""
    digest = hashlib.sha256(f"{command}\0{jars.resolve()}".encode()).hexdigest()[:16]
    try:
        folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamjoin"
        if re.search(r"[\s'\"\\:]", str(folder)):  # Spark's launcher and Java would read another path
            return ""
        archive = folder / f"classes-{digest}.jsa"
        folder.mkdir(parents=True, exist_ok=True)
        _adopt(archive)
        # What was installed after it is not in it.
        if _is_complete(archive) and archive.stat().st_mtime > max(command.stat().st_ctime, jars.stat().st_ctime):
            return f"{_QUIET} -XX:SharedArchiveFile={archive}"
        new = archive.with_suffix(f".{uuid.uuid4().hex}.new")
        room = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 1 << 30
        if not room or any(word in said for word in _IN_THE_WAY) or _has_settings() or not _can_write(command, new):
            return ""
    except (OSError, RuntimeError):  # nobody knows a home for this user
        return ""
    return f"{_QUIET} -XX:ArchiveClassesAtExit={new}"


def java() -> Path | None:
    """The Java that Spark starts."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    return Path(found).resolve() if found else None


def _has_settings() -> bool:
    """Whether Spark puts a folder with something in it on the class path."""
    folders = [os.environ.get(name) for name in _SETTINGS]
    folders[0] = folders[0] or str(Path(_find_spark_home(), "conf"))
    found = any(each and Path(each).is_dir() and any(Path(each).iterdir()) for each in folders)
    return found or bool(os.environ.get("SPARK_DIST_CLASSPATH"))


def _can_write(command: Path, new: Path) -> bool:
    """Whether Java starts when it is asked to write an archive; some have none of their own to build upon."""
    probe = new.with_suffix(".probe")
    own = shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
    asked = [str(command), *own, *_QUIET.split(), f"-XX:ArchiveClassesAtExit={probe}", "-version"]
    try:
        return subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
    finally:
        probe.unlink(missing_ok=True)


def _adopt(archive: Path) -> None:
    """Take over what JVMs have written, each under a name of its own: two may end at a time."""
    for new in archive.parent.glob(f"{archive.stem}.*.new"):
        if _is_complete(new):
            new.replace(archive)
        elif new.stat().st_mtime < time.time() - 3600:  # a JVM was killed while it wrote
            new.unlink()


def _is_complete(archive: Path) -> bool:
    if not archive.is_file():
        return False
    with archive.open("rb") as file:
        return file.read(len(_COMPLETE)) == _COMPLETE
