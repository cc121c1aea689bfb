"""Every option against every function: how it is given, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from tests.spark.streams import SCHEMA

LEFT_OUT: Final = object()  # an option that the call without it has, and the one with it has not
GRACE: Final = sj.Grace("5 seconds")
TIMED: Final = {"time": "ts", "window": sj.Range("5 seconds"), "lateness": GRACE}


# -- functions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A column of the table: a function, and the call that an option is added to."""

    name: str
    usual: Mapping[str, Any]
    of: str = "two"  # frames: "two", "list", "one", or "named", which is CQL
    time: str = "time"  # the parameter that says when a row is

    def call(self, spark: SparkSession, frames: Sequence[DataFrame], **options: Any) -> DataFrame:
        """The call over two frames, or the first of them; over three where it takes more than two."""
        given = {name: value for name, value in {**self.usual, **options}.items() if value is not LEFT_OUT}
        if self.of == "named":
            text = Text(**{name: given.pop(name) for name in list(given) if name in Text.__dataclass_fields__})
            return sj.cql(spark, str(text), **dict(zip("RST", frames, strict=False)), **given)
        function = getattr(sj, self.name)
        match self.of:
            case "list":
                return function(list(frames), **given)
            case "one":
                return function(frames[0], **given)
        return function(*frames[:2], **given)

    def each(self, one: Any, two: Any) -> Any:
        """A value for each frame, as the function takes it."""
        if self.of == "named":
            return {"R": one, "S": two}
        return [one] if self.of == "one" else [one, two]


@dataclass(frozen=True)
class Text:
    """A CQL query, in the parts that options change."""

    select: str
    tail: str = ""
    kind: str = ""
    window: str = "[RANGE 5 SECONDS]"
    on: str = "R.v <> S.v"
    asof: bool = False
    priority: str = ""  # of R

    def __str__(self) -> str:
        condition = f"ON {self.on}" if self.on else ""
        join = f"{self.kind} ASOF JOIN" if self.asof else f"{self.kind} JOIN"
        match = "MATCH_CONDITION (R.ts >= S.ts) " if self.asof else ""
        left = f"R {self.window} {self.priority}"
        return f"SELECT {self.select} FROM {left} {join} S {self.window} {match}{condition} {self.tail}"


FUNCTIONS: Final = {
    each.name: each
    for each in (
        Function("join", TIMED, "list"),
        Function("join_interval", {"on": "ts", "lower": "0 s", "upper": "5 s", "lateness": GRACE}, time="on"),
        Function("join_band", {"on": "v", "below": 1, "above": 1, **TIMED}),
        Function("join_overlap", {"on": ("lo", "hi"), **TIMED}),
        Function("join_within", {"on": ("v", "lo"), "radius": 1.5, **TIMED}),
        Function("join_asof", {"on": "ts", "how": "inner", "lateness": GRACE}, time="on"),
        Function("join_best_match", {"on": {"ts": "5 s", "v": 0.5}, "how": "inner", "lateness": GRACE}, time="on"),
        Function(
            "join_nearest",
            {"on": ("v", "lo"), "within": 1.5, "how": "inner", "time": "ts", "tolerance": "5 s", "lateness": GRACE},
        ),
        Function("aggregate", {"aggregates": {"n": "count", "most": ("max", "v")}, **TIMED}, "one"),
        Function("distinct", TIMED, "one"),
        Function("union", TIMED, "list"),
        Function("except_", TIMED, "list"),
        Function("intersect", TIMED, "list"),
        Function("cql, a join", {"select": "R.id, R.v", "lateness": GRACE}, "named"),
        Function("cql, groups", {"select": "R.k, COUNT(*) AS n", "tail": "GROUP BY R.k", "lateness": GRACE}, "named"),
        Function(
            "cql, as of",
            {"select": "R.id, R.v", "asof": True, "window": "", "on": "", "lateness": GRACE},
            "named",
        ),
    )
}


CQL: Final = FUNCTIONS["cql, a join"]
ORDERED: Final = {"emit": "ordered"}


# -- options -----------------------------------------------------------------------------------------------------------

Given = Mapping[str, Any] | Callable[[Function], Mapping[str, Any]]


