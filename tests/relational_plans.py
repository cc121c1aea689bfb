"""Random trees of relations, drawn from a seed; the simulator runs them, the oracle says what they mean.

Every leaf has an alias of its own, and every computed column a new number, so that names are unique in the whole tree.
A column's kind is `int`, `float`, `string`, or `rough`: a standard deviation, which two correct implementations may
round differently. Rough columns are carried along, but nothing compares or adds them up.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from streamjoin.algebra import (
    Aggregate,
    Band,
    Equals,
    Fixed,
    Now,
    Predicate,
    Range,
    Rows,
    Unbounded,
    Validity,
    Window,
)
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from tests.relational_oracle import Condition, Row

SOURCES = ("R", "S", "T")
KINDS = {"ts": "int", "k": "int", "v": "float", "s": "string"}  # of a stream's columns
LITERALS = {"int": ["0", "1", "1", "2"], "float": ["0.1", "0.2", "0.3"], "string": ["'a'", "'a'", "'b'"]}
COMPARISONS: dict[str, Callable] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPERATORS = {
    "Selection": 2, "Projection": 2, "Union": 2, "Distinct": 2, "Difference": 2, "Intersection": 2, "Join": 5,
    "Aggregation": 3,
}  # fmt: skip


@dataclass
class Plans:
    """Draws trees. `kinds` has the kind of every column drawn so far, `conditions` a function for every condition."""

    rng: random.Random
    sources: Sequence[str]
    kinds: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    drawn: int = 0

    def tree(self, operators: int, columns: int = 3) -> Relation:
        """A tree of so many operators; its leaves have at most so many columns."""
        if operators == 0:
            names = self.rng.sample(["k", "v", "s"], self.rng.randint(1, columns))
            return self.leaf(["ts", *names[1:]] if self.rng.random() < 0.15 else names)
        chosen = self.rng.choices(list(OPERATORS), list(OPERATORS.values()))[0]
        return getattr(self, f"_{chosen.lower()}")(operators - 1, columns)

    def leaf(self, names: list[str]) -> Stream:
        """A stream, by an alias of its own."""
        source, alias = self.rng.choice(self.sources), "abcdefghij"[self._number() % 10] + str(self.drawn)
        reads = []
        for place, name in enumerate(names):
            again = str(place) if name in names[:place] else ""
            reads.append((self._column(KINDS[name], f"{alias}.{name}{again}"), name))
        window = draw_window(self.rng)
        return Stream(source, tuple(reads), None if isinstance(window, Validity) else "ts", window)

    def like(self, kinds: list[str], operators: int) -> Relation:
        """A tree whose columns have these kinds, for the other side of a set operator."""
        ways = ["Selection", "Projection", "Projection", "Distinct", "Union", "Difference", "Intersection"]
        if "rough" in kinds:
            ways = ["Selection", "Projection", "Union"]
        way = self.rng.choice(ways) if operators > 0 else "leaf"
        if way == "Projection":
            child = self.tree(operators - 1)
            picked = [self.rng.choice(self._of_kind(child, kind) or [None]) for kind in kinds]
            if None not in picked:
                return self._renamed(child, picked)
            operators = 0
        if operators == 0:
            leaf = self.leaf([self._source_of(kind) for kind in kinds])
            self.kinds.update(zip(leaf.columns, kinds, strict=True))  # rough, where it stands beside rough ones
            return leaf
        first, second = self._split(operators - 1)
        if way in ("Selection", "Distinct"):
            child = self.like(kinds, operators - 1)
            return Distinct(child) if way == "Distinct" else Selection(child, self.condition(child.columns))
        left, right = self.like(kinds, first), self.like(kinds, second)
        if way == "Union":
            return Union((left, right))
        return {"Difference": Difference, "Intersection": Intersection}[way](left, right, self.rng.random() < 0.5)

    def condition(self, columns: Sequence[str], pairs: bool = False) -> str:
        """A condition over columns; with `pairs` mostly one that compares two of them."""
        exact = [name for name in columns if self.kinds[name] != "rough"]
        text, holds = self._comparison(exact, pairs) if exact else ("1 = 1", lambda row: True)
        way = self.rng.random()
        if way < 0.15:
            text, holds = f"NOT ({text})", negation(holds)
        elif way < 0.4 and exact:
            other, also = self._comparison(exact, False)
            word, combined = self.rng.choice([("AND", conjunction), ("OR", disjunction)])
            text, holds = f"({text}) {word} ({other})", combined(holds, also)
        self.conditions[text] = holds
        return text

    def _comparison(self, columns: list[str], pairs: bool) -> tuple[str, Condition]:
        one = self.rng.choice(columns)
        kind, way = self.kinds[one], self.rng.random()
        if not pairs and way < 0.1:
            return f"`{one}` IS NULL", lambda row: row[one] is None
        if not pairs and way < 0.2:
            return f"`{one}` IS NOT NULL", lambda row: row[one] is not None
        sign = self.rng.choice([*COMPARISONS, "<=", ">="])
        others = [name for name in columns if self.kinds[name] == kind and name != one]
        if others and (pairs or way < 0.4):
            two = self.rng.choice(others)
            return f"`{one}` {sign} `{two}`", comparison(sign, one, lambda row: row[two])
        text = self.rng.choice(LITERALS[kind])
        value = {"int": int, "float": float, "string": lambda quoted: quoted.strip("'")}[kind](text)
        return f"`{one}` {sign} {text}", comparison(sign, one, lambda row: value)

    def _selection(self, operators: int, columns: int) -> Relation:
        child = self.tree(operators, columns)
        return Selection(child, self.condition(child.columns))

    def _projection(self, operators: int, columns: int) -> Relation:
        child = self.tree(operators, columns)
        return self._renamed(child, self.rng.choices(child.columns, k=self.rng.randint(1, min(4, columns + 1))))

    def _union(self, operators: int, columns: int) -> Relation:
        left, right, kinds = self._alike(operators, columns)
        third = (self.like(kinds, 0),) if self.rng.random() < 0.3 else ()
        return Union((left, right, *third))

    def _distinct(self, operators: int, columns: int) -> Relation:
        return Distinct(self._exact(self.tree(operators, min(columns, 2))))

    def _difference(self, operators: int, columns: int) -> Relation:
        left, right, _ = self._alike(operators, min(columns, 2), exact=True)
        return Difference(left, right, self.rng.random() < 0.5)

    def _intersection(self, operators: int, columns: int) -> Relation:
        left, right, _ = self._alike(operators, min(columns, 2), exact=True)
        return Intersection(left, right, self.rng.random() < 0.5)

    def _join(self, operators: int, columns: int) -> Relation:
        first, second = self._split(operators)
        left, right = self.tree(first, columns), self.tree(second, columns)
        pairs = [
            (one, two)
            for one in left.columns
            for two in right.columns
            if self.kinds[one] == self.kinds[two] and self.kinds[one] != "rough"
        ]
        predicates: list[Predicate] = []
        alike = [(one, two) for one, two in pairs if one.split(".")[-1] == two.split(".")[-1]]  # these meet more often
        keys = alike if alike and self.rng.random() < 0.8 else pairs
        for one, two in self.rng.sample(keys, min(len(keys), self.rng.choice([0, 1, 1, 1, 1, 2]))):
            predicates.append(Equals(one, two))
        numbers = [(one, two) for one, two in pairs if self.kinds[one] != "string"]
        if numbers and self.rng.random() < (0.15 if predicates else 0.4):
            one, two = self.rng.choice(numbers)
            bounds = [0, 1, 2] if self.kinds[one] == "int" else [0.0, 0.1, 0.2, 0.5]
            closed = self.rng.choice(["both", "both", "left", "right", "neither"])
            predicates.append(Band(one, two, self.rng.choice(bounds), self.rng.choice(bounds), closed))
        theta = None
        if self.rng.random() < (0.15 if predicates else 0.6):
            used = {name for predicate in predicates for number in (0, 1) for name in predicate.columns(number)}
            both = left.columns + right.columns
            theta = self.condition([name for name in both if name not in used] or both, pairs=True)
        how = self.rng.choice(["inner"] * 8 + ["left", "right", "full", "semi", "anti"])
        return Join(left, right, tuple(predicates), theta, how)

    def _aggregation(self, operators: int, columns: int) -> Relation:
        child = self.tree(operators, max(columns, 2))
        exact = [name for name in child.columns if self.kinds[name] != "rough"]
        numbers = [name for name in exact if self.kinds[name] != "string"]
        keys = tuple(self.rng.sample(exact, min(len(exact), self.rng.choice([0, 1, 1, 2]))))
        aggregates = []
        for _ in range(self.rng.randint(1, 3)):
            function = self.rng.choice(["count", "sum", "avg", "min", "max", "stddev"]) if numbers else "count"
            column = self.rng.choice(numbers) if function != "count" else self.rng.choice([None, *child.columns])
            kind = {"count": "int", "avg": "float", "stddev": "rough"}.get(function) or self.kinds[column]
            aggregates.append(Aggregate(function, column, self._column(kind)))
        return Aggregation(child, keys, tuple(aggregates))

    def _alike(self, operators: int, columns: int, exact: bool = False) -> tuple[Relation, Relation, list[str]]:
        """Two children of a set operator, and the kinds of their columns. Often the same stream, so that they meet."""
        first, second = self._split(operators)
        left = self.tree(first, columns)
        left = self._exact(left) if exact else left
        kinds = [self.kinds[name] for name in left.columns]
        right = self.like(kinds, second)
        if isinstance(left, Stream) and isinstance(right, Stream) and self.rng.random() < 0.5:
            reads = zip(right.reads, left.reads, strict=True)
            right = replace(right, source=left.source, reads=tuple((one[0], two[1]) for one, two in reads))
        return left, right, kinds

    def _exact(self, child: Relation) -> Relation:
        """Without rough columns; where there is nothing else, another stream."""
        exact = [name for name in child.columns if self.kinds[name] != "rough"]
        if not exact:
            return self.leaf(["k"])
        return child if len(exact) == len(child.columns) else self._renamed(child, exact)

    def _renamed(self, child: Relation, names: list[str]) -> Projection:
        return Projection(child, tuple((self._column(self.kinds[name]), f"`{name}`") for name in names))

    def _of_kind(self, child: Relation, kind: str) -> list[str]:
        return [name for name in child.columns if self.kinds[name] == kind]

    def _source_of(self, kind: str) -> str:
        choices = {"int": ["k", "k", "k", "ts"], "float": ["v"], "rough": ["v"], "string": ["s"]}
        return self.rng.choice(choices[kind])

    def _split(self, operators: int) -> tuple[int, int]:
        first = self.rng.randint(0, operators)
        return first, operators - first

    def _column(self, kind: str, name: str | None = None) -> str:
        name = name or f"x{self._number()}"
        self.kinds[name] = kind
        return name

    def _number(self) -> int:
        self.drawn += 1
        return self.drawn


def comparison(sign: str, one: str, other: Callable[[Row], object]) -> Condition:
    """SQL's comparison: NULL where either side is."""
    compare = COMPARISONS[sign]
    return lambda row: None if row[one] is None or other(row) is None else compare(row[one], other(row))


