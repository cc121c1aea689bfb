"""Every option of every function works, or is refused with a reason: a test for each cell of `tests.spark.options`."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.stored import to_stored
from streamjoin.spark.calls import tree
from streamjoin.spark.marks import CallPlan, plan_of
from streamjoin.spark.running.interpreter import Interpreter
from streamjoin.spark.running.stream import StreamInterpreter
from tests.conftest import ROOT
from tests.spark.options import (
    ABSENT,
    CELLS,
    FAMILIES,
    FUNCTIONS,
    ONE,
    OWN,
    REASONS,
    SO_IT_IS,
    TEXT,
    UNUSED,
    WORKS,
    Function,
    Option,
    Text,
    cell,
    document,
    handler,
    options,
    parameters,
)
from tests.spark.streams import SCHEMA

# What says how late rows may be, and what becomes of them: a batch has none.
LATENESS = {"lateness", "late", "idle_after", "timers"}

Plan = Callable[..., PhysicalPlan]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[list[DataFrame]]:
    """Three frames of no rows; and three streams."""
    folder = str(tmp_path_factory.mktemp("empty"))
    readers: list[Any] = [spark.read, spark.readStream]
    return [[reader.schema(SCHEMA).parquet(folder) for _ in range(3)] for reader in readers]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, Option]:
    assert spark is not None  # expressions need it
    return options()


@pytest.fixture(scope="module")
def plan(spark: SparkSession, frames: list[list[DataFrame]], rows: dict[str, Option]) -> Plan:
    """The plan of a call with an option, or without it."""

    def with_it(title: str, function: str, *, streaming: bool) -> PhysicalPlan:
        option, called = rows[title], FUNCTIONS[function]
        given = frames[streaming][: option.frames(called)]
        if option.static is not None:
            given[option.static] = frames[False][option.static]
        return planned(called, given, {**option.common(called), **option.added(called)}, streaming=streaming)

    def planned(called: Function, given: list[DataFrame], asked: Mapping[str, Any], *, streaming: bool) -> PhysicalPlan:
        asked = {name: streaming if value is SO_IT_IS else value for name, value in asked.items()}
        return plan_of_call(called.call(spark, given, **asked)).plan

    @cache
    def usual(function: str, streaming: bool, count: int, common: tuple[tuple[str, Any], ...]) -> PhysicalPlan:
        return plan_of_call(FUNCTIONS[function].call(spark, frames[streaming][:count], **dict(common))).plan

    def plan_of_call(made: DataFrame | CallPlan) -> CallPlan:
        return made if isinstance(made, CallPlan) else plan_of(made)

    def plan(title: str, function: str, *, streaming: bool, without: bool = False) -> PhysicalPlan:
        if not without:
            return with_it(title, function, streaming=streaming)
        option, called = rows[title], FUNCTIONS[function]
        return usual(function, streaming, option.frames(called), tuple(option.common(called).items()))

    return plan


@pytest.fixture
def handed(frames: list[list[DataFrame]], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Frames are not made: Spark would take ten times as long for them as it takes to plan a call, which gives its
    plan instead. What workers would be given to tell urgent results, by each call.
    """
    given: list[Any] = []

    def run(self: Interpreter) -> DataFrame:
        given.append(self.urgent)
        return frames[False][0]  # any: nothing is done with it

    for interpreter in (Interpreter, StreamInterpreter):
        monkeypatch.setattr(interpreter, "run", run)
    monkeypatch.setattr(tree, "remember", lambda frame, plan, call=None: plan)
    return given


def check(plan: Plan, rows: Mapping[str, Option], title: str, function: str, *, streaming: bool) -> None:
    """What comes of an option is what the table says."""
    expected = cell(title, function, streaming=streaming)
    if expected == ABSENT and FUNCTIONS[function].of == "named":
        with pytest.raises(sj.CallError, match=r"cql has no option|which is no option of cql"):
            plan(title, function, streaming=streaming)
    elif expected == ABSENT:
        with pytest.raises(TypeError, match=r"has no option|unhashable type: 'Column'"):
            plan(title, function, streaming=streaming)
    elif expected in REASONS:
        with pytest.raises(sj.StreamjoinError, match=REASONS[expected][0]):
            plan(title, function, streaming=streaming)
    else:
        changed = plan(title, function, streaming=streaming)
        usual = plan(title, function, streaming=streaming, without=True)
        if expected == UNUSED:
            assert changed == usual
        elif rows[title].idle and not streaming:
            assert without_lateness(to_stored(changed)) == without_lateness(to_stored(usual))
        else:
            assert changed != usual, f"{title} of {function} is accepted and ignored"
            assert to_stored(changed) != to_stored(usual), "a query that goes on would not notice"


