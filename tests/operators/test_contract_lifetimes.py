"""The contract of the operators over lifetimes: whatever the cut, the interleaving and the restarts, the same output.

Beside `tests/contract.py`, which is about joins of rows with known ends: here ends follow, results are compared in
normal form, and snapshots are taken between micro-batches, as the operators ask for. The store writes a blob once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Aggregate
from streamjoin.errors import SnapshotError
from streamjoin.operators import (
    Aggregating,
    Multiplicity,
    NegativeJoin,
    NegativeWindow,
    Operator,
    RowWindow,
    StreamOf,
    TemporalJoin,
)
from streamjoin.state import Batch, Matching
from tests import seeds
from tests.operators.elements import SCHEMA, Reader, Step, Truth, draw_truth, form, run_step, steps
from tests.state.storing import Store, moved

AGGREGATES = (Aggregate("count", None, "n"), Aggregate("sum", "k", "t"), Aggregate("max", "s", "m"))
HOWS = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True)
class Subject:
    """A configuration, and what its inputs are like."""

    name: str
    config: Any
    inputs: int = 1
    unknown: float = 0.5  # how many ends are
    negative: bool = False
    matched: bool = False  # whether rows need a code to match by
    proof: Any = None

    def build(self) -> Operator:
        return self.config.build()

    def truth(self, rng: random.Random) -> list[list[Truth]]:
        return [draw_truth(rng, 1000 * number, self.unknown) for number in range(self.inputs)]

    def steps(self, rng: random.Random, truth: list[list[Truth]], longest: int) -> list[Step]:
        made = list(steps(rng, truth, longest, negative=self.negative, proof=self.proof))
        for step in made if self.matched else ():
            step.rows = [None if rows is None else by_key(rows) for rows in step.rows]
        return made


def by_key(rows: Batch) -> Batch:
    """Rows as a join reads them: equal keys have equal codes, and a NULL key matches nothing."""
    keys = rows.payload["k"]
    arrays = {"group": keys.fill_null(0).to_numpy(), "matchable": keys.is_valid().to_numpy()}
    return Batch(rows.payload, rows.ts, rows.te, holder=rows.holder, sign=rows.sign, **arrays)


def first_column(payload: pa.Table) -> pa.Table:
    return payload.select(["k"])


BY = pa.schema([SCHEMA.field("k")])
SUBJECTS = (
    Subject("row window", RowWindow(3), unknown=0.0),
    Subject("row window, by, drained", RowWindow(2, BY, drain=True), unknown=0.0, proof=first_column),
    *(
        Subject(f"{operator}, {method}", Multiplicity(operator, SCHEMA, method=method), 1 + (operator != "distinct"),
                negative=method == "negative")
        for operator in ("distinct", "except", "intersect", "except all", "intersect all")
        for method in ("direct", "negative")
    ),
    *(
        Subject(f"aggregation by {keys}, {method}", Aggregating(keys, AGGREGATES, SCHEMA, method=method),
                negative=method == "negative")
        for keys in ((), ("k",)) for method in ("direct", "negative")
    ),
    *(Subject(kind, StreamOf(kind, SCHEMA)) for kind in ("istream", "dstream", "rstream")),
    Subject("negative window", NegativeWindow(SCHEMA), unknown=0.0),
    Subject("negative row window", NegativeWindow(SCHEMA, 3), unknown=0.0),
    Subject("negative row window, by, drained", NegativeWindow(SCHEMA, 2, BY, drain=True), unknown=0.0,
            proof=first_column),
    *(Subject(f"negative join, {how}", NegativeJoin(Matching(), (SCHEMA, SCHEMA), how), 2, negative=True, matched=True)
      for how in HOWS),
    *(Subject(f"join of unknown ends, {how}", TemporalJoin(Matching(), (SCHEMA, SCHEMA), how, "snapshot"), 2,
              matched=True)
      for how in HOWS),
    Subject("join of unknown ends, in order", TemporalJoin(Matching(), (SCHEMA, SCHEMA), emit="ordered"), 2,
            matched=True),
)  # fmt: skip


def result(subject: Subject, made: list[Step]) -> dict:
    operator, reader = subject.build(), Reader()
    for step in made:
        reader.read(run_step(operator, step))
    return form(reader.elements())


def any_cut_gives_the_same_output(subject: Subject, rng: random.Random) -> None:
    truth = subject.truth(rng)
    whole = result(subject, subject.steps(rng, truth, 10**6))
    assert whole, "the example itself is wrong: nothing leaves"
    for longest in (1, 4, 12):
        assert result(subject, subject.steps(rng, truth, longest)) == whole, f"pieces of at most {longest}"


def nothing_leaves_behind_progress_and_nothing_is_kept_after_the_end(subject: Subject, rng: random.Random) -> None:
    operator, promised, most = subject.build(), NEVER, 0
    for step in subject.steps(rng, subject.truth(rng), 4):
        reader = Reader()
        outputs = run_step(operator, step)
        reader.read(outputs)
        assert all(ts >= promised for ts in reader.starts), f"left behind {promised}"
        assert operator.progress >= promised
        promised, most = operator.progress, max(most, operator.state_rows)
        assert operator.footprint.nbytes >= 0
    assert most > 0, "the example itself is wrong: nothing is ever kept"
    assert promised == FOREVER
    assert operator.state_rows == 0


def a_restart_at_any_point_changes_nothing(subject: Subject, rng: random.Random) -> None:
    made = subject.steps(rng, subject.truth(rng), 4)
    steady, one = subject.build(), Reader()
    restarted, two, store = subject.build(), Reader(), Store()
    for place, step in enumerate(made):
        store.save(restarted.snapshot())
        if rng.random() < 0.5:
            restarted = moved(restarted, subject.build(), store, None)
            assert (restarted.progress, restarted.state_rows) == (steady.progress, steady.state_rows), f"step {place}"
        one.read(run_step(steady, step))
        two.read(run_step(restarted, step))
        assert restarted.figures == steady.figures, f"step {place}"
        assert sorted(one.starts) == sorted(two.starts), f"step {place}"
        assert one.waiting.footprint.rows == two.waiting.footprint.rows, f"step {place}"
    assert form(one.elements()) == form(two.elements())


def a_foreign_snapshot_is_refused(subject: Subject, rng: random.Random) -> None:
    operator = subject.build()
    for step in subject.steps(rng, subject.truth(rng), 4)[:-1]:
        run_step(operator, step)
    snapshot = operator.snapshot()
    for name, other in (("fingerprint", "another"), ("format", 0)):
        with pytest.raises(SnapshotError):
            subject.build().restore(type(snapshot)({**snapshot.manifest, name: other}, snapshot.blobs))


CHECKS = (
    any_cut_gives_the_same_output,
    nothing_leaves_behind_progress_and_nothing_is_kept_after_the_end,
    a_restart_at_any_point_changes_nothing,
    a_foreign_snapshot_is_refused,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("seed", seeds.parts(2))
def test_contract(check: Callable[[Subject, random.Random], None], subject: Subject, seed: int) -> None:
    check(subject, random.Random(seed))


def test_no_two_configurations_share_a_fingerprint() -> None:
    configs = [subject.config for subject in SUBJECTS]
    other = [RowWindow(3, producer=1), NegativeWindow(SCHEMA, producer=1)]
    prints = [config.fingerprint for config in [*configs, *other]]
    assert len(set(prints)) == len(prints)
    assert np.all([isinstance(one, str) for one in prints])
    assert RowWindow(3, bucket=1).fingerprint == RowWindow(3).fingerprint, "where it runs is no part of what it does"
