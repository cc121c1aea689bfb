"""The contract of all operators, as a suite that is generated for every configuration (see tests/operators/subjects).

A *subject* is an operator's configuration and a way to draw rows for it; rows arrive with disorder within a slack, so
that nothing is late. A check draws rows and cuts from a seed and asserts one law:

    any cut of the input gives the same output          progress never goes back, and nothing leaves behind it
    a restart at any point changes nothing              a snapshot does not change after it was taken
    nothing is kept after the end                       a foreign snapshot is refused
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from streamjoin.algebra import NEVER
from streamjoin.errors import SnapshotError
from streamjoin.operators import Operator, Output, Results
from streamjoin.state import Batch, Snapshot

Arrivals = tuple[Batch, ...]  # of each input, in order of arrival
Step = tuple[list[tuple], int, int]  # what left, the progress promised afterwards, the rows kept


@dataclass(frozen=True)
class Subject:
    """An operator's configuration, and rows for its inputs in order of arrival."""

    name: str
    config: Any
    draw: Callable[[random.Random, int], Arrivals]
    ordered: bool = False
    slack: int = 3
    bounded: dict[int, tuple[int, ...]] = field(default_factory=dict)  # inputs whose progress is no more than others'

    def arrivals(self, rng: random.Random) -> Arrivals:
        """Rows of every input; each at most `slack` behind the largest time stamp before it."""
        return self.draw(rng, self.slack)

    def progress(self, number: int, largest: list[int]) -> int:
        """How far an input is when these are the largest time stamps that each has shown; NEVER when it has nothing."""
        least = min(largest[each] for each in (number, *self.bounded.get(number, ())))
        return least - self.slack if least > NEVER else NEVER


Calls = list[tuple[str, Any]]  # ("rows", (input, batch)), ("progress", (input, time)), ("end", None)


def calls(rng: random.Random, subject: Subject, arrivals: Arrivals, longest: int) -> Calls:
    """The calls of a whole life, the inputs cut into pieces of at most `longest` rows and interleaved at random."""
    made: Calls = []
    inputs = range(len(arrivals))
    positions, largest = [0 for _ in inputs], [NEVER for _ in inputs]
    while any(position < len(rows) for position, rows in zip(positions, arrivals, strict=True)):
        order = rng.sample(inputs, len(inputs))
        for number in order:
            take = rng.randint(0, longest)
            piece = arrivals[number].take(
                np.arange(positions[number], min(positions[number] + take, len(arrivals[number])))
            )
            positions[number] += take
            if len(piece):
                made.append(("rows", (number, piece)))
                largest[number] = max(largest[number], int(piece.ts.max()))
        for number in order:
            time = subject.progress(number, largest)
            if time > NEVER and rng.random() < 0.7:
                made.append(("progress", (number, time)))
    return [*made, ("end", None)]


def call(operator: Operator, kind: str, arguments: Any) -> list[Output]:
    """One call, exhausted."""
    if kind == "rows":
        return list(operator.on_batch(*arguments))
    if kind == "progress":
        return list(operator.on_progress(*arguments))
    return list(operator.on_end())


def seen(outputs: list[Output]) -> list[tuple]:
    """What left, row by row and in order, as plain values: (name, ts, te, everything else)."""
    rows: list[tuple] = []
    for output in outputs:
        if isinstance(output, Results):
            name, ts, te, columns = "result", output.ts, output.te, list(output.payload.columns)
        else:
            one = output.batch
            name, ts, te, columns = f"{output.name} {output.input}", one.ts, one.te, [*one.payload.columns, *one.values]
            columns += [] if one.origin is None else [one.origin]
        lists = [column.to_pylist() if hasattr(column, "to_pylist") else column.tolist() for column in columns]
        content = zip(*lists, strict=True)
        rows += [(name, *row) for row in zip(ts.tolist(), te.tolist(), content, strict=True)]
    return rows


def life(operator: Operator, made: Calls) -> Iterator[Step]:
    """The operator's answers to all calls."""
    for kind, arguments in made:
        yield seen(call(operator, kind, arguments)), operator.progress, operator.state_rows


