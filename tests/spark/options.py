"""Every option against every function: how it is given, and what comes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from tests.spark.streams import SCHEMA

SO_IT_IS: Final = object()  # what is true of the frames: whether they are streams
LEFT_OUT: Final = object()  # an option that the call without it has, and the one with it has not
GRACE: Final = sj.Grace("5 seconds")
TIMED: Final = {"time": "ts", "window": sj.Range("5 seconds"), "lateness": GRACE}


# -- functions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A column of the table: a function, and the call that an option is added to. `three`: over three frames."""

    name: str
    usual: Mapping[str, Any]
    of: str = "two"  # frames: "two", "list", "one", or "named", which is CQL
    time: str = "time"  # the parameter that says when a row is
    three: bool = False

    @property
    def called(self) -> Any:
        """The public function."""
        return getattr(sj, self.name.partition(",")[0])

    @property
    def head(self) -> str:
        """What the document calls it."""
        own, _, what = self.name.partition(", ")
        return what if self.of == "named" else f"`{own}` of {what}" if what else f"`{own}`"

    def call(self, spark: SparkSession, frames: Sequence[DataFrame], **options: Any) -> DataFrame:
        """The call over two frames, or the first of them; over three where it takes more than two."""
        given = {name: value for name, value in {**self.usual, **options}.items() if value is not LEFT_OUT}
        if self.of == "named":
            text = Text(**{name: given.pop(name) for name in list(given) if name in Text.__dataclass_fields__})
            return sj.cql(spark, str(text), **dict(zip("RST", frames, strict=False)), **given)
        function = self.called
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
        return [one] if self.of == "one" else [one, two, two] if self.three else [one, two]


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
        Function("join, three", TIMED, "list", three=True),
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
        Function("reorder", {"time": "ts", "lateness": GRACE}, "one"),
        Function("deprioritise", {"time": "ts", "priority": "k", "lateness": GRACE}, "one"),
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
    `many`: over three frames, where the function takes more than two. `few`: over two in any case. `handed`: it is no
    part of the plan; whoever runs that has it.
    """

    title: str
    given: Given
    text: Mapping[str, Any] | None = None
    beside: Given = field(default_factory=dict)
    idle: bool = False
    static: int | None = None
    many: bool = False
    few: bool = False
    handed: bool = False

    def frames(self, function: Function) -> int:
        """How many frames the call is over; an event join has two."""
        takes_more = function.of in ("list", "named") and function.name != AS_OF
        return 3 if not self.few and (function.three or (self.many and takes_more)) else 2

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
    return {"by": "k"} if function.name in (*MATCHING, THREE, *CHOOSING, "aggregate") else {}


def _cell(function: Function) -> Mapping[str, Any]:
    return {"cell": "7 s" if function.name in ("join", THREE, "join_interval", "join_best_match") else 7.0}


def _third(function: Function) -> Mapping[str, Any]:
    """A third frame, where it must be said what is done with it; by a key of all, else a cascade is chosen anyway."""
    if function.of != "named" or function.name == AS_OF:
        return {}
    return {"on": "R.k = S.k", "tail": f"JOIN T [RANGE 5 SECONDS] ON T.k = S.k {function.usual.get('tail', '')}"}


def _in_order_by_key(function: Function) -> Mapping[str, Any]:
    return {"by": "k", "emit": "ordered"} if function.name in ("join", THREE) else {}


def _suffix(function: Function) -> Mapping[str, Any]:
    return {"suffix": ["_two", "_three"] if function.three else "_2"}


def _hold(function: Function) -> Mapping[str, Any]:
    return {"hold": "outputs" if function.name in ("join", THREE) else "inputs"}  # what is not chosen anyway


def _ranked(function: Function) -> Mapping[str, Any]:
    return {"priority": "PRIORITY BY id" if function.of == "named" else "id"}


def _ranked_by_key(function: Function) -> Mapping[str, Any]:
    """By a key, where nothing is left to Spark."""
    return {**_ranked(function), **({"on": "R.k = S.k"} if function.of == "named" else {})}


def _ranked_third(function: Function) -> Mapping[str, Any]:
    return {**_third(function), **_ranked(function)}


def handler(table: Any, batch: int, bucket: int) -> None:
    """Would be told of urgent results."""


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
        Option('late=["output", "join"]', lambda function: {"late": function.each("output", "join")}),
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
        Option("suffix", _suffix),
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
        Option("urgent", {"urgent": handler}, beside=_ranked_by_key, handed=True),
        Option("schemas", {"schemas": SCHEMA}),
        Option("streaming", {"streaming": SO_IT_IS}),
        Option("a table on the right", {}, static=1),
        Option("a table on the left", {}, static=0),
        Option('late="join", window=sj.Rows(3)', {**joined, "window": sj.Rows(3)}, {**joined, "window": "[ROWS 3]"}),
        Option('late="join", how="left", no keys', {**joined, "how": "left"}, {**joined, "kind": "LEFT"}),
        Option('late="join", how="full", no keys', {**joined, "how": "full"}, {**joined, "kind": "FULL"}),
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
        Option('output="changelog", late="join"', {**joined, "output": "changelog"}),
        Option(
            'output="changelog", nway="at once"', {"output": "changelog", "nway": "at once"}, beside=_third, many=True
        ),
        Option('method="negative", priority="id"', {"method": "negative"}, beside=_ranked),
        Option('late="join", nway="cascade"', {**joined, "nway": "cascade"}, beside=_third, many=True),
        Option(
            'late="output", idle_after, nway="cascade"',
            {"late": "output", "idle_after": "30 s", "nway": "cascade"},
            beside=_third,
            many=True,
        ),
        Option(
            'invalid="output", how="semi"',
            {"invalid": "output", "how": "semi"},
            {"invalid": "output", "kind": "LEFT SEMI"},
        ),
        Option('lateness=sj.Recall(...), late="output"', {**recall, "late": "output"}),
        Option(
            "lateness=sj.Recall(...), window=sj.Rows(3)",
            {**recall, "window": sj.Rows(3)},
            {**recall, "window": "[ROWS 3]"},
        ),
        Option(
            'lateness=sj.Recall(...), window=sj.Fixed("5 s")',
            {**recall, "window": sj.Fixed("5 s")},
            {**recall, "window": "[FIXED 5 SECONDS]"},
        ),
        Option('lateness=sj.Recall(...), how="left", no keys', {**recall, "how": "left"}, {**recall, "kind": "LEFT"}),
        Option('lateness=sj.Recall(...), how="full", no keys', {**recall, "how": "full"}, {**recall, "kind": "FULL"}),
        Option('lateness=sj.Recall(...), method="negative"', {**recall, "method": "negative"}),
        Option(
            "lateness=sj.Recall(...) of one input",
            lambda function: {"lateness": function.each(recall["lateness"], nine)},
            idle=True,
        ),
        Option('by="k", left_by="k", right_by="k"', {"by": "k", "left_by": "k", "right_by": "k"}),
        Option('by="k", cell', lambda function: {"by": "k", **_cell(function)}),
        Option('hold, emit="eager"', {"hold": "inputs", "emit": "eager"}),
        Option('hold="inputs", window=sj.Rows(3)', {"hold": "inputs", "window": sj.Rows(3)}, beside=ORDERED),
        Option("timers=True, no idle_after", {"timers": True}),
        Option('priority_as="urgency", no priority', {"priority_as": "urgency"}),
        Option('new_priority="least(p0, p1)", no priority', {"new_priority": "least(p0, p1)"}),
        Option("urgent, no priority", {"urgent": handler}),
        Option(
            'urgent, where="l.lo < r.hi"',
            {"urgent": handler, "where": "l.lo < r.hi"},
            {"urgent": handler, "on": "R.lo < S.hi"},
            beside=_ranked,
            handed=True,
        ),
        Option(
            'urgent, how="semi"',
            {"urgent": handler, "how": "semi"},
            {"urgent": handler, "kind": "LEFT SEMI"},
            beside=_ranked_by_key,
            handed=True,
        ),
        Option('nway="cascade", two frames', {"nway": "cascade"}, few=True),
        Option('nway="at once", two frames', {"nway": "at once"}, few=True),
        Option(
            'new_priority="least(p0, p1)", nway="cascade"',
            {"new_priority": "least(p0, p1)", "nway": "cascade"},
            beside=_ranked_third,
            many=True,
        ),
        Option("merge, no algorithm", {"merge": sj.Greedy()}),
        *(
            Option(f'algorithm="tpmj", {title}', {"algorithm": "tpmj", **more}, beside=_in_order_by_key, many=many)
            for title, more, many in (
                ('emit="eager"', {"emit": "eager"}, False),
                ("no keys", {"by": LEFT_OUT}, False),
                ('how="left"', {"how": "left"}, False),
                ("hold", {"hold": "inputs"}, False),
                ("window=sj.Rows(3)", {"window": sj.Rows(3)}, False),
                ('late="join"', {"late": "join"}, False),
                ('priority="id"', {"priority": "id"}, False),
                ('nway="cascade"', {"nway": "cascade"}, True),
            )
        ),
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
    "equalities": (
        "ON of an event join has equalities of the one stream and the other only",
        "What an event join keeps of a key is what can still be taken, by time: a further condition on pairs would ask "
        "for rows that are gone, so `ON` has equalities only, and the functions no `where`. Filter a stream in a "
        "subquery, or the result in `WHERE`.",
    ),
    "events": (
        "part of an event join .*whose rows have no validity",
        "The streams of an event join have no window: their rows have no validity.",
    ),
    "groups": (
        r"'\+' is not expected here; ROWS is expected",
        "A window is the first thing that is done to a stream: nothing of the query has been computed then, so "
        "`PARTITION BY` takes names of columns. Functions compute the column on the frame before; so can you.",
    ),
    "value": (
        "must be a name, SQL text or a Column, got Arrival",
        "The dimensions of a best-match join are values of the rows. Add a column `current_timestamp()` to the frame. "
        "A Column can be no key of a dict: write it as SQL text.",
    ),
    "named": (
        "is for windows, and this query has none",
        "`time` is what windows go by, and the streams of an event join have none. It names its times itself, "
        "`MATCH_CONDITION (R.ts >= S.ts)`; how far a stream is follows from them where it is read, before anything of "
        "the query is computed, so they are columns of the frames.",
    ),
    "keeps nothing": (
        "(in|of) a query that keeps nothing",
        "The union of windows in time keeps nothing: its rows pass as they come, in no order; none is too late, and "
        "none waits for an idle input. Over row windows, beside a table, or with `all=False`, it does.",
    ),
    "forgotten": (
        r'late="join" of (the left input|input 0) of an? (as-of|nearest|best-match) join',
        "What a late left row would take may be forgotten already. A late right row can be joined, "
        '`late=["output", "join"]`.',
    ),
    "changes": (
        'late="join" in groups or set operators',
        "A join has more results with a late row, and the others stay as they are. Groups, DISTINCT, EXCEPT and "
        "INTERSECT would have to change results that have left.",
    ),
    "no join": (
        'late="join" is for joins, and here is none',
        "There is nobody whom a late row could join.",
    ),
    "many": (
        'late="join" in a query of several operators',
        "In a query of several operators a late row may be part of many results, each behind what has left.",
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
        '(late|invalid)="output" cannot show rows of input 1 in a semi or anti join',
        "A function that joins shows such rows in the columns of the result, and that of a semi or anti join has none "
        'of the right input. Show those of the left, `late=["output", "drop"]`; or use CQL, which shows them whole, in '
        "a column `_late_S` or `_invalid_S` of their own.",
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
        'late="(fail|output)" beside a recall target',
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
    "order of joins": (
        "of 3 frames at once: which of them a row without partners is measured against",
        "What an outer, semi or anti join of three frames gives depends on the order in which they are joined. Say it: "
        "`sj.join(sj.join(a, b, how=...), c, how=...)`.",
    ),
    "for two": (
        "left_by and right_by are for two frames",
        "There is no left and right among three frames. Use `by`, or `where=sj.equals(..., of=(0, 1)) & ...`.",
    ),
    "for three": (
        "how more than two frames are joined, got two|how a chain of inner joins of three streams or more runs",
        "Two frames are joined in one way.",
    ),
    "two by two": (
        'nway="at once" of plus and minus tuples',
        "Plus and minus tuples are joined two by two.",
    ),
    "idle results": (
        'late="output" beside idle_after',
        "What several streams became together may be late for the next operator, because one of them was idle, and "
        "none of their rows can be shown any more.",
    ),
    "twice": (
        "give either by= or left_by= and right_by=, not both",
        "Both say which keys are equal.",
    ),
    "by key": (
        "cell says where rows without keys meet, and here they meet by key",
        "A cell says where rows without keys meet, and with them they meet by key.",
    ),
    "nothing waits": (
        "says what waits for order, and nothing does",
        'It says what waits for order: give `emit="ordered"`.',
    ),
    "later ends": (
        'hold="inputs" over row windows or other operators, whose ends become known later',
        "The end of a row would become known while the row still waits to be joined.",
    ),
    "never idle": (
        "looks for idle inputs, and nothing says when an input is idle",
        "Timers look for idle inputs: give `idle_after`.",
    ),
    "nobody urgent": (
        "is about urgent results, and nothing says which rows are urgent",
        "It is about urgent results, and nothing says which rows are urgent: give `priority`.",
    ),
    "computed after": (
        "urgent= where Spark computes with results",
        "Workers hand over results as they make them, and here Spark computes with them afterwards.",
    ),
    "no priorities of all": (
        "new_priority in a cascade",
        "In a cascade joins of two make the priority, and none of them has those of all frames.",
    ),
    "target of a window": (
        "a recall target with",
        "Which rows meet is counted by their times alone, so all must be valid for as long; and a late row would move "
        "the ends of a row window that are known already.",
    ),
    "target of a court": (
        "a recall target in a .* join whose rows go to several buckets",
        "Without equality keys a second stage decides who met nobody, where late rows cannot join. Give keys, or "
        "`buckets=1`.",
    ),
    "target of both": (
        "a recall target is for both inputs of a join",
        "A result is lost by a late row of either input.",
    ),
    "target of tuples": (
        "a recall target by plus and minus tuples",
        "With a recall target rows join on arrival, and plus and minus tuples are said in order of time.",
    ),
    "no runs": (
        "says how sorted runs are merged, and there are none",
        'It says how sorted runs are merged: give `algorithm="tpmj"`.',
    ),
    "runs in order": (
        'algorithm="tpmj" gives results in order|with algorithm="tpmj" results leave in order of themselves',
        "Merged runs give results in order, without holding anything for it.",
    ),
    "runs by value": (
        "sorts rows by a value, and here nothing but time decides",
        "Runs are sorted by a value: give `by` or `where`.",
    ),
    "pairs of runs": (
        "a merge finds pairs, and nobody notes which rows were in none",
        "A merge finds pairs, and nobody notes which rows were in none.",
    ),
    "runs with ends": (
        "rows are sorted and written before their ends are known",
        "Rows are sorted and written before the ends of a row window are known.",
    ),
    "urgent runs": (
        'priorities with algorithm="tpmj"',
        "Results leave when runs are merged, so none could leave at once.",
    ),
    "runs at once": (
        'algorithm="tpmj" joins all frames at once',
        "Runs of all frames are merged at once; in a cascade the results of each join would be sorted anew.",
    ),
    "never urgent": (
        "urgent= is called with urgent results, and here none is",
        "What follows snapshots has priority 0, so there would be nothing to tell of.",
    ),
}

MATCHING: Final = ("join", "join_interval", "join_band", "join_overlap", "join_within")
THREE: Final = "join, three"
WINDOWED: Final = ("join", "join_band", "join_overlap", "join_within")
CHOOSING: Final = ("join_asof", "join_best_match", "join_nearest")
ORDERING: Final = ("reorder", "deprioritise")
LIFETIMES: Final = ("aggregate", "distinct", "union", "except_", "intersect")
RELATIONAL: Final = ("cql, a join", "cql, groups")
AS_OF: Final = "cql, as of"
FAMILIES: Final = {
    "Joins in which a row takes all that match": ("join", THREE, *MATCHING[1:]),
    "Joins in which a row takes some": CHOOSING,
    "Functions over lifetimes": LIFETIMES,
    "Functions that put rows in order": ORDERING,
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
_BOTH: Final = (*MATCHING, THREE, *CHOOSING)
_ALL: Final = (*MATCHING, THREE)
_CQL: Final = (*RELATIONAL, AS_OF)
_EXPRESSIONS: Final = (*MATCHING, *CHOOSING), WORKS
_HOW: Final = (
    (MATCHING, WORKS), ((THREE,), "order of joins"), (("join_asof", "join_nearest", AS_OF), "takes"),
    (RELATIONAL, TEXT),
)  # fmt: skip
_ROWS: Final = ((*WINDOWED, THREE, *LIFETIMES), WORKS), (RELATIONAL, TEXT), ((AS_OF,), "events")
_INVALID: Final = ((*_ALL, *LIFETIMES, *ORDERING, *RELATIONAL), WORKS), ((AS_OF,), "no time")
_NO_TARGET: Final = (
    ((*CHOOSING, AS_OF), (WORKS, "final")), ((*LIFETIMES, *ORDERING, THREE, "cql, groups"), (WORKS, "one join")),
)  # fmt: skip
_SORTED: Final = (("join", THREE), WORKS), (_CQL, "sorted runs")
_TABLE_BESIDE: Final = (("aggregate", "distinct", *ORDERING), ONE)
_NOT_ORDERING: Final = (ORDERING, ABSENT)
_LATE_JOIN: Final = (
    ((*CHOOSING, AS_OF), "forgotten"), ((*LIFETIMES, "cql, groups"), "changes"), (("union", *ORDERING), "no join"),
)  # fmt: skip

CELLS: Final[dict[str, dict[str, Cell]]] = {
    'by="k"': _row(((*_BOTH, "aggregate"), WORKS), (_CQL, TEXT)),
    'by="k + 1"': _row(((*_BOTH, "aggregate"), WORKS), (_CQL, TEXT)),
    'left_by="k", right_by="id"': _row(_EXPRESSIONS, ((THREE,), "for two"), (_CQL, TEXT)),
    "left_by, right_by: expressions": _row(_EXPRESSIONS, ((THREE,), "for two"), (_CQL, TEXT)),
    "where=sj.theta(...)": _row((_ALL, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "equalities")),
    'where="l.lo < r.hi"': _row((_ALL, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "equalities")),
    "where: a Column": _row((_ALL, WORKS), (RELATIONAL, TEXT), ((AS_OF,), "equalities")),
    'how="left"': _row(_EXPRESSIONS, ((THREE,), "order of joins"), (_CQL, TEXT)),
    'how="semi"': _row(*_HOW, (("join_best_match",), "takes")),
    'how="anti"': _row(*_HOW, (("join_best_match",), "takes")),
    'how="full"': _row(*_HOW, (("join_best_match",), WORKS)),
    'outer="snapshot"': _row((WINDOWED, WORKS), ((THREE,), "order of joins")),
    "window=sj.Rows(3)": _row(*_ROWS),
    'window=sj.Rows(3, by="k")': _row(*_ROWS),
    "window=sj.Rows(3, by=expression)": _row(((*WINDOWED, THREE, *LIFETIMES), WORKS), (_CQL, "groups")),
    "time=sj.arrival()": _row((("join_best_match",), "value"), ((AS_OF,), "named"), otherwise=WORKS),
    "time=expression": _row((("join_best_match",), ABSENT), ((AS_OF,), "named"), otherwise=WORKS),
    'time="ts + INTERVAL 1 SECOND"': _row(((AS_OF,), "named"), otherwise=WORKS),
    'args={"n": 1}': _row((_CQL, WORKS)),
    "lateness=sj.Grace(...)": _row(otherwise=WORKS),
    "lateness=sj.MaxDelay()": _row(otherwise=WORKS),
    "lateness=sj.Recall(...)": _row(*_NO_TARGET, otherwise=WORKS),
    "lateness per input": _row(otherwise=WORKS),
    'late="fail"': _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'late="output"': _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'late="join"': _row(*_LATE_JOIN, otherwise=WORKS),
    'late=["output", "join"]': _row(
        (("except_", "intersect", "cql, groups"), "changes"), (("union",), "no join"),
        (("aggregate", "distinct", *ORDERING), ONE), otherwise=WORKS,
    ),
    "late per input": _row(_UNION_WAITS_NOT, otherwise=WORKS),
    'invalid="drop"': _row(*_INVALID),
    'invalid="output"': _row(*_INVALID),
    "invalid per input": _row(*_INVALID),
    "idle_after": _row(_UNION_WAITS_NOT, _NOT_ORDERING, otherwise=WORKS),
    "timers=True": _row(_UNION_WAITS_NOT, _NOT_ORDERING, otherwise=WORKS),
    'emit="ordered"': _row((("union",), "keeps nothing"), _NOT_ORDERING, otherwise=WORKS),
    'output="changelog"': _row(((*CHOOSING, *LIFETIMES, *_CQL), WORKS)),
    'method="negative"': _row(((*LIFETIMES, *RELATIONAL), WORKS), ((AS_OF,), "lifetimes")),
    "validity": _row(((*WINDOWED, THREE, *LIFETIMES, *RELATIONAL), WORKS), ((AS_OF,), "no validity")),
    "suffix": _row((_BOTH, WORKS)),
    "buckets": _row((("union",), UNUSED), _NOT_ORDERING, otherwise=WORKS),
    'memory="64 MB"': _row(((*_BOTH, *_CQL), WORKS)),
    "cell": _row(((*_ALL, "join_best_match", "join_nearest"), WORKS)),
    "hold": _row((_ALL, WORKS)),
    'algorithm="tpmj"': _row(*_SORTED),
    "merge": _row(*_SORTED),
    'nway="cascade"': _row((("join", THREE, *RELATIONAL), WORKS), ((AS_OF,), UNUSED)),
    'priority="id"': _row(((*_BOTH, "deprioritise"), WORKS), (_CQL, TEXT)),
    "priority per input": _row((_BOTH, WORKS), (("deprioritise",), ONE), (_CQL, TEXT)),
    'priority_as="urgency"': _row(((*_BOTH, *_CQL), WORKS)),
    'new_priority="least(p0, p1)"': _row((_BOTH, WORKS)),
    "urgent": _row(((*_BOTH, "cql, a join", AS_OF), WORKS), (("cql, groups",), "never urgent")),
    "schemas": _row(otherwise=UNUSED),
    "streaming": _row(otherwise=UNUSED),
    "a table on the right": _row(_TABLE_BESIDE, otherwise=WORKS),
    "a table on the left": _row(_TABLE_BESIDE, otherwise=WORKS),
    'late="join", window=sj.Rows(3)': _row(
        ((*WINDOWED, THREE), "pushes"), ((*LIFETIMES, "cql, groups"), "changes"), (("union",), "no join"),
        (("cql, a join",), "pushes"), ((AS_OF,), "events"),
    ),
    'late="join", how="left", no keys': _row(
        (("join", "join_overlap"), (WORKS, "court")), (("join_interval", "join_band", "join_within"), WORKS),
        ((THREE,), "order of joins"), ((*CHOOSING, AS_OF), "forgotten"), (("cql, a join",), (TEXT, "court")),
        (("cql, groups",), "changes"),
    ),
    'late="join", how="full", no keys': _row(
        (MATCHING, (WORKS, "court")), ((THREE,), "order of joins"), (("join_best_match",), "forgotten"),
        (("join_asof", "join_nearest", AS_OF), "takes"), (("cql, a join",), (TEXT, "court")),
        (("cql, groups",), "changes"),
    ),
    'late="join", emit="ordered"': _row(
        (_ALL, "out of order"), *_LATE_JOIN, _NOT_ORDERING, (("cql, a join",), "out of order"),
    ),
    'late="join", method="negative"': _row(
        ((*LIFETIMES, "cql, groups"), "changes"), (("union",), "no join"), (("cql, a join",), "tuples"),
        ((AS_OF,), "lifetimes"),
    ),
    'late="output", how="semi"': _row(
        (MATCHING, "semi"), ((THREE,), "order of joins"), (CHOOSING, "takes"), (RELATIONAL, TEXT), ((AS_OF,), "takes")
    ),
    'lateness=sj.Recall(...), late="fail"': _row(
        *_NO_TARGET, (("union",), (WORKS, "one join")), otherwise=(WORKS, "on arrival")
    ),
    'lateness=sj.Recall(...), emit="ordered"': _row(
        *_NO_TARGET, _NOT_ORDERING, (("union",), ("keeps nothing", "one join")),
        otherwise=(WORKS, "target out of order"),
    ),
    'priority="id", hold="inputs"': _row((_ALL, "urgent wait")),
    'priority="id", lateness=sj.Recall(...)': _row(
        ((*MATCHING, "cql, a join"), (WORKS, "early")), ((*CHOOSING, AS_OF), (WORKS, "final")),
        ((THREE, "deprioritise", "cql, groups"), (WORKS, "one join")),
    ),
    'priority="id", output="changelog"': _row(((*CHOOSING, AS_OF), WORKS), (RELATIONAL, "urgent tuples")),
    'output="changelog", emit="ordered"': _row(((*CHOOSING, *LIFETIMES, *_CQL), "correction")),
    'output="changelog", validity': _row(((*LIFETIMES, *_CQL), "no validity")),
    'output="changelog", late="join"': _row(
        ((*CHOOSING, AS_OF), "forgotten"), ((*LIFETIMES, "cql, groups"), "changes"), (("union",), "no join"),
        (("cql, a join",), "tuples"),
    ),
    'output="changelog", nway="at once"': _row((RELATIONAL, "two by two"), ((AS_OF,), "two by two")),
    'method="negative", priority="id"': _row((RELATIONAL, "urgent tuples"), ((AS_OF,), "lifetimes")),
    'late="join", nway="cascade"': _row(
        (("join", THREE, "cql, a join"), "many"), (("cql, groups",), "changes"), ((AS_OF,), "forgotten")
    ),
    'late="output", idle_after, nway="cascade"': _row(
        (("join", THREE), (WORKS, "idle results")), (_CQL, WORKS)  # in CQL by a key of all: one stage
    ),
    'invalid="output", how="semi"': _row(
        (MATCHING, "semi"), ((THREE,), "order of joins"), (RELATIONAL, TEXT), ((AS_OF,), "takes")
    ),
    'lateness=sj.Recall(...), late="output"': _row(*_NO_TARGET, otherwise=(WORKS, "on arrival")),
    'lateness=sj.Recall(...), window=sj.Rows(3)': _row(
        (WINDOWED, (WORKS, "target of a window")), ((*LIFETIMES, THREE, "cql, groups"), (WORKS, "one join")),
        (("cql, a join",), (TEXT, "target of a window")), ((AS_OF,), "events"),
    ),
    'lateness=sj.Recall(...), window=sj.Fixed("5 s")': _row(
        (WINDOWED, (WORKS, "target of a window")), ((*LIFETIMES, THREE, "cql, groups"), (WORKS, "one join")),
        (("cql, a join",), (TEXT, "target of a window")), ((AS_OF,), "events"),
    ),
    'lateness=sj.Recall(...), how="left", no keys': _row(
        (("join", "join_overlap"), (WORKS, "target of a court")), ((THREE,), "order of joins"),
        (("join_interval", "join_band", "join_within"), WORKS), ((*CHOOSING, AS_OF), (WORKS, "final")),
        (("cql, a join",), (TEXT, "target of a court")), (("cql, groups",), (TEXT, "one join")),
    ),
    'lateness=sj.Recall(...), how="full", no keys': _row(
        (MATCHING, (WORKS, "target of a court")), ((THREE,), "order of joins"),
        (("join_best_match",), (WORKS, "final")), (("join_asof", "join_nearest", AS_OF), "takes"),
        (("cql, a join",), (TEXT, "target of a court")), (("cql, groups",), (TEXT, "one join")),
    ),
    'lateness=sj.Recall(...), method="negative"': _row(
        ((*LIFETIMES, "cql, groups"), (WORKS, "one join")), (("cql, a join",), (WORKS, "target of tuples")),
        ((AS_OF,), "lifetimes"),
    ),
    "lateness=sj.Recall(...) of one input": _row(
        *_NO_TARGET, (("aggregate", "distinct", *ORDERING), ONE), otherwise=(WORKS, "target of both")
    ),
    'by="k", left_by="k", right_by="k"': _row(((*MATCHING, *CHOOSING), "twice"), ((THREE,), "for two")),
    'by="k", cell': _row(((*_ALL, "join_best_match", "join_nearest"), "by key")),
    'hold, emit="eager"': _row((_ALL, "nothing waits")),
    'hold="inputs", window=sj.Rows(3)': _row(((*WINDOWED, THREE), "later ends")),
    "timers=True, no idle_after": _row(_NOT_ORDERING, otherwise="never idle"),
    'priority_as="urgency", no priority': _row(((*_BOTH, *_CQL), "nobody urgent")),
    'new_priority="least(p0, p1)", no priority': _row((_BOTH, "nobody urgent")),
    "urgent, no priority": _row(((*_BOTH, *_CQL), "nobody urgent")),
    'urgent, where="l.lo < r.hi"': _row(
        ((*_ALL, "cql, a join"), "computed after"), (("cql, groups",), "never urgent"), ((AS_OF,), "equalities")
    ),
    'urgent, how="semi"': _row(
        (MATCHING, WORKS), ((THREE,), "order of joins"), ((*CHOOSING, AS_OF), "takes"), (RELATIONAL, "never urgent")
    ),
    'nway="cascade", two frames': _row((("join", THREE), "for three"), (_CQL, UNUSED)),
    'nway="at once", two frames': _row((("join", THREE), UNUSED), (_CQL, "for three")),
    'new_priority="least(p0, p1)", nway="cascade"': _row((("join", THREE), "no priorities of all")),
    "merge, no algorithm": _row((("join", THREE), "no runs"), (_CQL, "sorted runs")),
    'algorithm="tpmj", emit="eager"': _row((("join", THREE), "runs in order"), (_CQL, "sorted runs")),
    'algorithm="tpmj", no keys': _row((("join", THREE), "runs by value"), (_CQL, "sorted runs")),
    'algorithm="tpmj", how="left"': _row(
        (("join",), "pairs of runs"), ((THREE,), "order of joins"), (_CQL, "sorted runs")
    ),
    'algorithm="tpmj", hold': _row((("join", THREE), "runs in order"), (_CQL, "sorted runs")),
    'algorithm="tpmj", window=sj.Rows(3)': _row((("join", THREE), "runs with ends"), (_CQL, "sorted runs")),
    'algorithm="tpmj", late="join"': _row((("join", THREE), "out of order"), (_CQL, "sorted runs")),
    'algorithm="tpmj", priority="id"': _row((("join", THREE), "urgent runs"), (_CQL, "sorted runs")),
    'algorithm="tpmj", nway="cascade"': _row((("join", THREE), "runs at once"), (_CQL, "sorted runs")),
}  # fmt: skip


def cell(option: str, function: str, *, streaming: bool) -> str:
    """What comes of an option."""
    found = CELLS[option][function]
    return found if isinstance(found, str) else found[streaming]


# -- the document ------------------------------------------------------------------------------------------------------

_BEGIN: Final = """# Options