@dataclass(frozen=True)
class Option:
    """A row of the table: an option with a value.

    `text`: how it is said in a query, where its text says it. `beside`: what the calls with and without it both have,
    because it means nothing alone. `idle`: a batch has no use for it. `static`: which of the frames is no stream.
    `many`: over three frames, where the function takes more than two.
    """

    title: str
    given: Given
    text: Mapping[str, Any] | None = None
    beside: Given = field(default_factory=dict)
    idle: bool = False
    static: int | None = None
    many: bool = False

    def frames(self, function: Function) -> int:
        """How many frames the call is over; an event join has two."""
        return 3 if self.many and function.of in ("list", "named") and function.name != AS_OF else 2

    def added(self, function: Function) -> Mapping[str, Any]:
        """What the call with it has more."""
        if function.of == "named" and self.text is not None:
            return self.text
        return self.given(function) if callable(self.given) else self.given

    def common(self, function: Function) -> Mapping[str, Any]:
        """What both calls have."""
        return self.beside(function) if callable(self.beside) else self.beside


def _time(given: Any) -> Callable[[Function], Mapping[str, Any]]:
    def time(function: Function) -> Mapping[str, Any]:
        if function.name == "join_best_match":
            return {"on": {(given, given): "5 s", "v": 0.5}}
        return {function.time: given}

    return time


def _arrival(function: Function) -> Mapping[str, Any]:
    return {**_time(sj.arrival())(function), "lateness": LEFT_OUT}  # how late rows are is known then


def _args(function: Function) -> Mapping[str, Any]:
    tail = {"tail": f"WHERE R.v > :n {function.usual.get('tail', '')}"} if function.of == "named" else {}
    return {"args": {"n": 1}, **tail}


def _how(how: str) -> Option:
    kind = {"left": "LEFT", "semi": "LEFT SEMI", "anti": "LEFT ANTI", "full": "FULL"}[how]
    return Option(f'how="{how}"', {"how": how}, {"kind": kind})


def _with_keys(function: Function) -> Mapping[str, Any]:
    """Without keys an aggregation, and an as-of join, are in one bucket."""
    if function.of == "named":
        return {"on": "R.k = S.k"}
    return {"by": "k"} if function.name in (*MATCHING, *CHOOSING, "aggregate") else {}


def _cell(function: Function) -> Mapping[str, Any]:
    return {"cell": "7 s" if function.name in ("join", "join_interval", "join_best_match") else 7.0}


def _third(function: Function) -> Mapping[str, Any]:
    """A third frame, where it must be said what is done with it; by a key of all, else a cascade is chosen anyway."""
    if function.of != "named" or function.name == AS_OF:
        return {}
    return {"on": "R.k = S.k", "tail": f"JOIN T [RANGE 5 SECONDS] ON T.k = S.k {function.usual.get('tail', '')}"}


def _in_order_by_key(function: Function) -> Mapping[str, Any]:
    return {"by": "k", "emit": "ordered"} if function.name == "join" else {}


def _hold(function: Function) -> Mapping[str, Any]:
    return {"hold": "outputs" if function.name == "join" else "inputs"}  # what is not chosen anyway


def _ranked(function: Function) -> Mapping[str, Any]:
    return {"priority": "PRIORITY BY id" if function.of == "named" else "id"}