def without_lateness(stored: Any) -> Any:
    if isinstance(stored, dict):
        return {name: without_lateness(each) for name, each in stored.items() if name not in LATENESS}
    return [without_lateness(each) for each in stored] if isinstance(stored, list) else stored


def cells() -> Iterator[tuple[str, str]]:
    for title, functions in CELLS.items():
        yield from ((title, function) for function, each in functions.items() if each != ONE)


@pytest.mark.parametrize(("title", "function"), list(cells()))
def test_an_option_works_or_is_refused(
    plan: Plan, rows: dict[str, Option], handed: list[Any], title: str, function: str
) -> None:
    for streaming in (False, True) if rows[title].static is None else (True,):
        if rows[title].handed and cell(title, function, streaming=streaming) == WORKS:
            plan(title, function, streaming=streaming)
            assert handed.pop() is handler
        else:
            check(plan, rows, title, function, streaming=streaming)


@pytest.mark.long
@pytest.mark.parametrize("title", CELLS)
def test_the_frames_of_working_calls_can_be_made(plan: Plan, rows: dict[str, Option], title: str) -> None:
    for function, streaming in ((name, streaming) for name in FUNCTIONS for streaming in (False, True)):
        if cell(title, function, streaming=streaming) in (WORKS, TEXT, UNUSED):
            plan(title, function, streaming=streaming)


def test_every_parameter_is_in_a_row_or_says_what_a_function_computes(rows: dict[str, Option]) -> None:
    public = {name: getattr(sj, name) for name in sj.__all__}
    takes_options = {
        each for each in public.values() if inspect.isfunction(each) and "late" in inspect.signature(each).parameters
    }
    assert takes_options == {each.called for each in FUNCTIONS.values()}, "every function that has options is a column"
    for function in FUNCTIONS.values():
        inside = {*Text.__dataclass_fields__} if function.of == "named" else {function.time}
        # A Column can be no key of a dict, in which a best-match join has its times.
        given = [row for row in rows.values() if (row.title, function.name) != ("time=expression", "join_best_match")]
        asked = {name for row in given for name in (*row.common(function), *row.added(function))} - inside
        missing = set(parameters(function)) - asked - set(OWN) - {function.time}
        assert not missing, f"{function.name} has options without a row: {missing}"
        assert not asked & set(OWN), f"{function.name} has options in rows that are no options"
    assert set(OWN) <= {name for each in FUNCTIONS.values() for name in parameters(each)}


@pytest.mark.long
@pytest.mark.parametrize("function", FUNCTIONS)
def test_two_options_that_work_can_be_combined_or_a_row_says_why_not(
    spark: SparkSession,
    frames: list[list[DataFrame]],
    rows: dict[str, Option],
    handed: list[Any],
    function: str,
) -> None:
    """Every refusal of two options of a stream is one that a row of the column has, and nothing else happens."""
    called, tried = FUNCTIONS[function], 0
    unsaid: dict[tuple[str, str], str] = {}
    said = "|".join(
        REASONS[each][0] for title in rows for each in [cell(title, function, streaming=True)] if each in REASONS
    )
    works = [each for each in rows.values() if cell(each.title, function, streaming=True) in (WORKS, TEXT, UNUSED)]
    for one, two in combinations(works, 2):
        asked = [{**each.common(called), **each.added(called)} for each in (one, two)]
        given = frames[True][: max(each.frames(called) for each in (one, two))]
        if set(asked[0]) & set(asked[1]) or one.few or two.few or (one.static, two.static) == (0, 1):
            continue
        for each in (each.static for each in (one, two) if each.static is not None):
            given[each] = frames[False][each]
        both = {name: value for part in asked for name, value in part.items()}
        if any(value is SO_IT_IS for value in both.values()):
            both["streaming"] = called.each(given[0].isStreaming, given[1].isStreaming)
        tried += 1
        try:
            called.call(spark, given, **both)
        except sj.StreamjoinError as refused:
            if not re.search(said, str(refused)):
                unsaid[one.title, two.title] = str(refused)
    assert not unsaid
    assert tried > 20


def test_the_table_is_complete(rows: dict[str, Option]) -> None:
    assert list(rows) == list(CELLS)
    assert [name for names in FAMILIES.values() for name in names] == list(FUNCTIONS)
    said = {each for title in CELLS for name in FUNCTIONS for s in (0, 1) for each in [cell(title, name, streaming=s)]}
    assert said == {WORKS, TEXT, ABSENT, ONE, UNUSED, *REASONS}


def test_the_document_is_what_the_table_says() -> None:
    path = ROOT / "docs" / "options.md"
    if os.environ.get("STREAMJOIN_REWRITE"):
        path.write_text(document())
    assert path.read_text() == document(), "write it with STREAMJOIN_REWRITE=1"
