"""What a join of many inputs has asked, in plain numbers that add up over buckets and micro-batches.

    asked_0_1   rows that asked input 1 for those of input 0: rows of input 0, or what they had found on the way
    found_0_1   what they found there
    turn_0_1    when input 1 was asked for those of input 0: 1 if first, 2 if second; summed over all that were asked
    swept       how often one sweep over all inputs did without asking

Every batch of an input that asks, asks all others in some order. So the sums of their turns have the order that was
usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

SWEPT = "swept"
ASKED, FOUND, TURN = "asked", "found", "turn"


def figure(what: str, asking: int, asked: int) -> str:
    """The name of a figure of two inputs.

    >>> figure(TURN, 0, 2)
    'turn_0_2'
    """
    return f"{what}_{asking}_{asked}"


def figure_names(inputs: int) -> list[str]:
    """All that are counted for so many inputs.

    >>> len(figure_names(3))
    19
    """
    pairs = list(permutations(range(inputs), 2))
    return [SWEPT, *(figure(what, *pair) for what in (ASKED, FOUND, TURN) for pair in pairs)]


def in_tables(counts: Mapping[str, int], inputs: int) -> dict[str, Any]:
    """The same for a reader: a row for each input that asks, a column for each that is asked, and in which order rows
    of an input asked the others, first to last; nothing where none asked.

    >>> told = in_tables({"asked_0_1": 5, "found_0_1": 9, "turn_0_1": 2, "turn_0_2": 1}, 3)
    >>> told["asked"], told["order"]
    ([[0, 5, 0], [0, 0, 0], [0, 0, 0]], [[2, 1], [], []])
    """
    everyone = range(inputs)
    tables: dict[str, Any] = {SWEPT: counts.get(SWEPT, 0)}
    for what in (ASKED, FOUND):
        tables[what] = [[counts.get(figure(what, one, two), 0) for two in everyone] for one in everyone]
    turns = [{two: counts.get(figure(TURN, one, two), 0) for two in everyone if two != one} for one in everyone]
    tables["order"] = [sorted(own, key=own.__getitem__) if any(own.values()) else [] for own in turns]
    return tables