def options() -> dict[str, Option]:
    """All rows of the table, by title. Expressions need a session that runs."""
    one, two = F.col("k") + 1, F.col("k") * 2
    later = F.col("ts") + F.expr("INTERVAL 1 SECOND")
    nine, five = sj.Grace("9 s"), sj.Grace("5 s")
    joined, recall = {"late": "join"}, {"lateness": sj.Recall(0.9)}
    snapshot: Given = lambda function: {"kind": "LEFT"} if function.of == "named" else {"how": "left"}  # noqa: E731
    every = [
        Option('by="k"', {"by": "k"}, {"on": "R.k = S.k"}),
        Option('by="k + 1"', {"by": "k + 1"}, {"on": "R.k + 1 = S.k + 1"}),
        Option('left_by="k", right_by="id"', {"left_by": "k", "right_by": "id"}, {"on": "R.k = S.id"}),
        Option("left_by, right_by: expressions", {"left_by": one, "right_by": two}, {"on": "R.k + 1 = S.k * 2"}),
        Option("where=sj.theta(...)", {"where": sj.theta("l.lo < r.hi")}, {"on": "R.lo < S.hi"}),
        Option('where="l.lo < r.hi"', {"where": "l.lo < r.hi"}, {"on": "R.lo < S.hi"}),
        Option("where: a Column", {"where": F.col("l.lo") < F.col("r.hi")}, {"on": "R.lo < S.hi"}),
        *(_how(how) for how in ("left", "semi", "anti", "full")),
        Option('outer="snapshot"', {"outer": "snapshot"}, beside=snapshot),
        Option("window=sj.Rows(3)", {"window": sj.Rows(3)}, {"window": "[ROWS 3]"}),
        Option('window=sj.Rows(3, by="k")', {"window": sj.Rows(3, by="k")}, {"window": "[PARTITION BY k ROWS 3]"}),
        Option(
            "window=sj.Rows(3, by=expression)",
            {"window": sj.Rows(3, by=one)},
            {"window": "[PARTITION BY k + 1 ROWS 3]"},
        ),
        Option("time=sj.arrival()", _arrival),
        Option("time=expression", _time(later)),
        Option('time="ts + INTERVAL 1 SECOND"', _time("ts + INTERVAL 1 SECOND")),
        Option('args={"n": 1}', _args),
        Option("lateness=sj.Grace(...)", {"lateness": nine}, idle=True),
        Option("lateness=sj.MaxDelay()", {"lateness": sj.MaxDelay()}, idle=True),
        Option("lateness=sj.Recall(...)", recall, idle=True),
        Option("lateness per input", lambda function: {"lateness": function.each(nine, five)}, idle=True),
        Option('late="fail"', {"late": "fail"}, idle=True),
        Option('late="output"', {"late": "output"}),
        Option('late="join"', {"late": "join"}, idle=True),
        Option("late per input", lambda function: {"late": function.each("output", "fail")}),
        Option('invalid="drop"', {"invalid": "drop"}),
        Option('invalid="output"', {"invalid": "output"}),
        Option("invalid per input", lambda function: {"invalid": function.each("output", "drop")}),
        Option("idle_after", {"idle_after": "30 seconds"}, idle=True),
        Option("timers=True", {"timers": True}, beside={"idle_after": "30 seconds"}, idle=True),
        Option('emit="ordered"', {"emit": "ordered"}),
        Option('output="changelog"', {"output": "changelog"}),
        Option('method="negative"', {"method": "negative"}),
        Option("validity", {"validity": ("since", "until")}),
        Option("suffix", {"suffix": "_2"}),
        Option("buckets", {"buckets": 3}, beside=_with_keys),
        Option('memory="64 MB"', {"memory": "64 MB"}),
        Option("cell", _cell),
        Option("hold", _hold, beside={"emit": "ordered"}),
        Option('algorithm="tpmj"', {"algorithm": "tpmj"}, beside=_in_order_by_key),
        Option("merge", {"algorithm": "tpmj", "merge": sj.Greedy()}, beside=_in_order_by_key),
        Option('nway="cascade"', {"nway": "cascade"}, beside=_third, many=True),
        Option('priority="id"', _ranked, {"priority": "PRIORITY BY id"}),
        Option("priority per input", lambda function: {"priority": function.each("id", None)}, _ranked(CQL)),
        Option('priority_as="urgency"', {"priority_as": "urgency"}, beside=_ranked),
        Option('new_priority="least(p0, p1)"', {"new_priority": "least(p0, p1)"}, beside=_ranked),
        Option("schemas", {"schemas": SCHEMA}),
        Option("a table on the right", {}, static=1),
        Option("a table on the left", {}, static=0),
        Option('late="join", window=sj.Rows(3)', {**joined, "window": sj.Rows(3)}, {**joined, "window": "[ROWS 3]"}),
        Option('late="join", how="left", no keys', {**joined, "how": "left"}, {**joined, "kind": "LEFT"}),
        Option('late="join", emit="ordered"', {**joined, "emit": "ordered"}),
        Option('late="join", method="negative"', {**joined, "method": "negative"}),
        Option('late="output", how="semi"', {"late": "output", "how": "semi"}, {"late": "output", "kind": "LEFT SEMI"}),
        Option('lateness=sj.Recall(...), late="fail"', {**recall, "late": "fail"}, idle=True),
        Option('lateness=sj.Recall(...), emit="ordered"', {**recall, "emit": "ordered"}),
        Option(
            'priority="id", hold="inputs"', lambda function: {**_ranked(function), "hold": "inputs"}, beside=ORDERED
        ),
        Option('priority="id", lateness=sj.Recall(...)', recall, beside=_ranked, idle=True),
        Option('priority="id", output="changelog"', {"output": "changelog"}, beside=_ranked),
        Option('output="changelog", emit="ordered"', {"output": "changelog", "emit": "ordered"}),
        Option('output="changelog", validity', {"output": "changelog", "validity": ("since", "until")}),
    ]
    return {each.title: each for each in every}


