"""A bucket at work in Spark's state: one stage of a plan, its snapshot read and written.

    blobs      MapState, (name, place) -> a page of a blob, or of a bundle of them. A blob never changes under its name,
               so only new names are written
    manifest   ValueState: which stage and bucket this is, what the stage says of itself, where its blobs are, and a
               token that is new with every commit
    call       ValueState, written when it is new: the plan itself, so that the state can be read without the program

A worker keeps the stages that it has run. When the manifest's token is the one that it left behind, and the call that
made the stage still runs, it goes on without reading anything; otherwise it is restored, from blobs that this host has
seen or from the store. A task that fails leaves behind a stage whose token was never committed, and nobody ever asks
for it. Whoever is forgotten closes what it has open: the half of a merge that it has written is nobody's.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Final

import pandas as pd
from pyspark import TaskContext

from streamjoin.errors import SnapshotError
from streamjoin.plan.identity import REST
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage, Stage
from streamjoin.spark.machine import cores, memory_bytes
from streamjoin.spark.running.packed import COLUMNS
from streamjoin.spark.running.urgent import Handler, telling
from streamjoin.spark.stored.blob_cache import BlobCache, cache_of, clean_up
from streamjoin.spark.stored.bundles import Shelf, unbundled
from streamjoin.spark.stored.formats import check_format, readable
from streamjoin.spark.stored.local_runs import folder_of, forget_ended, keep_named, part_of, parts_in_files, touch
from streamjoin.spark.stored.pages import bound
from streamjoin.spark.stored.processor import Clock, StateVariables
from streamjoin.state import Snapshot
from streamjoin.state.giving_back import give_back
from streamjoin.state.snapshot import FORMAT

STAGES_KEPT: Final = 16
FRAME_BYTES: Final = 1 << 20
# Beside the stage that has just run: two workers to a core would together keep half of this host's memory.
BYTES_KEPT: Final = memory_bytes() // (4 * cores())


@dataclass
class Remembered:
    """A stage as it was after a commit, and the blobs that the store has of it."""

    state: str  # the name of this state: no other has it
    token: str  # of the commit after which it was like this
    made_for: str  # the processor that built it
    bucket: int
    stage: RunningStage
    stored: Shelf = field(default_factory=Shelf)
    bytes: int = 0  # what it keeps
    call: str | None = None  # a digest of the call that is stored with it
    due: int | None = None  # when a timer looks after what has been put off, in milliseconds
    in_files: set[str] = field(default_factory=set)  # the parts of its runs in files


# By the state's name: of each state a worker keeps what it has seen last, be it outdated, and never more than that.
_remembered: OrderedDict[str, Remembered] = OrderedDict()


def remember(known: Remembered, figures: dict[str, int] | None = None) -> None:
    """Keep a stage for the next micro-batch, and let the oldest go where there are too many, or too large ones.

    In time every worker has run every bucket, and what it keeps of most of them is outdated. Where memory is limited a
    quarter of it is for them; their runs in files count nothing, and are found again.
    """
    figures = known.stage.figures() if figures is None else figures
    known.bytes = figures["state_bytes"] - figures["spilled_bytes"]
    _remembered[known.state] = known
    memory = known.stage.config.memory
    most = BYTES_KEPT if memory is None else min(BYTES_KEPT, memory // 4)
    others = sum(each.bytes for each in _remembered.values()) - known.bytes
    while len(_remembered) > STAGES_KEPT or (others > most and len(_remembered) > 1):
        others -= _forgotten(next(iter(_remembered))).bytes


def forget_all() -> None:
    """Begin as a new worker does."""
    for state in list(_remembered):
        _forgotten(state)


def _forgotten(state: str) -> Remembered:
    gone = _remembered.pop(state)
    gone.stage.close()
    return gone


@dataclass
class Packing:
    """Packets on their way to Spark: many small ones in one pandas frame, each of which costs more than its rows."""

    labels: tuple[int, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    bytes: int = 0

    def add(self, packet: Packet) -> Iterator[pd.DataFrame]:
        """One more; what there is leaves when it is large enough."""
        label = self.labels[packet.bucket % len(self.labels)]
        for blob in packet.blobs():
            self.rows.append((label, packet.bucket, packet.channel, packet.kind, blob))
            self.bytes += len(blob)
            if self.bytes > FRAME_BYTES:
                yield from self.end()

    def end(self) -> Iterator[pd.DataFrame]:
        """The rest."""
        if self.rows:
            yield pd.DataFrame(dict(zip(COLUMNS, map(list, zip(*self.rows, strict=True)), strict=True)))
        self.rows, self.bytes = [], 0


@dataclass
class Bucket:
    """One stage of a streaming plan, over the state variables of whichever bucket Spark has just chosen.

    `name` is the processor's: no other has it. `call` is what is stored of the plan, `identity` what the state depends
    on, by name; with `idle_timer`, in milliseconds, a timer looks for idle inputs when nothing comes, and with
    `work_timer` one does what has been put off.
    """

    name: str
    stage: Stage
    labels: tuple[int, ...]
    call: str
    identity: dict[str, str]
    idle_timer: int | None
    variables: StateVariables
    urgent: Handler | None = None
    work_timer: int | None = None

    def take(self, rows: Any, clock: Clock) -> Iterator[pd.DataFrame]:
        """One micro-batch."""
        packets = deque(packets_of(rows))
        known, read = self._load(packets[0].bucket)
        if self.idle_timer is not None:
            self.variables.handle.registerTimer(clock() + self.idle_timer + 1)
        yield from self._run(known, known.stage.take(_taken(packets)), read, clock)

    def put(self, rows: Any) -> None:
        """Rows of a static input, before the first micro-batch."""
        packets = list(packets_of([rows]))
        known, _ = self._load(packets[0].bucket)
        if self.stage.memory is not None:
            # PySpark keeps every frame that it hands over here until rows of the stream are asked for.
            rows.drop(rows.index, inplace=True)
        known.stage.put(packets)
        self._save(known)
        self._read_aside(known)

    def tick(self, clock: Clock) -> Iterator[pd.DataFrame]:
        """Nothing has come for a while."""
        known, read = self._load(None)
        # Rows that came in this micro-batch brought its clock along.
        looks = self.stage.idle_after is not None and not known.stage.intake.has_seen(clock() * 1000)
        # And after them comes another timer: this one is for a moment in which nothing comes.
        works = known.due is not None and known.due <= clock()
        if not looks and not works:
            remember(known)
            return
        yield from self._run(known, known.stage.tick(clock() * 1000 if looks else None, idle=works), read, clock)

    def _look_after_work(self, known: Remembered, clock: Clock) -> None:
        """A timer while work has been put off, and none otherwise. An earlier one finds that it is not due."""
        known.due = None
        if self.work_timer is not None and known.stage.fragment.owes:
            known.due = clock() + self.work_timer
            self.variables.handle.registerTimer(known.due)

    def _run(self, known: Remembered, packets: Iterator[Packet], read: int, clock: Clock) -> Iterator[pd.DataFrame]:
        try:
            yield from self._ran(known, packets, read, clock)
        except BaseException:
            if _remembered.get(known.state) is not known:  # it failed before it was saved: nobody asks for it
                known.stage.close()
            raise

    def _ran(self, known: Remembered, packets: Iterator[Packet], read: int, clock: Clock) -> Iterator[pd.DataFrame]:
        joining, rows = 0, Packing(self.labels)
        packets = telling(packets, self.stage, self.urgent, _micro_batch())
        while True:
            began = perf_counter_ns()
            packet = next(packets, None)
            joining += perf_counter_ns() - began
            if packet is None:
                break
            yield from rows.add(packet)
        began, figures = perf_counter_ns(), known.stage.figures()
        if self.stage.memory is not None:
            give_back()  # the micro-batch is gone: what is stored of it now shall not come on top
        self._look_after_work(known, clock)
        self._save(known, figures)
        took = {"read_us": read // 1000, "join_us": joining // 1000, "write_us": (perf_counter_ns() - began) // 1000}
        yield from rows.add(Packet(known.bucket, self.stage.outlet.way.channel, "figures", figures | took))
        yield from rows.end()

    def _load(self, bucket: int | None) -> tuple[Remembered, int]:
        """This bucket's stage, and how many nanoseconds it took to have it."""
        began = perf_counter_ns()
        stored = self.variables.manifest.get()
        if stored is None:
            assert bucket is not None
            clean_up()  # a new state is a good moment to look for those of queries that are gone
            if self.stage.memory is not None:
                forget_ended()
            state = uuid.uuid4().hex
            known = Remembered(state, "", self.name, bucket, self.stage.build(bucket, self._scratch(state)))
            return known, perf_counter_ns() - began
        manifest = json.loads(stored[0])
        remembered = _remembered.pop(manifest["state"], None)
        current = (manifest["token"], self.name)
        # What this very processor has left behind is in its format, and has its identity.
        if remembered is None or (remembered.token, remembered.made_for) != current:
            if remembered is not None:
                remembered.stage.close()
            del remembered  # what is outdated goes before the current state is read: both would need twice the memory
            check_format(manifest.get("format"))
            scratch, shelf = self._scratch(manifest["state"]), Shelf.of(manifest)
            cache = self._cache(manifest["state"])
            in_files = set[str]() if scratch is None else parts_in_files(manifest)
            blobs = StoredBlobs(shelf, self.variables.blobs, cache, in_files=in_files)
            snapshot = readable(Snapshot(manifest, blobs))
            check_same(snapshot.manifest["identity"], self.identity)
            running = self.stage.build(manifest["bucket"], scratch)
            cache.keep_only(name for name in shelf.values if part_of(name) not in in_files)
            if scratch is not None:
                keep_named(scratch, snapshot.manifest)
            try:
                running.restore(snapshot)
            except BaseException:
                running.close()
                raise
            remembered = Remembered(
                manifest["state"], *current, manifest["bucket"], running, shelf,
                call=manifest.get("call"), due=manifest.get("due"), in_files=in_files,
            )  # fmt: skip
        self._read_aside(remembered)
        return remembered, perf_counter_ns() - began

    def _read_aside(self, known: Remembered) -> None:
        """What waits for the first micro-batch is read from the store, as this task has it."""
        if len(known.stage.aside):
            stored = StoredBlobs(known.stored, self.variables.blobs, self._cache(known.state), in_order=True)
            known.stage.aside.stored_in(stored)

    def _scratch(self, state: str) -> str | None:
        """A folder for what of a state does not fit into memory, where that is limited."""
        return None if self.stage.memory is None else folder_of(state)

    def _cache(self, state: str) -> BlobCache:
        return cache_of(state, self._scratch(state))

    def _save(self, known: Remembered, figures: dict[str, int] | None = None) -> None:
        snapshot = known.stage.snapshot()
        shelf, cache = known.stored, self._cache(known.state)
        # Runs in files are found by everyone on this host: what is stored of them need not lie there a second time.
        in_files = set[str]() if self.stage.memory is None else parts_in_files(snapshot.manifest)
        for name, value in shelf.new_values(snapshot.blobs):
            for place, page in shelf.put(name, value):
                self.variables.blobs.updateValue((name, place), page)
            if part_of(name) not in in_files:
                cache.put(name, value)
            del value  # before the next one is made
        spilled, known.in_files = in_files - known.in_files, in_files
        for name in shelf.values if spilled else ():
            if part_of(name) in spilled:  # it was in memory when it was stored
                cache.drop(name)
        for name in shelf.unneeded():
            for place in shelf.values.pop(name).places:
                self.variables.blobs.removeKey((name, place))
            cache.drop(name)
        if known.made_for != known.call:  # a new state, or a query that goes on, perhaps with other options
            self.variables.call.update((self.call,))
            known.call = known.made_for
        known.token = uuid.uuid4().hex
        manifest = {
            "format": FORMAT,
            "stage": self.stage.number,
            "bucket": known.bucket,
            "state": known.state,
            "token": known.token,
            "call": known.call,
            **shelf.to_json(),
            "identity": self.identity,
            **({} if known.due is None else {"due": known.due}),
            **snapshot.manifest,
        }
        self.variables.manifest.update((json.dumps(manifest),))
        remember(known, figures)
        if self.stage.memory is not None:
            touch(folder_of(known.state))
            give_back()


