"""Runs in files of this host, memory-mapped. What lies there can be made again, and is nobody's only copy.

    <id>.keys     the arrays that decide, column after column: each is one piece, so kernels run over any pages at once
    <id>.rows     the payload, page after page in Arrow's stream format: read only for rows that match
    <id>.beside   key values and contents in the same way, where there are any
    <id>.index    what is known of the pages, where they are, their checksums; it comes last, by renaming
    <id>.looked   which pages have been compared with their checksums (`looked_at`)

A run without an index is not complete, and is never found. Pages are compared with their checksums when somebody on
this host first looks at them, again when a file has been touched, and from time to time. Writing goes through the file,
not through a mapping: a full disk is an error then, and not a signal.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.errors import SpillError
from streamjoin.state.batch import Batch
from streamjoin.state.row_table import declared
from streamjoin.state.run import Run
from streamjoin.state.snapshot import table_from_bytes, table_to_bytes
from streamjoin.state.stores.looked_at import SUFFIX, LookedAt, signature
from streamjoin.state.stores.page_index import Page, PageIndex
from streamjoin.state.stores.paged_table import PagedTable
from streamjoin.state.stores.private import make_private
from streamjoin.state.stores.store import Labels, RunStore, RunWriter, StoredRun
from streamjoin.state.stores.trouble import damaged, full, lost

_LABELS: Final = "labels"
_ALIGNED: Final = 64
_SUFFIXES: Final = (SUFFIX, ".keys", ".rows", ".beside", ".index")
_HOW: Final = b"how"
_CHECK_BYTES: Final = 4


@dataclass
class Mapped:
    """A file in the address space. `copied`: what is written there is seen here alone."""

    path: str
    size: int
    copied: bool = False

    def __post_init__(self) -> None:
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                self.signature = signature(status)
                if status.st_size < self.size:
                    raise lost(self.path, f"has less than its {self.size} bytes")
                access = mmap.ACCESS_COPY if self.copied else mmap.ACCESS_READ
                self.map = mmap.mmap(file.fileno(), max(1, self.size), access=access)
        except FileNotFoundError:
            raise lost(self.path, "has vanished") from None
        self.buffer = pa.py_buffer(self.map)

    @property
    def damage(self) -> SpillError | None:
        """What is mapped of a file that has been cut cannot be looked at: the system ends whoever does.

        It is asked of the file that is mapped, whether it still has its name or not.
        """
        return None if self.map.size() >= self.size else lost(self.path, f"has less than its {self.size} bytes")

    def array(self, offset: int, rows: int, kind: str) -> npt.NDArray[Any]:
        """Numbers that lie there one after the other."""
        return np.frombuffer(self.map, np.dtype(kind), rows, offset)

    def forget(self) -> None:
        """Let the pages go from this process; the system may still have them."""
        if not self.copied:
            self.map.madvise(mmap.MADV_DONTNEED)


@dataclass
class Messages:
    """Pages of a table, one after the other in a file."""

    mapped: Mapped
    offsets: list[int]
    checks: list[int]
    schema: pa.Schema
    looked: LookedAt
    read: dict[int, pa.Table] = field(default_factory=dict)

    def page(self, number: int) -> pa.Table:
        """One page; whoever looks at it first compares it with its checksum."""
        if (error := self.mapped.damage) is not None:
            raise error
        known = self.read.get(number)
        if known is None:
            begin, end = self.offsets[number], self.offsets[number + 1]
            content = self.mapped.buffer.slice(begin, end - begin)
            if not self.looked[number]:
                if zlib.crc32(content) != self.checks[number]:
                    raise damaged(self.mapped.path, number)
                self.looked.note(number)
            known = self.read[number] = table_from_bytes(content)
        return known


@dataclass
class MappedRun(StoredRun):
    """A run in files."""

    id: str
    index: PageIndex
    how: dict[str, Any]
    store: FileStore

    def __post_init__(self) -> None:
        base = str(self.store.folder / self.id)
        self.keys = Mapped(base + ".keys", self.how["bytes"])
        at = {name: (kind, offset) for name, kind, offset in self.how["columns"]}
        self.arrays = {name: self.keys.array(offset, len(self), kind) for name, (kind, offset) in at.items()}
        if "holder" in self.arrays:  # ends that become known are written into this process's own copy
            kind, offset = at["te"]
            self.own = Mapped(base + ".keys", self.how["bytes"], copied=True)
            self.arrays["te"] = self.own.array(offset, len(self), kind)
        told = self.how["messages"]
        mapped = {suffix: Mapped(base + suffix, each["offsets"][-1]) for suffix, each in told.items()}
        # Of the files that are mapped, which may not have these names any more.
        files = [self.keys, *mapped.values()]
        looked = LookedAt.of(base, [each.signature for each in files], len(files) * len(self.index))
        self.looked, *of_messages = looked.split(len(files))
        self.messages = {
            suffix: Messages(mapped[suffix], each["offsets"], each["checks"], _schema_of(each["schema"]), seen)
            for (suffix, each), seen in zip(told.items(), of_messages, strict=True)
        }
        self.nbytes = self.how["bytes"] + sum(each.offsets[-1] for each in self.messages.values())
        self.whole = self._batch(0, len(self.index))

    def _table(self, messages: Messages, first: int, last: int) -> PagedTable:
        """Some of the pages; none of them is read before its rows are asked for."""
        start, page = self.index.start[first : last + 1], messages.page
        nbytes = messages.offsets[last] - messages.offsets[first]
        return PagedTable.of(start - start[0], lambda number: page(first + number), nbytes, messages.schema)

    def _batch(self, first: int, last: int) -> Batch:
        rows = slice(int(self.index.start[first]), int(self.index.start[last]))
        tables = {suffix: self._table(each, first, last) for suffix, each in self.messages.items()}
        columns: dict[str, Any] = {}
        for each in declared(Batch):
            if each.kind == "array":
                columns[each.name] = self.arrays[each.label][rows] if each.label in self.arrays else None
            elif each.kind == "numbered":
                values = (self.arrays[f"{each.label}{number}"][rows] for number in range(self.how["values"]))
                columns[each.name] = tuple(values)
            elif each.kind == "payload":
                columns[each.name] = tables.get(".rows", pa.table({}))
            else:
                at = self.how["beside"].get(each.name)
                columns[each.name] = None if at is None else tables[".beside"].select(range(*at))
        return Batch(**columns)

    @property
    def rows(self) -> Batch:
        return self.whole

    @property
    def labels(self) -> Labels | None:
        return self.arrays.get(_LABELS)

    def pages(self, first: int, last: int) -> Batch:
        self.ensure_whole()
        self.store.figures.pages_read += last - first
        for page in range(first, last):
            if not self.looked[page]:
                self._check(page)
        return self._batch(first, last)

    def _check(self, page: int) -> None:
        start, stop = int(self.index.start[page]), int(self.index.start[page + 1])
        check = 0
        for _name, kind, offset in self.how["columns"]:
            size = np.dtype(kind).itemsize
            check = zlib.crc32(self.keys.buffer.slice(offset + start * size, (stop - start) * size), check)
        if check != self.how["checks"][page]:
            raise damaged(self.keys.path, page)
        self.looked.note(page)

    def forget(self) -> None:
        for each in (self.keys, *(each.mapped for each in self.messages.values())):
            each.forget()

    @property
    def damage(self) -> Exception | None:
        files = (self.keys, *(each.mapped for each in self.messages.values()))
        return next((error for each in files if (error := each.damage) is not None), None)


@dataclass
class FileWriter(RunWriter):
    """Writes a run page by page. How long its columns can become is known before, so each has its place."""

    store: FileStore
    run_id: str
    most_rows: int
    page_rows: int
    pages: list[Page] = field(default_factory=list)
    rows: int = 0

    def __post_init__(self) -> None:
        self.base = self.store.folder / self.run_id
        self.columns: list[tuple[str, str, int]] = []  # name, type, and where it begins
        self.checks: list[int] = []
        self.tables: dict[str, MessageWriter] = {}
        self.beside: dict[str, tuple[int, int]] = {}
        self.values = 0
        self.keys: Any = None

    def append(
        self, page: Run, reach: npt.NDArray[Any] | None = None, labels: npt.NDArray[np.int32] | None = None
    ) -> None:
        try:
            arrays = dict(page.rows.arrays())
            if labels is not None:
                arrays[_LABELS] = labels
            if self.keys is None:
                self._begin(page.rows, arrays)
            check = 0
            for name, kind, offset in self.columns:
                content = memoryview(np.ascontiguousarray(arrays[name]).view(np.uint8).data)
                self.keys.seek(offset + self.rows * np.dtype(kind).itemsize)
                self.keys.write(content)
                check = zlib.crc32(content, check)
            self.checks.append(check)
            for suffix, table in self._tables(page.rows).items():
                self.tables[suffix].append(table)
        except OSError as error:
            raise full(error, self.store.folder) from error
        self.pages.append(Page.of(page, reach))
        self.rows += len(page)

    def _begin(self, rows: Batch, arrays: dict[str, npt.NDArray[Any]]) -> None:
        make_private(self.store.folder)
        offset = 0
        for name, column in arrays.items():
            self.columns.append((name, column.dtype.str, offset))
            offset += -(-self.most_rows * column.dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        self.values = len(rows.values)
        at = 0
        for each in declared(Batch):
            table = getattr(rows, each.name)
            if each.kind == "beside" and table is not None:
                self.beside[each.name] = at, at + table.num_columns
                at += table.num_columns
        self.keys = open(f"{self.base}.keys", "wb")  # noqa: SIM115 - closed when the run is complete
        for suffix, table in self._tables(rows).items():
            self.tables[suffix] = MessageWriter(f"{self.base}{suffix}", table.schema)

    def _tables(self, rows: Batch) -> dict[str, pa.Table]:
        """What is in Arrow: the payload, and what lies beside it."""
        tables = {".rows": rows.payload} if rows.payload.num_columns else {}
        columns = [column for name in self.beside for column in getattr(rows, name).columns]
        if columns:
            tables[".beside"] = pa.table(columns, names=[str(number) for number in range(len(columns))])
        return tables

    def close(self) -> StoredRun:
        assert self.pages, "a run without rows is not stored"
        kinds = {name: np.dtype(kind).itemsize for name, kind, _ in self.columns}
        how = {
            "columns": self.columns,
            "values": self.values,
            "beside": self.beside,
            "bytes": self.columns[-1][2] + self.rows * kinds[self.columns[-1][0]],
            "checks": self.checks,
            "messages": {suffix: each.described() for suffix, each in self.tables.items()},
        }
        index = PageIndex.of(self.pages)
        table = index.to_table().replace_schema_metadata({_HOW: json.dumps(how)})
        half_made = f"{self.base}.index.{os.getpid()}"
        try:
            for file in (self.keys, *(each.file for each in self.tables.values())):
                file.close()
            content = table_to_bytes(table)
            Path(half_made).write_bytes(content + _check_of(content))
            os.rename(half_made, f"{self.base}.index")
        except OSError as error:
            raise full(error, self.store.folder) from error
        run = MappedRun(self.run_id, index, how, self.store)
        self.store.figures.pages_written += len(self.pages)
        self.store.figures.bytes += run.nbytes
        return run

    def abandon(self) -> None:
        for file in (self.keys, *(each.file for each in self.tables.values())):
            if file is not None:
                with suppress(OSError):  # what a full disk has not taken yet
                    file.close()
        remove(self.base)


class MessageWriter:
    """Pages of a table, written one after the other."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.schema, self.offsets = schema, [0]
        self.checks: list[int] = []
        self.file = open(path, "wb")  # noqa: SIM115 - closed when the run is complete

    def append(self, table: pa.Table) -> None:
        """One more page."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        content = sink.getvalue()
        padding = bytes(-content.size % _ALIGNED)
        self.file.write(content)
        self.file.write(padding)
        self.checks.append(zlib.crc32(padding, zlib.crc32(content)))
        self.offsets.append(self.offsets[-1] + content.size + len(padding))

    def described(self) -> dict[str, Any]:
        """What the index says of it."""
        schema = self.schema.serialize().to_pybytes().hex()
        return {"offsets": self.offsets, "checks": self.checks, "schema": schema}


@dataclass
class FileStore(RunStore):
    """Runs in the files of one folder."""

    folder: Path = field(kw_only=True)

    def writer(self, run_id: str, most_rows: int) -> RunWriter:
        return FileWriter(self, run_id, most_rows, self.page_rows)

    def find(self, run_id: str) -> StoredRun | None:
        try:
            content = (self.folder / f"{run_id}.index").read_bytes()
            content, check = content[:-_CHECK_BYTES], content[-_CHECK_BYTES:]
            if check != _check_of(content):
                return None
            table = table_from_bytes(content)
            how = json.loads(table.schema.metadata[_HOW])
            return MappedRun(run_id, PageIndex.from_table(table), how, self)
        except (OSError, ValueError, KeyError, TypeError, SpillError):  # also of another version
            return None

    def array(self, rows: int, kind: Any) -> npt.NDArray[Any]:
        size = max(1, rows * np.dtype(kind).itemsize)
        try:
            make_private(self.folder)
            with tempfile.TemporaryFile(dir=self.folder) as file:  # without a name: it goes with the mapping
                os.posix_fallocate(file.fileno(), 0, size)  # what is written there later must have its place now
                return np.frombuffer(mmap.mmap(file.fileno(), size), kind, rows)
        except OSError as error:
            raise full(error, self.folder) from error

    def delete(self, run: StoredRun) -> None:
        remove(self.folder / run.id)
        self.figures.bytes -= run.nbytes

    def keep_only(self, ids: set[str]) -> None:
        """Remove runs of all other names: of attempts that failed, or that went while another process had the state."""
        files: list[Path] = []
        with suppress(OSError):  # nothing was written there
            files = list(self.folder.iterdir())
        for file in files:
            if file.name.partition(".")[0] not in ids:
                with suppress(OSError):  # a folder, of somebody who cleans it
                    file.unlink(missing_ok=True)


def remove(base: Path) -> None:
    """The files of one run, the index first: without it nobody finds the others."""
    for suffix in reversed(_SUFFIXES):
        with suppress(OSError):
            Path(f"{base}{suffix}").unlink(missing_ok=True)


def _check_of(content: bytes) -> bytes:
    """Stands behind an index: a wrong bound of a page would lose rows, and nothing else would tell."""
    return zlib.crc32(content).to_bytes(_CHECK_BYTES, "little")


def _schema_of(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))