# -- cells -------------------------------------------------------------------------------------------------------------

WORKS: Final = "works"
TEXT: Final = "in the query"  # it works, and is said in the text
ABSENT: Final = "no such parameter"
ONE: Final = "one frame"  # there is no other
UNUSED: Final = "no effect"  # there is nothing that it could change

# Why a call is refused: what the error says, and a sentence for the document.
REASONS: Final[dict[str, tuple[str, str]]] = {
    "takes": (
        r'(as-of|nearest) join is how="left" or how="inner"|best-match join is left, inner, right or full'
        r"|A.* ASOF JOIN is not planned",
        "An as-of or nearest join gives every left row its partners: it is `left` or `inner`; a best-match join may "
        "also be `right` or `full`. For rows without partner filter the result of a left join.",
    ),
    "sorted runs": (
        "in a query: joins in sorted runs leave their results when runs are merged",
        "Joins in sorted runs leave their results when runs are merged, nobody knows when: operators of a query above "
        "them would wait for it. Use `sj.join`, or `memory=`.",
    ),
    "columns": (
        "ON of an event join has equalities of columns only",
        "`ON` of an event join has equalities of columns only. Compute the column in a subquery, filter in `WHERE`.",
    ),
    "events": (
        "part of an event join .*whose rows have no validity",
        "The streams of an event join have no window: their rows have no validity.",
    ),
    "groups": (
        r"'\+' is not expected here; ROWS is expected",
        "`PARTITION BY` takes names of columns. Compute the column on the frame before.",
    ),
    "value": (
        "must be a name, SQL text or a Column, got Arrival",
        "The dimensions of a best-match join are values of the rows. Add a column `current_timestamp()` to the frame. "
        "A Column can be no key of a dict: write it as SQL text.",
    ),
    "named": (
        "is for windows, and this query has none",
        "An event join names its times itself, `MATCH_CONDITION (R.ts >= S.ts)`: they are columns of the frames.",
    ),
    "keeps nothing": (
        "(in|of) a query that keeps nothing",
        "The union of windows in time keeps nothing: its rows pass as they come, in no order; none is too late, and "
        "none waits for an idle input. Over row windows, beside a table, or with `all=False`, it does.",
    ),
    "forgotten": (
        r'late="join" of (the left input|input 0) of an? (as-of|nearest|best-match) join',
        "What a late left row would take may be forgotten already. A late right row of an as-of join can be joined, "
        '`late=["output", "join"]`.',
    ),
    "many": (
        'late="join" is for a join of two frames',
        "A late row of a query of several operators may be part of many results, each behind what has left.",
    ),
    "no time": (
        "a row without time is not invalid, it takes nobody",
        "A row without time is not invalid in an event join: it takes nobody.",
    ),
    "lifetimes": (
        "says how lifetimes are managed, and an event join has none",
        "The method says how lifetimes are managed, and an event join has none.",
    ),
    "no validity": (
        "names columns that this result has not",
        "The result of an event join, or a changelog, has no validity, and no columns to name.",
    ),
    "pushes": (
        "would push others out whose ends are known already",
        "A late row would push others out of a row window whose ends are known already.",
    ),
    "court": (
        'late="join" in a .* join whose rows go to several buckets',
        "Without equality keys rows go to several buckets, and a second stage decides who met nobody. It tells rows "
        "apart by content and validity, and a late row need not meet whom an equal one met in time. Give keys, or "
        "`buckets=1`.",
    ),
    "out of order": (
        'late="join" cannot be combined with emit="ordered"',
        "The results of a late row would leave out of order.",
    ),
    "tuples": (
        'late="join" by plus and minus tuples',
        "Plus and minus tuples are said in order of time.",
    ),
    "semi": (
        'late="output" cannot show rows of input 1 in a semi or anti join',
        "The result of a semi or anti join has no columns in which rows of the right input could be shown. Show those "
        'of the left, `late=["output", "drop"]`.',
    ),
    "correction": (
        'output="changelog" cannot be combined with emit="ordered"',
        "A correction comes after the row that it corrects, so it cannot be in order of time.",
    ),
    "final": (
        "a recall target in a join in which rows choose",
        "With a recall target partners may be found late, and what a row has chosen is final.",
    ),
    "one join": (
        "a recall target is for one join of two streams",
        "A recall target is a share of the results of one join. One that is found late would change what is said above "
        "it.",
    ),
    "on arrival": (
        'late="fail" beside a recall target',
        "With a recall target rows join on arrival, late ones too.",
    ),
    "target out of order": (
        'a recall target cannot be combined with emit="ordered"',
        "With a recall target rows join on arrival, and the results of late ones would leave out of order.",
    ),
    "urgent wait": (
        'hold="inputs" beside priorities',
        "Rows that are held back before they are joined would make urgent ones wait, too.",
    ),
    "early": (
        "a recall target beside priorities",
        "A recall target learns how late rows are, and urgent ones come early.",
    ),
    "urgent tuples": (
        "priorities by plus and minus tuples",
        "Plus and minus tuples are said in order of time, whoever is urgent.",
    ),
}

