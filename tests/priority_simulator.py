"""Random trees with urgent rows, by a seed: what leaves is what leaves without priorities, and weakly ordered.

A case is a tree, rows with priorities, disorder within the slack, cuts into micro-batches, lanes in which urgent rows
come any number of micro-batches earlier, restarts, a number of buckets, and often a timer, which finds all inputs idle
before they end and so lets results go. It runs as a stream and as a batch with priorities, and as a batch without;
inner joins, of two inputs by validity or interval and of three, are also made by plain loops. Whatever leaves a bucket
with ordered emission is *weakly ordered*: once a result with priority 0 has left, none with a smaller `ts` follows,
urgent or not; and those with priority 0 are in order of (ts, te). Results have the priority that their members say,
urgent pairs, tuples and rows of semi joins leave at once, and none with priority 0 is ahead of progress
(`priority_members`).

    python -m tests.priority_simulator --runs 4000

With a budget the same cases run in `tests.spilled_simulator`.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from streamjoin.algebra import Aggregate, Band, Equals, NearestOf, Predicate, Range, Rows, Validity, Window, Within
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.lowering.priorities import PriorityExpression
from streamjoin.plan.multi_join import Between, MultiJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    IntervalJoin,
    Join,
    NearestJoin,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.runtime.outlet import ToUser
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage
from streamjoin.state import view
from tests import seeds
from tests.in_process import Troubled, plan_of
from tests.interpreter import InProcess
from tests.priority_members import Members

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "te", "k", "v", "p")])
VALIDITY = ("from", "to")
IDLE_AFTER = 10
Row = dict[str, Any]


@dataclass(frozen=True)
class PriorityCase:
    """A drawn case. `batches` has the rows of each stream, by micro-batch; `loops` is what plain loops make of it."""

    seed: int
    kind: str
    tree: Callable[[bool], Relation]  # with priorities, or without
    slacks: dict[str, int]
    batches: tuple[dict[str, list[Row]], ...]
    emit: str
    buckets: int
    new_priority: str | None
    trouble: float
    validity: bool = True
    when: Callable[[Row], int] | None = None  # the time of a result that has no validity
    loops: Callable[[dict[str, list[Row]]], Counter[tuple]] | None = None
    more: dict[str, Any] = field(default_factory=dict)  # how else results leave

    @property
    def timer(self) -> bool:
        """Whether time passes after the last rows."""
        return self.seed % 3 == 1

    def leaving(self, **options: Any) -> Leaving:
        names, idle = VALIDITY if self.validity else None, IDLE_AFTER if self.timer else None
        options |= self.more
        return Leaving(validity=names, emit=self.emit, buckets=self.buckets, idle_after=idle, **options)  # type: ignore[arg-type]

    def plan(self) -> PhysicalPlan:
        """How it runs."""
        names = list(self.slacks)
        new = None if self.new_priority is None else PriorityExpression(self.new_priority, len(names))
        lateness: Any = dict(self.slacks)
        return plan_of(self.tree(True), dict.fromkeys(names, SCHEMA), lateness, self.leaving(new_priority=new))

    @property
    def rows(self) -> dict[str, list[Row]]:
        """Of each stream, all rows."""
        return {name: [row for batch in self.batches for row in batch[name]] for name in self.slacks}


def draw(seed: int) -> PriorityCase:
    """The case of a seed."""
    rng = random.Random(seed)
    if seed % 7 == 5:  # beside the others, so that what earlier seeds draw stays what it was
        return _chosen(rng, seed, "chosen")
    if seed % 13 == 4:
        return _no_join(rng, seed, "no join")
    if seed % 19 == 7:
        return _row_windows(rng, seed, "row windows")
    kind = rng.choice(list(KINDS))
    return KINDS[kind](rng, seed, kind)


# -- trees -------------------------------------------------------------------------------------------------------------


def _stream(name: str, window: Window | None, *, prioritised: bool) -> Stream:
    reads = tuple((f"{name}.{column}", column) for column in ("id", "ts", "k", "v"))
    time = None if isinstance(window, Validity) else "ts"
    return Stream(name, reads, time, window, "`p`" if prioritised else None)


def _window(rng: random.Random) -> Window:
    return rng.choice([Range(rng.randint(1, 8)), Range(rng.randint(2, 8), slide=3), Validity("ts", "te")])


def _predicates(rng: random.Random, one: str, two: str) -> tuple[Predicate, ...]:
    equal, near = Equals(f"{one}.k", f"{two}.k"), Band(f"{one}.v", f"{two}.v", 1, rng.randint(0, 2))
    return rng.choice([(equal,), (equal,), (near,), (equal, near), ()])


def _case(
    rng: random.Random, seed: int, kind: str, tree: Callable[[bool], Relation], names: str, **more: Any
) -> PriorityCase:
    slacks = {name: rng.choice([0, 0, 2, 5]) for name in names}
    new, urgent = more.pop("new_priority", None), more.pop("urgent", names)
    return PriorityCase(
        seed, kind, tree, slacks, _arrivals(rng, slacks, urgent), rng.choice(["eager", "ordered", "ordered"]),
        rng.choice([1, 1, 2, 3]), new, rng.choice([0.0, 0.3]), **more,
    )  # fmt: skip


def _join(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    windows, predicates = (_window(rng), _window(rng)), _predicates(rng, "R", "S")
    how: Any = rng.choice(["inner", "inner", "left", "right", "full", "semi", "anti"])
    outer: Any = rng.choice(["row", "snapshot"])
    one_only = rng.random() < 0.3

    def tree(prioritised: bool) -> Relation:
        left = _stream("R", windows[0], prioritised=prioritised)
        right = _stream("S", windows[1], prioritised=prioritised and not one_only)
        return Join(left, right, predicates, None, how, outer)

    new = rng.choice([None, None, "p0", "least(p0, p1)", "p0 - p1"]) if not one_only else None
    between = [(0, 1, each) for each in predicates]
    loops = (lambda rows: _tuples(rows, windows, between)) if how == "inner" else None
    urgent = "R" if one_only else "RS"
    return _case(rng, seed, kind, tree, "RS", new_priority=new, loops=loops, urgent=urgent)


def _interval(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    lower = rng.randint(-4, 2)
    upper = lower + rng.randint(0, 6)
    predicates = (Equals("R.k", "S.k"),)
    how: Any = rng.choice(["inner", "left", "semi", "full"])

    def tree(prioritised: bool) -> Relation:
        left, right = (_stream(name, None, prioritised=prioritised) for name in "RS")
        return IntervalJoin(left, right, ("R.ts", "S.ts"), lower, upper, predicates=predicates, how=how)

    def when(row: Row) -> int:
        return max(row[name] for name in ("R.ts", "S.ts") if row.get(name) is not None)

    def loops(rows: dict[str, list[Row]]) -> Counter[tuple]:
        return Counter(
            (one["id"], two["id"])
            for one in rows["R"]
            for two in rows["S"]
            if lower <= two["ts"] - one["ts"] <= upper and one["k"] is not None and one["k"] == two["k"]
        )

    checked = loops if how == "inner" else None
    return _case(rng, seed, kind, tree, "RS", validity=False, when=when, loops=checked)


def _as_of(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    direction: Any = rng.choice(["backward", "forward", "nearest"])
    tolerance = rng.choice([None, 3, 6])

    def tree(prioritised: bool) -> Relation:
        left, right = (_stream(name, None, prioritised=prioritised) for name in "RS")
        return AsOfJoin(left, right, ("R.ts", "S.ts"), (("R.k", "S.k"),), direction, tolerance=tolerance)

    return _case(rng, seed, kind, tree, "RS", validity=False, when=lambda row: row["R.ts"])


def _chosen(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    """Joins that choose: the best matches, or the nearest rows."""
    best, how = rng.random() < 0.5, rng.choice(["left", "inner"])
    far, k = rng.randint(1, 5), rng.randint(1, 2)
    keys = (("R.k", "S.k"),)

    def tree(prioritised: bool) -> Relation:
        left, right = (_stream(name, None, prioritised=prioritised) for name in "RS")
        if best:
            return BestMatchJoin(left, right, (("R.ts", "S.ts", far), ("R.v", "S.v", 2)), keys, how)  # type: ignore[arg-type]
        near, times = Within(("R.v",), ("S.v",), 2.0), ("R.ts", "S.ts")
        return NearestJoin(left, right, near, NearestOf(k, far), times, keys, how)  # type: ignore[arg-type]

    return _case(rng, seed, kind, tree, "RS", validity=False, when=lambda row: row["R.ts"])


def _many(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    windows = [_window(rng) for _ in "RST"]
    near = Between(0, 1, Band("R.v", "S.v", 1, 1)), Between(1, 2, Band("S.v", "T.v", 0, 2))
    equal = Between(0, 1, Equals("R.k", "S.k")), Between(1, 2, Equals("S.k", "T.k"))
    between = equal if rng.random() < 0.7 else near

    def tree(prioritised: bool) -> Relation:
        parts = tuple(
            _stream(name, window, prioritised=prioritised) for name, window in zip("RST", windows, strict=True)
        )
        return MultiJoin(parts, between)

    def loops(rows: dict[str, list[Row]]) -> Counter[tuple]:
        return _tuples(rows, windows, [(each.one, each.two, each.predicate) for each in between])

    new = rng.choice([None, None, "least(p0, greatest(p1, p2))"])
    return _case(rng, seed, kind, tree, "RST", new_priority=new, loops=loops)


def _nested(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    """Joins of joins, unions, selections, row windows, and operators that follow snapshots."""
    windows = [_window(rng) for _ in "RST"]
    rows = rng.random() < 0.3
    inner_how: Any = rng.choice(["inner", "inner", "left"])
    top = rng.choice(["join", "join", "union", "distinct", "groups", "selection"])
    last = rng.choice("kv")  # by another column the last join has a stage of its own

    def tree(prioritised: bool) -> Relation:
        first: Window = Rows(2, by=("k",)) if rows else windows[0]
        r = _stream("R", first, prioritised=prioritised)
        s, t = (_stream(name, window, prioritised=prioritised) for name, window in zip("ST", windows[1:], strict=True))
        if top == "union":
            return Join(Union((s, t)), r, (Equals("S.k", "R.k"),))
        pairs = Join(r, s, (Equals("R.k", "S.k"),), None, inner_how)
        if top == "distinct":
            return Distinct(pairs)
        if top == "groups":
            return Aggregation(pairs, ("R.k",), (Aggregate("count", None, "n"), Aggregate("sum", "R.v", "sum")))
        if top == "selection":
            return Join(Selection(pairs, "`R.v` > 0"), t, (Equals(f"R.{last}", f"T.{last}"),))
        return Join(pairs, t, (Equals(f"R.{last}", f"T.{last}"),))

    return _case(rng, seed, kind, tree, "RST" if top not in ("distinct", "groups") else "RS")


def _no_join(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    """Set operators, a bare union, relations as streams, and a plain stream again (`sj.deprioritise`)."""
    windows = [_window(rng) for _ in "RS"]
    top = rng.choice(["except", "intersect", "union", "istream", "dstream", "rstream", "plain"])
    every = rng.random() < 0.5

    def tree(prioritised: bool) -> Relation:
        r, s = (_stream(name, window, prioritised=prioritised) for name, window in zip("RS", windows, strict=True))
        if top in ("except", "intersect"):  # of what may be equal
            parts = tuple(
                replace(each, reads=tuple((name[2:], name[2:]) for name, _ in each.reads[2:])) for each in (r, s)
            )
            return Difference(*parts, every) if top == "except" else Intersection(*parts, every)
        if top == "union":
            return Union((r, s))
        return r if top == "plain" else Join(r, s, (Equals("R.k", "S.k"),))

    if top.endswith("stream"):
        more, when = {"to_stream": top}, lambda row: row["_time"]
        return _case(rng, seed, kind, tree, "RS", validity=False, when=when, more=more)
    case = _case(rng, seed, kind, tree, "R" if top == "plain" else "RS")
    return replace(case, emit="ordered", buckets=1, more={"reordered": True}) if top == "plain" else case


def _row_windows(rng: random.Random, seed: int, kind: str) -> PriorityCase:
    """Joins over the newest rows, of all or of each group: which they are, no lane and no wave may change."""
    windows = [Rows(rng.randint(1, 3), by=rng.choice([None, ("k",)])) for _ in "RS"]
    windows = windows if rng.random() < 0.5 else [windows[0], Range(rng.randint(2, 8))]  # type: ignore[list-item]
    predicates, how = _predicates(rng, "R", "S"), rng.choice(["inner", "left", "full", "semi", "anti"])
    outer = rng.choice(["row", "snapshot"])

    def tree(prioritised: bool) -> Relation:
        left, right = (
            _stream(name, window, prioritised=prioritised) for name, window in zip("RS", windows, strict=True)
        )
        return Join(left, right, predicates, None, how, outer)  # type: ignore[arg-type]

    return _case(rng, seed, kind, tree, "RS")


KINDS: dict[str, Callable[[random.Random, int, str], PriorityCase]] = {
    "join": _join,
    "interval": _interval,
    "as of": _as_of,
    "many": _many,
    "nested": _nested,
}


# -- rows --------------------------------------------------------------------------------------------------------------


def _arrivals(rng: random.Random, slacks: dict[str, int], lanes: str) -> tuple[dict[str, list[Row]], ...]:
    """Micro-batches: rows of each stream behind its largest time stamp by at most the slack; urgent ones of streams
    with lanes come earlier.
    """
    steps, share = rng.randint(1, 6), rng.choice([0.1, 0.3, 0.9])
    batches: list[dict[str, list[Row]]] = [{name: [] for name in slacks} for _ in range(steps)]
    for number, (name, slack) in enumerate(slacks.items()):
        rows = [_row(rng, number * 100 + at, share) for at in range(rng.randint(0, 14))]
        rows.sort(key=lambda row: row["ts"])
        rows.sort(key=lambda row: row["ts"] + (rng.uniform(0, slack) if slack else 0))
        cuts = sorted(rng.randint(0, len(rows)) for _ in range(steps - 1))
        for at, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
            for row in rows[start:stop]:
                early = name in lanes and (row["p"] or 0) > 0 and rng.random() < 0.7
                batches[rng.randint(0, at) if early else at][name].append(row)
    return tuple(batches)


def _row(rng: random.Random, number: int, share: float) -> Row:
    ts = rng.randint(0, 25)
    urgent = rng.random() < share
    priority = rng.choice([1, 8, 10]) if urgent else rng.choice([0, 0, None, -3])
    return {
        "id": number, "ts": ts, "te": ts + rng.randint(1, 9), "k": rng.choice([0, 1, 1, None]),
        "v": rng.randint(-2, 3), "p": priority,
    }  # fmt: skip


def _end(row: Row, window: Window) -> int:
    if isinstance(window, Validity):
        return int(row["te"])
    assert isinstance(window, Range)
    size: Any = window.size
    return (row["ts"] if window.slide is None else row["ts"] // int(str(window.slide)) * int(str(window.slide))) + size


def _tuples(
    rows: dict[str, list[Row]], windows: Sequence[Window], predicates: Sequence[tuple[int, int, Predicate]]
) -> Counter[tuple]:
    """An inner join by plain loops, predicates between which of its inputs: the ids, and the validity."""
    found: Counter[tuple] = Counter()
    for members in itertools.product(*rows.values()):
        ts = max(row["ts"] for row in members)
        te = min(_end(row, window) for row, window in zip(members, windows, strict=True))
        if ts < te and all(_holds(each, members[one], members[two]) for one, two, each in predicates):
            found[(*(row["id"] for row in members), ts, te)] += 1
    return found


def _holds(predicate: Predicate, one: Row, two: Row) -> bool:
    if isinstance(predicate, Equals):
        return one["k"] is not None and one["k"] == two["k"]
    assert isinstance(predicate, Band)
    return bool(-predicate.below <= two["v"] - one["v"] <= predicate.above)


# -- running -----------------------------------------------------------------------------------------------------------


@dataclass
class Ordered(Troubled):
    """A plan at work whose last stage must send in weak order, bucket by bucket."""

    case: PriorityCase = None  # type: ignore[assignment]
    left: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))

    def _stage(self, number: int, bucket: int) -> RunningStage:
        running = super()._stage(number, bucket)
        if isinstance(running.config.outlet.way, ToUser) and "take" not in vars(running):
            for name in ("take", "tick", "end"):
                setattr(running, name, self._seen(getattr(running, name)))
        return running

    def _seen(self, method: Callable[..., Iterator[Packet]]) -> Callable[..., Iterator[Packet]]:
        def seen(*args: Any) -> Iterator[Packet]:
            for packet in method(*args):
                if packet.kind == "final":
                    for row in packet.table.to_pylist():
                        self.left[packet.bucket].append((*times_of(self.case, row), row["priority"]))
                yield packet

        return seen


def times_of(case: PriorityCase, row: Row) -> tuple[int, int]:
    """When a result is."""
    if case.validity:
        return row[VALIDITY[0]], row[VALIDITY[1]] if row[VALIDITY[1]] is not None else 1 << 60
    assert case.when is not None
    return case.when(row), 0


def check_weak_order(left: list[tuple[int, int, int]]) -> None:
    """Of results as they left: (ts, te, priority)."""
    high: int | None = None
    for ts, _, priority in left:
        assert high is None or ts >= high, f"a result at {ts} after one with priority 0 at {high}"
        if priority == 0:
            high = ts if high is None else max(high, ts)
    plain = [(ts, te) for ts, te, priority in left if priority == 0]
    assert plain == sorted(plain), "results with priority 0 are not in order"


def counted(tables: Any) -> Counter[tuple]:
    """Results but for their priority, NULL last."""
    rows: Counter[tuple] = Counter()
    for table in tables:
        names = [name for name in table.column_names if name != "priority"]
        rows.update(zip(*(table[name].to_pylist() for name in names), strict=True))
    return rows


def table(rows: list[Row]) -> pa.Table:
    """Rows in Arrow."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def run(case: PriorityCase) -> int:
    """Run a case; an AssertionError says what broke. How many results there were."""
    names = list(case.slacks)
    plain = plan_of(case.tree(False), dict.fromkeys(names, SCHEMA), leaving=case.leaving())
    expected = counted(InProcess(plain).batch({name: [table(rows)] for name, rows in case.rows.items()}))
    if case.loops is not None:
        ids: Counter[tuple] = Counter()
        for row, times in expected.items():
            # Every input gives four columns, its id first.
            ids[(*(row[4 * number] for number in range(len(names))), *row[4 * len(names) :])] += times
        assert ids == case.loops(case.rows), "the batch differs from plain loops"
    whole = plan_of(case.tree(True), dict.fromkeys(names, SCHEMA), leaving=case.leaving())
    batch = counted(InProcess(whole).batch({name: [table(rows)] for name, rows in case.rows.items()}))
    assert batch == expected, "over whole frames priorities change results"
    plan = case.plan()
    running = Ordered(plan, rng=random.Random(case.seed + 1), trouble=case.trouble, case=case)
    members = Members(
        case.tree(True), tuple(names), case.batches, case.new_priority, lambda row: times_of(case, row)[0],
        _partners(case) if len(plan.stages) == 1 else {}, never=bool(case.more),
    )  # fmt: skip
    left: list[pa.Table] = []
    for number, batch in enumerate(case.batches):
        leaving = running.rows({name: table(rows) for name, rows in batch.items() if rows})
        assert running.figure("late") == 0, "a row was taken for late"
        members.check(leaving, number)
        left += leaving
    # What a stage that was taken for idle lets go afterwards is late for the next one, and the end lets it go.
    if case.timer and len(plan.stages) == 1:
        # The first time it looks at the clock, the second it finds that nothing has come since.
        for clock in (0, IDLE_AFTER + 1):
            leaving = list(running.tick(clock))
            members.check(leaving, len(case.batches) - 1)
            urgent = [row for each in leaving for row in each.to_pylist() if row["priority"] > 0]
            late = [row for row in urgent if members.due(row) is not None]
            assert not late, f"urgent results have waited for a timer: {late[:2]}"
            left += leaving
    members.check(last := list(running.end()), len(case.batches))
    left += last
    got = counted(left)
    assert got == expected, f"missing {list((expected - got).items())[:4]}, extra {list((got - expected).items())[:4]}"
    if case.emit == "ordered":
        for results in running.left.values():
            check_weak_order(results)
    return sum(got.values())


