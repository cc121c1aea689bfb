"""The planner: from what a join means to how it runs. One decision per function, each with its reason.

order          which predicate sorts the runs, what is tested afterwards
partitioning   which rows meet where, and whether a second stage must give verdicts
hold           whether ordered emission holds inputs or outputs
naming         the result's columns
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, AsOf, Band, BestOf, NearestOf, Overlaps, Predicate, Within
from streamjoin.algebra.interval import Mask
from streamjoin.algebra.policy import Hold
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import MOST_GRID_AXES
from streamjoin.operators import AsofJoin, BestMatchJoin, NearestJoin, TemporalJoin, Verdict
from streamjoin.operators.temporal_join import TRACKED
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.expression import Expression
from streamjoin.plan.naming import INVALID_FLAG, LATE_FLAG, OutputNaming, name_columns
from streamjoin.plan.nodes import JoinNode
from streamjoin.plan.partition import (
    HomePartitioning,
    MatrixPartitioning,
    Partitioning,
    ReferencePartitioning,
    default_cell,
    distribute,
)
from streamjoin.runtime import Arrivals
from streamjoin.state import Batch, GridAxis, KeyTest, Matching, PairTest, ValueTest
from streamjoin.state.batch import Indices
from streamjoin.state.columns import codes_are_exact

A_BATCH: Final = Arrivals((None, None))  # a batch makes no progress: it ends


AnyJoin = TemporalJoin | AsofJoin | BestMatchJoin | NearestJoin


@dataclass(frozen=True)
class ExpressionTest:
    """A theta expression on index pairs, evaluated on the columns it reads."""

    expression: Expression

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        sides = zip(self.expression.columns(), (a.payload, b.payload), (i, j), strict=True)
        # A table without columns has no length: of an input that the expression does not read, any column will do.
        members = [
            payload.select(columns or payload.column_names[:1]).take(pa.array(rows)) for columns, payload, rows in sides
        ]
        return np.asarray(self.expression.evaluate(members), np.bool_)


@dataclass(frozen=True)
class JoinPlan:
    """How a join runs: what reads the inputs, joins them in each bucket, decides afterwards, and names the result."""

    node: JoinNode
    bindings: tuple[InputBinding, InputBinding]
    partitioning: Partitioning
    join: AnyJoin
    naming: OutputNaming
    residual: Expression | None  # left to Spark, on the finished rows
    arrivals: Arrivals = A_BATCH
    timers: bool = False
    fed_by_timers: bool = False  # an input is the result of a join with timers

    def join_in(self, bucket: int) -> AnyJoin:
        """The join of one bucket: it keeps only the pairs that belong there."""
        test = self.partitioning.owner_test(bucket)
        if test is None or not isinstance(self.join, TemporalJoin):
            return self.join
        matching = replace(self.join.matching, tests=(*self.join.matching.tests, test))
        return replace(self.join, matching=matching)

    def at_home(self, bucket: int, number: int, batch: Batch) -> Mask:
        """Which rows of input `number` that have come to a bucket are at home there, though they may be elsewhere."""
        homes = self.partitioning.place(number, batch).homes(len(batch))
        return np.asarray(homes == bucket, np.bool_)

    @property
    def followed(self) -> tuple[bool, bool]:
        """Of each input, whether its rows' fate is decided in a second stage."""
        return self.join.replicated

    @property
    def homed(self) -> tuple[bool, bool]:
        """Of each input, whether one of a row's replicas must be told from the others, to decide or to show it once."""
        one, two = (
            replicated and (tracked or late == "output")
            for replicated, tracked, late in zip(
                self.partitioning.replicates, self.join.tracked, self.join.late, strict=True
            )
        )
        return one, two

    @property
    def identity(self) -> dict[str, str]:
        """What a stored state depends on, by name: a restart may differ in none of it."""
        one, two = self.node.inputs
        derived = {"expressions": f"{one.derived}, {two.derived}"} if one.derived or two.derived else {}
        return {
            "window": f"{one.window}, {two.window}",
            "interval": str(self.node.interval),
            "choice": "none" if self.node.choice is None else self.node.choice.describe(),
            "time": f"{one.time}, {two.time}",
            "keys": f"{one.keys}, {two.keys}",
            "predicates": f"{self.bindings[0].predicates}, {self.node.theta}",
            "schema": f"{_described(one.schema)}, {_described(two.schema)}",
            "buckets": str(self.partitioning),
            "how": f"{self.join.how}, outer by {self.join.outer}",
            "emit": f"{self.join.emit}, holding {self.join.hold}",
            "output": self.node.output,
            "late": str(self.join.late),
            "static": ", ".join(f"input {n}" for n in (0, 1) if self.arrivals.has_ended(n)) or "no input",
            **derived,
        }

    def distribute(self, number: int, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """The rows of input `number` for each bucket that gets any."""
        judged_by = () if self.node.theta is None else self.node.theta.columns()[number]
        return distribute(self.partitioning, number, batch, follow=self.homed[number], judged_by=judged_by)

    def verdicts(self) -> tuple[Verdict, ...]:
        """The second stage: one decision maker for each input that needs it."""
        return tuple(
            Verdict(number, self.join.schemas, self.join.how, self.join.outer)
            for number in (0, 1)
            if self.followed[number]
        )


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def plan_join(node: JoinNode) -> JoinPlan:
    """Decide how a join runs."""
    predicates = order_predicates(node)
    partitioning = choose_partitioning(node, predicates)
    residual = node.theta if node.how == "inner" else None
    join: AnyJoin
    if isinstance(node.choice, AsOf):
        join = asof_join(node, node.choice)
    elif isinstance(node.choice, BestOf):
        join = best_match_join(node, node.choice, predicates, partitioning)
    elif isinstance(node.choice, NearestOf):
        join = nearest_join(node, node.choice, predicates)
    else:
        join = temporal_join(node, predicates, partitioning)
    return JoinPlan(node, bind_inputs(node, predicates), partitioning, join, name_result(node), residual)


def asof_join(node: JoinNode, choice: AsOf) -> AsofJoin:
    """A join in which a left row takes one of the right rows."""
    assert node.how in ("left", "inner")
    return AsofJoin(choice, payload_schemas(node), node.how, node.emit, node.late, node.output == "changelog")


def nearest_join(node: JoinNode, choice: NearestOf, predicates: tuple[Predicate, ...]) -> NearestJoin:
    """A join in which a left row takes the nearest of the right rows around it."""
    assert node.how in ("left", "inner") and isinstance(predicates[0], Within)
    matching = Matching(predicates[0], remaining_tests(node, predicates), timed=False)
    schemas, changelog = payload_schemas(node), node.output == "changelog"
    return NearestJoin(choice, matching, predicates[0], schemas, node.how, node.emit, node.late, changelog)


def best_match_join(
    node: JoinNode, choice: BestOf, dimensions: tuple[Predicate, ...], partitioning: Partitioning
) -> BestMatchJoin:
    """A join in which a row takes the best of its candidates."""
    assert node.how in ("left", "inner", "right", "full")
    first = dimensions[0]
    assert isinstance(first, Band)
    matching = Matching(first, remaining_tests(node, dimensions), timed=False, grid=grid_of(dimensions))
    # Doubles that are not counted in steps are decided at the end, whatever the reach.
    in_values = first.above if isinstance(first.above, int) else 0
    reach = in_values if choice.reach is None else choice.reach
    return BestMatchJoin(
        choice=choice,
        matching=matching,
        dimensions=dimensions,  # type: ignore[arg-type]
        reach=reach,
        schemas=payload_schemas(node),
        how=node.how,
        emit=node.emit,
        late=node.late,
        changelog=node.output == "changelog",
        replicated=(False, node.how == "full" and partitioning.replicates[1]),
    )


def grid_of(dimensions: tuple[Predicate, ...]) -> tuple[GridAxis, ...]:
    """The dimensions beyond the ordered one that a grid can bound: each makes candidates fewer, two are enough."""
    axes = [
        GridAxis(column, float(dimension.above))
        for column, dimension in enumerate(dimensions)
        if column > 0 and isinstance(dimension, Band) and math.isfinite(dimension.above)
    ]
    return tuple(axes[:MOST_GRID_AXES])


def temporal_join(node: JoinNode, predicates: tuple[Predicate, ...], partitioning: Partitioning) -> TemporalJoin:
    """A join in which a row takes all that match."""
    matching = Matching(
        first=predicates[0] if predicates else None,  # type: ignore[arg-type]
        tests=remaining_tests(node, predicates),
        timed=node.windowed,
    )
    tracked, replicated = TRACKED[node.how], partitioning.replicates
    return TemporalJoin(
        matching=matching,
        schemas=payload_schemas(node),
        how=node.how,
        outer=node.outer,
        emit=node.emit,
        hold=choose_hold(node, predicates),
        late=node.late,
        validity=node.windowed,
        replicated=(tracked[0] and replicated[0], tracked[1] and replicated[1]),
    )


def payload_schemas(node: JoinNode) -> tuple[pa.Schema, pa.Schema]:
    """The user's columns of each input, without the hidden ones."""
    one, two = (pa.schema([part.schema.field(name) for name in part.columns]) for part in node.inputs)
    return one, two


def order_predicates(node: JoinNode) -> tuple[Predicate, ...]:
    """All predicates over values, the one that sorts the runs first.

    An event join is a band over the two times. Otherwise the order is by how few candidates a predicate leaves: a
    distance bounds several axes, a band one from both sides, an overlap one only as far as intervals are short.
    """
    if isinstance(node.choice, AsOf):
        return _reach_of_choice(node, node.choice)
    if isinstance(node.choice, BestOf):
        return node.predicates  # the ordered dimension comes first
    predicates = list(node.predicates)
    predicates.sort(key=order_of)
    if isinstance(node.choice, NearestOf) and node.choice.tolerance is not None:
        one, two = (part.time for part in node.inputs)
        predicates.append(Band(one, two, node.choice.tolerance, node.choice.tolerance))
    if node.interval is not None:
        times = [part.time for part in node.inputs]
        bounds = node.interval
        predicates.insert(0, Band(times[0], times[1], -bounds.lower, bounds.upper, bounds.closed))
    return tuple(predicates)


def _reach_of_choice(node: JoinNode, choice: AsOf) -> tuple[Predicate, ...]:
    """Which right rows an as-of join may take, as a band over the times; none where any distance is near enough.

    Only partitioning asks: with keys it is by them, and the band is not needed.
    """
    (below, above), (one, two) = choice.reach, (part.time for part in node.inputs)
    assert one is not None and two is not None
    if node.inputs[0].keys or below is None or above is None:
        return ()
    return (Band(one, two, below, above, "both"),)


def order_of(predicate: Predicate) -> int:
    """Where a predicate stands among those that could sort the runs: the smaller, the fewer candidates it leaves."""
    return (Within, Band, Overlaps).index(type(predicate))


def remaining_tests(node: JoinNode, predicates: tuple[Predicate, ...]) -> tuple[PairTest, ...]:
    """What a pair must still pass after the kernel: cheap tests first."""
    tests = value_tests(predicates)
    key_types = [node.inputs[0].schema.field(key).type for key in node.inputs[0].keys]
    if key_types and not codes_are_exact(key_types):
        tests.append(KeyTest())
    if node.theta is not None and node.how != "inner":
        outside = node.theta.unsupported()
        if outside is not None:
            raise UnsupportedError(
                f"theta in a join with how={node.how!r} must be evaluated while joining, and {outside}",
                hint='use how="inner", where Spark evaluates any expression, or write the condition with comparisons, '
                "arithmetic, AND/OR/NOT, NULL tests, IN, BETWEEN and LIKE",
            )
        tests.append(ExpressionTest(node.theta))
    return tuple(tests)


def value_tests(predicates: Sequence[Predicate]) -> list[PairTest]:
    """Tests of all predicates but the first, whose values lie one after the other."""
    tests: list[PairTest] = []
    offset = len(predicates[0].columns(0)) if predicates else 0
    for predicate in predicates[1:]:
        tests.append(ValueTest(predicate, offset))
        offset += len(predicate.columns(0))
    return tests


def choose_partitioning(node: JoinNode, predicates: tuple[Predicate, ...]) -> Partitioning:
    """Which rows meet where.

    Keys need no copies. A bound on the values keeps one side at home: the one that must know its partners. Intervals
    have no bound that the call knows, so without a cell size (`cell=`) they go by matrix, which needs to know nothing.
    """
    if node.buckets == 1 or node.inputs[0].keys:
        return Partitioning(node.buckets)
    first = predicates[0] if predicates else None
    if isinstance(first, Band | Within):
        home = 1 if node.how == "right" else 0
        return HomePartitioning(node.buckets, first, node.cell or default_cell(first), home)
    if node.cell is not None and (isinstance(first, Overlaps) or node.windowed):
        return ReferencePartitioning(node.buckets, node.cell, on_time=first is None)
    if node.choice is not None:
        # The nearest may be anywhere.
        return Partitioning(1)
    return MatrixPartitioning(node.buckets)


def choose_hold(node: JoinNode, predicates: tuple[Predicate, ...]) -> Hold:
    """Hold inputs when a row is expected to have many partners (nothing but time restricts them), else outputs."""
    if node.hold != "auto":
        return node.hold
    expansive = not predicates and not node.inputs[0].keys
    return "inputs" if expansive else "outputs"


def bind_inputs(node: JoinNode, predicates: tuple[Predicate, ...]) -> tuple[InputBinding, InputBinding]:
    """What reads each input's columns."""
    forget: tuple[int | None, int | None] = (None, None)
    if node.interval is not None:
        low_closed, high_closed = node.interval.closed in ("both", "left"), node.interval.closed in ("both", "right")
        # A left row is kept until the right progress is above left + upper, a right row until above right - lower.
        forget = (node.interval.upper + high_closed, -node.interval.lower + low_closed)
    if isinstance(node.choice, BestOf):
        assert isinstance(predicates[0], Band)
        reach = predicates[0].above if node.choice.reach is None else node.choice.reach
        forget = (reach + 1, reach + 1) if isinstance(reach, int) else (FOREVER, FOREVER)
    if isinstance(node.choice, NearestOf) and node.choice.tolerance is not None:
        forget = (node.choice.tolerance + 1, node.choice.tolerance + 1)
    if isinstance(node.choice, AsOf):
        # A right row is kept until the bound of the history is beyond what its time can reach forward.
        back, same = node.choice.reach[0], int(node.choice.exact)
        forget = (0, FOREVER if back is None else back + (same if back == 0 else 1))
    in_steps = isinstance(node.choice, BestOf) and node.choice.reach is not None
    one, two = (
        InputBinding(
            number,
            part.columns,
            part.keys,
            predicates,
            part.time,
            part.window,
            forget[number],
            node.invalid,
            timeless=in_steps or isinstance(node.choice, AsOf | NearestOf),
            ordered=not in_steps and isinstance(node.choice, BestOf),
        )
        for number, part in enumerate(node.inputs)
    )
    return one, two


def result_flags(node: JoinNode) -> tuple[str, ...]:
    """The columns that mark rows which leave unjoined."""
    invalid = (INVALID_FLAG,) if node.invalid == "output" else ()
    return invalid + ((LATE_FLAG,) if "output" in node.late else ())


def name_result(node: JoinNode) -> OutputNaming:
    """The result's columns."""
    types = [{field.name: field.type for field in part.schema} for part in node.inputs]
    return name_columns(
        [part.columns for part in node.inputs],
        types,
        by=node.by,
        how=node.how,
        suffix=node.suffix,
        validity=node.validity if node.windowed else None,
        time_type=node.time_type,
        flags=result_flags(node),
        changelog=node.output == "changelog",
    )
