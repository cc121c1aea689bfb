"""A condition that is given as a Column, as the SQL text that means the same: conditions on pairs are text.

    F.col("l.speed") > F.col("r.mm") + 1        (`l`.`speed` > (`r`.`mm` + 1))
    wind.speed > rain.mm + 1                    the same: a Column of a frame says of which input it is

How a Column *shows* itself will not do: of F.lit("a") and F.col("a") it shows the same. So its nodes are read: the
protobuf message that it is on Spark Connect, and on a classic session its mirror image in the JVM, which has the same
kinds. Every text here is what Spark would parse into that very node; a kind without such a text is refused.

What it does not do: functions of Python, which have no text; lambda functions, whose variables Spark numbers anew with
every program, so that no checkpoint would know the condition again; subqueries and windows. Cost: a walk over the
condition, on the driver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pyspark.sql import Column

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression import literals
from streamjoin.spark.calls.inputs import unquoted
from streamjoin.spark.told import is_connect

ALIASES: Final = ("l", "r")  # of two inputs; of more they are in0, in1, ...
_BINARY: Final = {
    "<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "==": "=", "<=>": "<=>", "!=": "<>", "and": "AND", "or": "OR",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "&": "&", "|": "|", "^": "^", "rlike": "RLIKE",
}  # fmt: skip
_PREFIX: Final = {"not": "NOT", "!": "NOT", "negative": "-", "~": "~"}
_SUFFIX: Final = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_SUFFIX_OF_NUMBERS: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L", "float": "F", "double": "D"}
_NAME_PARTS: Final = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
_PYTHON: Final = "a function of Python"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The kinds of literals in a message of Connect, as SQL calls them.
_KINDS: Final = {
    "boolean": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "float": "float",
    "double": "double", "string": "string", "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
    "day_time_interval": "interval day to second", "binary": "binary",
}  # fmt: skip


def column_text(column: Column, frames: Sequence[Any], names: Sequence[Sequence[str]]) -> str:
    """The text of a condition on rows of several frames, whose columns have these names."""
    reader = _Connect if is_connect(frames[0].sparkSession) else _Classic
    return reader(frames, names).text(column)


class _Reader:
    """What is the same for the nodes of both kinds of sessions: how each is written."""

    def __init__(self, frames: Sequence[Any], names: Sequence[Sequence[str]]) -> None:
        self.frames, self.names = frames, names
        many = tuple(f"in{number}" for number in range(len(frames)))
        self.aliases = ALIASES if len(frames) == 2 else many
        self.several = "both inputs" if len(frames) == 2 else "several inputs"

    def fix(self, name: str) -> str:
        """How to say of which input a column is meant."""
        return "write " + " or ".join(f'F.col("{alias}.{name}")' for alias in self.aliases)

    def of_name(self, parts: Sequence[str]) -> str:
        """A column by its name: `l.v`, `r.v`, `in2.v`, or without a side where only one input has it."""
        holders = [
            each for each, names in enumerate(self.names) if parts[0].lower() in {name.lower() for name in names}
        ]
        if len(holders) > 1 and not (parts[0].lower() in self.aliases and len(parts) > 1):
            raise CallError(
                f"{self.several} of the join have a column {parts[0]!r}, and where= does not say which is meant",
                hint=self.fix(parts[0]),
            )
        return ".".join(map(quoted, parts))

    def of_frame(self, parts: Sequence[str], sides: Sequence[int]) -> str:
        """A column that was taken from a frame, `wind.speed`, which is of these inputs."""
        name = ".".join(parts)
        if len(sides) != 1:
            why = f"{self.several} of the join have it" if sides else "none of the inputs of the join has it"
            raise CallError(f"the column {name!r} in where= is one of a frame, and {why}", hint=self.fix(name))
        return ".".join(map(quoted, (self.aliases[sides[0]], *parts)))

    def of_function(self, name: str, arguments: Sequence[str]) -> str:
        """A call of a function or an operator; each in parentheses, so that nothing binds it in another way."""
        word, many = name.lower(), len(arguments)
        if word in _BINARY and many == 2:
            return f"({arguments[0]} {_BINARY[word]} {arguments[1]})"
        if word in _PREFIX and many == 1:
            return f"({_PREFIX[word]} {arguments[0]})"
        if word in _SUFFIX and many == 1:
            return f"({arguments[0]} {_SUFFIX[word]})"
        if word == "in":  # in nothing: SQL cannot write it
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))" if many > 1 else "FALSE"
        if word in ("like", "ilike") and many in (2, 3):
            escape = f" ESCAPE {arguments[2]}" if many == 3 else ""
            return f"({arguments[0]} {word.upper()} {arguments[1]}{escape})"
        if word == "when" and many > 1:
            cases = [f"WHEN {one} THEN {two}" for one, two in zip(arguments[0::2], arguments[1::2], strict=False)]
            return f"CASE {' '.join(cases)}{f' ELSE {arguments[-1]}' if many % 2 else ''} END"
        if not re.fullmatch(r"[a-z]\w*", word):
            raise refusal(f"the operator {name!r}")
        return f"{name}({', '.join(arguments)})"

    def of_literal(self, kind: str, value: Any) -> str:
        """A literal with its type: whole numbers for days and microseconds, as Spark keeps them."""
        kind = "string" if kind.startswith("string") else kind
        if value is None:
            return "NULL" if kind == "void" else f"CAST(NULL AS {kind})"
        if kind == "boolean":
            return str(bool(value)).upper()
        if kind == "string":
            return literals.written(str(value))
        if kind in ("float", "double") and not math.isfinite(value):
            return f"CAST('{float(value)}' AS {kind.upper()})"
        if kind in _SUFFIX_OF_NUMBERS:
            return _signed(f"{value!r}{_SUFFIX_OF_NUMBERS[kind]}")
        if kind.startswith("decimal"):
            return _signed(f"{value}BD")
        if kind == "binary":
            return f"X'{bytes(value).hex()}'"
        if kind == "date":
            return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
        if kind in ("timestamp", "timestamp_ntz"):
            moment = _EPOCH + timedelta(microseconds=value)
            if kind == "timestamp":
                return f"TIMESTAMP '{moment.isoformat(' ', 'microseconds')}'"
            return f"TIMESTAMP_NTZ '{moment.replace(tzinfo=None).isoformat(' ', 'microseconds')}'"
        if kind.startswith("interval") and "year" not in kind and "month" not in kind:
            days, rest = divmod(int(value), 86_400_000_000)
            return f"INTERVAL '{days}' DAY '{rest // 1_000_000}.{rest % 1_000_000:06}' SECOND"
        raise refusal(f"a literal of type {kind}")

    def of_cast(self, expression: str, kind: str, *, may_fail: bool) -> str:
        """A value in another type; NULL where it has none of that type, if it may fail."""
        return f"{'TRY_CAST' if may_fail else 'CAST'}({expression} AS {kind})"


class _Connect(_Reader):
    """The nodes of Connect are messages of protobuf, in the form in which they would be sent."""

    def text(self, column: Any) -> str:
        return self.node(column.to_plan(self.frames[0].sparkSession.client))

    def node(self, message: Any) -> str:
        kind = str(message.WhichOneof("expr_type"))
        node = getattr(message, kind)
        if kind == "unresolved_attribute":
            parts = [unquoted(part) for part in _NAME_PARTS.findall(node.unparsed_identifier)]
            if not node.HasField("plan_id"):
                return self.of_name(parts)
            plans = [frame._plan._plan_id for frame in self.frames]
            return self.of_frame(parts, [side for side, plan in enumerate(plans) if plan == node.plan_id])
        if kind == "literal":
            return self._literal(node)
        if kind == "unresolved_function" and not node.is_distinct:
            return self.of_function(node.function_name, [self.node(each) for each in node.arguments])
        if kind == "expression_string":
            return f"({node.expression}\n)"  # it may end with a comment
        if kind == "alias" and len(node.name) == 1:
            return self.node(node.expr)
        if kind == "cast":
            return self.of_cast(self.node(node.expr), _type_of_cast(node), may_fail=node.eval_mode == 3)
        if kind == "unresolved_extract_value":
            return f"{self.node(node.child)}[{self.node(node.extraction)}]"
        udf = kind == "common_inline_user_defined_function"
        raise refusal(_PYTHON if udf else f"the {kind.replace('_', ' ')}")

    def _literal(self, literal: Any) -> str:
        kind = str(literal.WhichOneof("literal_type"))
        if kind == "null":
            return self.of_literal("void", None)
        if kind == "decimal":
            return self.of_literal(kind, literal.decimal.value)
        if kind not in _KINDS:
            raise refusal(f"a literal of type {kind}")
        return self.of_literal(_KINDS[kind], getattr(literal, kind))


class _Classic(_Reader):
    """The nodes of a classic session are case classes of Scala, called as the messages of Connect are."""

    def text(self, column: Any) -> str:
        return self.node(column._jc.node())

    def node(self, node: Any) -> str:
        kind = str(node.productPrefix())
        parts = [node.productElement(number) for number in range(node.productArity())]
        if kind == "UnresolvedAttribute":
            return self.of_name(_listed(parts[0]))
        if kind == "ExpressionColumnNode":
            return self._resolved(parts[0])
        if kind == "Literal":
            return self._literal(node)
        if kind == "UnresolvedFunction" and not parts[2] and not parts[4]:
            return self.of_function(parts[0], [self.node(each) for each in _listed(parts[1])])
        if kind == "CaseWhenOtherwise":
            cases = [self.node(each) for branch in _listed(parts[0]) for each in (branch._1(), branch._2())]
            return self.of_function("when", cases + [self.node(each) for each in _listed(parts[1].toList())])
        if kind == "SqlExpression":
            return f"({parts[0]}\n)"  # it may end with a comment
        if kind == "Alias" and parts[1].size() == 1:
            return self.node(parts[0])
        if kind == "Cast":
            may_fail = parts[2].isDefined() and parts[2].get().sql() == "TRY_"
            return self.of_cast(self.node(parts[0]), parts[1].sql(), may_fail=may_fail)
        if kind == "UnresolvedExtractValue":
            return f"{self.node(parts[0])}[{self.node(parts[1])}]"
        raise refusal(f"the {re.sub('(?<!^)(?=[A-Z])', ' ', kind).lower()}")

    def _resolved(self, expression: Any) -> str:
        """A column of a frame, which is known by a number that no other column has."""
        kind = str(expression.getClass().getSimpleName())
        if kind != "AttributeReference":
            raise refusal(_PYTHON if kind == "PythonUDF" else f"the expression {expression.sql()}")
        number = expression.exprId().id()
        outputs = [frame._jdf.queryExecution().analyzed().output() for frame in self.frames]
        found = [number in {each.exprId().id() for each in _listed(output)} for output in outputs]
        return self.of_frame([expression.name()], [side for side, has_it in enumerate(found) if has_it])

    def _literal(self, node: Any) -> str:
        # Made by the JVM: a long that has come to Python would go back as an int.
        made = self.frames[0].sparkSession._jsparkSession.converter().apply(node)
        kind = str(made.dataType().typeName())
        return self.of_literal(_JVM_KINDS.get(kind, kind), made.value())


_JVM_KINDS: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def refusal(what: str) -> UnsupportedError:
    """An error for a part of a Column that has no text."""
    return UnsupportedError(
        f"where= is turned into SQL text, and {what} has none that would mean the same",
        hint='write it as text over l and r, where="l.a < r.b"; or give a frame a column with it, and compare that one',
    )


def _listed(sequence: Any) -> list[Any]:
    """A sequence of Scala's."""
    return [sequence.apply(number) for number in range(sequence.size())]


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number  # a minus before it would make it a comment


def _type_of_cast(node: Any) -> str:
    if node.WhichOneof("cast_to_type") == "type_str":
        return str(node.type_str)
    from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

    return proto_schema_to_pyspark_data_type(node.type).simpleString()
