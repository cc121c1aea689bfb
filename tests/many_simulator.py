"""The simulator of joins of many inputs: any cut, interleaving, restart and spreading gives what the oracle gives.

    python -m tests.many_simulator --runs 2000             as long as one likes
    python -m tests.many_simulator --replay 4711           one run again, with what it did

As `tests.simulator` for two: the tree of the call is lowered, and its plan runs stage by stage and bucket by bucket.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamjoin.algebra import (
    FOREVER,
    NEVER,
    Band,
    Equals,
    Overlaps,
    Predicate,
    Rows,
    Similar,
    Validity,
    Window,
    Within,
)
from streamjoin.errors import CallError
from streamjoin.plan.lowering import Leaving, lower
from streamjoin.plan.multi_join import Between, MultiJoin, for_all
from streamjoin.plan.naming import name_columns
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Stream
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.naming import LATE_FLAG
from tests import oracle, seeds
from tests.in_process import Troubled, source
from tests.interpreter import PlainTyping
from tests.simulator import (
    ALIKE,
    BOXES,
    NAMES,
    SCHEMA,
    _band,
    _distance,
    _draw_arrivals,
    _draw_box,
    _draw_window,
    _draw_words,
    _end_of,
    _known,
    _near_text,
    _overlap_of,
    _same,
    _similar,
    table,
)

# For boxes and similarities, which not all cases have.
WIDE = pa.schema([*BOXES, *(each for each in ALIKE if each.name not in SCHEMA.names)])

Between2 = tuple[int, int, Predicate, oracle.Match]  # two inputs, what holds between them, and what that means


@dataclass
class Case:
    """Everything that a run has drawn from its seed."""

    seed: int
    between: list[Between2]
    windows: list[Window]
    slack: list[int]
    arrivals: list[list[dict]]
    emit: str
    hold: str
    late: list[str]
    buckets: int
    cell: float | None
    trouble: float
    regime: str
    kind: str
    theta: bool = False
    schema: pa.Schema = SCHEMA

    @property
    def inputs(self) -> int:
        return len(self.arrivals)

    def relation(self) -> MultiJoin:
        parts = []
        for number, window in enumerate(self.windows):
            reads = tuple((f"{number}.{name}", name) for name in self.schema.names)
            parts.append(Stream(str(number), reads, None if isinstance(window, Validity) else "ts", window))
        between = tuple(Between(one, two, _over(each, one, two)) for one, two, each, _ in self.between)
        theta = self.condition if self.theta else None
        return MultiJoin(tuple(parts), between, theta, True, self.hold, self.cell)  # type: ignore[arg-type]

    @property
    def condition(self) -> str:
        """A further condition over columns of three inputs."""
        last = self.inputs - 1
        return f"`0.n` < `1.n` OR (`1.z` + `{last}.z`) % 2 = 1"

    def fits(self, every: list[dict]) -> bool:
        """What the condition means."""
        less = _known(every[0]["n"], every[1]["n"]) and every[0]["n"] < every[1]["n"]
        return not self.theta or less or (every[1]["z"] + every[-1]["z"]) % 2 == 1

    def plan(self) -> PhysicalPlan:
        """How it runs; without its cell where no grid fits what it joins by, which is refused."""
        if self.cell is not None:
            try:
                return self._lowered()
            except CallError as refusal:
                if "cell is the size" not in str(refusal) and "cell says where" not in str(refusal):
                    raise
                self.cell = None
        return self._lowered()

    def _lowered(self) -> PhysicalPlan:
        sources = {
            str(number): source(
                str(number), self.schema, Slack(self.slack[number]), label=f"input {number}", late=self.late[number],
                prefix=f"{number}.",
            )
            for number in range(self.inputs)
        }  # fmt: skip
        kinds = {each.name: each.type for each in self.schema}
        columns = name_columns(
            [self.schema.names] * self.inputs, [kinds] * self.inputs, by=(), how="inner",
            suffix=suffixes(self.inputs), validity=("valid_from", "valid_to"),
            flags=(LATE_FLAG,) * ("output" in self.late),
        )  # fmt: skip
        leaving = Leaving(columns, emit=self.emit, flagged=True, buckets=self.buckets)  # type: ignore[arg-type]
        return lower(self.relation(), sources, PlainTyping(), leaving)

    def describe(self) -> str:
        what = [(one, two, predicate) for one, two, predicate, _ in self.between]
        return (
            f"seed {self.seed}: {self.inputs} inputs, {self.kind}, {self.regime}, emit={self.emit} hold={self.hold} "
            f"late={self.late} buckets={self.buckets} cell={self.cell} windows={self.windows} "
            f"rows={[len(rows) for rows in self.arrivals]} between={what}"
        )


def suffixes(inputs: int) -> list[str]:
    """What is put behind the names of columns of all frames but the first, as the functions do it."""
    return ["_right"] if inputs == 2 else [f"_{number}" for number in range(2, inputs + 1)]


def _over(predicate: Any, one: int, two: int) -> Predicate:
    """A predicate over the columns of the tree."""
    sides: dict[str, Any] = {}
    for number, side in ((one, "left"), (two, "right")):
        columns = getattr(predicate, side)
        named = tuple(f"{number}.{each}" for each in (columns if isinstance(columns, tuple) else (columns,)))
        sides[side] = named if isinstance(columns, tuple) else named[0]
    return type(predicate)(**{**vars(predicate), **sides})


def _draw_predicate(rng: random.Random, kind: str) -> tuple[Predicate, oracle.Match]:
    below, above = rng.choice([0, 0.5, 1, 2]), rng.choice([0.5, 1, 2])
    closed = rng.choice(["both", "left", "right", "neither"])
    if kind == "band":
        return Band("v", "v", below, above, closed), _band("v", below, above, closed)  # type: ignore[arg-type]
    if kind == "band_int":
        return Band("n", "n", int(below), int(above) + 1, closed), _band("n", int(below), int(above) + 1, closed)  # type: ignore[arg-type]
    if kind == "overlap":
        return Overlaps(("lo", "hi"), ("lo", "hi")), _overlap_of("lo", "hi")
    if kind == "overlap2":
        return Overlaps(("lo2", "hi2"), ("lo2", "hi2")), _overlap_of("lo2", "hi2")
    if kind == "similar":
        measure, threshold = rng.choice([("jaccard", 0.5), ("jaccard", 0.75), ("cosine", 0.8), ("overlap", 2)])
        return Similar("words", "words", measure, threshold), _similar(measure, threshold)  # type: ignore[arg-type]
    if kind == "edit":
        changes = rng.choice([0, 1, 2])
        return Similar("name", "name", "edit", changes), _near_text(changes)
    if kind == "within":
        metric, axes = rng.choice(["euclidean", "manhattan", "chebyshev"]), rng.choice([("x",), ("x", "y")])
        radius = rng.choice([0.5, 1.0, 1.5])
        return Within(axes, axes, radius, metric), _distance(metric, axes, radius)  # type: ignore[arg-type]
    if kind == "earth":
        radius = rng.choice([60_000.0, 157_500.0, 3e7])
        return Within(("x", "y"), ("x", "y"), radius, "haversine"), _distance("haversine", ("x", "y"), radius)
    key = {"k": "k", "s": "s", "z": "z"}[kind]
    return Equals(key, key), _same(key)


KINDS = (
    "time", "k", "s", "band", "band_int", "overlap", "box", "within", "earth", "similar", "edit",
    "pairwise", "pairwise", "pairwise", "pairwise",
)  # fmt: skip
PAIRWISE = ("k", "s", "z", "band", "band_int", "overlap", "overlap2", "within", "earth", "similar", "edit")


def draw_case(seed: int) -> Case:
    """A case from a seed. Values come from narrow ranges, to force ties, empties and shared bounds."""
    rng = random.Random(seed)
    inputs, kind = rng.choice([3, 3, 3, 4, 4, 5]), rng.choice(KINDS)
    between: list[Between2] = []
    if kind == "pairwise":  # a tree, or a path, or a ring; some of them without an edge
        for number in range(1, inputs):
            other = rng.randrange(number)
            ends = (other, number) if rng.random() < 0.5 else (number, other)
            if rng.random() < 0.9:
                between.append((*ends, *_draw_predicate(rng, rng.choice(PAIRWISE))))
        for _ in range(rng.choice([0, 0, 1, 2])):
            between.append((*rng.sample(range(inputs), 2), *_draw_predicate(rng, rng.choice(PAIRWISE))))
    elif kind != "time":
        kinds = ["overlap", "overlap2"] if kind == "box" else [kind]
        kinds += [] if rng.random() < 0.8 else [rng.choice(["k", "overlap", "band"])]
        for predicate in [_draw_predicate(rng, each) for each in kinds]:
            between += [(*ends, *predicate) for ends in for_all(inputs)]
    regime = rng.choice(["within slack", "within slack", "late"])
    emit = rng.choice(["eager", "ordered"])
    late = [rng.choice(["drop", "output"]) for _ in range(inputs)]
    windows = [_draw_window(rng) for _ in range(inputs)]
    if regime == "late" and rng.random() < 0.3:
        emit, late = "eager", ["join"] * inputs
    elif regime == "within slack" and rng.random() < 0.4:
        for number in rng.sample(range(inputs), rng.choice([1, 1, 2, inputs])):
            windows[number] = Rows(rng.randint(1, 4), rng.choice([None, None, ("k",), ("k", "s")]))
    most = {3: 24, 4: 14, 5: 10}[inputs]
    dense = not between or all(isinstance(window, Rows) for window in windows)
    slack = [rng.randint(0, 6) for _ in range(inputs)]
    compared = {name for _, _, predicate, _ in between for name in predicate.columns(0)}
    schema = WIDE if compared - set(SCHEMA.names) else SCHEMA
    arrivals = []
    for number in range(inputs):
        size = rng.choice([1, *[rng.randint(2, most // 2 if dense else most)] * 5]) if rng.random() < 0.95 else 0
        disorder = slack[number] + (8 if regime == "late" else 0)
        rows = _draw_arrivals(rng, size, rng.choice([5, 20]), disorder, windows[number])
        if isinstance(windows[number], Rows):  # who came first at one time is another question
            rows = list({row["ts"]: row for row in rows}.values())
        for row in rows:
            row["id"] = rng.randint(0, 200)
            if schema is WIDE:
                row |= {"words": _draw_words(rng), "name": rng.choice(NAMES), **_draw_box(rng)}
            row["te"] = FOREVER if isinstance(windows[number], Rows) else _end_of(row, 0, windows[number], None)
        arrivals.append(rows)
    return Case(
        seed, between, windows, slack, arrivals, emit, _held(rng.choice(["outputs", "inputs", "auto"]), windows), late,
        rng.choice([1, 1, 2, 3, 4, 5, 6]), rng.choice([None, 1.0, 3.0, 20.0]), rng.choice([0, 0.3]), regime, kind,
        rng.random() < 0.15, schema,
    )  # fmt: skip


def _held(hold: str, windows: list[Window]) -> str:
    """What waits for order: rows whose ends become known later are joined at once, or the call is refused."""
    return "outputs" if hold == "inputs" and any(isinstance(window, Rows) for window in windows) else hold


class Model:
    """The law of lateness for many inputs, row by row and slowly; `joined`: what there is when late rows join too."""

    def __init__(self, case: Case) -> None:
        self.case = case
        everyone = range(case.inputs)
        self.progress = [NEVER for _ in everyone]
        self.largest: list[int] = [NEVER for _ in everyone]
        self.kept: list[list[dict]] = [[] for _ in everyone]
        self.late: list[list[dict]] = [[] for _ in everyone]
        self.on_time: list[list[dict]] = [[] for _ in everyone]
        self.joined: list[tuple] = []

    def micro_batch(self, batches: dict[int, list[dict]]) -> None:
        joins = "join" in self.case.late
        for number, rows in sorted(batches.items()):
            for row in rows:
                if row["ts"] >= row["te"]:
                    continue
                late = row["ts"] < self.progress[number]
                (self.late if late else self.on_time)[number].append(row)
                if joins:
                    sides = [[row] if each == number else self.kept[each] for each in range(self.case.inputs)]
                    self.joined += join_all(sides, self.case)
                    self.kept[number].append(row)
        for number, rows in batches.items():
            self.largest[number] = max([self.largest[number], *(row["ts"] for row in rows)])
            if self.largest[number] > NEVER:
                reached = self.largest[number] - self.case.slack[number]
                self.progress[number] = max(self.progress[number], reached)
        for number in range(self.case.inputs):
            others = min(time for each, time in enumerate(self.progress) if each != number)
            self.kept[number] = [row for row in self.kept[number] if row["te"] > others]

    def expected(self) -> list[tuple]:
        """All results: ids of the members, and the validity."""
        if "join" in self.case.late:
            return self.joined
        sides = []
        for number, window in enumerate(self.case.windows):
            rows = self.on_time[number]
            sides.append(in_row_window(rows, window) if isinstance(window, Rows) else rows)
        return join_all(sides, self.case)


def in_row_window(rows: list[dict], window: Rows) -> list[dict]:
    """Rows, each until so many newer ones of its group have come."""
    groups: dict[tuple, list[dict]] = {}
    for row in sorted(rows, key=lambda row: row["ts"]):
        groups.setdefault(tuple(row[name] for name in window.by or ()), []).append(row)  # type: ignore[attr-defined]
    found = []
    for ordered in groups.values():
        ends = [each["ts"] for each in ordered[window.size :]] + [FOREVER] * window.size
        found += [{**row, "te": te} for row, te in zip(ordered, ends, strict=False) if row["ts"] < te]
    return found


def join_all(sides: list[list[dict]], case: Case) -> list[tuple]:
    """Every tuple of one row of each side that matches and is valid at some instant, by brute force."""
    grown: list[list[dict]] = [[]]
    for number, rows in enumerate(sides):
        tests = [each for each in case.between if max(each[0], each[1]) == number]
        larger = []
        for members in grown:
            for row in rows:
                every = [*members, row]
                if max(each["ts"] for each in every) < min(each["te"] for each in every) and all(
                    match(every[one], every[two]) for one, two, _, match in tests
                ):
                    larger.append(every)
        grown = larger
    return [
        (*(row["id"] for row in every), max(row["ts"] for row in every), min(row["te"] for row in every))
        for every in grown
        if case.fits(every)
    ]


def cut(rng: random.Random, arrivals: list[list[dict]]) -> Iterator[dict[int, list[dict]]]:
    """Micro-batches: each takes a random piece of any input, or of none; the order within an input stays."""
    positions = [0 for _ in arrivals]
    longest = rng.choice([1, 3, 10, 100])
    while any(position < len(rows) for position, rows in zip(positions, arrivals, strict=True)):
        batch = {}
        for number, rows in enumerate(arrivals):
            if rng.random() < 0.7:
                take = rng.randint(0, longest)
                batch[number] = rows[positions[number] : positions[number] + take]
                positions[number] += take
        yield batch


@dataclass
class Left:
    """The rows that have left a plan, as the oracle counts them."""

    case: Case
    counted: Counter[tuple] = field(default_factory=Counter)
    last: tuple[int, int] = (NEVER, NEVER)

    def __post_init__(self) -> None:
        self.late: list[list[int]] = [[] for _ in range(self.case.inputs)]

    def add(self, tables: Iterable[pa.Table]) -> None:
        """More rows leave."""
        names = ["id", *(f"id{suffix}" for suffix in suffixes(self.case.inputs))]
        for row in (row for part in tables for row in part.to_pylist()):
            ids = [row[name] for name in names]
            if row.get(LATE_FLAG):
                (number,) = [number for number, each in enumerate(ids) if each is not None]
                self.late[number].append(ids[number])
                continue
            end = row["valid_to"]
            when = row["valid_from"], FOREVER if end is None else end
            if self.case.emit == "ordered" and self.case.buckets == 1:
                assert when >= self.last, "not in order"
                self.last = when
            self.counted[*ids, *when] += 1


def run_case(case: Case) -> Troubled:
    """Run a case; an AssertionError says how it differs from the oracle. What ran it knows how it went."""
    rng = random.Random(case.seed + 1)
    running, left, model, late = Troubled(case.plan(), rng=rng, trouble=case.trouble), Left(case), Model(case), 0
    for batch in cut(rng, case.arrivals):
        model.micro_batch(batch)
        left.add(running.rows({str(number): table(some, case.schema) for number, some in batch.items()}))
        late += running.figure("late")
    left.add(running.end())
    expected = Counter(model.expected())
    wrong = {"missing": expected - left.counted, "extra": left.counted - expected}
    assert not any(wrong.values()), {name: list(some.items())[:5] for name, some in wrong.items()}
    for number in range(case.inputs):
        wanted = [row["id"] for row in model.late[number]] if case.late[number] == "output" else []
        assert Counter(left.late[number]) == Counter(wanted), f"late rows of input {number} differ"
    assert late == sum(map(len, model.late)), "late rows are miscounted"
    if case.regime == "within slack":
        assert not any(model.late), "the case itself is wrong: rows are late"
    return running


def simulate(seed: int) -> Case:
    """Draw and run one case; failures name the seed that replays them."""
    case = draw_case(seed)
    try:
        run_case(case)
    except Exception as error:
        raise AssertionError(
            f"{case.describe()}\nreplay: python -m tests.many_simulator --replay {seed}\n{error!r}"
        ) from error
    return case


def main() -> int:
    return seeds.command(seeds.parser(__doc__).parse_args(), simulate, Case.describe)


if __name__ == "__main__":
    sys.exit(main())