MATCHING: Final = ("join", "join_interval", "join_band", "join_overlap", "join_within")
WINDOWED: Final = ("join", "join_band", "join_overlap", "join_within")
CHOOSING: Final = ("join_asof", "join_best_match", "join_nearest")
LIFETIMES: Final = ("aggregate", "distinct", "union", "except_", "intersect")
RELATIONAL: Final = ("cql, a join", "cql, groups")
AS_OF: Final = "cql, as of"
FAMILIES: Final = {
    "Joins in which a row takes all that match": MATCHING,
    "Joins in which a row takes some": CHOOSING,
    "Functions over lifetimes": LIFETIMES,
    "CQL": (*RELATIONAL, AS_OF),
}

# One cell for batch and streaming; or two, the first of them for batches.
Cell = str | tuple[str, str]


def _row(*parts: tuple[Sequence[str], Cell], otherwise: Cell = ABSENT) -> dict[str, Cell]:
    cells = dict.fromkeys(FUNCTIONS, otherwise)
    for names, cell in parts:
        cells |= dict.fromkeys(names, cell)
    return cells


_UNION_WAITS_NOT: Final = (("union",), (WORKS, "keeps nothing"))
_BOTH: Final = (*MATCHING, *CHOOSING)
_HOW: Final = (MATCHING, WORKS), (("join_asof", "join_nearest", AS_OF), "takes"), (RELATIONAL, TEXT)
_ROWS: Final = ((*WINDOWED, *LIFETIMES), WORKS), (RELATIONAL, TEXT), ((AS_OF,), "events")
_INVALID: Final = ((*MATCHING, *LIFETIMES, *RELATIONAL), WORKS), ((AS_OF,), "no time")
_NO_TARGET: Final = ((*CHOOSING, AS_OF), (WORKS, "final")), ((*LIFETIMES, "cql, groups"), (WORKS, "one join"))
_SORTED: Final = (("join",), WORKS), ((*RELATIONAL, AS_OF), "sorted runs")
_TABLE_BESIDE: Final = (("aggregate", "distinct"), ONE)

