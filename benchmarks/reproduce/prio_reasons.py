"""PRIO: why a claim fails where it does. A reason is given only where what was measured bears it out.

Most reasons speak of long queues or short ones, so they explain a claim that fails at all loads above, or below, those
at which it holds. Others name who does not do as claimed. What neither explains is not explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from benchmarks.priority_room.claims import ALL_TEN, BOTH, CLEARLY, IMPROVED, Found

UNKNOWN: Final = "Why is not known."
NEAR_CAPACITY: Final = 0.9
FILLED: Final = 10  # times as many elements at the sources as with round robin

# By the beginning of a claim's words, where it fails only below, or only above, the loads at which it holds.
BELOW: Final = {
    "one sorted list": "Below capacity buffers are short, and putting an element at its place costs little.",
    "sorting (strong)": "Below capacity buffers are short, and sorted quickly however many priorities there are.",
    "direct almost always": "Both modes let prioritised elements pass; where buffers are empty they are the same.",
    "highest priority gains": "Without a backlog the order in which buffers are served hardly matters.",
    "highest priority, direct": (
        "More than fifty-fold is a matter of overload: below it there is no queue that long to overtake."
    ),
    "trains have": "A train makes others wait for its end, which costs more than overhead where there is little to do.",
    "biggest queue, highest": "Below capacity the overhead of choosing anew fits into idle time.",
    "... and normal": "Below capacity normal elements hardly notice that they are overtaken.",
    "... and buffers": "Below capacity nothing piles up.",
    "min-latency has": "Which scheduler has the best mean depends on how much overhead the load leaves room for.",
    "min-latency gains": "Below capacity its whole paths leave little to overtake, but more than nothing.",
}
ABOVE: Final = {
    "priorities 8, 9 and 10": "Under a higher load buffers are so long that even small preferences are seen.",
    "strong adds nothing": "Where many prioritised elements wait at once, their order matters to the highest.",
    "min-latency has": "Which scheduler has the best mean depends on how much overhead the load leaves room for.",
    "min-latency gains": "With long queues at the sources even whole paths leave elements to overtake.",
}

Pattern = Literal["below", "above", "everywhere", "mixed"]


def pattern(failed: Sequence[float], held: Sequence[float]) -> Pattern:
    """Where the loads at which a claim failed lie, beside those at which it held.

    >>> pattern([0.7, 0.9], [1.0, 1.2]), pattern([0.9], [0.7, 1.0, 1.2]), pattern([1.2], [])
    ('below', 'mixed', 'everywhere')
    """
    if not held:
        return "everywhere"
    if max(failed) < min(held):
        return "below"
    return "above" if min(failed) > max(held) else "mixed"


def by_load(words: str, failed: Sequence[float], held: Sequence[float]) -> str:
    """The reason that long or short queues give, if the claim fails where these are.

    >>> by_load("priorities 8, 9 and 10 do not differ", [0.9], [0.7, 1.0, 1.2])
    ''
    """
    known = {"below": BELOW, "above": ABOVE}.get(pattern(failed, held), {})
    return next((why for begin, why in known.items() if words.startswith(begin)), "")


def reason(words: str, failed: Sequence[Found], held: Sequence[Found]) -> str:
    """Why the claim fails at these loads and not at those."""
    return by_load(words, [each.load for each in failed], [each.load for each in held]) or _found(words, failed)


def _found(words: str, failed: Sequence[Found]) -> str:
    """A reason that the figures of the failed loads themselves give."""
    if words.startswith("almost all methods"):
        return without_gain(failed, IMPROVED)
    if words.startswith("almost throughout"):
        return without_gain(failed, CLEARLY)
    if words.startswith("... and buffers"):
        return _who_fills(failed)
    if words.startswith("highest priority with") and all(_gain_at_source(each) > CLEARLY for each in failed):
        return (
            "As proposed the priority is set behind the source's buffer, where it comes too late; known at the source "
            f"it gains {min(map(_gain_at_source, failed)):.3g}-fold or more at these loads."
        )
    if words.startswith("... with priorities") and all(_gain_at_source(each) > CLEARLY for each in failed):
        return "Prioritised elements gain; the mean of all is what it costs."
    if words.startswith("setting priorities") and min(each.load for each in failed) >= NEAR_CAPACITY:
        return "Near capacity every microsecond of an operator lengthens the queue."
    return UNKNOWN


def without_gain(failed: Sequence[Found], limit: float) -> str:
    """Who has not the gain that the claim asks for, with which buffers, at each load at which it fails."""
    said = []
    for found in failed:
        few = {name: [kind for kind in BOTH if found.gain(name, kind) <= limit] for name in ALL_TEN}
        names = ", ".join(f"{name} ({' and '.join(kinds)})" for name, kinds in few.items() if kinds)
        said.append(f"at load {found.load:g} with {names}")
    return f"A gain of at most {limit:g}: {'; '.join(said)}."


def _who_fills(failed: Sequence[Found]) -> str:
    """Which of the two schedulers does fill the buffers above sources."""

    def most(found: Found, name: str) -> int:
        return max(found.runs[name, kind].most_at_sources for kind in BOTH)

    fills = {
        name: all(most(found, name) > FILLED * most(found, "round robin") for found in failed)
        for name in ("biggest queue", "highest priority")
    }
    if fills == {"biggest queue": True, "highest priority": False}:
        return (
            "Biggest queue fills them at each of these loads; highest priority needs a rule for ties, which the "
            "document does not give, and with ours (lowest in the plan first) the sources' buffers are served first."
        )
    return UNKNOWN


def _gain_at_source(found: Found) -> float:
    return found.known_normal.prioritised.mean / found.known.prioritised.mean
