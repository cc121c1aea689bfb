"""The logs in a checkpoint: of the micro-batches that were begun (`offsets`) and of those that are over (`commits`).

An entry is a file with the micro-batch's number as its name. A query that was ended by `sj.finish` has one entry more
among its offsets, which says so: Spark reads it first, cannot, and shows what it has read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.spark.told import is_connect

FINISHED: Final = "streamjoin: this query was ended by sj.finish, and going on would repeat rows"


class LocalFiles:
    """The files of a checkpoint on a disk of this machine, where Spark Connect shows nothing of Spark's own way."""

    def __init__(self, checkpoint: str) -> None:
        self.root = Path(checkpoint)

    def names(self, folder: str) -> list[str]:
        found = self.root / folder
        return [file.name for file in found.iterdir()] if found.is_dir() else []

    def first_line(self, file: str) -> str:
        return (self.root / file).read_text().partition("\n")[0]

    def write(self, file: str, text: str) -> None:
        (self.root / file).write_text(text)


class ServersFiles:
    """The same where only the server of Spark Connect sees it: what can be read as data can be read, and no more."""

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self.reader, self.root = session.read, checkpoint

    def names(self, folder: str) -> list[str]:
        try:
            files = self.reader.format("binaryFile").load(f"{self.root}/{folder}").select("path").collect()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return []
        return [row.path.rpartition("/")[2] for row in files]

    def first_line(self, file: str) -> str:
        return str(self.reader.text(f"{self.root}/{file}").first()[0])  # type: ignore[index]

    def write(self, file: str, text: str) -> None:
        raise UnsupportedError(
            f"{self.root} is no folder that this program sees, and Spark Connect cannot mark it as finished",
            hint="finish it from a classic session, or from the machine where it lies",
        )


class HadoopFiles:
    """The same, wherever Spark itself looks for it."""

    def __init__(self, session: Any, checkpoint: str) -> None:
        self.path_of, self.root = session._jvm.org.apache.hadoop.fs.Path, checkpoint
        self.files = self.path_of(checkpoint).getFileSystem(session._jsc.hadoopConfiguration())

    def names(self, folder: str) -> list[str]:
        path = self._path(folder)
        return [status.getPath().getName() for status in self.files.listStatus(path)] if self.files.exists(path) else []

    def first_line(self, file: str) -> str:
        opened = self.files.open(self._path(file))
        try:
            return str(opened.readLine())
        finally:
            opened.close()

    def write(self, file: str, text: str) -> None:
        written = self.files.create(self._path(file))
        written.write(text.encode())
        written.close()

    def _path(self, name: str) -> Any:
        return self.path_of(f"{self.root}/{name}")


class CheckpointLog:
    """Which micro-batches of a stopped query were begun, and which are over."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self.checkpoint, place = checkpoint, urlparse(checkpoint)
        local = unquote(place.path) if place.scheme else checkpoint
        if not is_connect(spark):
            self.files: HadoopFiles | LocalFiles | ServersFiles = HadoopFiles(spark, checkpoint)
        elif place.scheme in ("", "file") and Path(local).is_dir():
            self.files = LocalFiles(local)
        else:
            self.files = ServersFiles(spark, checkpoint)

    def check_can_be_marked(self) -> None:
        """Refuse what nobody here can write into, before anything is computed."""
        if isinstance(self.files, ServersFiles):
            self.files.write("", "")

    @property
    def is_finished(self) -> bool:
        """Whether `sj.finish` has ended this query."""
        begun = self._numbers("offsets")
        return bool(begun) and self.files.first_line(f"offsets/{max(begun)}").startswith(FINISHED)

    @property
    def has_committed(self) -> bool:
        """Whether a micro-batch is over, so that there is a state to go on from."""
        return bool(self._numbers("commits"))

    def check_over(self) -> None:
        """Refuse a query that stopped within a micro-batch: what that wrote is not what the state says."""
        if not self._numbers("offsets"):
            raise CallError(
                f"there is no log of a query in {self.checkpoint}",
                hint="give the checkpointLocation of a query that has run at least one micro-batch",
            )
        begun = max(self._numbers("offsets")) - self.is_finished
        if begun > max(self._numbers("commits"), default=-1):
            raise CallError(
                f"micro-batch {begun} of the query of {self.checkpoint} was begun and is not over: its rows may have "
                "been written, and the state knows nothing of them",
                hint="start the query once more, with trigger(availableNow=True), and finish it when it has stopped",
            )

    def mark_finished(self) -> None:
        """Let Spark refuse to go on from this checkpoint."""
        if not self.is_finished:
            self.files.write(f"offsets/{max(self._numbers('offsets')) + 1}", FINISHED + "\n")

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in self.files.names(folder) if name.isdigit()]
