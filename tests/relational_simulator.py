"""The simulator of the relational algebra over lifetimes: random trees over random streams, cut, interleaved and
interrupted at random, must give the oracle's result.

    python -m tests.relational_simulator --runs 100000 --seed 1     as long as one likes
    python -m tests.relational_simulator --replay 4711              one run again, with what it did
    python -m tests.relational_simulator --shrink 4711              the smallest part of it that still fails

A run draws everything from its seed: the tree, the streams, disorder and slack, the micro-batches and the progress told
with them, where the state is saved and restored, the method, and the buckets. What runs is the physical plan, without a
JVM. Results are compared in normal form.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Rows, Unbounded, Validity
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.multi_join import joins_at_once
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Distinct, Join, Projection, Relation, Selection, Stream, Union
from streamjoin.runtime.lateness import Lateness
from tests import seeds
from tests.in_process import Told, Troubled, plan_of
from tests.relational_oracle import FOREVER, Conditions, Element, Row, evaluate, leaves, normal_form
from tests.relational_plans import SOURCES, Plans, describe

SCHEMA = pa.schema([
    ("ts", pa.int64()), ("te", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()),
])  # fmt: skip
TYPES = {"int": pa.int64(), "float": pa.float64(), "rough": pa.float64(), "string": pa.string()}
METHODS = ("direct", "negative")
BUCKETS = (1, 2, 5)
FAR = 10**9  # beyond every end that is not endless
Build = Callable[["Case"], Any]


@dataclass(frozen=True)
class Step:
    """One micro-batch: rows by stream, the progress told with them, and whether to go on elsewhere before it."""

    rows: dict[str, list[Row]]
    progress: dict[str, int]
    restored: bool


@dataclass(frozen=True)
class Case:
    """Everything that a run has drawn from its seed."""

    seed: int
    relation: Relation
    kinds: dict[str, str]
    conditions: Conditions
    method: str
    regime: str
    slack: dict[str, int]
    steps: tuple[Step, ...]
    buckets: int = 1

    @cached_property
    def arrived(self) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """The rows of each stream that come in time, and those that are late, in order of arrival.

        A row is late behind the progress that *earlier* micro-batches have told, never behind that of its own.
        """
        names = sorted({leaf.source for leaf in leaves(self.relation)})
        on_time: dict[str, list[Row]] = {name: [] for name in names}
        late: dict[str, list[Row]] = {name: [] for name in names}
        told = dict.fromkeys(names, -FOREVER)
        for step in self.steps:
            for name, rows in step.rows.items():
                for row in rows:
                    (late if row["ts"] < told[name] else on_time)[name].append(row)
            told |= step.progress
        return on_time, late

    @property
    def on_time(self) -> dict[str, list[Row]]:
        return self.arrived[0]

    @property
    def late(self) -> dict[str, list[Row]]:
        return self.arrived[1]

    @property
    def time_went_on(self) -> bool:
        """Whether progress went far beyond the last row."""
        return any(FAR in step.progress.values() for step in self.steps)

    @property
    def endless(self) -> bool:
        """Whether progress alone cannot end everything."""
        for leaf in leaves(self.relation):
            if isinstance(leaf.window, Unbounded | Rows):
                return True
            if isinstance(leaf.window, Validity) and any(row["te"] is None for row in self.on_time[leaf.source]):
                return True
        return False

    def in_time(self) -> Case:
        """The same case without the rows that are late."""
        told, steps = dict.fromkeys(self.on_time, -FOREVER), []
        for step in self.steps:
            rows = {name: [row for row in some if row["ts"] >= told[name]] for name, some in step.rows.items()}
            steps.append(replace(step, rows=rows))
            told |= step.progress
        return replace(self, steps=tuple(steps))

    def describe(self) -> str:
        lines = [
            f"seed {self.seed}: method {self.method}, {self.buckets} buckets, {self.regime}, slack {self.slack}",
            describe(self.relation),
            f"rows are {tuple(SCHEMA.names)}",
        ]
        for number, step in enumerate(self.steps):
            rows = {name: [tuple(row.values()) for row in some] for name, some in step.rows.items()}
            lines.append(f"{number}: {'restored, ' if step.restored else ''}{rows} progress {step.progress}")
        lines.append(f"late: { {name: [tuple(row.values()) for row in rows] for name, rows in self.late.items()} }")
        lines.append(f"replay: python -m tests.relational_simulator --replay {self.seed}")
        return "\n".join(lines)


def draw_case(seed: int) -> Case:
    """A case from a seed. Times, keys and values come from narrow ranges: ties are where the mistakes are."""
    rng = random.Random(seed)
    plans = Plans(rng, SOURCES[: rng.choice([1, 2, 2, 3])])
    relation = plans.tree(rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]))
    names = sorted({leaf.source for leaf in leaves(relation)})
    regime = rng.choice(["within slack", "within slack", "late"])
    slack = {name: rng.choice([0, rng.randint(1, 6)]) for name in names}
    first = rng.choice([0, 0, 0, -7])
    most = {0: 25, 1: 25, 2: 18}.get(_joins(relation), 10)  # joins of joins multiply
    streams = {}
    for name in names:
        size = rng.randint(0, 1) if rng.random() < 0.1 else rng.randint(most // 3, most)
        disorder = slack[name] + (8 if regime == "late" else 0)
        streams[name] = _draw_stream(rng, size, first, rng.choice([4, 12, 12, 30]), disorder)
    steps = tuple(_draw_steps(rng, streams, slack))
    if any(isinstance(leaf.window, Rows) and leaf.window.drain for leaf in leaves(relation)):
        # A window that is drained ends just after its last row: that must not be behind what progress has promised.
        steps = tuple(step for step in steps if FAR not in step.progress.values())
    method, buckets = rng.choice(METHODS), rng.choice(BUCKETS)
    return Case(seed, relation, plans.kinds, plans.conditions, method, regime, slack, steps, buckets)


def _joins(relation: Relation) -> int:
    return isinstance(relation, Join) + sum(_joins(child) for child in relation.children)


def _draw_stream(rng: random.Random, size: int, first: int, horizon: int, disorder: int) -> list[Row]:
    rows = []
    for _ in range(size):
        ts = first + rng.randint(0, horizon)
        rows.append({
            "ts": ts,
            "te": rng.choice([ts, ts + 1, ts + rng.randint(1, 9), ts + rng.randint(1, 9), ts + 20])
            if rng.random() < 0.95 else None,
            "k": rng.choice([None, 0, 0, 0, 1, 1, 1, 2, 3]),
            "v": rng.choice([None, 0.1, 0.1, 0.2, 0.3, 0.7, -0.1, 1e3 + 0.1]),
            "s": rng.choice([None, "", "a", "a", "b"]),
        })  # fmt: skip
    # In order of ts, then delayed: an element comes at most `disorder` behind the largest time stamp before it.
    return sorted(rows, key=lambda row: row["ts"] + rng.randint(0, disorder))


def _draw_steps(rng: random.Random, streams: dict[str, list[Row]], slack: dict[str, int]) -> Iterator[Step]:
    """Micro-batches: each takes a random piece of some streams; the order within a stream stays.

    Streams differ in pace: one may be over before another begins. Progress is not always told.
    """
    position = dict.fromkeys(streams, 0)
    pace = {name: rng.choice([0.3, 0.8, 1]) for name in streams}
    longest, restore_chance, news = rng.choice([2, 6, 12, 100]), rng.choice([0, 0, 0.3]), rng.choice([1, 1, 0.6])
    while any(position[name] < len(rows) for name, rows in streams.items()):
        batch, progress = {}, {}
        for name, rows in streams.items():
            if rng.random() < pace[name]:
                take = rng.randint(1, longest) if rng.random() < 0.9 else 0
                batch[name] = rows[position[name] : position[name] + take]
                position[name] += len(batch[name])
            if position[name] > 0 and rng.random() < news:
                progress[name] = max(row["ts"] for row in rows[: position[name]]) - slack[name]
        yield Step(batch, progress, rng.random() < restore_chance)
    if rng.random() < 0.3:
        yield Step({}, dict.fromkeys(streams, FAR), rng.random() < restore_chance)
    if rng.random() < restore_chance:
        yield Step({}, {}, True)


def plan_for(relation: Relation, lateness: Mapping[str, Lateness], leaving: Leaving, **options: Any) -> PhysicalPlan:
    """How a tree over these sources runs: what is simulated."""
    return plan_of(relation, dict.fromkeys(lateness, SCHEMA), lateness, leaving, **options)


class Played:
    """The system under test: the physical plan of a case, in as many buckets as were drawn."""

    def __init__(self, case: Case) -> None:
        # Every other case has its chains of inner joins as one operator.
        relation = joins_at_once(case.relation) if case.seed % 2 else case.relation
        leaving = Leaving(method=case.method, buckets=case.buckets)  # type: ignore[arg-type]
        plan = plan_for(relation, dict.fromkeys(case.on_time, Told()), leaving)
        self.running, self.late = Troubled(plan, rng=random.Random(case.seed)), 0

    def micro_batch(self, tables: dict[str, pa.Table], progress: dict[str, int]) -> list[pa.Table]:
        left = self.running.told(tables, progress)
        self.late += self.running.figure("late")
        return left

    def end(self) -> list[pa.Table]:
        return self.running.finished()

    def move(self) -> None:
        """Go on elsewhere."""
        self.running.move()

    @property
    def state_rows(self) -> int:
        return self.running.state_rows


def run_case(case: Case, build: Build = Played) -> None:
    """Run a case; an AssertionError says how it differs from the oracle."""
    assert case.regime == "late" or not any(case.late.values()), "the case itself is wrong: rows are late"
    if without_stage(case.relation, case.method):
        case = case.in_time()  # nobody could tell late rows from others
    played, tables = build(case), []
    for step in case.steps:
        if step.restored:
            played.move()
        batch = {name: pa.Table.from_pylist(rows, schema=SCHEMA) for name, rows in step.rows.items()}
        tables += played.micro_batch(batch, dict(step.progress))
    if case.time_went_on and not case.endless:
        assert played.state_rows == 0, f"{played.state_rows} rows of state are left after the last progress"
    tables += played.end()
    assert played.state_rows == 0, f"{played.state_rows} rows of state are left after the end"
    assert played.late == late_rows(case), f"{played.late} late rows instead of {late_rows(case)}"
    compare(case, tables)


def without_stage(relation: Relation, method: str = "direct") -> bool:
    """Whether a stream reaches the result without a stage."""
    if isinstance(relation, Stream):
        return method == "direct" and not isinstance(relation.window, Rows)
    stateless = isinstance(relation, Selection | Projection | Union)
    return stateless and any(without_stage(child, method) for child in relation.children)


def late_rows(case: Case) -> int:
    """How many late rows are counted: at each leaf those that come to a stage. That is, those that are valid at some
    instant and that the selections above the leaf, up to the first stage, leave; in a row window all, since they would
    count there.
    """
    found = 0
    for relation in (each for some in _read(case.relation, case.method) for each in some):
        (leaf,) = leaves(relation)
        late = case.late[leaf.source]
        counts = isinstance(leaf.window, Rows)
        found += sum(counts or bool(evaluate(relation, {leaf.source: [row]}, case.conditions)) for row in late)
    return found


def _read(relation: Relation, method: str) -> tuple[list[Relation], list[Relation]]:
    """The leaves, each under the selections and projections up to the first stage: those that have met none yet, and
    the others. Plus and minus tuples are made in a stage, directly above.
    """
    if isinstance(relation, Stream):
        return [relation], []
    below = [_read(child, method) for child in relation.children]
    rising, others = ([one for some in each for one in some] for each in zip(*below, strict=True))
    if isinstance(relation, Selection | Projection):
        return [replace(relation, child=each) for each in rising], others
    if isinstance(relation, Union) and method == "direct":
        return [Projection(each, _renamed(each, relation)) for each in rising], others
    return [], rising + others


def _renamed(part: Relation, union: Union) -> tuple[tuple[str, str], ...]:
    return tuple((new, f"`{old}`") for new, old in zip(union.columns, part.columns, strict=True))


def compare(case: Case, tables: list[pa.Table]) -> None:
    """Results against the oracle's, in normal form."""
    columns = case.relation.columns
    wanted = pa.schema([
        *((name, TYPES[case.kinds[name]]) for name in columns), ("valid_from", pa.int64()), ("valid_to", pa.int64()),
    ])  # fmt: skip
    got: list[Element] = []
    for table in tables:
        shown = pa.schema([(one.name, one.type) for one in table.schema])  # whether NULL is allowed is not compared
        assert shown == wanted, f"a result has the columns\n{shown}\nnot\n{wanted}"
        for *payload, ts, te in zip(*(column.to_pylist() for column in table.columns), strict=True):
            got.append((tuple(payload), ts, FOREVER if te is None else te))
    ghosts = [element for element in got if element[1] >= element[2]]
    assert not ghosts, f"results that are never valid: {ghosts[:5]}"
    expected = evaluate(case.relation, case.on_time, case.conditions)
    rough = [place for place, name in enumerate(columns) if case.kinds[name] == "rough"]
    got = snapped(got, expected, rough) if rough else got
    got_form, expected_form = normal_form(got), normal_form(expected)
    assert got_form == expected_form, _difference(_flat(got_form), _flat(expected_form))


