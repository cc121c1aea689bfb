"""What section 5 of the document says, claim by claim, and whether it holds in this room at a load.

Its words are vague on purpose (it measured one load, which it does not name), so each is given a limit here: "almost
all" is nine of ten, "clearly" is twice, "the same" is within 10%, of run times within 5%.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.priority_room.experiment import Measured, Room, Variant
from benchmarks.priority_room.schedulers import TRAIN

MEASURED_BY_DOCUMENT: Final = ("round robin", "min-cost", "min-latency", "biggest queue", "highest priority")
PROPOSAL: Final = "priority, min-latency"
UNPRIORITISED: Final = MEASURED_BY_DOCUMENT[:4]
ALL_TEN: Final = tuple(name + train for name in MEASURED_BY_DOCUMENT for train in ("", "+"))
BOTH: Final = ("direct", "weak")  # what Figure 4 shows
FEW, MANY = 1, 9  # priorities
THREADS: Final = min(4, os.cpu_count() or 1)  # each needs memory for all elements

IMPROVED: Final = 1.05  # times shorter, at least: more than chance
ALMOST_ALL, CLEARLY, SAME, SAME_RUN_TIME, FIFTY = 0.9, 2.0, 1.1, 1.05, 50.0


@dataclass(frozen=True)
class Found:
    """All variants at one load."""

    load: float
    runs: Mapping[tuple[str, str], Measured]  # by scheduler (with + for trains) and kind of buffer
    known: Measured  # the proposal as a train with direct buffers, priorities known at the source
    known_normal: Measured  # the same with normal buffers
    free_priorities: Measured  # round robin+ with normal buffers and a priority operator that costs nothing
    sorting: Mapping[tuple[str, int], float]  # strong/lists by scheduler and number of priorities: what sorting costs

    def latency(self, scheduler: str, kind: str) -> float:
        """Mean latency of prioritised elements."""
        return self.runs[scheduler, kind].prioritised.mean

    def gain(self, scheduler: str, kind: str) -> float:
        """How many times shorter it is than with normal buffers and the same scheduler: what the document plots."""
        return self.latency(scheduler, "normal") / self.latency(scheduler, kind)

    def seconds(self, scheduler: str, kind: str) -> float:
        """The run time."""
        return self.runs[scheduler, kind].seconds

    def best_unprioritised(self) -> Measured:
        """The scheduler without any knowledge of priorities that serves prioritised elements best."""
        names = [name + train for name in UNPRIORITISED for train in ("", "+")]
        return min((self.runs[name, "normal"] for name in names), key=lambda run: run.prioritised.mean)

    def gain_on_best(self, run: Measured) -> float:
        """How many times shorter than with the best unprioritised scheduler."""
        return self.best_unprioritised().prioritised.mean / run.prioritised.mean

    def throughput_lost(self, run: Measured) -> float:
        """The share of throughput that a run gives away to the fastest unprioritised scheduler."""
        fastest = min(self.seconds(name + train, "normal") for name in UNPRIORITISED for train in ("", "+"))
        return 1 - fastest / run.seconds


@dataclass(frozen=True)
class Claim:
    """A claim: the document's words, and a function that gives whether it holds and the figures that say so."""

    words: str
    check: Callable[[Found], tuple[bool, str]]


def measure(room: Room, variants: list[Variant], few_elements: Callable[[int], Room], load: float) -> Found:
    """Run everything that the claims need. `few_elements` gives a smaller room with a number of priorities."""
    # In virtual time nobody disturbs anybody, and compiled code holds no lock.
    with ThreadPoolExecutor(THREADS) as pool:
        runs = {(each.variant.name, each.variant.kind): each for each in pool.map(room.run, variants)}
    known = Variant(load, PROPOSAL, "direct", TRAIN, known_at_source=True)
    operators = room.plan.operators
    free = replace(
        room.plan,
        operators=tuple(replace(each, cost=0.0) if each.kind == "priority" else each for each in operators),
    )
    # The other operators keep their costs: the load is smaller by what the priority operators took.
    at_rest = Variant(load * free.work / room.plan.work, "round robin", "normal", TRAIN)
    sorting = {}
    for priorities in (FEW, MANY):
        smaller = few_elements(priorities)
        for train in (1, TRAIN):
            strong, lists = (smaller.run(Variant(load, "round robin", kind, train)) for kind in ("strong", "lists"))
            sorting[strong.variant.name, priorities] = strong.prioritised.mean / lists.prioritised.mean
    return Found(
        load,
        runs,
        known=room.run(known),
        known_normal=room.run(replace(known, kind="normal")),
        free_priorities=replace(room, plan=free).run(at_rest),
        sorting=sorting,
    )


