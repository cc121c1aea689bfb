"""A condition on the rows of several inputs, written in Spark SQL: `l.speed > 25 AND r.temperature > 12`.

Two ways to decide it, and they must agree. For inner joins Spark does, with a filter on our output: `spark_sql` is the
user's own text with the columns renamed, so every expression that Spark knows will do. Inside outer joins we must know
ourselves whether a row had a partner: `evaluate` decides it over Arrow tables, for a declared subset.

The subset: columns and fields of structs; comparison (= == <=> <> != < <= > >=); + - * / % and unary minus on numbers;
AND, OR, NOT; IS [NOT] NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM; IN; BETWEEN; LIKE with a literal pattern; CAST (and
::) among numbers, but for float or double to decimal, and decimal, int or bigint to float; abs(); greatest() and
least() of integers; numbers, strings, booleans, NULL, DATE, TIMESTAMP_NTZ, TIMESTAMP with an offset, INTERVAL in weeks
and smaller; timestamp plus or minus an interval (less than a day, unless it is a timestamp_ntz); timestamp_ntz minus
timestamp_ntz.

It agrees with Spark's defaults: ANSI mode, strings compared by their bytes, names without regard to case. Whatever
depends on the session time zone is outside the subset. What it does not do: honour another `spark.sql.ansi.enabled`
or `spark.sql.caseSensitive`, collations, and the padding of CHAR columns; an Arrow schema does not show those.

Cost: parsing, a few milliseconds and the import of sqlglot, on the driver only. Evaluating: a numpy pass per operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.expression import evaluate, grammar
from streamjoin.plan.expression.lexer import position, tokens
from streamjoin.plan.expression.parse import Reference, references
from streamjoin.plan.expression.sqltypes import BOOLEAN, VOID
from streamjoin.plan.expression.tree import Field, Node, Outside


@dataclass(frozen=True)
class Expression:
    """A boolean Spark SQL expression over the rows of several inputs, called `l`, `r`, or `in0`, `in1`, ...

    Made by `Expression.parse`. Plain values only: it can be hashed, compared, and pickled to the workers.

    >>> sensors, rooms = pa.schema({"speed": pa.float64()}), pa.schema({"temperature": pa.float64()})
    >>> Expression.parse("l.speed > 25 AND r.temperature > 12", [sensors, rooms])
    Expression('l.speed > 25 AND r.temperature > 12')
    """

    text: str
    inputs: int
    references: tuple[Reference, ...] = field(repr=False)
    tree: Node | None = field(repr=False)
    refusal: str | None = field(repr=False)

    @classmethod
    def parse(cls, text: str, schemas: Sequence[pa.Schema]) -> Expression:
        """Read an expression over inputs with these schemas. Whatever is wrong with it is a `CallError` here.

        >>> rows = pa.schema({"speed": pa.float64()})
        >>> Expression.parse("l.speed > r.spede", [rows, rows])
        Traceback (most recent call last):
        ...
        streamjoin.errors.UnknownColumnError: input 1 ('r') has no column 'spede'. Hint: did you mean 'speed'?
        """
        if not isinstance(text, str):
            raise CallError(
                f"the expression must be Spark SQL text, got {type(text).__name__}",
                hint='for example "l.speed > r.limit"',
            )
        found = references(text, schemas)
        fields = {
            one.start: (None if one.type is None else Field(one.type, one.input, one.column, one.path), one.stop)
            for one in found
        }
        try:
            tree = grammar.read(tokens(text), fields)
        except Outside as outside:
            where = "" if outside.at is None else f" ({position(text, outside.at)})"
            refusal = f"streamjoin does not evaluate {outside.what}{where}"
            return cls(text, len(schemas), found, None, refusal)
        if tree.type not in (BOOLEAN, VOID):
            raise CallError(
                f"the expression must be a condition (boolean), got {text!r}, which is {tree.type}",
                hint="compare it with something, as in l.speed > 0",
            )
        return cls(text, len(schemas), found, tree, None)

    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each input that it uses, in the order of their first use.

        >>> rows = pa.schema({"a": pa.int32(), "b": pa.int32()})
        >>> Expression.parse("l.b < r.a AND l.a < r.a", [rows, rows]).columns()
        (('b', 'a'), ('a',))
        """
        return tuple(
            tuple(dict.fromkeys(one.column for one in self.references if one.input == number))
            for number in range(self.inputs)
        )

    def spark_sql(self, rename: Callable[[int, str], str]) -> str:
        """The same text, with each column replaced by the name that `rename(input, column)` gives it, in backquotes.

        >>> rows = pa.schema({"a": pa.int32(), "s": pa.struct({"x": pa.int32()})})
        >>> expression = Expression.parse("upper(l.a) = in1.s.x", [rows, rows])
        >>> expression.spark_sql(lambda number, column: f"{column} {number}")
        'upper(`a 0`) = `s 1`.x'
        """
        return self.rewritten(lambda number, column: f"`{rename(number, column).replace('`', '``')}`")

    def rewritten(self, write: Callable[[int, str], str]) -> str:
        """The same text, with each column replaced by what `write(input, column)` says."""
        pieces = tokens(self.text)
        written, at = [], pieces[0].start
        for one in self.references:
            written += [self.text[at : one.start], write(one.input, one.column)]
            at = one.end
        # Up to the last token only: a comment behind it would swallow what a caller writes after the expression.
        return "".join([*written, self.text[at : pieces[-1].end]])

    def unsupported(self) -> str | None:
        """Nothing if `evaluate` can be used; otherwise a sentence with the first construct that it cannot evaluate.

        >>> rows = pa.schema({"name": pa.string()})
        >>> Expression.parse("upper(l.name) = r.name", [rows, rows]).unsupported()
        'streamjoin does not evaluate the function upper() (line 1, column 1)'
        """
        return self.refusal

    def evaluate(
        self, tables: Sequence[pa.Table], rows: int | None = None, *, called: str | None = None
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where it is TRUE (neither FALSE nor NULL): row by row over tables of equal length, one per input.

        A table without columns has no length of its own: it is taken to be as long as the others. Where all may be
        without, `rows` says how many rows there are. `called`: what errors call it, if not by its text.

        >>> rows = pa.schema({"a": pa.int64()})
        >>> less = Expression.parse("l.a < r.a", [rows, rows])
        >>> less.evaluate([pa.table({"a": [1, 2, None]}), pa.table({"a": [2, 1, 3]})])
        array([ True, False, False])
        >>> Expression.parse("1 > 0", [rows, rows]).evaluate([pa.table({}), pa.table({})], rows=2)
        array([ True,  True])
        """
        if self.tree is None:
            raise UnsupportedError(
                f"{self.refusal}, got {self.text!r}", hint="use it in an inner join, where Spark evaluates it"
            )
        lengths = {table.num_rows for table in tables if table.num_columns} | (set() if rows is None else {rows})
        if len(tables) != self.inputs or len(lengths) > 1:
            given = "" if rows is None else f" for {rows} rows"
            raise CallError(
                f"{self.inputs} tables of equal length are needed{given}, got tables with "
                f"{[table.num_rows for table in tables]} rows",
                hint="row n of every table belongs to pair n: take the rows of both sides first",
            )
        length = lengths.pop() if lengths else max((table.num_rows for table in tables), default=0)
        return evaluate.evaluate(self.tree, called or self.text, tables, length)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"
