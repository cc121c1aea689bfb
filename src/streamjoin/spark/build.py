"""From a call to a plan: everything that can be wrong with a join is found here, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streamjoin.algebra import (
    Arrival,
    AsOf,
    Band,
    BestOf,
    Emit,
    Grace,
    InvalidPolicy,
    LatePolicy,
    NearestOf,
    Outer,
    OutputMode,
    Overlaps,
    Predicate,
    TimeAxis,
    Validity,
    Window,
    join_type,
)
from streamjoin.algebra.policy import Hold, one_of
from streamjoin.algebra.predicate import Closed
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import TemporalJoin
from streamjoin.plan.expression import Expression
from streamjoin.plan.join_delay import output_delay
from streamjoin.plan.naming import CHANGE
from streamjoin.plan.nodes import InputNode, IntervalBounds, JoinNode
from streamjoin.plan.planner import JoinPlan, order_of, plan_join
from streamjoin.runtime import Arrivals
from streamjoin.spark.batch import run_batch
from streamjoin.spark.choices import AsOfCall, BestMatchCall, NearestCall, listed
from streamjoin.spark.explain import made_by, remember, uses_timers
from streamjoin.spark.frames import InputFrame, key_columns
from streamjoin.spark.predicates import bind_predicates, both, check_agreement
from streamjoin.spark.residual import filtered
from streamjoin.spark.stream import run_stream, stored_call

MOST_DEFAULT_BUCKETS: Final = 64


@dataclass(frozen=True)
class JoinCall:
    """A join as it was called. Options that may differ per input take one value, or a list with one per input."""

    frames: Sequence[DataFrame]
    time: Any = None
    window: Any = None
    by: Any = None
    left_by: Any = None
    right_by: Any = None
    where: Predicate | None = None
    lower: Any = None
    upper: Any = None
    closed: str = "both"
    asof: AsOfCall | None = None
    best: BestMatchCall | None = None
    nearest: NearestCall | None = None
    how: str = "inner"
    outer: str = "row"
    emit: str = "eager"
    output: str = "append"
    hold: str = "auto"
    lateness: Any = None
    late: Any = "drop"
    idle_after: Any = None
    timers: bool = False
    invalid: str = "fail"
    suffix: str = "_right"
    validity: tuple[str, str] = ("valid_from", "valid_to")
    buckets: int | None = None
    cell: Any = None
    within: dict[str, Any] | None = None  # the query that it is part of, to be stored with it

    def run(self) -> DataFrame:
        """The joined frame, lazily."""
        inputs = self._frames()
        plan = plan_join(self._node(inputs))
        idle_after = self._idle_after()
        schema = result_schema(plan, inputs)
        prepared = (inputs[0].prepared(), inputs[1].prepared())
        if any(part.streaming for part in inputs):
            ended = tuple(not part.streaming for part in inputs)
            arrivals = Arrivals(self._slack(inputs, plan.node), ended, idle_after)
            fed_by_timers = any(uses_timers(part.frame) for part in inputs)
            plan = replace(plan, arrivals=arrivals, timers=self.timers, fed_by_timers=fed_by_timers)
            check_verdicts(plan)
            call = stored_call(plan, schema, tuple(made_by(part.frame) for part in inputs), self.within)
            frame = run_stream(plan, prepared, schema, call)
        else:
            call = None
            if not isinstance(plan.join, TemporalJoin):
                # All rows are there: every answer is the last one, and nothing is ever retracted.
                plan = replace(plan, join=replace(plan.join, changelog=False))
            frame = filtered(run_batch(plan, prepared, schema), plan)
        return remember(frame, plan, None if call is None else call["name"])

    def _frames(self) -> tuple[InputFrame, InputFrame]:
        frames: list[Any] = list(self.frames) if isinstance(self.frames, list | tuple) else [self.frames]
        if len(frames) < 2:
            raise CallError(f"a join needs two frames, got {len(frames)}", hint="sj.join([a, b], ...)")
        if len(frames) > 2:
            raise UnsupportedError(
                f"this version joins two frames, got {len(frames)}", hint="join two, then join the result with the next"
            )
        return InputFrame(0, frames[0]), InputFrame(1, frames[1])

    def _node(self, inputs: tuple[InputFrame, InputFrame]) -> JoinNode:
        by, keys = self._keys(inputs)
        more_keys, predicates, theta = bind_predicates(inputs, self.where)
        if self.best is not None:
            predicates = self.best.bind(inputs)
        if self.nearest is not None:
            predicates = bind_predicates(inputs, self.nearest.within)[1]
        keys += more_keys
        windows, times = self._times(inputs)
        axis, time_type = self._axis(inputs, times)
        interval = self._interval(axis)
        if self.asof is not None and axis is None:
            raise CallError("an as-of join needs the time of both inputs", hint='on="ts", or left_on= and right_on=')
        choice = self._choice(axis, inputs[1])
        resolved = [None if window is None or axis is None else window.resolve(axis) for window in windows]
        self._check_lateness(axis)
        if axis is None and not keys and not predicates and theta is None:
            raise CallError(
                "nothing to join by: neither keys, nor a predicate, nor time",
                hint='give by="key", where=..., or time= with window=; a cross product is sj.theta("true")',
            )
        if self.outer == "snapshot" and resolved[0] is None:
            raise CallError('outer="snapshot" needs validity', hint="give a window=, or use outer='row'")
        schemas = [part.schema() for part in inputs]
        nodes = tuple(
            InputNode(
                schemas[n], inputs[n].columns, tuple(key[n] for key in keys), times[n], resolved[n], inputs[n].derived()
            )
            for n in (0, 1)
        )
        user_schemas = [
            pa.schema([schema.field(name) for name in part.columns])
            for schema, part in zip(schemas, inputs, strict=True)
        ]
        expression = None if theta is None else Expression.parse(theta, user_schemas)
        how = join_type(self.how)
        if expression is not None and how != "inner":
            check_agreement(expression, inputs)
        return JoinNode(
            inputs=(nodes[0], nodes[1]),
            by=by,
            predicates=tuple(predicates),
            theta=expression,
            interval=interval,
            choice=choice,
            axis=axis,
            time_type=time_type,
            how=how,
            outer=one_of(self.outer, Outer, "outer"),  # type: ignore[arg-type]
            emit=one_of(self.emit, Emit, "emit"),  # type: ignore[arg-type]
            output=self._output(),
            hold=one_of(self.hold, Literal["auto", Hold], "hold"),  # type: ignore[arg-type]
            late=self._late(),
            invalid=self._invalid(),
            suffix=self._suffix(),
            validity=self._validity(),
            buckets=self._buckets(inputs),
            cell=self._cell(inputs, predicates, axis if interval is not None or not predicates else None),
        )

    def _choice(self, axis: TimeAxis | None, right: InputFrame) -> AsOf | BestOf | NearestOf | None:
        if self.asof is not None and axis is not None:
            return self.asof.resolve(axis, right)
        if self.nearest is not None:
            return self.nearest.resolve(axis, right)
        return None if self.best is None else self.best.choice()

    def _output(self) -> OutputMode:
        if self.output == "changelog" and self.emit == "ordered":
            raise CallError(
                'output="changelog" cannot be combined with emit="ordered"',
                hint="a correction comes after the row that it corrects, so it cannot be in order of time",
            )
        return one_of(self.output, OutputMode, "output")  # type: ignore[return-value]

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _keys(self, inputs: tuple[InputFrame, InputFrame]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
        if self.by is not None and (self.left_by is not None or self.right_by is not None):
            raise CallError("give either by= or left_by= and right_by=, not both")
        if self.by is not None:
            names = listed(self.by)
            for name in names:
                if not isinstance(name, str):
                    raise CallError(
                        f"by takes column names, got {name!r}", hint="use left_by= and right_by= for expressions"
                    )
            return self._merged_keys(inputs, names)
        left, right = listed(self.left_by), listed(self.right_by)
        if len(left) != len(right):
            raise CallError(f"left_by and right_by must be equally many, got {len(left)} and {len(right)}")
        pairs = [both(inputs, a, b) for a, b in zip(left, right, strict=True)]
        return (), [key_columns(inputs, pair, merged=False) for pair in pairs]

    def _merged_keys(
        self, inputs: tuple[InputFrame, InputFrame], names: list[str]
    ) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
        """Keys that appear once: input 1 calls them what input 0 calls them."""
        by: list[str] = []
        for name in names:
            one, two = both(inputs, name, name)
            if one not in inputs[0].columns or two not in inputs[1].columns:
                raise CallError(
                    f"by takes names of columns, and {name!r} is a field of one", hint="use left_by= and right_by="
                )
            if one in by:
                raise CallError(f"by has {name!r} twice", hint="name every key once")
            inputs[1].rename(two, one)
            by.append(one)
        return tuple(by), [key_columns(inputs, (name, name), merged=True) for name in by]

    # -- time ----------------------------------------------------------------------------------------------------------

    def _times(self, inputs: tuple[InputFrame, InputFrame]) -> tuple[list[Window | None], list[str | None]]:
        windows, times = self._per_input(self.window, "window"), self._per_input(self.time, "time")
        of_events = (self.lower, self.upper, self.asof, self.best, self.nearest)
        event = any(option is not None for option in of_events)
        names: list[str | None] = [None, None]
        for number, (window, time) in enumerate(zip(windows, times, strict=True)):
            part = inputs[number]
            if window is not None and not isinstance(window, Window):
                raise CallError(
                    f"window must be a window, got {window!r}", hint='for example window=sj.Range("2 seconds")'
                )
            if isinstance(window, Validity):
                if time is not None:
                    raise CallError("Validity brings its own time", hint="leave time= out for this input")
                start, end = part.resolve(window.start), part.resolve(window.end)
                part.time_axis(start)
                if part.types[start] != part.types[end]:
                    kinds = f"{part.types[start].simpleString()} and {part.types[end].simpleString()}"
                    raise CallError(
                        f"the two ends of a validity must have one type, got {kinds}", hint="cast one of them"
                    )
                windows[number], names[number] = Validity(start, end), start
            elif time is not None:
                if isinstance(time, Arrival):
                    time = F.current_timestamp()  # on a stream, Spark makes it the clock of the micro-batch
                if window is None and not event:
                    raise CallError(
                        f"input {number} has a time but no window",
                        hint='say how long a row is valid, window=sj.Range("2 seconds"), or use sj.join_interval',
                    )
                names[number] = part.resolve(time)
            elif window is not None:
                raise CallError(f"input {number} has a window but no time", hint='give time="ts"')
        if (names[0] is None) != (names[1] is None):
            raise CallError("either both inputs have a time or none", hint="give time= and window= one per input")
        return windows, names

    def _axis(
        self, inputs: tuple[InputFrame, InputFrame], times: list[str | None]
    ) -> tuple[TimeAxis | None, pa.DataType | None]:
        if times[0] is None or times[1] is None:
            return None, None
        axes = [part.time_axis(name) for part, name in zip(inputs, times, strict=True) if name is not None]
        kinds = [part.types[name] for part, name in zip(inputs, times, strict=True) if name is not None]
        if (axes[0] is not TimeAxis.INTEGER and kinds[0] != kinds[1]) or axes[0] != axes[1]:
            raise CallError(
                f"the inputs' times have different types: {kinds[0].simpleString()} and {kinds[1].simpleString()}",
                hint="cast one of them: they must count the same thing",
            )
        if axes[0] is TimeAxis.INTEGER:
            return axes[0], pa.int64()
        return axes[0], inputs[0].schema().field(times[0]).type

    def _interval(self, axis: TimeAxis | None) -> IntervalBounds | None:
        if self.lower is None and self.upper is None:
            return None
        if axis is None:
            raise CallError("an interval join needs the time of both inputs", hint='on="ts", or left_on= and right_on=')
        lower, upper = axis.ticks(self.lower, "lower"), axis.ticks(self.upper, "upper")
        if lower > upper:
            raise CallError(
                f"lower must not be above upper, got {self.lower!r} and {self.upper!r}",
                hint="both are bounds of right - left; earlier right rows have negative bounds",
            )
        return IntervalBounds(lower, upper, one_of(self.closed, Closed, "closed"))  # type: ignore[arg-type]

    def _check_lateness(self, axis: TimeAxis | None) -> None:
        """A batch has no late rows, so lateness has no effect here; a wrong one is still a wrong call."""
        for lateness in self._per_input(self.lateness, "lateness"):
            if lateness is None:
                continue
            if not isinstance(lateness, Grace):
                raise CallError(f"lateness must be a policy, got {lateness!r}", hint='lateness=sj.Grace("5 seconds")')
            if axis is None:
                raise CallError("lateness needs a time", hint="give time= and window=")
            lateness.resolve(axis)

    def _slack(self, inputs: tuple[InputFrame, InputFrame], node: JoinNode) -> tuple[Grace | None, Grace | None]:
        """How late the rows of each input may be; None for one that makes no progress: static, or without time."""
        if node.axis is None and self.nearest is not None and inputs[1].streaming:
            raise CallError(
                "a nearest join with a stream on the right needs time, or a row would wait for ever for a nearer one",
                hint='give time="ts" and tolerance="10 seconds"; beside a static right frame neither is needed',
            )
        if node.axis is None and all(part.streaming for part in inputs):
            raise CallError(
                "a streaming join needs time, or its state would grow for ever",
                hint='give time="ts" and window=sj.Range("10 minutes"), or use sj.join_interval',
            )
        if node.axis is None:
            self._check_timeless(node)
        one, two = (
            self._slack_of(part, given, time, side.time, node.axis)
            for part, given, time, side in zip(
                inputs,
                self._per_input(self.lateness, "lateness"),
                self._per_input(self.time, "time"),
                node.inputs,
                strict=True,
            )
        )
        return one, two

    def _check_timeless(self, node: JoinNode) -> None:
        """Refuse what a stream could only do with time: it would be accepted, and never happen."""
        asked = {
            'emit="ordered"': (node.emit == "ordered", "nothing would say when a result's turn has come"),
            "idle_after": (self.idle_after is not None, "an input without progress holds nothing back"),
            "late": (node.late != ("drop", "drop"), "no row can be late"),
        }
        for option, (given, why) in asked.items():
            if given:
                raise CallError(
                    f"{option} needs time: without it {why}", hint="give time= and window=, or leave it out"
                )

    def _slack_of(
        self, part: InputFrame, given: Grace | None, time: Any, column: str | None, axis: TimeAxis | None
    ) -> Grace | None:
        """As the call says, or the frame's watermark; or as is known: rows stamped on arrival, results of a join."""
        if axis is None or not part.streaming:
            return None
        assert column is not None
        if given is not None:
            return given.resolve(axis)
        if isinstance(time, Arrival):
            return Grace(0)
        delay = part.watermark_delay(column)
        if delay is not None and axis is TimeAxis.TIMESTAMP:
            return Grace(delay * 1000)
        joined = part.joined_by(column)
        if joined is not None:
            return Grace(output_delay(*joined))
        raise CallError(
            f"nothing says how late rows of input {part.number} may be, and guessing would lose rows",
            hint="give lateness=sj.Grace(0.5), a distance of the values that the streams are ordered by"
            if self.best is not None and self.best.steps is not None
            else f'give lateness=sj.Grace("10 seconds"), or use withWatermark("{column}", "10 seconds")',
        )

    def _idle_after(self) -> int | None:
        """In microseconds of the clock, which is not the time of the rows."""
        if not isinstance(self.timers, bool):
            raise CallError(f"timers must be True or False, got {self.timers!r}")
        if self.idle_after is None:
            if self.timers:
                raise CallError(
                    "timers=True looks for idle inputs, and nothing says when an input is idle",
                    hint='give idle_after="30 seconds"',
                )
            return None
        ticks = TimeAxis.TIMESTAMP.ticks(self.idle_after, "idle_after")
        if ticks <= 0:
            raise CallError(f"idle_after must be positive, got {self.idle_after!r}", hint='idle_after="30 seconds"')
        return ticks

    # -- the rest ------------------------------------------------------------------------------------------------------

    def _per_input(self, option: Any, what: str) -> list[Any]:
        if isinstance(option, list | tuple):
            if len(option) != 2:
                raise CallError(f"{what} needs one value, or one per input, got {len(option)}")
            return list(option)
        return [option, option]

    def _invalid(self) -> InvalidPolicy:
        policy = one_of(self.invalid, InvalidPolicy, "invalid")
        if policy == "output" and join_type(self.how) in ("semi", "anti"):
            raise CallError(
                'invalid="output" cannot show rows of input 1 in a semi or anti join, whose result has no column of it',
                hint='use invalid="fail" or invalid="drop"',
            )
        return policy  # type: ignore[return-value]

    def _late(self) -> tuple[LatePolicy, LatePolicy]:
        one, two = (one_of(policy, LatePolicy, "late") for policy in self._per_input(self.late, "late"))
        if two == "output" and join_type(self.how) in ("semi", "anti"):
            raise CallError(
                'late="output" cannot show rows of input 1 in a semi or anti join, whose result has no column of it',
                hint='use late=["output", "drop"] or late=["output", "fail"]',
            )
        return one, two  # type: ignore[return-value]

    def _suffix(self) -> str:
        if not isinstance(self.suffix, str):
            raise CallError(f"suffix must be text, got {self.suffix!r}", hint='for example suffix="_right"')
        return self.suffix

    def _validity(self) -> tuple[str, str]:
        names: Any = self.validity
        two = isinstance(names, list | tuple) and len(names) == 2 and all(isinstance(name, str) for name in names)
        if not two or names[0].lower() == names[1].lower():
            raise CallError(
                f"validity takes two different names, got {names!r}", hint='for example validity=("from", "to")'
            )
        return names[0], names[1]

    def _buckets(self, inputs: tuple[InputFrame, InputFrame]) -> int:
        if self.buckets is None:
            return default_buckets(inputs[0].frame)
        if isinstance(self.buckets, bool) or not isinstance(self.buckets, int) or self.buckets < 1:
            raise CallError(f"buckets must be at least 1, got {self.buckets!r}")
        return self.buckets

    def _cell(
        self, inputs: tuple[InputFrame, InputFrame], predicates: list[Predicate], axis: TimeAxis | None
    ) -> float | None:
        """The cell size in the unit of what the grid lies over: time, or the values of the first predicate."""
        if self.cell is None:
            return None
        scale, predicate = 0, min(predicates, key=order_of, default=None)
        if axis is None and isinstance(predicate, Band | Overlaps):
            column = predicate.columns(0)[0]
            kind = inputs[0].types[column]
            if isinstance(kind, TimestampType | TimestampNTZType | DateType):
                axis = inputs[0].time_axis(column)
            scale = kind.scale if isinstance(kind, DecimalType) else 0
        cell: Any = self.cell if axis is None else axis.ticks(self.cell, "cell")
        if isinstance(cell, bool) or not isinstance(cell, int | float) or not 0 < cell < float("inf"):
            raise CallError(f"cell must be a positive number, got {self.cell!r}", hint="leave it out to have it chosen")
        return float(cell) * 10.0**scale