def _micro_batch() -> int:
    """The number of the micro-batch that this task is part of."""
    context = TaskContext.get()
    return int((context.getLocalProperty("streaming.sql.batchId") if context is not None else None) or 0)


def _taken(packets: deque[Packet]) -> Iterator[Packet]:
    """The packets one by one, each of which goes with whoever takes it: here none is kept."""
    while packets:
        yield packets.popleft()


def packets_of(frames: Iterable[pd.DataFrame]) -> Iterator[Packet]:
    """The packets of packed rows that Spark hands over in pandas frames.

    In an order of their own, not in that in which tasks happened to deliver them: a micro-batch that is run again sends
    on exactly the same.
    """
    rows = [row for frame in frames for row in zip(*(frame[name] for name in COLUMNS[1:]), strict=True)]
    for bucket, channel, kind, blob in sorted(rows, key=lambda row: row[1:]):
        yield Packet.of(int(bucket), int(channel), kind, blob)


@dataclass
class StoredBlobs(Mapping[str, bytes]):
    """The blobs of a stored stage: from this host's files, or else from the store. `in_order`: they are asked for as
    they were stored, so that no more than one bundle need be open. `in_files`: parts of runs that are put into files of
    their own when they have been read, so that others on this host find those.
    """

    shelf: Shelf
    store: Any
    cache: BlobCache
    in_order: bool = False
    in_files: Set[str] = frozenset()
    opened: dict[str, Any] = field(default_factory=dict)  # blobs of bundles that have been read

    def __getitem__(self, name: str) -> bytes:
        if name in self.opened:
            return self.opened[name]  # type: ignore[no-any-return]
        value, _ = self.shelf.blobs[name]
        content = self._read(value)
        if value == name:
            return content  # type: ignore[no-any-return]
        if self.in_order:
            self.opened.clear()
        self.opened.update(unbundled(value, content))
        return self.opened[name]  # type: ignore[no-any-return]

    def _read(self, value: str) -> Any:
        seen = self.cache.get(value)
        if seen is not None:
            return seen
        content = bound(self.store.getValue((value, place))[1] for place in self.shelf.values[value].places)
        if part_of(value) not in self.in_files:
            self.cache.put(value, content)
        return content

    def __iter__(self) -> Iterator[str]:
        return iter(self.shelf.blobs)

    def __len__(self) -> int:
        return len(self.shelf.blobs)


def check_same(stored: dict[str, str], identity: dict[str, str]) -> None:
    """Refuse to go on with the state of another call, and say in what it differs that the state depends on."""
    for name in dict.fromkeys((*identity, *stored)):
        if stored.get(name) != identity.get(name):
            told = f"{name} was {stored.get(name)}, and is {identity.get(name)}"
            raise SnapshotError(
                f"this state was made by another {'query' if name == REST else f'join: {told}'}",
                hint="go on with as many: buckets=sj.checkpoint(path).buckets"
                if name == "buckets"
                else "start with a new checkpoint, or restore the old call",
            )