def _partners(case: PriorityCase) -> dict[int, list[int]]:
    """Of a semi join by row, the partners of each row that has any, by id: an inner join has them."""
    tree: Any = case.tree(False)
    found: dict[int, list[int]] = defaultdict(list)
    if getattr(tree, "how", None) == "semi" and getattr(tree, "outer", "row") == "row":
        inner = plan_of(replace(tree, how="inner"), dict.fromkeys(case.slacks, SCHEMA), leaving=case.leaving())
        for part in InProcess(inner).batch({name: [table(rows)] for name, rows in case.rows.items()}):
            for row in part.to_pylist():
                found[row["R.id"]].append(row["S.id"])
    return dict(found)


def simulate(seed: int) -> int:
    """Draw and run one case; failures name the seed that replays them."""
    case = draw(seed)
    # Cases have hardly more rows than keys: in every second one as many as may meet urgent rows are few.
    few = 1.0 if seed % 2 else view.FEW
    try:
        with patch.object(view, "FEW", few):
            return run(case)
    except Exception as error:
        said = f"{case.kind}, {case.emit}, {case.buckets} buckets, new_priority={case.new_priority}, {case.tree(True)}"
        raise AssertionError(
            f"{said}\nreplay: python -m tests.priority_simulator --replay {seed}\n{error!r}"
        ) from error


def main() -> int:
    return seeds.command(seeds.parser(__doc__, runs=4000).parse_args(), simulate, "{} results".format)


if __name__ == "__main__":
    sys.exit(main())