def is_time(frame: DataFrame, column: Any) -> bool:
    """Whether a column counts on a time axis."""
    part = InputFrame(0, frame)
    try:
        part.time_axis(part.resolve(column))
    except CallError as error:
        if "no time axis" in error.message:
            return False
        raise
    return True


def run_best_match(left: DataFrame, right: DataFrame, best: BestMatchCall, options: dict[str, Any]) -> DataFrame:
    """A best-match join. Without a time axis progress of streams is counted in small steps of the values."""
    one, two, _ = best.dimensions()[0]
    times: list[Any] | None = [one, two] if is_time(left, one) and is_time(right, two) else None
    options = dict(options)
    if times is None:
        in_steps, numbers, lateness = best.in_steps(options.pop("lateness", None))
        if left.isStreaming or right.isStreaming:
            if options.get("emit") == "ordered":
                raise UnsupportedError(
                    f'emit="ordered" over streams that are ordered by {one!r}, which has no ticks to order by',
                    hint='make it an integer in a fine unit, expr("cast(ra * 1e6 as long)"), and its epsilon too',
                )
            best, times, options["lateness"] = in_steps, numbers, lateness
    return JoinCall([left, right], time=times, best=best, **options).run()


def check_verdicts(plan: JoinPlan) -> None:
    """Refuse late rows where a second stage decides about them.

    It tells rows apart by content and validity. A late row need not meet whom an equal one met in time, and would be
    taken for it: a row that met nobody could be lost.
    """
    if any(plan.followed) and "join" in plan.node.late:
        raise UnsupportedError(
            f'late="join" in a {plan.join.how} join whose rows go to several buckets is not there yet',
            hint='use late="output" or late="drop", give equality keys (by=), or buckets=1',
        )