def one_sorted_list_multiplies(found: Found) -> tuple[bool, str]:
    """Section 5, strong order: "multiplied the latency in all tests"."""
    worse = [1 / found.gain(name, "single") for name in ALL_TEN]
    many = sum(each >= CLEARLY for each in worse)
    return many == len(worse), f"{many} of {len(worse)}, times {figure(min(worse))} to {figure(max(worse))}"


def many_are_dearer(found: Found) -> tuple[bool, str]:
    """Strong order 2: worse "the more priorities there are, above all with a + strategy"."""
    alone, train = ((found.sorting[name, FEW], found.sorting[name, MANY]) for name in ("round robin", "round robin+"))
    held = alone[1] > SAME * alone[0] and train[1] > SAME * train[0] and train[1] / train[0] > alone[1] / alone[0]
    first, second = (f"times {figure(few)} to {figure(many)}" for few, many in (alone, train))
    return held, f"{first}, train {second}"


def priorities_do_not_differ(found: Found) -> tuple[bool, str]:
    """With 8, 9 and 10 "no visible differences"."""
    apart = max(_spread(found.runs[name, kind]) for name in ALL_TEN for kind in BOTH)
    return apart <= SAME, f"at most {apart:.2f} times"


def strong_adds_nothing(found: Found) -> tuple[bool, str]:
    """Strong order 2 "brought no added value": not even to the highest priority."""
    gains = [
        found.runs[name, "weak"].by_rank[-1].mean / found.runs[name, "strong"].by_rank[-1].mean for name in ALL_TEN
    ]
    return max(gains) <= SAME, f"10s {figure(min(gains))} to {figure(max(gains))} times faster"


def almost_all_improve(found: Found) -> tuple[bool, str]:
    """Figure 4: "in almost all methods an improvement"."""
    return _share_of_gains(found, IMPROVED)


def improve_clearly(found: Found) -> tuple[bool, str]:
    """Figure 4: "almost throughout very clear"."""
    return _share_of_gains(found, CLEARLY)


def direct_beats_weak(found: Found) -> tuple[bool, str]:
    """Figure 4: direct "almost always" improves more."""
    better = sum(found.latency(name, "direct") <= found.latency(name, "weak") * 1.001 for name in ALL_TEN)
    return better >= ALMOST_ALL * len(ALL_TEN), f"{better} of {len(ALL_TEN)}"


def highest_priority_gains_most(found: Found) -> tuple[bool, str]:
    """Highest priority has "the largest improvement"."""
    best = max(ALL_TEN, key=lambda name: found.gain(name, "direct"))
    return best.startswith("highest priority"), f"{best}: {figure(found.gain(best, 'direct'))}"


def more_than_fifty(found: Found) -> tuple[bool, str]:
    """Highest priority and direct: "more than a factor of fifty"."""
    gains = [found.gain(name, "direct") for name in ("highest priority", "highest priority+")]
    return max(gains) > FIFTY, f"{figure(gains[0])}, train {figure(gains[1])}"


def trains_are_better(found: Found) -> tuple[bool, str]:
    """Trains "are better, by less overhead": the mean of all elements, normal buffers."""
    better = sum(
        found.runs[name + "+", "normal"].everyone.mean <= found.runs[name, "normal"].everyone.mean * 1.001
        for name in MEASURED_BY_DOCUMENT
    )
    return better == len(MEASURED_BY_DOCUMENT), f"{better} of {len(MEASURED_BY_DOCUMENT)}"


def run_time_stays(found: Found) -> tuple[bool, str]:
    """Run times "do not seem to be influenced by the buffers", but for two."""
    rest = [name for name in ALL_TEN if name not in ("biggest queue", "highest priority")]
    apart = {name: max(found.seconds(name, kind) / found.seconds(name, "normal") for kind in BOTH) for name in rest}
    worst = max(rest, key=lambda name: apart[name])
    return apart[worst] <= SAME_RUN_TIME, f"at most {apart[worst]:.2f} times ({worst})"


def two_take_longer(found: Found) -> tuple[bool, str]:
    """Biggest queue and highest priority without trains: "run times rise clearly" (beside round robin)."""
    longer = [
        min(found.seconds(name, kind) / found.seconds("round robin", kind) for kind in BOTH)
        for name in ("biggest queue", "highest priority")
    ]
    return min(longer) > SAME, f"{longer[0]:.2f} and {longer[1]:.2f} times"


def plain_elements_wait_there(found: Found) -> tuple[bool, str]:
    """In these two "latencies of normal elements rise clearly" (Figure 4: beside normal buffers)."""
    rise = [
        max(found.runs[name, kind].plain.mean for kind in BOTH) / found.runs[name, "normal"].plain.mean
        for name in ("biggest queue", "highest priority")
    ]
    return min(rise) > SAME, f"{rise[0]:.2f} and {rise[1]:.2f} times"