CELLS: Final[dict[str, dict[str, Cell]]] = {
    'by="k"': _row(((*_BOTH, "aggregate"), WORKS), ((*RELATIONAL, AS_OF), TEXT)),
    'by="k + 1"': _row(((*_BOTH, "aggregate"), WORKS), (RELATIONAL, TEXT), ((AS_OF,), "columns")),
    'left_by="k", right_by="id"': _row((_BOTH, WORKS), ((*RELATIONAL, AS_OF), TEXT)),
    "left_by, right_by: expressions": _row((_BOTH, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "columns")),
    "where=sj.theta(...)": _row((MATCHING, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "columns")),
    'where="l.lo < r.hi"': _row((MATCHING, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "columns")),
    "where: a Column": _row((MATCHING, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "columns")),
    'how="left"': _row((_BOTH, WORKS), ((*RELATIONAL, AS_OF), TEXT)),
    'how="semi"': _row(*_HOW, (("join_best_match",), "takes")),
    'how="anti"': _row(*_HOW, (("join_best_match",), "takes")),
    'how="full"': _row(*_HOW, (("join_best_match",), WORKS)),
    'outer="snapshot"': _row((WINDOWED, WORKS)),
    "window=sj.Rows(3)": _row(*_ROWS),
    'window=sj.Rows(3, by="k")': _row(*_ROWS),
    "window=sj.Rows(3, by=expression)": _row(((*WINDOWED, *LIFETIMES), WORKS), ((*RELATIONAL, AS_OF), "groups")),
    "time=sj.arrival()": _row((("join_best_match",), "value"), ((AS_OF,), "named"), otherwise=WORKS),
    "time=expression": _row((("join_best_match",), ABSENT), ((AS_OF,), "named"), otherwise=WORKS),
    'time="ts + INTERVAL 1 SECOND"': _row(((AS_OF,), "named"), otherwise=WORKS),
    'args={"n": 1}': _row(((*RELATIONAL, AS_OF), WORKS)),
    "lateness=sj.Grace(...)": _row(otherwise=WORKS),
    "lateness=sj.MaxDelay()": _row(otherwise=WORKS),
    "lateness=sj.Recall(...)": _row(*_NO_TARGET, otherwise=WORKS),
    "lateness per input": _row(otherwise=WORKS),
    'late="fail"': _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'late="output"': _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'late="join"': _row(
        ((*CHOOSING, AS_OF), "forgotten"), ((*LIFETIMES, "cql, groups"), "many"), otherwise=WORKS
    ),
    "late per input": _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'invalid="drop"': _row(*_INVALID),
    'invalid="output"': _row(*_INVALID),
    "invalid per input": _row(*_INVALID),
    "idle_after": _row(_UNION_WAITS_NOT, otherwise=WORKS),
    "timers=True": _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'emit="ordered"': _row((("union",), "keeps nothing"), otherwise=WORKS),
    'output="changelog"': _row(((*CHOOSING, *LIFETIMES, *RELATIONAL, AS_OF), WORKS)),
    'method="negative"': _row(((*LIFETIMES, *RELATIONAL), WORKS), ((AS_OF,), "lifetimes")),
    "validity": _row(((*WINDOWED, *LIFETIMES, *RELATIONAL), WORKS), ((AS_OF,), "no validity")),
    "suffix": _row((_BOTH, WORKS)),
    "buckets": _row((("union",), UNUSED), otherwise=WORKS),
    'memory="64 MB"': _row(((*_BOTH, *RELATIONAL, AS_OF), WORKS)),
    "cell": _row(((*MATCHING, "join_best_match", "join_nearest"), WORKS)),
    "hold": _row((MATCHING, WORKS)),
    'algorithm="tpmj"': _row(*_SORTED),
    "merge": _row(*_SORTED),
    'nway="cascade"': _row((("join", *RELATIONAL), WORKS), ((AS_OF,), UNUSED)),
    'priority="id"': _row((_BOTH, WORKS), ((*RELATIONAL, AS_OF), TEXT)),
    "priority per input": _row((_BOTH, WORKS), ((*RELATIONAL, AS_OF), TEXT)),
    'priority_as="urgency"': _row(((*_BOTH, *RELATIONAL, AS_OF), WORKS)),
    'new_priority="least(p0, p1)"': _row((_BOTH, WORKS)),
    "schemas": _row(otherwise=UNUSED),
    "a table on the right": _row(_TABLE_BESIDE, otherwise=WORKS),
    "a table on the left": _row(_TABLE_BESIDE, otherwise=WORKS),
    'late="join", window=sj.Rows(3)': _row(
        (WINDOWED, "pushes"), ((*LIFETIMES, "cql, groups"), "many"), (("cql, a join",), "pushes"), ((AS_OF,), "events")
    ),
    'late="join", how="left", no keys': _row(
        (("join", "join_overlap"), (WORKS, "court")), (("join_interval", "join_band", "join_within"), WORKS),
        ((*CHOOSING, AS_OF), "forgotten"), (("cql, a join",), (TEXT, "court")), (("cql, groups",), "many"),
    ),
    'late="join", emit="ordered"': _row(
        (MATCHING, "out of order"), ((*CHOOSING, AS_OF), "forgotten"), ((*LIFETIMES, "cql, groups"), "many"),
        (("cql, a join",), "out of order"),
    ),
    'late="join", method="negative"': _row(
        ((*LIFETIMES, "cql, groups"), "many"), (("cql, a join",), "tuples"), ((AS_OF,), "lifetimes")
    ),
    'late="output", how="semi"': _row((MATCHING, "semi"), (CHOOSING, "takes"), (RELATIONAL, TEXT), ((AS_OF,), "takes")),
    'lateness=sj.Recall(...), late="fail"': _row(
        *_NO_TARGET, (("union",), (WORKS, "one join")), otherwise=(WORKS, "on arrival")
    ),
    'lateness=sj.Recall(...), emit="ordered"': _row(
        *_NO_TARGET, (("union",), ("keeps nothing", "one join")), otherwise=(WORKS, "target out of order")
    ),
    'priority="id", hold="inputs"': _row((MATCHING, "urgent wait")),
    'priority="id", lateness=sj.Recall(...)': _row(
        ((*MATCHING, "cql, a join"), (WORKS, "early")), ((*CHOOSING, AS_OF), (WORKS, "final")),
        (("cql, groups",), (WORKS, "one join")),
    ),
    'priority="id", output="changelog"': _row(((*CHOOSING, AS_OF), WORKS), (RELATIONAL, "urgent tuples")),
    'output="changelog", emit="ordered"': _row(((*CHOOSING, *LIFETIMES, *RELATIONAL, AS_OF), "correction")),
    'output="changelog", validity': _row(((*LIFETIMES, *RELATIONAL, AS_OF), "no validity")),
}  # fmt: skip


