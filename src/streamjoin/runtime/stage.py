"""A stage: a fragment of operators between an intake and an outlet, in one bucket. Packets in, packets out.

    packets --> intake --> fragment --> outlet --> packets
                progress               order, ends

Law of a micro-batch: rows are joined with themselves and with what earlier micro-batches left, *then* progress moves,
then what is past is forgotten and what was held leaves.

A batch is one call of `take`, then `end`. With a budget its rows go to the operators piece by piece, as they come; it
is one micro-batch all the same. A stream is many calls of `take`, with a snapshot after each. Inputs that are there
before it begins wait (see `aside`), and with a budget go to the operators piece by piece, too, ahead of the first
micro-batch's own rows. Nobody in here knows whether Spark, a test or `sj.finish` carries the packets.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.algebra.policy import ADDED
from streamjoin.runtime.aside import Aside
from streamjoin.runtime.fragment import Entry, Fragment, Node, Room
from streamjoin.runtime.intake import Intake, StageInput
from streamjoin.runtime.outlet import Outlet, RunningOutlet, ToFrame
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.recall_figures import KEPT
from streamjoin.state import Blobs, Snapshot

# Figures of a footprint that count what was done, not what there is.
DONE: Final = ("purged", "spills", "merges", "pages_read", "pages_written")
# Of a stage with a budget, for inputs that have ended: what comes goes on when it is this part of the budget.
PIECES: Final = 16


@dataclass(frozen=True)
class Stage:
    """A stage before it runs. `idle_after` is in microseconds of the clock; `memory`: how many bytes its state may use
    in each process, if there is a limit.
    """

    number: int
    buckets: int
    inputs: tuple[StageInput, ...]
    nodes: tuple[Node, ...]
    outlet: Outlet
    idle_after: int | None = None
    memory: int | None = None
    prioritised: bool = field(default=False, metadata=ADDED)  # rows may be urgent

    @property
    def joins_of_many(self) -> tuple[int, ...]:
        """How many inputs each of its joins of many inputs has, children first."""
        return tuple(len(node.feeds) for node in self.nodes if node.config.probes_many)

    @property
    def complete(self) -> bool:
        """Whether all that it reads has ended before it begins."""
        return all(channel.ended for each in self.inputs for channel in each.channels)

    @property
    def in_pieces(self) -> bool:
        """Whether rows of a batch go to the operators as they come, so that an input is never in memory as a whole."""
        return self.complete and all(map(self.goes_ahead, range(len(self.inputs))))

    def goes_ahead(self, number: int) -> bool:
        """Whether rows of an input that has ended before the stage begins go to the operators as they come, so that
        they are never in memory as a whole. Those of row windows must be there all at once, and urgent ones go first.
        """
        if self.memory is None or self.prioritised:
            return False
        entered = [node for node in self.nodes if any(_takes(feed, number) for feed in node.feeds)]
        return all(node.areas or node.config.passes for node in entered)

    @property
    def ahead(self) -> frozenset[int]:
        """The channels whose rows do, in a batch or beside a stream."""
        if self.complete and not self.in_pieces:
            return frozenset()
        inputs = [each for number, each in enumerate(self.inputs) if self.goes_ahead(number)]
        return frozenset(channel.number for each in inputs for channel in each.channels if channel.ended)

    def build(self, bucket: int, scratch: str | None = None) -> RunningStage:
        """The stage in one bucket, empty; `scratch` is a folder for state that does not fit into its memory."""
        return RunningStage(self, bucket, scratch)


class RunningStage:
    """A stage at work in one bucket."""

    def __init__(self, config: Stage, bucket: int, scratch: str | None = None) -> None:
        self.config, self.bucket = config, bucket
        self.intake = Intake(config.inputs, bucket, config.idle_after)
        self.fragment = Fragment(config.nodes, bucket, Room(config.memory, scratch), prioritised=config.prioritised)
        self.outlet = RunningOutlet(config.outlet, bucket)
        self.aside = Aside(bucket, lazy=config.memory is not None)
        self.before: dict[str, int] = {}

    def take(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        """One micro-batch: everything that has come for this bucket."""
        self._count_anew()
        rest: list[Packet] = []
        if self.config.in_pieces:
            yield from self._enter(chain(self.aside.take(), packets), rest)
            packets = ()
        elif len(self.aside):
            yield from self._enter(self.aside.take(), rest)
        arrived = self.intake.take(chain(rest, packets))
        for packet in arrived.shown:
            yield from self.outlet.shown(packet)
        self.fragment.seen({number: self.intake.largest(number) for number in range(len(self.config.inputs))})
        progress = self.intake.progress()
        for output in self.fragment.run(arrived.batches, arrived.ends, progress, arrived.urgent):
            yield from self.outlet.send(output)
        yield from self._move()

    def _enter(self, packets: Iterable[Packet], rest: list[Packet]) -> Iterator[Packet]:
        """Rows that go ahead do, piece by piece; other packets are added to the rest."""
        for piece in pieces(packets, self.config.ahead, rest, (self.config.memory or 0) // PIECES):
            for output in self.fragment.enter(self.intake.rows(piece)):
                yield from self.outlet.send(output)

    def put(self, packets: Iterable[Packet]) -> None:
        """Rows of an input that is there before the stream begins: they wait for the first micro-batch."""
        for packet in packets:
            if packet.kind == "progress":
                self.intake.hear(packet)
            else:
                self.aside.add(packet)

    def tick(self, clock: int | None, *, idle: bool = False) -> Iterator[Packet]:
        """Nothing has come, and it is so late now; None: that says nothing of inputs. `idle`: there is time for what
        has been put off.
        """
        self._count_anew()
        if clock is not None:
            self.intake.tick(clock)
        outputs = self.fragment.idle() if idle else iter(())
        for output in chain(outputs, self.fragment.run({}, {}, self.intake.progress())):
            yield from self.outlet.send(output)
        yield from self._move()

    def end(self) -> Iterator[Packet]:
        """Nothing comes any more: everything held leaves."""
        if len(self.aside):
            yield from self.take(())
        for output in self.fragment.end():
            yield from self.outlet.send(output)
        yield from self.outlet.end()

    def _move(self) -> Iterator[Packet]:
        joined = self.fragment.joined if self.config.outlet.testimony else NEVER
        clock = None if self.config.idle_after is None else self.intake.clock
        yield from self.outlet.move(self.fragment.progress, joined, clock, awake=self.intake.awake)

    # -- figures -------------------------------------------------------------------------------------------------------

    def _count_anew(self) -> None:
        self.outlet.rows_out = self.intake.late = 0
        footprint = self.fragment.footprint
        done = {name: getattr(footprint, name) for name in DONE}
        self.before = {"ghosts": self.fragment.figure("ghosts"), **done, **self._probed()}

    def _probed(self) -> dict[str, int]:
        """Whom rows of joins of many inputs have asked so far."""
        return {
            probing_figure(join, name): count
            for join, told in enumerate(self.fragment.probed)
            for name, count in told.items()
        }

    def figures(self) -> dict[str, int]:
        """What happened since the last `take` began, and what is kept."""
        footprint = self.fragment.footprint + self.outlet.footprint
        figures = {
            "late": self.intake.late,
            "ghosts": self.fragment.figure("ghosts") - self.before.get("ghosts", 0),
            **{name: getattr(footprint, name) - self.before.get(name, 0) for name in DONE},
            "state_rows": footprint.rows,
            "state_bytes": footprint.nbytes,
            "state_runs": footprint.runs,
            "spilled_bytes": footprint.spilled,
        }
        figures |= {name: count - self.before.get(name, 0) for name, count in self._probed().items()}
        # What Spark computes with once more is counted where it has dropped some.
        if not isinstance(self.config.outlet.way, ToFrame):
            passed_on = self.config.outlet.leaves == "passed on"
            figures["rows_on" if passed_on else "rows_out"] = self.outlet.rows_out
        newest = self.intake.newest
        for number, each in enumerate(self.config.inputs):
            if any(channel.follows for channel in each.channels):
                continue  # these go by the stage before, which has said how far it is
            time = min(self.intake.channels[channel.number].told for channel in each.channels)
            if NEVER < time < FOREVER:
                figures[f"progress_{number}"] = time
                figures |= {f"lag_{number}": max(0, newest - time)} if newest > NEVER else {}
        for shared in self.intake.shared.values():
            figures |= shared.figures()
            figures |= {
                f"{KEPT}_{number}": self.fragment.kept_rows(number) for number in range(len(self.config.inputs))
            }
        return figures

    # -- saving --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""
        operators = self.fragment.snapshots()
        intake, outlet = self.intake.snapshot(), self.outlet.snapshot()
        aside = self.aside.snapshot()
        manifest = {
            "intake": intake.manifest,
            "operators": [each.manifest for each in operators],
            "outlet": outlet.manifest,
            **aside.manifest,
        }
        named = [under(f"{number}:", each.blobs) for number, each in enumerate(operators)]
        blobs: Any = ChainMap(aside.blobs, under("in:", intake.blobs), under("out:", outlet.blobs), *named)  # type: ignore[arg-type]
        return Snapshot(manifest, blobs)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        manifest, blobs = snapshot.manifest, snapshot.blobs
        self.aside.restore(manifest, blobs)
        self.intake.restore(Snapshot(manifest["intake"], without("in:", blobs)))
        self.outlet.restore(Snapshot(manifest["outlet"], without("out:", blobs)))
        self.fragment.restore(
            [Snapshot(each, without(f"{number}:", blobs)) for number, each in enumerate(manifest["operators"])]
        )

    def close(self) -> None:
        """Nobody goes on with it here: what it has open is closed."""
        self.fragment.close()


def probing_figure(join: int, name: str) -> str:
    """The name of a figure of one of a stage's joins of many inputs.

    >>> probing_figure(0, "asked_0_1")
    'probing_0_asked_0_1'
    """
    return f"probing_{join}_{name}"


def _takes(feed: Any, number: int) -> bool:
    return isinstance(feed, Entry) and feed.input == number


def pieces(
    packets: Iterable[Packet], channels: frozenset[int], rest: list[Packet], nbytes: int
) -> Iterator[list[Packet]]:
    """Packets of rows of these channels, about so many bytes at a time; others are added to the rest."""
    piece: list[Packet] = []
    size = 0
    for packet in packets:
        if packet.kind != "rows" or packet.channel not in channels:
            rest.append(packet)
            continue
        piece.append(packet)
        size += packet.table.nbytes
        if size >= nbytes:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def under(prefix: str, blobs: Mapping[str, bytes]) -> Blobs:
    """Blobs under names with a prefix, so that those of several parts do not meet."""
    return Blobs({prefix + name: partial(blobs.__getitem__, name) for name in blobs})


def without(prefix: str, blobs: Mapping[str, bytes]) -> Blobs:
    """The inverse of `under`: the blobs of one part, under its own names."""
    mine = [name for name in blobs if name.startswith(prefix)]
    return Blobs({name.removeprefix(prefix): partial(blobs.__getitem__, name) for name in mine})
