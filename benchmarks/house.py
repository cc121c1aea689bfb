"""Is this state of the code as fast as it should be, and as an earlier one? `./sj bench house --against COMMIT`.

    equality   the equality join of `bench streaming`: not slower than before, and little above the floor
    group      a join with GROUP BY on its key: hardly more than the join alone
    small      micro-batches of 1,000 rows: a query of three operators, and a single join
    start      from the call to the end of the first micro-batch (house_start.py)
    restore    a large state of many small parts (house_restore.py)

Each side has processes of its own and runs once in every round, in turn; every second round goes backwards. The warm
micro-batches of all rounds count, by their median. Calls must deliver the same in every micro-batch. When a result of
a query leaves is not promised, so of queries everything is compared that has left in the end, `sj.finish` included.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from benchmarks.checkouts import Checkout
from benchmarks.errors import UnequalResultsError
from benchmarks.micro_batches import StreamRun, check_as_many, check_equal, check_rows
from benchmarks.race import Verdict
from benchmarks.streaming import Track
from benchmarks.streams import Stream, usual_step

QUESTIONS: Final = ("equality", "group", "small", "start", "restore")
ROUNDS: Final = 3
ROUNDS_MORE: Final = 2  # where there is one time in a round
T = TypeVar("T")
FLOOR: Final = "floor: pack, exchange, hand back"

NOT_SLOWER: Final = 1.0
ADDED_PERCENT: Final = 45.0
GROUPED: Final = 1.1
SMALL_QUERY: Final = 1.5


@dataclass(frozen=True)
class Size:
    """How much is run: rows of both sides of a micro-batch, micro-batches, and how many of them do not count."""

    rows: int
    batches: int
    cold: int

    @property
    def stream(self) -> Stream:
        return Stream("equality", self.rows, self.batches, usual_step(self.rows))


# So many that a floor has a median: it swings by a quarter from one process to the next, and more at the beginning.
EQUALITY: Final = Size(1_000_000, 18, 8)
GROUP: Final = Size(400_000, 8, 4)
SMALL: Final = Size(1_000, 20, 5)
QUICK: Final = Size(20_000, 3, 1)
QUICK_SMALL: Final = Size(1_000, 5, 2)


@dataclass(frozen=True)
class Delivered:
    """A run; of a query also all that had left in the end, and for how long how many pairs were there."""

    run: StreamRun
    total: tuple[int, int] | None = None
    weight: int | None = None

    @classmethod
    def of(cls, run: StreamRun, answered: dict[str, Any]) -> Delivered:
        rest = answered.get("rest")
        if rest is None:
            return cls(run)
        results = rest["results"] + sum(batch.results for batch in run.batches)
        return cls(run, (results, (rest["checksum"] + run.checksum) % (1 << 64)), answered.get("weight"))


@dataclass
class Lane:
    """A query on a state of the code, and what was measured of it, round by round."""

    label: str
    checkout: Checkout
    query: str
    delivered: list[Delivered] = field(default_factory=list)

    def run(self, track: Track, size: Size) -> None:
        """Run once more."""
        stream = size.stream
        track.say(f"{self.label}: {stream.batches} micro-batches of {stream.rows:,} rows ...")
        asked: dict[str, Any] = {"do": "run", "query": self.query, "environment": self.checkout.environment}
        if self.query == "floor":
            answered = track.ask("stream_floor", stream, **asked)
        else:
            answered = track.ask("stream_house", stream, **asked)
            self.checkout.check(answered["code"])
        run = StreamRun.of(self.label, answered["batches"], size.cold)
        check_rows(run, stream.rows, stream.batches)
        self.delivered.append(Delivered.of(run, answered))

    @property
    def first(self) -> Delivered:
        return self.delivered[0]

    @property
    def seconds(self) -> list[float]:
        return [second for each in self.delivered for second in each.run.seconds]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def throughput(self) -> float:
        return self.first.run.rows / self.median

    def to_json(self) -> dict[str, Any]:
        runs = [each.run.to_json() for each in self.delivered]
        return {"label": self.label, "query": self.query, "median": self.median, "runs": runs}


def check_lanes(ours: Lane, other: Lane) -> None:
    """Refuse to go on unless two lanes of one query have delivered the same, in every round."""
    for each in other.delivered:
        if ours.first.total is None:
            check_equal(ours.first.run, each.run)
        elif each.total != ours.first.total:
            raise UnequalResultsError(
                f"{other.label} delivered other results than {ours.label}, so their times cannot be compared: "
                f"{each.total} and {ours.first.total} are the numbers of results and their checksums"
            )


def times_as_fast(ours: Lane, other: Lane) -> float:
    """How many times as fast ours is; only where the results are equal."""
    check_lanes(ours, other)
    return other.median / ours.median


@dataclass
class HouseOutcome:
    """The lanes of a question, this state's first among those of a query."""

    question: str
    lanes: list[Lane]
    verdicts: list[Verdict] = field(default_factory=list)

    def lanes_of(self, query: str) -> list[Lane]:
        return [lane for lane in self.lanes if lane.query == query]

    def against_before(self, query: str, target: float, what: str) -> Iterator[Verdict]:
        """The verdict about a query, where it was run on an earlier state too."""
        ours, *others = self.lanes_of(query)
        for other in others:
            measured = times_as_fast(ours, other)
            text = (
                f"{measured:.2f} times as fast as {other.checkout.label} "
                f"({ours.median:.3f} s against {other.median:.3f} s, "
                f"{ours.throughput:,.0f} against {other.throughput:,.0f} rows/s)"
            )
            yield Verdict(f"{self.question}, {what}", measured, target, text)

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [lane.to_json() for lane in self.lanes],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