def cell(option: str, function: str, *, streaming: bool) -> str:
    """What comes of an option."""
    found = CELLS[option][function]
    return found if isinstance(found, str) else found[streaming]


# -- the document ------------------------------------------------------------------------------------------------------

_BEGIN: Final = """# Options

Every option against every function, over batches and over streams. The tables are written by the tests, and each cell
is one: whatever works changes how a call runs, and whatever does not is refused with the reason that is given here.
`lateness`, `late`, `idle_after` and `timers` are taken for batches, too, where they have nothing to do: no row is late.
`schemas` and `streaming` say what Spark would say of the frames, where it [cannot be
asked](guides/connect-and-pipelines.md#declarative-pipelines). Options can be combined, unless the last rows say
otherwise.

| cell | says |
|---|---|
| yes | it works, over batches and streams |
| text | it works, and is said in the text of the query |
| | the function has no such parameter |
| one | the function has one frame, and nothing can stand beside it |
| same | it is taken, and there is nothing that it could change |
| a number | it is refused; why is [below](#why-something-is-refused) |
| batch, and a number | it is taken for batches, and refused for streams |
"""
_SHOWN: Final = {WORKS: "yes", TEXT: "text", ABSENT: "", ONE: "one", UNUSED: "same"}


def document() -> str:
    """The table as it is shown to users."""
    numbers = {reason: str(number) for number, reason in enumerate(REASONS, 1)}
    shown = _SHOWN | numbers
    parts = [_BEGIN]
    for family, names in FAMILIES.items():
        heads = [name.removeprefix("cql, ") if family == "CQL" else f"`{name}`" for name in names]
        lines = [f"## {family}\n", f"| option | {' | '.join(heads)} |", "|---" * (len(names) + 1) + "|"]
        for option in CELLS:
            cells = [[cell(option, name, streaming=streaming) for streaming in (False, True)] for name in names]
            if all(each == [ABSENT, ABSENT] for each in cells):
                continue
            said = [shown[one] if one == two else f"batch, {shown[two]}" for one, two in cells]
            title = f"`{option}`" if "=" in option or option.isidentifier() else option
            lines.append(f"| {title} | {' | '.join(said)} |")
        parts.append("\n".join(lines) + "\n")
    reasons = [f"{numbers[reason]}. {sentence}" for reason, (_, sentence) in REASONS.items()]
    parts.append("## Why something is refused\n\n" + "\n".join(reasons) + "\n")
    return "\n".join(parts)