def default_buckets(frame: DataFrame) -> int:
    """As many buckets as tasks can run at once.

    A query that goes on must find its buckets again. How many tasks a cluster runs at once depends on who has joined it
    so far, and Spark Connect does not say at all: there it is as many as shuffle partitions, which are a setting.
    """
    session = frame.sparkSession
    partitions = int(session.conf.get("spark.sql.shuffle.partitions", "8") or 8)
    try:
        context = session.sparkContext
        steady = not frame.isStreaming or str(context.master).startswith("local")
        parallel = context.defaultParallelism if steady else partitions
    except Exception:  # Spark Connect has no context, and says so in its own way
        parallel = partitions
    if frame.isStreaming:
        parallel = min(parallel, partitions)
    return max(1, min(parallel, MOST_DEFAULT_BUCKETS))


def result_schema(plan: JoinPlan, inputs: tuple[InputFrame, InputFrame]) -> StructType:
    """The result's schema with Spark's own types, which know more than Arrow's."""
    fields = []
    for column in plan.naming.columns:
        number, _, name = column.sources[0].partition(".")
        fields.append(StructField(column.name, inputs[int(number)].types[name]))
    if plan.naming.validity is not None:
        kind = _time_type(plan)
        fields += [StructField(name, kind) for name in plan.naming.validity]
    fields += [StructField(flag, BooleanType()) for flag in plan.naming.flags]
    fields += [StructField(CHANGE, StringType())] * plan.naming.changelog
    return StructType(fields)


def _time_type(plan: JoinPlan) -> DataType:
    assert plan.node.time_type is not None
    return LongType() if plan.node.axis is TimeAxis.INTEGER else from_arrow_type(plan.node.time_type)