def source_buffers_fill_there(found: Found) -> tuple[bool, str]:
    """In these two "buffers after the sources first fill up strongly" (elements, beside round robin)."""
    filled = [
        max(found.runs[name, kind].most_at_sources for kind in BOTH)
        for name in ("round robin", "biggest queue", "highest priority")
    ]
    return min(filled[1:]) > 10 * filled[0], f"{filled[1]:,} and {filled[2]:,}; {filled[0]:,}"


def min_latency_is_best_for_all(found: Found) -> tuple[bool, str]:
    """ "The best mean latency over all elements"."""
    best = min(
        ((name, kind) for name in ALL_TEN for kind in ("normal", *BOTH)),
        key=lambda run: found.runs[run].everyone.mean,
    )
    return best[0].startswith("min-latency"), f"{best[0]}, {best[1]}: {_time(found.runs[best].everyone.mean)}"


def min_latency_gains_nothing(found: Found) -> tuple[bool, str]:
    """With min-latency "next to no gains by priorities"."""
    gains = [found.gain(name, kind) for name in ("min-latency", "min-latency+") for kind in BOTH]
    return max(gains) <= 1.5, f"at most {max(gains):.2f}"


def proposal_is_promising(found: Found) -> tuple[bool, str]:
    """Highest priority with min-latency: gains for prioritised elements, and the mean of min-latency."""
    name = PROPOSAL + "+"
    return _promising(found, found.runs[name, "direct"], found.gain(name, "direct"))


def proposal_at_the_source(found: Found) -> tuple[bool, str]:
    """The same if priorities are known where elements come in."""
    return _promising(found, found.known, found.known_normal.prioritised.mean / found.known.prioritised.mean)


def setting_priorities_is_cheap(found: Found) -> tuple[bool, str]:
    """Setting priorities "does not contribute to the latency": with it, beside without it."""
    more = found.runs["round robin+", "normal"].everyone.mean / found.free_priorities.everyone.mean
    return more <= SAME, f"{more:.3f} times"


CLAIMS: Final = (
    Claim("one sorted list: latencies multiply, in all tests", one_sorted_list_multiplies),
    Claim(f"sorting (strong) costs more with {MANY} priorities than with {FEW}, above all in trains", many_are_dearer),
    Claim("priorities 8, 9 and 10 do not differ (direct, weak)", priorities_do_not_differ),
    Claim("strong adds nothing to weak", strong_adds_nothing),
    Claim("almost all methods improve prioritised elements (direct, weak)", almost_all_improve),
    Claim("almost throughout clearly (twice)", improve_clearly),
    Claim("direct almost always better than weak", direct_beats_weak),
    Claim("highest priority gains most (direct)", highest_priority_gains_most),
    Claim("highest priority, direct: more than fifty-fold", more_than_fifty),
    Claim("trains have the lower mean latency", trains_are_better),
    Claim("buffers do not change run times (but for two)", run_time_stays),
    Claim("biggest queue, highest priority without train: longer run times", two_take_longer),
    Claim("... and normal elements wait longer", plain_elements_wait_there),
    Claim("... and buffers above sources fill up", source_buffers_fill_there),
    Claim("min-latency has the best mean of all elements", min_latency_is_best_for_all),
    Claim("min-latency gains next to nothing", min_latency_gains_nothing),
    Claim("highest priority with min-latency is promising (train, direct)", proposal_is_promising),
    Claim("... with priorities known at the source (ours)", proposal_at_the_source),
    Claim("setting priorities costs no latency that matters", setting_priorities_is_cheap),
)  # fmt: skip


def to_json(found: Found) -> dict[str, Any]:
    """All that was measured at a load, and the claims."""
    checked = {claim.words: claim.check(found) for claim in CLAIMS}
    return {
        "runs": [run.to_json() for run in (*found.runs.values(), found.known, found.known_normal)],
        "claims": {words: {"held": bool(held), "figures": text} for words, (held, text) in checked.items()},
    }


def figure(value: float) -> str:
    """A number of three digits as readers write it.

    >>> figure(56051.2), figure(0.0114)
    ('56,051', '0.0114')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _share_of_gains(found: Found, least: float) -> tuple[bool, str]:
    gains = [found.gain(name, kind) for name in ALL_TEN for kind in BOTH]
    more = sum(gain > least for gain in gains)
    return more >= ALMOST_ALL * len(gains), f"{more} of {len(gains)}"


def _promising(found: Found, run: Measured, gain: float) -> tuple[bool, str]:
    means = [found.runs[name, "normal"].everyone.mean for name in ("min-latency", "min-latency+")]
    beside = run.everyone.mean / min(means)
    return gain > CLEARLY and beside <= SAME, f"gain {figure(gain)}, mean of all {beside:.2f} times"


def _spread(run: Measured) -> float:
    means = [each.mean for each in run.by_rank]
    return max(means) / min(means)


def _time(seconds: float) -> str:
    return f"{figure(seconds * 1e3)} ms"