def snapped(got: Iterable[Element], expected: Iterable[Element], places: list[int]) -> list[Element]:
    """The same elements, with the values at some places moved to the expected value that is as good as equal."""
    known = {payload[place] for payload, _, _ in expected for place in places} - {None}

    def nearest(value: float | None) -> float | None:
        if value is None or value in known or not known:
            return value
        near = min(known, key=lambda other: abs(other - value))
        return near if math.isclose(near, value, rel_tol=1e-12, abs_tol=1e-12) else value

    return [
        (tuple(nearest(value) if place in places else value for place, value in enumerate(payload)), ts, te)
        for payload, ts, te in got
    ]


def _flat(form: dict[tuple, list[list[tuple[int, int]]]]) -> Counter:
    """`(payload, k, ts, te)` for every maximal interval on which the multiplicity is at least k."""
    return Counter(
        (payload, k, *interval)
        for payload, levels in form.items()
        for k, level in enumerate(levels, 1)
        for interval in level
    )


def _difference(got: Counter, expected: Counter) -> str:
    missing, extra = expected - got, got - expected
    return f"missing {list(missing)[:5]}, extra {list(extra)[:5]}"


def simulate(seed: int, build: Build = Played, methods: Sequence[str] = ()) -> Case:
    """Draw and run one case, by the method that was drawn or by these; failures show it, with the seed that replays it.

    Whatever the method, the result is compared with the oracle in normal form: so the methods agree with each other.
    """
    drawn = draw_case(seed)
    for method in methods or (drawn.method,):
        case = replace(drawn, method=method)
        try:
            run_case(case, build)
        except Exception as error:
            raise AssertionError(f"{case.describe()}\n{error!r}") from error
    return drawn


