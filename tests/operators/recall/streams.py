"""Small streams out of order, cut into micro-batches, and joined by an operator that keeps and purges single rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamjoin.algebra import NEVER
from streamjoin.operators.recall.counts import Counts, counted

Row = tuple[int, int]  # time stamp, key


@dataclass
class Streams:
    """Two inputs, by micro-batch: `batches[k][p]` are the rows of input p in micro-batch k."""

    batches: list[tuple[list[Row], list[Row]]]

    @staticmethod
    def drawn(rng: np.random.Generator, rows: int, span: int, delay: int, size: int, keys: int = 3) -> Streams:
        """Rows with delays up to `delay`, cut at arrival times that are `size` apart."""
        batches: list[tuple[list[Row], list[Row]]] = []
        for number in (0, 1):
            ts, late = rng.integers(0, span, rows), rng.integers(0, delay + 1, rows)
            for time, key, batch in zip(ts, rng.integers(0, keys, rows), (ts + late) // size, strict=True):
                while len(batches) <= batch:
                    batches.append(([], []))
                batches[batch][number].append((int(time), int(key)))
        return Streams(batches)

    def all(self, number: int) -> list[Row]:
        """All rows of an input."""
        return [row for batch in self.batches for row in batch[number]]

    def largest(self) -> Iterator[tuple[int, int]]:
        """The largest time stamps of both inputs before each micro-batch, and after the last."""
        known = [NEVER, NEVER]
        for batch in self.batches:
            yield known[0], known[1]
            known = [max([known[number], *(ts for ts, _ in batch[number])]) for number in (0, 1)]
        yield known[0], known[1]

    def counts(self, width: int, bits: int = 16) -> Iterator[list[Counts | None]]:
        """What is counted of each micro-batch."""
        for batch in self.batches:
            yield [
                counted(np.array([k for _, k in rows]), np.array([t for t, _ in rows]), width=width, bits=bits)
                if rows
                else None
                for rows in batch
            ]


def match(left: Row, right: Row, windows: tuple[int, int]) -> bool:
    return left[1] == right[1] and -windows[1] < right[0] - left[0] < windows[0]


def true_pairs(streams: Streams, windows: tuple[int, int]) -> int:
    """How many pairs there are: `match` of all, by arrays."""
    others = np.array(streams.all(1), np.int64).reshape(-1, 2)
    found = 0
    for ts, key in streams.all(0):
        ahead = others[:, 0] - ts
        found += int(((others[:, 1] == key) & (-windows[1] < ahead) & (ahead < windows[0])).sum())
    return found


def found_pairs(streams: Streams, windows: tuple[int, int], progress: list[tuple[int, int]]) -> int:
    """How many an operator finds that purges rows whose end the other input's progress has reached: `progress[k]` holds
    after micro-batch k.
    """
    areas: tuple[list[Row], list[Row]] = ([], [])
    found = 0
    for batch, reached in zip(streams.batches, progress, strict=True):
        for number in (0, 1):
            for row in batch[number]:
                pairs = ((row, other) if number == 0 else (other, row) for other in areas[1 - number])
                found += sum(match(*pair, windows) for pair in pairs)
                areas[number].append(row)
        for number in (0, 1):
            area = areas[number]
            area[:] = [row for row in area if row[0] + windows[number] > reached[1 - number]]
    return found