def negation(one: Condition) -> Condition:
    return lambda row: None if one(row) is None else not one(row)


def conjunction(one: Condition, two: Condition) -> Condition:
    def holds(row: Row) -> bool | None:
        parts = (one(row), two(row))
        return False if False in parts else None if None in parts else True

    return holds


def disjunction(one: Condition, two: Condition) -> Condition:
    return negation(conjunction(negation(one), negation(two)))


def draw_window(rng: random.Random) -> Window:
    """A window of one of all sorts; those that never end are rare."""
    size = rng.choice([rng.randint(1, 8), rng.randint(5, 20)])
    sort = rng.choices(["range", "slide", "fixed", "now", "rows", "unbounded", "validity"], [8, 4, 4, 2, 7, 1, 2])[0]
    if sort == "rows":
        by = rng.choice([None, None, ("k",), ("s",), ("k", "s")])
        return Rows(rng.randint(1, 5), by=by, drain=rng.random() < 0.5)
    return {
        "range": Range(size),
        "slide": Range(size, slide=rng.randint(1, 5)),
        "fixed": Fixed(size),
        "now": Now(),
        "unbounded": Unbounded(),
        "validity": Validity("ts", "te"),
    }[sort]


def describe(relation: Relation, depth: int = 0) -> str:
    """The tree, one node per line, children indented."""
    name, shown = type(relation).__name__, relation.columns
    if isinstance(relation, Stream):
        details = f"{relation.source} {relation.window} reads {dict(relation.reads)} time={relation.time}"
    elif isinstance(relation, Selection):
        details = relation.condition
    elif isinstance(relation, Projection):
        details = ", ".join(f"{text} AS {name}" for name, text in relation.computed)
    elif isinstance(relation, Join):
        details = f"{relation.how} {relation.predicates} theta={relation.theta}"
    elif isinstance(relation, Aggregation):
        details = f"by {relation.keys}: {relation.aggregates}"
    else:
        details = "ALL" if getattr(relation, "every", False) else ""
    lines = [f"{'    ' * depth}{name} {details}  -> {', '.join(shown)}"]
    return "\n".join([*lines, *(describe(child, depth + 1) for child in relation.children)])
