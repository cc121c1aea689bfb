"""How joins in which a row takes some of those that match will run: as-of, nearest, best match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, AsOf, Band, BestOf, Near, NearestOf, Within
from streamjoin.plan.lowering.choosing_joins import grid_of
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import AsOfJoin, BestMatchJoin, NearestJoin, Relation
from streamjoin.runtime.placing import HomePartitioning, MatrixPartitioning, Partitioning
from streamjoin.state import GridAxis, KeyTest, ValueTest
from tests.plan.trees import kinds, lowered, stream

LEFT, RIGHT = stream("0", None), stream("1", None)
TIMES, KEYS, TEXT_KEYS = ("0.ts", "1.ts"), (("0.k", "1.k"),), (("0.s", "1.s"),)
WITHIN = Within(("0.x", "0.v"), ("1.x", "1.v"), 1.0)


def asof(**options: Any) -> AsOfJoin:
    return AsOfJoin(LEFT, RIGHT, TIMES, **options)


def best(*dimensions: tuple[str, float], **options: Any) -> BestMatchJoin:
    return BestMatchJoin(LEFT, RIGHT, tuple((f"0.{name}", f"1.{name}", far) for name, far in dimensions), **options)


def plan_of(relation: Relation, buckets: int = 4, slack: int | None = 0, **leaving: Any) -> PhysicalPlan:
    return lowered(relation, buckets, slack, validity=None, **leaving)


def config(relation: Relation, **options: Any) -> Any:
    return plan_of(relation, **options).stages[0].nodes[0].config


def partitioning(relation: Relation, buckets: int = 4) -> Partitioning:
    return plan_of(relation, buckets).sources[0].target.partitioning


def bindings(relation: Relation, **options: Any) -> list[Any]:
    return [source.target.binding for source in plan_of(relation, **options).sources]


# -- as-of -------------------------------------------------------------------------------------------------------------


def test_an_as_of_join_has_its_choice_in_ticks() -> None:
    made = config(asof(direction="nearest", tolerance=3, exact=False, how="inner", tie_break=("1.v",)))
    assert (made.choice, made.how) == (AsOf("nearest", 3, False, ("1.v",)), "inner")


@pytest.mark.parametrize(
    ("options", "forget"),
    [
        ({}, FOREVER),
        ({"tolerance": 3}, 4),
        ({"tolerance": 0}, 1),
        ({"tolerance": 0, "exact": False}, 0),
        ({"tolerance": 3, "exact": False}, 4),
        ({"direction": "forward", "tolerance": 3}, 1),
        ({"direction": "forward"}, 1),
        ({"direction": "nearest", "tolerance": 3}, 4),
    ],
)
def test_a_right_row_is_kept_as_long_as_a_left_row_could_look_back_to_it(options: dict, forget: int) -> None:
    left, right = bindings(asof(keys=KEYS, **options))
    assert (left.forget_after, right.forget_after) == (0, forget)
    assert left.timeless
    assert right.timeless


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"keys": KEYS}, Partitioning(4)),
        ({"keys": KEYS, "tolerance": 3}, Partitioning(4)),
        ({"tolerance": 3}, HomePartitioning(4, Band(*TIMES, 3, 0), 24.0, 0)),
        ({"tolerance": 3, "direction": "forward"}, HomePartitioning(4, Band(*TIMES, 0, 3), 24.0, 0)),
        ({"tolerance": 3, "direction": "nearest"}, HomePartitioning(4, Band(*TIMES, 3, 3), 48.0, 0)),
        ({}, Partitioning(1)),  # any distance is near enough: all must meet
        ({"direction": "nearest"}, Partitioning(1)),
    ],
)
def test_left_rows_are_at_home_and_right_ones_wherever_they_can_be_taken(options: dict, expected: Partitioning) -> None:
    assert partitioning(asof(**options)) == expected
    assert partitioning(asof(**options), 1) == Partitioning(1)


# -- nearest -----------------------------------------------------------------------------------------------------------


def test_the_nearest_are_found_by_distance_and_tested_by_time_and_keys() -> None:
    join = NearestJoin(LEFT, RIGHT, WITHIN, NearestOf(2, 3), TIMES, TEXT_KEYS, "inner")
    made = config(join)
    assert (made.choice, made.within, made.how) == (NearestOf(2, 3), WITHIN, "inner")
    assert made.matching.first == WITHIN
    assert made.matching.tests == (ValueTest(Band(*TIMES, 3, 3), 2), KeyTest())
    assert not made.matching.timed
    assert [binding.forget_after for binding in bindings(join)] == [4, 4]


def test_without_time_the_nearest_are_kept_for_ever_beside_a_table() -> None:
    join = NearestJoin(LEFT, RIGHT, WITHIN)
    assert [binding.forget_after for binding in bindings(join, slack=None)] == [None, None]
    assert [source.reading.time for source in plan_of(join, slack=None).sources] == [None, None]


def test_places_of_the_nearest() -> None:
    assert partitioning(NearestJoin(LEFT, RIGHT, WITHIN, cell=2.0)) == HomePartitioning(4, WITHIN, 2.0, 0)
    assert partitioning(NearestJoin(LEFT, RIGHT, WITHIN)) == HomePartitioning(4, WITHIN, 16.0, 0)
    assert partitioning(NearestJoin(LEFT, RIGHT, WITHIN, keys=KEYS)) == Partitioning(4)


# -- best match --------------------------------------------------------------------------------------------------------


def test_the_first_dimension_is_what_streams_are_ordered_by() -> None:
    join = best(("ts", 2), ("x", 0.5), ("v", 0.25), keys=TEXT_KEYS, choice=BestOf("pareto"))
    made = config(join)
    dimensions = (Band(*TIMES, 2, 2), Band("0.x", "1.x", 0.5, 0.5), Band("0.v", "1.v", 0.25, 0.25))
    assert (made.dimensions, made.reach) == (dimensions, 2)
    assert made.matching.first == dimensions[0]
    assert made.matching.tests == (ValueTest(dimensions[1], 1), ValueTest(dimensions[2], 2), KeyTest())
    assert made.matching.grid == (GridAxis(1, 0.5), GridAxis(2, 0.25))
    for binding in bindings(join):
        assert (binding.ordered, binding.timeless, binding.forget_after) == (True, False, 3)


def test_doubles_in_a_batch_are_decided_at_the_end_and_in_a_stream_counted_in_steps() -> None:
    batch = best(("x", 0.5))
    assert config(batch, slack=None).reach == 0
    assert [(binding.ordered, binding.forget_after) for binding in bindings(batch, slack=None)] == [(True, FOREVER)] * 2
    steps = best(("x", 0.5), choice=BestOf("pareto", 7), times=TIMES)
    assert config(steps).reach == 7
    for binding in bindings(steps):
        assert (binding.ordered, binding.timeless, binding.forget_after) == (False, True, 8)
    assert [source.reading.time for source in plan_of(steps).sources] == list(TIMES)


def test_a_grid_bounds_two_further_dimensions_that_have_a_bound() -> None:
    def strange(one: Any, two: Any) -> Any:
        return np.abs(one - two)

    bands = [Band("a", "b", far, far) for far in (1.0, 2.0, float("inf"), 3.0, 4.0)]
    assert grid_of(bands) == (GridAxis(1, 2.0), GridAxis(3, 3.0))
    assert grid_of([bands[0], Near("a", "b", 1.0, strange), bands[1]]) == (GridAxis(2, 2.0),)
    assert grid_of(bands[:1]) == ()


def test_a_function_is_a_dimension_too() -> None:
    def strange(one: Any, two: Any) -> Any:
        return np.abs(one - two)

    made = config(best(("ts", 2), ("x", 0.5), compare=((1, strange),)))
    assert made.dimensions[1] == Near("0.x", "1.x", 0.5, strange)


@pytest.mark.parametrize(
    ("how", "home", "stages"),
    [
        ("left", 0, [["BestMatchJoin"]]),
        ("inner", 0, [["BestMatchJoin"]]),
        ("right", 1, [["BestMatchJoin"]]),
        ("full", 0, [["BestMatchJoin"], ["Judging"]]),
    ],
)
def test_who_chooses_is_at_home_and_copies_that_nobody_took_need_a_verdict(
    how: str, home: int, stages: list[list[str]]
) -> None:
    join = best(("ts", 2), ("x", 0.5), how=how)
    assert partitioning(join) == HomePartitioning(4, Band(*TIMES, 2, 2), 32.0, home)
    assert kinds(plan_of(join)) == stages
    assert kinds(plan_of(best(("ts", 2), how=how, keys=KEYS))) == stages[:1]
    assert not isinstance(partitioning(join), MatrixPartitioning)


@pytest.mark.parametrize("join", [asof(keys=KEYS), best(("ts", 2), keys=KEYS), NearestJoin(LEFT, RIGHT, WITHIN)])
def test_what_passes_through(join: Relation) -> None:
    late = {"0": "drop", "1": "join"} | dict.fromkeys("RST", "drop")
    made = config(join, emit="ordered", change=True, sources={"late": late})
    assert (made.emit, made.late, made.changelog) == ("ordered", ("drop", "join"), True)
