"""Joins in which a row takes all that match: over validity, by value alone, and over an interval of time."""

from __future__ import annotations

from streamjoin.algebra import Band, How, Predicate, Similar
from streamjoin.algebra.policy import Hold
from streamjoin.operators import TemporalJoin
from streamjoin.operators.temporal_join import TRACKED
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.expression import Expression
from streamjoin.plan.lowering.joining import (
    JoinParts,
    Keys,
    Setting,
    bindings_of,
    choose_partitioning,
    first_of,
    key_tests,
    order_of,
    payload_of,
    schemas_of,
    theta_test,
    value_tests,
)
from streamjoin.plan.lowering.predicates import Sides, bind_predicates
from streamjoin.plan.relation import IntervalJoin, Join
from streamjoin.plan.types import arrow_schema
from streamjoin.state import Matching


def lower_join(join: Join, sides: Sides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """Pairs that match while both are valid, or by value alone."""
    keys, predicates = bind_predicates(sides, join.predicates)
    ordered = tuple(sorted(predicates, key=order_of))
    return _temporal(join, sides, needed, setting, keys, ordered)


def lower_interval(join: IntervalJoin, sides: Sides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """Pairs of events. An interval of time is a band over the two times, which no other predicate needs to help."""
    keys, predicates = bind_predicates(sides, join.predicates)
    times = Band(*join.times, -join.lower, join.upper, join.closed)
    ordered = (times, *sorted(predicates, key=order_of))
    low_closed, high_closed = join.closed in ("both", "left"), join.closed in ("both", "right")
    # A left row is kept until the right progress is above left + upper, a right row until above right - lower.
    forget = (join.upper + high_closed, -join.lower + low_closed)
    return _temporal(join, sides, needed, setting, keys, ordered, forget)


def _temporal(
    join: Join | IntervalJoin,
    sides: Sides,
    needed: frozenset[str],
    setting: Setting,
    keys: Keys,
    predicates: tuple[Predicate, ...],
    forget: tuple[int, int] | None = None,
) -> JoinParts:
    timed = isinstance(join, Join) and join.timed
    outer = join.outer if isinstance(join, Join) else "row"
    expression, schemas = None, [arrow_schema(part.fields) for part in sides.parts]
    if join.theta is not None and join.how != "inner":
        expression = Expression.parse(join.theta, schemas)
        sides.typing.agree(expression, [part.fields for part in sides.parts])
        needed = needed | {name for names in expression.columns() for name in names}
    elif join.theta is not None:
        needed = needed | set(columns_of(join.theta))  # Spark evaluates it on the pairs
    payload = payload_of(sides, 0, needed), payload_of(sides, 1, needed)
    tests = (*value_tests(predicates), *key_tests(sides, keys), *theta_test(expression, schemas, join.how))
    first, over_values = first_of(predicates), [each for each in predicates if not isinstance(each, Similar)]
    matching = Matching(first, tests, timed=timed)  # type: ignore[arg-type]
    partitioning = choose_partitioning(
        keys, next(iter(over_values), None), join.how, setting.buckets, join.cell, timed=timed, alike=first
    )
    config = TemporalJoin(
        matching,
        schemas_of(payload),
        join.how,
        outer,
        setting.emit,
        choose_hold(join, predicates, keys, prioritised=setting.prioritised),
        setting.late,
        timed,
        replicated(join.how, partitioning.replicates),
        setting.unknown_ends,
        new_priority=setting.new_priority,
    )
    bindings = bindings_of(payload, keys, predicates, forget_after=forget)
    judged_by = ((), ()) if expression is None else expression.columns()
    times: tuple[tuple[str, int], ...] = ()
    if isinstance(join, IntervalJoin):  # a pair is as new as the newer of the two
        times = ((join.times[0], max(0, join.upper)), (join.times[1], max(0, -join.lower)))
    return JoinParts(
        config, partitioning, bindings, payload, tuple(keys), join.how, (judged_by[0], judged_by[1]), times
    )


def replicated(how: How, replicates: tuple[bool, bool]) -> tuple[bool, bool]:
    """Of each input, whether its rows must know that they met nobody, and no bucket alone does."""
    one, two = (tracked and copied for tracked, copied in zip(TRACKED[how], replicates, strict=True))
    return one, two


def choose_hold(
    join: Join | IntervalJoin, predicates: tuple[Predicate, ...], keys: Keys, *, prioritised: bool = False
) -> Hold:
    """Hold inputs when a row is expected to have many partners (nothing but time restricts them), else outputs. Urgent
    rows must not wait, and are no inputs to be held.
    """
    if join.hold != "auto":
        return join.hold
    return "inputs" if not predicates and not keys and not prioritised else "outputs"
