"""What an expression refers to, found with sqlglot: any correct Spark SQL passes, evaluated here or not.

sqlglot says whether the text is a correct expression, and which of its names are columns (and not functions, units,
types, or the variable of a lambda). The text itself is never written anew: a reference is a span in it, so whatever
stands between the references reaches Spark as the user wrote it.

    l.position.x > 25 AND weight < r.`max weight`
    ~~~~~~~~~~            ~~~~~~   ~~~~~~~~~~~~~~      the spans; `.x` is read from the column by Spark

Names resolve like Spark's: without regard to case, but an exact match wins. Cost: one parse, a millisecond.

What it does not do: check types, functions or their arguments, which is Spark's part; session variables (`SET VAR`) and
parameter markers are not columns of an input and are refused or left to Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from streamjoin.errors import CallError, unknown_column
from streamjoin.plan.expression import functions
from streamjoin.plan.expression.lexer import Token, place, tokens
from streamjoin.plan.expression.sqltypes import SqlType, from_arrow

# sqlglot is imported where it is used: a worker unpickles expressions, but never parses one, and would wait for it.

_EXAMPLE = "write one Spark SQL boolean expression, for example l.speed > 25 AND r.temperature > 12"


@dataclass(frozen=True)
class Reference:
    """A column in the text: `text[start:end]` names it; with the fields taken from it, it goes on to `stop`."""

    start: int
    end: int
    stop: int
    input: int
    column: str
    path: tuple[str, ...]
    type: SqlType | None  # nothing where only Spark knows: a field taken from anything but a struct


def references(text: str, schemas: Sequence[pa.Schema]) -> tuple[Reference, ...]:
    """Every column that a correct expression refers to, in the order of the text.

    >>> speed, heat = pa.schema({"speed": pa.float64()}), pa.schema({"temperature": pa.float64()})
    >>> [(found.input, found.column) for found in references("l.SPEED > 25 AND temperature > 12", [speed, heat])]
    [(0, 'speed'), (1, 'temperature')]
    """
    pieces = tokens(text)
    if not pieces:
        raise CallError(f"the expression is empty, got {text!r}", hint=_EXAMPLE)
    found: dict[int, Reference] = {}  # by start, because a parser may copy a column when it rewrites
    for names in _column_spans(text, pieces):
        reference = _resolve(text, pieces, names, schemas)
        if reference is not None:
            found[reference.start] = reference
    _check_nothing_was_missed(text, pieces, found, schemas)
    return tuple(found[start] for start in sorted(found))


_Names = list[tuple[str, int, int]]  # the parts of a dotted name, each with where it starts and ends


def _column_spans(text: str, pieces: Sequence[Token]) -> Iterator[_Names]:
    """Parse; then the parts of every column, wherever sqlglot found one."""
    import sqlglot
    from sqlglot import exp

    for piece in pieces:
        if piece.text == ";":
            raise CallError(f"{place(text, piece.start)}\nOne expression is wanted, not several", hint=_EXAMPLE)
    try:
        # So long a context makes `start_context` everything before the error: its offset.
        tree = sqlglot.parse_one(text, dialect="spark", into=exp.Condition, error_message_context=len(text))
    except sqlglot.errors.ParseError as error:
        raise _syntax_error(text, error.errors) from None
    except sqlglot.errors.TokenError as error:
        raise CallError(f"the expression cannot be read, got {text!r}: {error}", hint=_EXAMPLE) from None

    _check_one_row_is_enough(text, pieces, tree.find(exp.Query) is not None, tree.find(exp.Window) is not None)
    if tree.find(exp.BitwiseRightShift):
        for left, right in pairwise(pieces):
            if left.text == right.text == ">":  # sqlglot reads `> >` as `>>`, Spark does not
                raise _syntax_error(text, [{"start_context": text[: right.start], "highlight": ">"}])
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            at = next((piece.start for piece in pieces if piece.text == "*"), 0)
            raise CallError(f"{place(text, at)}\nA star stands for many columns", hint="name the columns one by one")
        yield [(part.name, part.meta.get("start", -1), part.meta.get("end", -2) + 1) for part in column.parts]


def _syntax_error(text: str, errors: Sequence[Mapping[str, object]]) -> CallError:
    error = errors[0] if errors else {}
    highlight = str(error.get("highlight") or "")
    description = str(error.get("description") or "")
    if description.startswith("Required keyword"):
        reason = f"Something is missing at {highlight!r}"
    elif description == "Expecting )":
        reason = "A closing parenthesis is missing"
    elif description.startswith("Expect"):
        reason = description
    else:
        reason = f"{highlight!r} is not expected here"
    return CallError(f"{place(text, len(str(error.get('start_context') or '')))}\n{reason}", hint=_EXAMPLE)


def _check_one_row_is_enough(text: str, pieces: Sequence[Token], query: bool, window: bool) -> None:
    """A pair of rows must be enough to decide: refuse subqueries, window functions, aggregates and generators."""
    for before, piece, after in _with_neighbours(pieces):
        word = (piece.name or "").lower()
        called = after == "(" and before != "."
        what = None
        if query and word in ("select", "with", "values", "from", "table"):
            what, hint = "a subquery", "join with that frame instead"
        elif called and not (word in ("any", "some") and before in ("LIKE", "ILIKE")):
            what, hint = functions.BEYOND_A_ROW.get(word), "compute it as a column of an input first"
            if window and (what or word == "over"):
                what = "a window function"
        if what:
            raise CallError(
                f"{place(text, piece.start)}\nIt is {what}, but one pair of rows at a time must be enough to decide",
                hint=hint,
            )


def _resolve(text: str, pieces: Sequence[Token], names: _Names, schemas: Sequence[pa.Schema]) -> Reference | None:
    """The column that a dotted name means: alias.column or column, then perhaps fields."""
    if any(start < 0 for _, start, _ in names):
        raise CallError(f"the expression is not understood, got {text!r}", hint="qualify its columns: l.x, r.y")
    first, start, end = names[0]
    number = _input_number(first, len(schemas))
    if number is not None and len(names) > 1:
        column = _match(names[1][0], schemas[number].names, f"input {number} ({first!r})")
        end = names[1][2]
    else:
        holders = [index for index, schema in enumerate(schemas) if _matches(first, schema.names)]
        if not holders and len(names) == 1 and first.lower() in functions.BARE:
            return None
        if not holders:
            raise _unknown_name(text, names, schemas)
        if len(holders) > 1:
            choice = " or ".join(f"{_alias(index)}.{first}" for index in holders)
            raise CallError(
                f"{place(text, start)}\nColumn {first!r} is ambiguous: several inputs have it", hint=f"write {choice}"
            )
        number = holders[0]
        column = _match(first, schemas[number].names, f"input {number}")
    stop, path, kind = _fields(text, pieces, start, end, schemas[number].field(column).type)
    return Reference(start, end, stop, number, column, path, kind)


def _fields(
    text: str, pieces: Sequence[Token], start: int, end: int, kind: pa.DataType
) -> tuple[int, tuple[str, ...], SqlType | None]:
    """Follow the fields taken from a column: where they stop, their names, and the type of the last."""
    path: list[str] = []
    known = True
    following = [piece for piece in pieces if piece.start >= end]
    while len(following) >= 2 and following[0].text == "." and following[1].name is not None:
        name = following[1].name
        if known and pa.types.is_struct(kind):
            name = _match(name, [field.name for field in kind], f"the struct {text[start:end]}")
            kind = kind.field(name).type
        else:
            known = False  # a map's key, or that field of every element of an array
        path.append(name)
        end = following[1].end
        following = following[2:]
    return end, tuple(path), from_arrow(kind) if known else None


def _check_nothing_was_missed(
    text: str, pieces: Sequence[Token], found: Mapping[int, Reference], schemas: Sequence[pa.Schema]
) -> None:
    """A reference that sqlglot did not show as a column would reach Spark under its old name: refuse it here."""
    for before, piece, after in _with_neighbours(pieces):
        name = piece.name
        if name is None or piece.start in found or before == ".":
            continue
        qualified = after == "." and _input_number(name, len(schemas)) is not None
        bare = name.lower() in functions.BARE and after != "(" and any(_matches(name, one.names) for one in schemas)
        if qualified:
            raise CallError(
                f"{place(text, piece.start)}\nThis reference is not understood: {name!r} is the name of an input",
                hint="write it as alias.column, and call functions as f(alias.column)",
            )
        if bare:
            raise CallError(
                f"{place(text, piece.start)}\n{name!r} is a function of Spark, and a column of an input",
                hint="qualify the column with its input, or call the function with ()",
            )


def _with_neighbours(pieces: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    """Each token with the keywords before and after it."""
    keywords = ["", *(piece.keyword for piece in pieces), ""]
    return zip(keywords, pieces, keywords[2:], strict=False)


def _unknown_name(text: str, names: _Names, schemas: Sequence[pa.Schema]) -> CallError:
    first, start, _ = names[0]
    aliases = [_alias(index) for index in range(len(schemas))]
    columns = list(dict.fromkeys(name for schema in schemas for name in schema.names))
    if len(names) == 1:
        number = _input_number(first, len(schemas))
        if number is None:
            return unknown_column(first, columns, "the joined row")
        return CallError(
            f"{place(text, start)}\n{first!r} is an input, not a column",
            hint=f"name one of its columns, as in {first}.{schemas[number].names[0] if schemas[number].names else 'x'}",
        )
    near = difflib.get_close_matches(first, columns, n=1)
    hint = f"the {len(schemas)} inputs are called {', '.join(aliases)} (or in0, in1, ...)"
    return CallError(
        f"{place(text, start)}\nNo input is called {first!r}, and no input has such a column",
        hint=f"{hint}; did you mean the column {near[0]!r}?" if near else hint,
    )


def _alias(number: int) -> str:
    return "lr"[number] if number < 2 else f"in{number}"


def _input_number(name: str, inputs: int) -> int | None:
    for number in range(inputs):
        if name.lower() in (_alias(number), f"in{number}"):
            return number
    return None


def _matches(name: str, known: Sequence[str]) -> list[str]:
    """The names that this one can mean: the exact ones, or else all that differ by case."""
    exact = [other for other in known if other == name]
    return exact or [other for other in known if other.lower() == name.lower()]


def _match(name: str, known: Sequence[str], where: str) -> str:
    found = _matches(name, known)
    if not found:
        raise unknown_column(name, known, where)
    if len(found) > 1:
        raise CallError(
            f"column {name!r} is ambiguous: {where} has {' and '.join(map(repr, found))}",
            hint="rename one of them" if name in found else "write it in exactly the same case",
        )
    return found[0]
