"""A frame knows the call that made it: by a mark in the metadata of its columns, which survives filter and select.

Spark writes metadata into Parquet files too, and reads it with their columns. So no two calls have the same mark, in
whichever programs they are: one that reads a mark of another program must not take it for a call of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from streamjoin.errors import CallError
from streamjoin.plan.condition import quoted
from streamjoin.plan.delay import output_delay
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Query, Relation
from streamjoin.spark.told import is_connect, knowing
from streamjoin.spark.typing import spark_type

_KEY: Final = "streamjoin.call"  # not "streamjoin.plan": files have kept numbers under that name
_COLUMN: Final = "streamjoin.column"
PRIORITY: Final = "streamjoin.priority"  # of the column that says how urgent rows are
WATERMARK: Final = "spark.watermarkDelayMs"  # Spark's own
_CALL: Final = "_streamjoin_call"
_STREAMING: Final = "_streamjoin_streaming"
PLANS_KEPT: Final = 1000  # a long session makes many frames, and only the last few are ever explained
_plans: dict[str, CallPlan] = {}  # by their mark
_stages: dict[str, tuple[PhysicalPlan, int | None]] = {}  # by the name of their figures


@dataclass(frozen=True)
class CallPlan:
    """A call: how it runs, the tree as it runs, and as it was written."""

    plan: PhysicalPlan
    query: Query
    written: Relation
    leaving: Leaving
    fed_by_timers: bool = False  # a source is the result of a call with timers
    numbered: bool = False  # a function's: its sources have numbers for names

    @property
    def prioritised(self) -> bool:
        """Whether urgent results leave before others."""
        return self.plan.sink.shape.priority is not None and not self.leaving.reordered


def remember(frame: DataFrame, plan: CallPlan, call: str | None = None) -> DataFrame:
    """The frame, with its plan's mark in the metadata of its columns.

    The name of a streaming call is with this very frame only: whatever is made from it is no longer its result.
    """
    mark = uuid4().hex
    _plans[mark] = plan
    if len(_plans) > PLANS_KEPT:
        _plans.pop(next(iter(_plans)))
    schema = StructType([
        StructField(
            each.name, spark_type(each.type), metadata={_KEY: mark, _COLUMN: each.name, **_urgent(plan, each.name)}
        )
        for each in plan.plan.sink.fields
    ])  # fmt: skip
    columns = [F.col(quoted(each.name)).alias(each.name, metadata=each.metadata) for each in schema.fields]
    marked: Any = knowing(frame.select(*columns), schema)
    marked.__dict__ |= {_CALL: call, _STREAMING: plan.plan.streaming}
    if is_connect(frame.sparkSession):
        marked._plan.__dict__[_KEY] = mark
    return marked  # type: ignore[no-any-return]


def remember_stage(figures: str, plan: PhysicalPlan, stage: int | None) -> None:
    """Which stage of which plan tells its figures under this name: a running query says no more than the name. None:
    the sources that no stage reads.
    """
    _stages[figures] = plan, stage
    if len(_stages) > PLANS_KEPT:
        _stages.pop(next(iter(_stages)))


def stage_of(figures: str) -> tuple[PhysicalPlan, int] | None:
    """The plan and the number of the stage that tells its figures under this name; None if it is none, or forgotten."""
    plan, stage = _stages.get(figures, (None, None))
    return None if plan is None or stage is None else (plan, stage)


def figures_behind(schema: StructType) -> tuple[str, ...]:
    """The names under which figures are told of the calls that a frame with these columns comes from."""
    plans = [made.plan for made in map(plan_by_mark, schema.fields) if made is not None]
    return tuple(name for name, (plan, _) in _stages.items() if any(plan is each for each in plans))


def _urgent(plan: CallPlan, column: str) -> dict[str, bool]:
    return {PRIORITY: True} if plan.prioritised and column == plan.plan.sink.shape.priority else {}


def priority_column(schema: StructType) -> str | None:
    """The column of a frame that says how urgent its rows are; None where none does."""
    return next((each.name for each in schema.fields if PRIORITY in (each.metadata or {})), None)


def has_urgent_rows(schema: StructType) -> bool:
    """Whether rows of a frame may be urgent, though it may no longer say which."""
    plans = (plan_by_mark(column) for column in schema.fields)
    return priority_column(schema) is not None or any(plan is not None and plan.prioritised for plan in plans)


def of_several(columns: Sequence[StructField]) -> dict[str, Any]:
    """What is known of a column with the rows of all these, whose first Spark's union takes it from.

    How late rows are is known if all say the same. If not, the call that the first comes from is still known, which may
    have timers, but the column is none of its.
    """
    known, *others = (dict(each.metadata or {}) for each in columns)
    if _KEY in known and any(each.get(name) != known[name] for each in others for name in (_KEY, _COLUMN)):
        known[_COLUMN] = ""
    if any(each.get(WATERMARK) != known.get(WATERMARK) for each in others):
        known.pop(WATERMARK, None)
    return known


def made_by(frame: DataFrame) -> str | None:
    """The name of the streaming call that returned this very frame."""
    name: str | None = frame.__dict__.get(_CALL)
    return name


def is_streaming(frame: DataFrame) -> bool | None:
    """Whether the call that returned this very frame streams; None for any other frame."""
    known: bool | None = frame.__dict__.get(_STREAMING)
    return known


def name_in_plan(column: StructField) -> str:
    """What the call that made a column has named it, whatever it is named by now."""
    return str((column.metadata or {}).get(_COLUMN, column.name))


def plan_by_mark(column: StructField) -> CallPlan | None:
    """The plan whose mark a column carries; None when it carries none, or one of another program."""
    return _plans.get((column.metadata or {}).get(_KEY, ""))


def plan_if_any(frame: DataFrame) -> CallPlan | None:
    """The plan of the last streamjoin call that made this frame; None when it comes from none."""
    plans = (plan_by_mark(column) for column in frame.schema.fields)
    return next((plan for plan in plans if plan is not None), None) or _plan_below(frame)


def _plan_below(frame: DataFrame) -> CallPlan | None:
    """The same where only computed columns are left, which have no mark: what they were computed from has it.

    Spark's plans are walked from the frame down, and the first mark is that of the last call.
    """
    any_frame: Any = frame
    connect = is_connect(frame.sparkSession)
    level = [any_frame._plan if connect else any_frame._jdf.queryExecution().analyzed()]
    while level:
        found = (_plans.get(mark) for node in level for mark in (_marks if connect else _marks_of_java)(node))
        plan = next((each for each in found if each is not None), None)
        if plan is not None:
            return plan
        level = [child for node in level for child in (_children if connect else _children_of_java)(node)]
    return None


def _marks(node: Any) -> list[str]:
    return [node.__dict__[_KEY]] if _KEY in node.__dict__ else []


def _children(node: Any) -> list[Any]:
    """The relations that a relation of Spark Connect's client reads, one or two or a list of them."""
    held = [each for value in vars(node).values() for each in (value if isinstance(value, list | tuple) else [value])]
    return [each for each in held if hasattr(each, "_plan_id_with_rel")]