def through_bytes(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it comes back from a store: a manifest of plain JSON, and bytes."""
    return Snapshot(
        json.loads(json.dumps(snapshot.manifest)), {name: bytes(blob) for name, blob in snapshot.blobs.items()}
    )


# The checks ----------------------------------------------------------------------------------------------------------


def any_cut_gives_the_same_output(subject: Subject, rng: random.Random) -> None:
    arrivals = subject.arrivals(rng)
    whole = [row for step, _, _ in life(subject.config.build(), calls(rng, subject, arrivals, 10**6)) for row in step]
    assert whole, "the example itself is wrong: nothing leaves"
    for longest in (1, 4):
        rows = [
            row for step, _, _ in life(subject.config.build(), calls(rng, subject, arrivals, longest)) for row in step
        ]
        assert Counter(rows) == Counter(whole), f"pieces of at most {longest}"
        if subject.ordered:
            results = [(ts, te) for name, ts, te, _ in rows if name == "result"]
            assert results == sorted(results), f"pieces of at most {longest}: not in order"


def progress_never_goes_back_and_nothing_leaves_behind_it(subject: Subject, rng: random.Random) -> None:
    promised = NEVER
    for rows, progress, _ in life(subject.config.build(), calls(rng, subject, subject.arrivals(rng), 4)):
        assert all(ts >= promised for _, ts, _, _ in rows), f"{rows} left after progress {promised} was promised"
        assert progress >= promised
        promised = progress


def a_restart_at_any_point_changes_nothing(subject: Subject, rng: random.Random) -> None:
    made = calls(rng, subject, subject.arrivals(rng), 4)
    steady, restarted = subject.config.build(), subject.config.build()
    for place, (kind, arguments) in enumerate(made):
        fresh = subject.config.build()
        fresh.restore(through_bytes(restarted.snapshot()))
        restarted = fresh
        assert (restarted.progress, restarted.state_rows) == (steady.progress, steady.state_rows), f"call {place}"
        assert seen(call(restarted, kind, arguments)) == seen(call(steady, kind, arguments)), f"call {place}"
        assert restarted.figures == steady.figures, f"call {place}"


def a_snapshot_does_not_change_after_it_was_taken(subject: Subject, rng: random.Random) -> None:
    made = calls(rng, subject, subject.arrivals(rng), 4)
    place = rng.randrange(len(made))
    operator = subject.config.build()
    list(life(operator, made[:place]))
    snapshot = operator.snapshot()
    before = copy.deepcopy(snapshot)
    after = list(life(operator, made[place:]))
    assert snapshot == before, f"call {place}"
    fresh = subject.config.build()
    fresh.restore(snapshot)
    assert list(life(fresh, made[place:])) == after, f"call {place}"


def nothing_is_kept_after_the_end(subject: Subject, rng: random.Random) -> None:
    made = calls(rng, subject, subject.arrivals(rng), 4)
    steps = list(life(subject.config.build(), made))
    assert max(rows for _, _, rows in steps) > 0, "the example itself is wrong: nothing is ever kept"
    assert steps[-1][2] == 0


def a_foreign_snapshot_is_refused(subject: Subject, rng: random.Random) -> None:
    operator = subject.config.build()
    list(life(operator, calls(rng, subject, subject.arrivals(rng), 4)[:-1]))
    snapshot = through_bytes(operator.snapshot())
    for name, other in (("fingerprint", "another"), ("format", 0)):
        foreign = Snapshot({**snapshot.manifest, name: other}, snapshot.blobs)
        with pytest.raises(SnapshotError):
            subject.config.build().restore(foreign)


CHECKS: tuple[Callable[[Subject, random.Random], None], ...] = (
    any_cut_gives_the_same_output,
    progress_never_goes_back_and_nothing_leaves_behind_it,
    a_restart_at_any_point_changes_nothing,
    a_snapshot_does_not_change_after_it_was_taken,
    nothing_is_kept_after_the_end,
    a_foreign_snapshot_is_refused,
)
