"""The intake of a stage in one bucket: from packets to batches, ends and progress, for any number of inputs.

An input is fed by *channels*: sources, whose progress their lateness policy says, or outlets of other stages, whose
buckets each report their own. The progress of an input is the least over its channels and their buckets.

Law: a row is late only against the progress that earlier micro-batches made. So rows are looked at first, and reports
are heard afterwards. Only rows of sources can be late: whatever a stage sends is ahead of the progress it has reported,
unless it was idle. What the rows of several sources became has no row of any of them to show: such results are dropped
and counted, or fail.

Idle channels: one that has not delivered for `idle_after` by the clock of the micro-batch no longer holds others back.
It is moved up to the least progress of those that are not idle, or, when all are, to the largest. When it wakes, its
rows behind that are late. The clock is the micro-batch's own, so that one that is run again decides the same; stages
hand it on with their progress, and whether anything but urgent rows has come to them, so that a stage behind sources
that sleep, or that bring only urgent rows, is known to sleep as well.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, LatePolicy, TimeAxis
from streamjoin.errors import LateRowError
from streamjoin.runtime.lateness import Complete, Lateness
from streamjoin.runtime.packets import Packet, Report
from streamjoin.runtime.placing import Partitioning
from streamjoin.state import Batch, Ends, Snapshot
from streamjoin.state.batch import with_columns

# A column of whole rows. Names with this prefix are ours: a user's column that begins so is refused.
HIDDEN: Final = "__sjh_"
WHOLE: Final = HIDDEN + "whole"
# Which rows a selection lets through. Others say how far a stream is, and count in a row window, but go no further.
KEEP: Final = HIDDEN + "keep"
# How urgent a row is; also of late rows that are shown, if they are urgent.
PRIORITY: Final = HIDDEN + "priority"
# The number of a row in the order in which rows of a running stream came.
ARRIVAL: Final = HIDDEN + "arrival"


@dataclass(frozen=True)
class Channel:
    """Where rows of an input come from: a source with its lateness, or so many buckets of another stage."""

    number: int
    lateness: Lateness | None = None
    buckets: int = 0
    complete: bool = False  # of a stage: all that feeds it has ended before this stage begins
    late: LatePolicy = "drop"
    label: str = ""
    prefix: str = ""  # of the columns' names, which errors leave out
    whole: bool = False  # rows bring their whole row of the source along, to be shown when they are late
    axis: TimeAxis = TimeAxis.INTEGER  # of a source: what its times count, for errors
    behind: int = 0  # of a stage: how far behind its progress the times are by which its rows are read
    follows: bool = False  # of a stage: never taken for idle, as its reader only completes what it has begun

    @property
    def from_source(self) -> bool:
        """Whether rows come from a source, and may be late."""
        return self.lateness is not None

    @property
    def ended(self) -> bool:
        """Whether it has ended before the stage begins."""
        return self.complete or isinstance(self.lateness, Complete)


@dataclass(frozen=True)
class StageInput:
    """An input of a stage: what feeds it, and how its rows are placed, which says where a replicated row is counted."""

    channels: tuple[Channel, ...]
    partitioning: Partitioning
    number: int = 0  # among the inputs of the partitioning


@dataclass
class Arrived:
    """What a micro-batch brings to a stage, by input, urgent rows apart; and rows that only pass, to be shown."""

    batches: dict[int, Batch] = field(default_factory=dict)
    urgent: dict[int, Batch] = field(default_factory=dict)
    ends: dict[int, list[Ends]] = field(default_factory=dict)
    shown: list[Packet] = field(default_factory=list)


class RunningChannel:
    """What a bucket knows of a channel."""

    def __init__(self, config: Channel, number: int, shared: dict[Any, Any]) -> None:
        self.config, self.input = config, number
        self.lateness = config.lateness.build_beside(shared) if config.lateness is not None else None
        self.reached = dict.fromkeys(range(config.buckets), NEVER)
        self.told = NEVER  # the progress that the stage has acted upon
        self.last: int | None = None  # the clock when it last delivered
        self.newest = NEVER  # the largest time stamp of urgent rows, which say nothing of progress

    def heard(self, report: Report) -> None:
        """It has reported how far it is."""
        self.newest = max(self.newest, report.get("newest", NEVER))
        if self.lateness is not None:
            self.lateness.heard(report)
        else:
            self.reached[report["bucket"]] = max(self.reached[report["bucket"]], report["progress"])

    @property
    def progress(self) -> int:
        """How far it is by what it has said itself."""
        if self.config.complete:
            return FOREVER
        if self.lateness is not None:
            return self.lateness.progress
        return earlier(min(self.reached.values()), self.config.behind)

    @property
    def largest(self) -> int:
        """The largest time stamp of a source."""
        return self.newest if self.lateness is None else max(self.newest, self.lateness.largest)

    def to_json(self) -> Any:
        """To be stored."""
        known = self.lateness.to_json() if self.lateness is not None else list(self.reached.values())
        return [known, self.told, self.last, *([self.newest] if self.newest > NEVER else [])]

    def restore(self, stored: Any) -> None:
        """The inverse of `to_json`."""
        known, self.told, self.last, *newest = stored
        (self.newest,) = newest or (NEVER,)  # where no row was urgent there is none
        if self.lateness is not None:
            self.lateness.restore(known)
        else:
            self.reached = dict(enumerate(known))


class Intake:
    """The intake of one bucket."""

    def __init__(self, inputs: tuple[StageInput, ...], bucket: int, idle_after: int | None = None) -> None:
        self.inputs, self.bucket, self.idle_after = inputs, bucket, idle_after
        self.shared: dict[Any, Any] = {}  # what decides about several channels together
        self.channels = {
            channel.number: RunningChannel(channel, number, self.shared)
            for number, each in enumerate(inputs)
            for channel in each.channels
        }
        self.first_clock: int | None = None
        self.clock: int | None = None
        self.late = 0  # in this micro-batch
        self.awake = False  # whether a channel has delivered more than urgent rows in this micro-batch

    def take(self, packets: Iterable[Packet]) -> Arrived:
        """All that has come for this bucket in a micro-batch."""
        self.late, self.awake, arrived, told = 0, False, Arrived(), []
        rows: dict[int, list[Batch]] = defaultdict(list)
        urgent: dict[int, list[Batch]] = defaultdict(list)
        for packet in packets:
            if packet.kind == "rows":
                channel = self.channels[packet.channel]
                batch = self._in_time(channel, Batch.from_table(packet.table), arrived)
                if batch.priority is not None:
                    first, batch = batch.split(batch.priority > 0)
                    if len(first):
                        urgent[channel.input].append(first)
                    if not len(batch):
                        continue  # the others would be copied to be put together with nothing
                    batch = replace(batch, priority=None)
                rows[channel.input].append(batch)
            elif packet.kind == "ends":
                number = self.channels[packet.channel].input
                arrived.ends.setdefault(number, []).append(Ends.from_table(packet.table))
            elif packet.kind == "progress":
                told.append(packet)
            else:
                arrived.shown.append(packet)
        for packet in told:
            self.hear(packet)
        for channel in self.channels.values():
            if channel.lateness is not None:
                channel.lateness.settle(channel.told)
        for number in sorted(rows):  # one after the other: what they are made of goes
            arrived.batches[number] = Batch.concat(rows.pop(number))
        for number in sorted(urgent):
            arrived.urgent[number] = Batch.concat(urgent.pop(number))
        return arrived

    def rows(self, packets: Iterable[Packet]) -> dict[int, Batch]:
        """Some rows of channels that have ended before the stage begins, by input; none of them can be late."""
        found: dict[int, list[Batch]] = defaultdict(list)
        for packet in packets:
            channel = self.channels[packet.channel]
            assert channel.config.ended, "rows that may be late come with all others of their micro-batch"
            found[channel.input].append(self._in_time(channel, Batch.from_table(packet.table), Arrived()))
        return {number: Batch.concat(found[number]) for number in sorted(found)}

    def tick(self, clock: int) -> None:
        """Nothing has come, and it is so late now."""
        self.awake = False
        self._look_at(clock)

    def _look_at(self, clock: int) -> None:
        """It is so late now; a clock that was set back is not believed."""
        self.clock = clock if self.clock is None else max(self.clock, clock)
        self.first_clock = self.clock if self.first_clock is None else self.first_clock

    def hear(self, packet: Packet) -> None:
        """A channel says how far it is."""
        channel, report = self.channels[packet.channel], packet.report
        channel.heard(report)
        if report.get("clock") is not None:
            self._look_at(report["clock"])
        if not report.get("urgent"):  # one that delivers nothing else is idle
            self.awake = True
            channel.last = channel.last if report.get("clock") is None else self.clock

    # -- late rows -----------------------------------------------------------------------------------------------------

    def _in_time(self, channel: RunningChannel, batch: Batch, arrived: Arrived) -> Batch:
        """The rows to go on with. Late ones are counted, and leave, fail, go on or are dropped, as the policy says."""
        whole, batch = (batch.payload[WHOLE], _without_whole(batch)) if channel.config.whole else (None, batch)
        config = channel.config
        if config.ended or config.follows or not (config.from_source or self.idle_after is not None):
            return batch
        late = (batch.ts < channel.told) & (batch.ts > NEVER)  # a row without time is never late
        if not late.any():
            return batch
        some = batch.take(late)
        at_home = self._at_home(channel, some)
        self.late += int(at_home.sum())
        policy = channel.config.late
        if policy == "fail":
            raise _late_row(channel, some)
        if policy == "output" and at_home.any():
            shown = _with_priority(some) if whole is None else unfolded(whole.filter(pa.array(late)))
            shown = shown.filter(pa.array(at_home))
            arrived.shown.append(Packet(self.bucket, channel.config.number, "late", shown))
        return batch if policy == "join" else batch.take(~late)

    def _at_home(self, channel: RunningChannel, rows: Batch) -> Any:
        """Which of the rows are counted here, though they may have gone to other buckets as well."""
        if rows.home is not None:
            return rows.home
        where = self.inputs[channel.input]
        return where.partitioning.at_home(self.bucket, where.number, rows)

    # -- progress ------------------------------------------------------------------------------------------------------

    def progress(self) -> list[int]:
        """How far each input is, with idle channels moved up. The stage acts upon it from now on."""
        known = {number: channel.progress for number, channel in self.channels.items()}
        idle = {number for number, channel in self.channels.items() if self._idle(channel)}
        if idle:
            alive = [number for number, channel in self.channels.items() if not channel.config.ended]
            active = [known[number] for number in alive if number not in idle]
            bound = min(active) if active else max(known[number] for number in alive)
            known |= {number: max(bound, known[number]) for number in idle}
        for number, channel in self.channels.items():
            channel.told = max(channel.told, known[number])
        return [min(self.channels[each.number].told for each in part.channels) for part in self.inputs]

    def _idle(self, channel: RunningChannel) -> bool:
        if self.idle_after is None or self.clock is None or channel.config.ended or channel.config.follows:
            return False
        since = self.first_clock if channel.last is None else channel.last
        assert since is not None
        return self.clock - since > self.idle_after

    def has_seen(self, clock: int) -> bool:
        """Whether this bucket has looked for idle channels at this time, or later."""
        return self.clock is not None and self.clock >= clock

    def largest(self, number: int) -> int:
        """The largest time stamp that sources of an input have shown."""
        return max((self.channels[each.number].largest for each in self.inputs[number].channels), default=NEVER)

    @property
    def newest(self) -> int:
        """The largest time stamp of all sources that go on."""
        going_on = (channel for channel in self.channels.values() if not channel.config.ended)
        return max((channel.largest for channel in going_on), default=NEVER)

    def snapshot(self) -> Snapshot:
        """To be stored."""
        channels = [[number, channel.to_json()] for number, channel in self.channels.items()]
        manifest = {"channels": channels, "first_clock": self.first_clock, "clock": self.clock}
        shared = [each.snapshot() for each in self.shared.values()]
        if not shared:
            return Snapshot(manifest)
        (one,) = shared  # there are two sources to a recall target, and one join
        return Snapshot({**manifest, "shared": one.manifest}, one.blobs)

    def restore(self, stored: Snapshot) -> None:
        """The inverse of `snapshot`."""
        manifest = stored.manifest
        self.first_clock, self.clock = manifest["first_clock"], manifest["clock"]
        for number, known in manifest["channels"]:
            self.channels[number].restore(known)
        for each in self.shared.values():
            if "shared" in manifest:
                each.restore(Snapshot(manifest["shared"], stored.blobs))


def earlier(progress: int, ticks: int) -> int:
    """Progress so many ticks ago; the infinities stay.

    >>> earlier(7, 2), earlier(FOREVER, 2) == FOREVER, earlier(NEVER + 1, 2) == NEVER
    (5, True, True)
    """
    return progress if progress == FOREVER else max(NEVER, progress - ticks)


def _without_whole(batch: Batch) -> Batch:
    payload = batch.payload.drop_columns([WHOLE])
    return replace(batch, payload=payload if payload.num_columns else pa.table({}))


def unfolded(rows: pa.ChunkedArray) -> pa.Table:
    """Whole rows of a source, which travel as one column, as a table.

    >>> unfolded(pa.chunked_array([[{"a": 1, "b": "x"}]])).to_pydict()
    {'a': [1], 'b': ['x']}
    """
    return pa.Table.from_struct_array(rows)


def _with_priority(late: Batch) -> pa.Table:
    """Late rows to be shown. A column of theirs may have given way to the result's priority, so they bring it along."""
    return late.payload if late.priority is None else with_columns(late.payload, **{PRIORITY: late.priority})


def _late_row(channel: RunningChannel, late: Batch) -> LateRowError:
    first = late.payload.slice(0, 1).to_pylist() or [{}]
    row = {name.removeprefix(channel.config.prefix): value for name, value in first[0].items()}
    return LateRowError(
        f"{channel.config.label} brought {len(late)} row(s) behind its progress "
        f"{channel.config.axis.moment(channel.told)}, the first is {in_words(row)}",
        hint='allow more lateness, or choose late="drop", "output" or "join"',
    )


def in_words(row: Mapping[str, Any]) -> str:
    """A row for people: times as they are written, not as Python makes them.

    >>> in_words({"id": 5, "ts": datetime.datetime(2024, 1, 1, 10, 30), "note": "late"})
    "{'id': 5, 'ts': 2024-01-01 10:30:00, 'note': 'late'}"
    """
    times = (datetime.date, datetime.time, datetime.timedelta)  # a datetime is a date
    told = (f"{name!r}: {value if isinstance(value, times) else repr(value)}" for name, value in row.items())
    return f"{{{', '.join(told)}}}"