def shrunk(case: Case, build: Build = Played) -> Case:
    """A failing case without all that it does not need to fail in the same way: operators, micro-batches, rows."""
    failure = _failure(case, build)
    smaller = next((one for one in _smaller(case) if failure and _failure(one, build) == failure), None)
    return case if smaller is None else shrunk(smaller, build)


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with one thing less; those with a smaller tree first."""
    for child in case.relation.children:
        yield _over(case, child)
    for tree in _simpler(case.relation):
        yield _over(case, tree)
    for number, step in enumerate(case.steps):
        before, after = case.steps[:number], case.steps[number + 1 :]
        yield replace(case, steps=before + after)
        if step.restored:
            yield replace(case, steps=(*before, replace(step, restored=False), *after))
        for name, rows in step.rows.items():
            for place in range(len(rows)):
                fewer = {**step.rows, name: rows[:place] + rows[place + 1 :]}
                yield replace(case, steps=(*before, replace(step, rows=fewer), *after))


def _simpler(relation: Relation) -> Iterator[Relation]:
    """The same tree without one selection or DISTINCT, which change no columns."""
    if isinstance(relation, Selection | Distinct):
        yield relation.child
    for place in fields(relation):
        held = getattr(relation, place.name)
        if isinstance(held, Relation):
            yield from (replace(relation, **{place.name: simpler}) for simpler in _simpler(held))


def _over(case: Case, relation: Relation) -> Case:
    """The same streams under another tree that needs no more of them."""
    names = {leaf.source for leaf in leaves(relation)}
    steps = [
        Step(
            {name: rows for name, rows in step.rows.items() if name in names},
            {name: ticks for name, ticks in step.progress.items() if name in names},
            step.restored,
        )
        for step in case.steps
    ]
    return replace(case, relation=relation, steps=tuple(steps))


def _failure(case: Case, build: Build) -> tuple[type, str] | None:
    """How a case fails: the error, and how its message begins."""
    try:
        run_case(case, build)
    except Exception as error:
        return type(error), str(error)[:8]
    return None


def main() -> int:
    parser = seeds.parser(__doc__)
    parser.add_argument("--both", action="store_true", help="every case by the direct and by the negative method")
    parser.add_argument("--shrink", type=int)
    options = parser.parse_args()
    if options.shrink is not None:
        case = shrunk(draw_case(options.shrink))
        print(case.describe())
        run_case(case)
        return 0
    return seeds.command(options, partial(simulate, methods=METHODS if options.both else ()), Case.describe)


if __name__ == "__main__":
    sys.exit(main())