@dataclass(frozen=True)
class House:
    """Where the questions are asked."""

    track: Track
    checkouts: Sequence[Checkout]
    rounds: int

    def lanes(self, query: str, what: str) -> list[Lane]:
        """A query on all states."""
        return [Lane(f"{what}, {checkout.label}", checkout, query) for checkout in self.checkouts]

    def run(self, question: str, size: Size, lanes: Sequence[Lane]) -> HouseOutcome:
        """All lanes in turn; a difference ends the benchmark."""
        outcome = HouseOutcome(question, list(lanes))
        for lane in in_turn(lanes, self.rounds):
            lane.run(self.track, size)
            check_lanes(next(each for each in lanes if each.query == lane.query and each.delivered), lane)
        self.track.forget(size.stream)
        return outcome

    def prepare(self) -> None:
        """Have each state compile what it keeps compiled: nobody's first run is to pay for that."""
        for checkout in self.checkouts:
            self.track.say(f"{checkout.label}: compiling, where that has not been done ...")
            for query in ("query", "equality"):
                Lane(checkout.label, checkout, query).run(self.track, QUICK_SMALL)


def in_turn(lanes: Sequence[T], rounds: int) -> Iterator[T]:
    """Everyone once in every round, every second one backwards: nobody always comes after the same one."""
    for number in range(rounds):
        yield from lanes if number % 2 == 0 else reversed(lanes)


def measure_equality(house: House, quick: bool) -> HouseOutcome:
    """The equality join against before, and above the floor."""
    lanes = house.lanes("equality", "equality")
    floor = Lane(FLOOR, house.checkouts[0], "floor")
    outcome = house.run("equality", QUICK if quick else EQUALITY, [*lanes, floor])
    outcome.verdicts += outcome.against_before("equality", NOT_SLOWER, "against before")
    ours = lanes[0]
    check_as_many(ours.first.run, floor.first.run)
    added = 100 * (ours.median / floor.median - 1)
    text = f"ours adds {added:.0f}% to the floor ({ours.median:.3f} s against {floor.median:.3f} s)"
    outcome.verdicts.append(Verdict("equality, above the floor", added, ADDED_PERCENT, text, at_most=True))
    return outcome


def measure_group(house: House, quick: bool) -> HouseOutcome:
    """A join with and without groups."""
    lanes = [*house.lanes("plain", "join"), *house.lanes("grouped", "join and GROUP BY")]
    outcome = house.run("group", QUICK if quick else GROUP, lanes)
    plain, grouped = outcome.lanes_of("plain")[0], outcome.lanes_of("grouped")[0]
    check_weights(plain, grouped)
    times = grouped.median / plain.median
    text = f"with GROUP BY {times:.2f} times the join alone ({grouped.median:.3f} s against {plain.median:.3f} s)"
    outcome.verdicts.append(Verdict("group, against the join alone", times, GROUPED, text, at_most=True))
    outcome.verdicts += outcome.against_before("grouped", NOT_SLOWER, "against before")
    return outcome


def check_weights(plain: Lane, grouped: Lane) -> None:
    """Refuse to compare a join with groups that do not count its pairs: count times length is the same in sum."""
    weights = {each.weight for lane in (plain, grouped) for each in lane.delivered}
    if len(weights) > 1 or None in weights:
        raise UnequalResultsError(
            f"{grouped.label} does not count the pairs of {plain.label}, so their times cannot be compared: "
            f"{weights} microseconds of pairs"
        )


def measure_small(house: House, quick: bool) -> HouseOutcome:
    """Micro-batches that are all overhead."""
    lanes = [*house.lanes("query", "query"), *house.lanes("equality", "single join")]
    outcome = house.run("small", QUICK_SMALL if quick else SMALL, lanes)
    outcome.verdicts += outcome.against_before("query", SMALL_QUERY, "query of three operators")
    outcome.verdicts += outcome.against_before("equality", NOT_SLOWER, "single join")
    return outcome


MEASURES: Final[dict[str, Callable[[House, bool], HouseOutcome]]] = {
    "equality": measure_equality,
    "group": measure_group,
    "small": measure_small,
}
