"""Four inputs that are joined at once, as arrays. Needs numpy only: it is read in the peers' environments, too.

Places (or keys) are far apart; at each either three of the four inputs have rows that all overlap, each of the four
triples equally often, or all four have. So no order of joins of two avoids intermediate results that come to nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.workloads import SEED, Columns

INPUTS: Final = 4
AT_A_PLACE: Final = 5  # rows of an input
WIDE: Final = 100_000  # from one place to the next
SHIFT: Final = 31  # a digest is of pairs, so two members are in one number; there are less than 2**31 of every input


def make(question: str, rows: int, dangling: int) -> list[Columns]:
    """Four inputs of about so many rows, with so many intermediate results for every result."""
    g = AT_A_PLACE
    # Of a left-deep cascade over n3 places of each triple and nf of all four: pairs and triples for each result.
    share = (2 * g**2 + g**3) / (dangling * g**4 - g**2 - g**3)  # nf / n3
    triples = rows / (g * (3 + share))
    whole, triples = max(1, round(triples * share)), int(triples)
    rng = np.random.default_rng(SEED)
    absent = np.concatenate([np.repeat(np.arange(INPUTS), triples), np.full(whole, INPUTS)])
    rng.shuffle(absent)
    made = []
    for number in range(INPUTS):
        place = np.repeat(np.flatnonzero(absent != number), g)
        lo, hi = rng.integers(0, 10_000, len(place)), rng.integers(20_000, 30_000, len(place))
        order = rng.permutation(len(place))
        columns = {"id": np.arange(len(place)), "key": place[order]}
        if question == "overlap":
            lo, hi = lo + place * WIDE, hi + place * WIDE
        made.append({**columns, "lo": lo[order], "hi": hi[order]})
    return made


def write(question: str, inputs: list[Columns], folder: Path) -> None:
    """For every contender to read."""
    folder.mkdir(parents=True)
    (folder / "question").write_text(question)
    for number, columns in enumerate(inputs):
        np.savez(folder / f"{number}.npz", **columns)


def read(folder: Path) -> tuple[str, list[Columns]]:
    """The inverse of `write`."""
    inputs = [dict(np.load(folder / f"{number}.npz")) for number in range(INPUTS)]
    return (folder / "question").read_text(), inputs