def _marks_of_java(node: Any) -> list[str]:
    columns = node.output()
    metadata = [columns.apply(at).metadata() for at in range(columns.size())]
    return [each.getString(_KEY) for each in metadata if each.contains(_KEY)]


def _children_of_java(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def plan_of(frame: DataFrame) -> CallPlan:
    """The plan of the last streamjoin call that made this frame."""
    plan = plan_if_any(frame)
    if plan is None:
        raise CallError(
            "this frame does not come from a streamjoin call",
            hint="explain the frame that sj.join returned, or one made from it",
        )
    return plan


def uses_timers(schema: StructType) -> bool:
    """Whether a frame with these columns comes from a call with timers; a query over it never ends by itself."""
    plans = (plan_by_mark(column) for column in schema.fields)
    return any(plan is not None and (plan.plan.timers or plan.fed_by_timers) for plan in plans)


def delay_of_column(schema: StructType, name: str) -> int | None:
    """How late a streaming call's results can be by one of its time columns; None when it is none of those."""
    for column in schema.fields:
        plan = plan_by_mark(column) if column.name == name else None
        if plan is not None and plan.plan.streaming and name_in_plan(column) in plan.plan.sink.shape.schema.names:
            return output_delay(plan.query, plan.plan, name_in_plan(column))
    return None
