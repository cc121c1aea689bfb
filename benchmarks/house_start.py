"""How long from the call to the end of the first micro-batch of a query, and where do the seconds go?

In a fresh process with a running session: the first query there, and the same once more. Files are there already. What
belongs to the first query only is the JVM's warming up, and the start of Spark's Python workers.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.checkouts import Checkout
from benchmarks.errors import UnequalResultsError
from benchmarks.house import ROUNDS_MORE, House, in_turn
from benchmarks.race import Verdict
from benchmarks.streams import Stream, usual_step

FASTER: Final = 1.5
ROWS: Final = 1_000
SPARK: Final = "Spark's own join"
TIMES: Final = ("first query", "the same again")
# Spark's own order of a micro-batch; what it has beyond these follows.
PARTS: Final = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")


@dataclass
class Start:
    """A query on a state of the code: two starts in every process."""

    label: str
    checkout: Checkout
    query: str
    told: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)
    results: list[tuple[int, int]] = field(default_factory=list)

    def run(self, house: House, stream: Stream, *, counted: bool) -> None:
        """One process more."""
        house.track.say(f"{self.label}: start of a query ...")
        asked = {"do": "start", "query": self.query, "environment": self.checkout.environment}
        answered = house.track.ask("stream_house", stream, **asked)
        self.checkout.check(answered["code"])
        self.results += [(each["results"], each["checksum"]) for each in answered["totals"]]
        if counted:
            self.told.append(answered["starts"])

    def seconds(self, which: int) -> list[float]:
        """Of all first starts, or of all second ones."""
        return [starts[which]["seconds"] for starts in self.told]

    def median(self, which: int) -> float:
        return statistics.median(self.seconds(which))

    def part(self, which: int, *path: str) -> float | None:
        """The median of a part; None where there is no such part."""
        found: list[Any] = [starts[which] for starts in self.told]
        for name in path:
            found = [each.get(name) for each in found if each.get(name) is not None]
        return statistics.median(found) if found else None

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "query": self.query, "starts": self.told}


def check_starts(starts: Sequence[Start]) -> None:
    """Refuse to compare queries that did not deliver the same."""
    results = {start.label: set(start.results) for start in starts}
    if len(set().union(*results.values())) > 1:
        raise UnequalResultsError(f"results and checksums differ, so times cannot be compared: {results}")


@dataclass
class StartOutcome:
    """The first starts of all, or the second ones, which have no goal."""

    which: int
    joins: list[Start]
    queries: list[Start]
    native: Start

    @property
    def starts(self) -> list[Start]:
        return [*self.joins, self.native, *self.queries]

    @property
    def verdicts(self) -> list[Verdict]:
        if self.which:
            return []
        return [
            self._verdict(what, ours, other)
            for what, (ours, *others) in (("single join", self.joins), ("query of three operators", self.queries))
            for other in others
        ]

    def _verdict(self, what: str, ours: Start, other: Start) -> Verdict:
        check_starts([ours, other])
        mine, theirs = ours.median(self.which), other.median(self.which)
        text = (
            f"{theirs / mine:.2f} times as fast as {other.checkout.label} ({mine:.2f} s against {theirs:.2f} s; "
            f"{SPARK}: {self.native.median(self.which):.2f} s)"
        )
        return Verdict(f"start, {what}", theirs / mine, FASTER, text)

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [start.to_json() for start in self.starts],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure(house: House, quick: bool) -> list[StartOutcome]:
    """Everyone in turn, after a round that does not count."""
    stream = Stream("equality", ROWS, 1, usual_step(ROWS))
    joins, queries = (
        [Start(f"{what}, {checkout.label}", checkout, query) for checkout in house.checkouts]
        for query, what in (("equality", "join"), ("query", "query"))
    )
    native = Start(SPARK, house.checkouts[0], "native")
    everyone = [*joins, native, *queries]
    warm_up, rounds = (0, house.rounds) if quick else (1, house.rounds + ROUNDS_MORE)
    for number, start in enumerate(in_turn(everyone, warm_up + rounds)):
        start.run(house, stream, counted=number >= warm_up * len(everyone))
    check_starts([*joins, native])
    check_starts(queries)
    return [StartOutcome(which, joins, queries, native) for which in range(len(TIMES))]
