"""Streams of elements for the operators over lifetimes: whole lives in micro-batches, with ends that follow.

An element is `(payload, ts, te, number)`; the truth is drawn first, and then told bit by bit as a caller would: rows in
disorder within a slack, some with holders, ends before the progress that reaches them, then progress of every input.
With plus and minus tuples an end is a row of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.operators import Operator, Output, Results, Waiting
from streamjoin.state import Batch, Ends
from tests.relational_oracle import Element, normal_form

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
SLACK = 3
Proof = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Truth:
    """An element as it really is, and whether its end is unknown when it comes."""

    payload: tuple
    ts: int
    te: int
    number: int
    unknown: bool


@dataclass
class Step:
    """What one micro-batch brings, by input."""

    rows: list[Batch | None]
    ends: list[Ends | None]
    progress: list[int]


def draw_truth(rng: random.Random, first: int, unknown: float = 0.5, ghosts: bool = True) -> list[Truth]:
    """Elements in order of arrival. Few payloads and times: ties are where the mistakes are."""
    drawn = []
    for number in range(first, first + rng.randint(8, 25)):
        ts = rng.randint(-3, 25)
        te = ts + rng.choice([0, 1, 1, 2, 5, 9]) if rng.random() < 0.85 else FOREVER
        te = te if ghosts else max(te, ts + 1)
        payload = (rng.choice([None, 0, 0, 1, 1, 2]), rng.choice([None, "", "a", "a"]))
        drawn.append(Truth(payload, ts, te, number, rng.random() < unknown))
    return sorted(drawn, key=lambda one: one.ts + rng.randint(0, SLACK))


def batch_of(some: list[Truth], signs: list[int] | None = None, proof: Proof | None = None) -> Batch:
    """Elements as rows; with signs as plus and minus tuples."""
    columns = [pa.array([one.payload[place] for one in some], kind) for place, kind in enumerate(SCHEMA.types)]
    payload = pa.table(columns, schema=SCHEMA)
    group, keys = np.zeros(len(some), np.int64), None if proof is None else proof(payload)
    if signs is not None:
        ts = np.array([one.ts if sign > 0 else one.te for one, sign in zip(some, signs, strict=True)], np.int64)
        holder = np.array([one.number for one in some], np.int64)
        return Batch(
            payload, ts, np.full(len(some), FOREVER), group, holder=holder, sign=np.array(signs, np.int8), proof=keys
        )
    unknown = np.array([one.unknown for one in some], np.bool_)
    te = np.where(unknown, FOREVER, np.array([one.te for one in some], np.int64))
    holder = np.where(unknown, np.array([one.number for one in some], np.int64), -1)
    ts = np.array([one.ts for one in some], np.int64)
    return Batch(payload, ts, te, group, holder=holder if unknown.any() else None, proof=keys)


def steps(
    rng: random.Random, inputs: list[list[Truth]], longest: int, *, negative: bool = False, proof: Proof | None = None
) -> Iterator[Step]:
    """A whole life, cut into pieces of at most `longest` rows and interleaved at random; the last step ends it."""
    position, largest = [0] * len(inputs), [NEVER] * len(inputs)
    progress = [NEVER] * len(inputs)
    open_ones: list[list[Truth]] = [[] for _ in inputs]
    over = False
    while not over:
        over = all(at >= len(rows) for at, rows in zip(position, inputs, strict=True))
        step = Step([None] * len(inputs), [None] * len(inputs), progress)
        for number, rows in enumerate(inputs):
            piece = rows[position[number] : position[number] + rng.randint(0, longest)]
            position[number] += len(piece)
            if piece:
                largest[number] = max(largest[number], *(one.ts for one in piece))
                open_ones[number] += [one for one in piece if (one.ts < one.te if negative else one.unknown)]
            if over:
                progress[number] = FOREVER
            elif largest[number] > NEVER and rng.random() < 0.7:
                progress[number] = max(progress[number], largest[number] - SLACK)
            told = [one for one in open_ones[number] if one.te <= progress[number]]
            if not negative:  # an end may be told before progress is there
                told += [one for one in open_ones[number] if one not in told and rng.random() < 0.1]
            told = [one for one in told if not negative or one.te < FOREVER]
            open_ones[number] = [one for one in open_ones[number] if one not in told]
            if negative:
                # What is over before it begins is never said; a minus follows its plus.
                piece = [one for one in piece if one.ts < one.te]
                signs = [1] * len(piece) + [-1] * len(told)
                step.rows[number] = batch_of(piece + told, signs, proof) if signs else None
            else:
                step.rows[number] = batch_of(piece, proof=proof) if piece else None
                if told:
                    holders, ends = [one.number for one in told], [one.te for one in told]
                    step.ends[number] = Ends(np.array(holders, np.int64), np.array(ends, np.int64))
        step.progress = list(progress)
        yield step


def run_step(operator: Operator, step: Step) -> list[Output]:
    """Rows, then ends, then progress, of every input."""
    out: list[Output] = []
    for number, rows in enumerate(step.rows):
        out += operator.on_batch(number, rows) if rows is not None else ()
    for number, ends in enumerate(step.ends):
        out += operator.on_ends(number, ends) if ends is not None else ()
    for number, time in enumerate(step.progress):
        out += operator.on_progress(number, time)
    return out


@dataclass
class Reader:
    """Whoever reads an operator's results: keeps those without an end until it is told."""

    waiting: Waiting = field(default_factory=Waiting)
    known: list[Results] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def read(self, outputs: Iterable[Output]) -> None:
        outputs = list(outputs)
        results = [output for output in outputs if isinstance(output, Results)]
        for one in sorted(results, key=lambda one: one.sign is not None and len(one) > 0 and int(one.sign[0]) < 0):
            self.starts += one.ts.tolist()
            if len(one):
                self.known += (self.waiting.take if one.sign is None else self.waiting.take_changes)(one)
        for output in outputs:
            if isinstance(output, Ends):
                self.known += self.waiting.settle(output)
            else:
                assert isinstance(output, Results), output

    def elements(self) -> list[Element]:
        """All of them, after the end."""
        return [element for results in (*self.known, *self.waiting.finish()) for element in elements_of(results)]


def elements_of(results: Results) -> Iterator[Element]:
    """Results as plain values."""
    lists = [column.to_pylist() for column in results.payload.columns]
    payloads = zip(*lists, strict=True) if lists else [()] * len(results)
    yield from zip(payloads, results.ts.tolist(), results.te.tolist(), strict=True)


def form(elements: Iterable[Element]) -> dict:
    """Elements in normal form, without those that are never valid."""
    return normal_form(element for element in elements if element[1] < element[2])


def stream_of(kind: str, elements: Iterable[Element]) -> Counter:
    """ISTREAM, DSTREAM or RSTREAM of a relation by brute force, as `(payload, instant)`."""
    living = [element for element in elements if element[1] < element[2]]
    instants = sorted({time for _, ts, te in living for time in (ts, te)} - {FOREVER})
    events: Counter = Counter()
    before: Counter = Counter()
    for now in instants:
        there = Counter(payload for payload, ts, te in living if ts <= now < te)
        if there != before:
            said = {"istream": there - before, "dstream": before - there, "rstream": there}[kind]
            events.update({(payload, now): times for payload, times in said.items()})
        before = there
    return events