Every option against every function, over batches and over streams. Parameters that are no options, because they say
what a function computes, are [listed](#what-a-function-computes). The tables are written by the tests, and each cell is
one: whatever works changes how a call runs, and whatever does not is refused with the reason that is given here. In a
batch no row is late and no input idle: where `lateness`, `late`, `idle_after` and `timers` work, a batch takes them,
too, and gives the same rows. `schemas` and `streaming` say what Spark would say of the frames, where it [cannot be
asked](guides/connect-and-pipelines.md#declarative-pipelines). Two options that work can be combined, unless the last
rows say otherwise.

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


# Parameters that are no options: what a function computes, and of what.
OWN: Final = (
    *("left", "right", "frame", "frames", "spark", "text", "streams"),
    *("on", "left_on", "right_on", "lower", "upper", "closed", "below", "above", "radius", "within", "k", "metric"),
    *(
        "direction",
        "tolerance",
        "allow_exact_matches",
        "tie_break",
        "forget_after",
        "ordered_by",
        "dominance",
        "compare",
    ),
    *("aggregates", "all"),
)
_COMPUTES: Final = """## What a function computes

These parameters are of one function or a few, and say what it computes, and of which frames.

| function | parameters |
|---|---|
"""


def parameters(function: Function) -> list[str]:
    """The names of all parameters of a function."""
    return list(inspect.signature(function.called).parameters)


def _own_parameters() -> list[str]:
    plain = [each for each in FUNCTIONS.values() if each.name.isidentifier()]
    own = [(f"`{each.name}`", each) for each in plain] + [("`cql`", CQL)]
    return [f"| {name} | {', '.join(f'`{one}`' for one in parameters(each) if one in OWN)} |" for name, each in own]


def document() -> str:
    """The table as it is shown to users."""
    numbers = {reason: str(number) for number, reason in enumerate(REASONS, 1)}
    shown = _SHOWN | numbers
    parts = [_BEGIN]
    for family, names in FAMILIES.items():
        heads = [FUNCTIONS[name].head for name in names]
        lines = [f"## {family}\n", f"| option | {' | '.join(heads)} |", "|---" * (len(names) + 1) + "|"]
        for option in CELLS:
            cells = [[cell(option, name, streaming=streaming) for streaming in (False, True)] for name in names]
            if all(each == [ABSENT, ABSENT] for each in cells):
                continue
            said = [shown[one] if one == two else f"batch, {shown[two]}" for one, two in cells]
            title = f"`{option}`" if "=" in option or option.isidentifier() else option
            lines.append(f"| {title} | {' | '.join(said)} |")
        parts.append("\n".join(lines) + "\n")
    parts.append(_COMPUTES + "\n".join(_own_parameters()) + "\n")
    reasons = [f"{numbers[reason]}. {sentence}" for reason, (_, sentence) in REASONS.items()]
    parts.append("## Why something is refused\n\n" + "\n".join(reasons) + "\n")
    return "\n".join(parts)
