"""SELECT: WHERE, groups, HAVING, and the names of the result's columns.

A column is called by its alias; without one, by its own name if it is a column (`R.x` is `x`), and by its text as it is
written if it is computed. `*` is all columns of all sources in order; a name that an earlier source has already gets
the number of its source: `x`, `x_2`, `x_3`. Two columns that were named the same otherwise are a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamjoin.cql.complaint import nearest as nearest_names
from streamjoin.cql.complaint import unknown, wrong
from streamjoin.cql.grouping import Grouping, has_aggregate
from streamjoin.cql.scalar import Piece, Pieces, bind_scalar, rendered
from streamjoin.cql.scope import Scope, Sources
from streamjoin.cql.syntax import Item, Scalar, SelectClause, Star
from streamjoin.plan.column_types import Schemas, Types, column_types, type_of
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.sqltypes import BOOLEAN, VOID
from streamjoin.plan.relation import Distinct, Projection, Relation, Selection

_Output = tuple[str, Pieces, int]  # a column of the result: its name, its expression, and where it is written


def bind_select(text: str, select: SelectClause, sources: Sources, schemas: Schemas) -> Relation:
    """The relation of one SELECT over the sources of its FROM clause."""
    scope = Scope(text, sources.entries)
    relation = sources.relation
    types = column_types(relation, schemas)
    if select.where is not None:
        condition = rendered(bind_scalar(select.where, scope, aggregates="in WHERE, which filters rows"))
        check_condition(text, select.where, condition, types)
        relation = Selection(relation, condition)
    outputs = [output for item in select.items for output in _item(text, item, scope)]
    _check_names(text, outputs)
    aliases = {name.lower(): pieces for name, pieces, _ in outputs}
    having = None
    if select.having is not None:
        having = bind_scalar(select.having, scope, aliases=aliases)
    if select.group or any(has_aggregate(pieces) for _, pieces, _ in outputs) or (having and has_aggregate(having)):
        keys = [_group_key(text, key, scope, outputs, aliases) for key in select.group]
        grouping = Grouping(text, keys)
        outputs = [(name, grouping.over_groups(pieces), at) for name, pieces, at in outputs]
        over = None if having is None else rendered(grouping.over_groups(having))
        relation = grouping.relation(relation)
        if over is not None:
            assert select.having is not None
            check_condition(text, select.having, over, column_types(relation, schemas))
            relation = Selection(relation, over)
    elif select.having is not None:
        raise wrong(text, select.having.start, "HAVING is about groups, and there are none", "write WHERE")
    found = Projection(relation, tuple((name, rendered(pieces)) for name, pieces, _ in outputs))
    return Distinct(found) if select.distinct else found


def check_condition(text: str, scalar: Scalar, condition: str, types: Types) -> None:
    """Refuse a condition that is surely none."""
    kind = type_of(condition, types)
    if kind not in (None, BOOLEAN, VOID):
        raise wrong(
            text, scalar.start, f"This must be a condition (boolean), but it is {kind}", "compare it with something"
        )


def _item(text: str, item: Item, scope: Scope) -> list[_Output]:
    if isinstance(item.value, Star):
        return _starred(text, item.value, scope)
    pieces = bind_scalar(item.value, scope)
    if item.alias is not None:
        return [(item.alias.text, pieces, item.alias.start)]
    return [(_own_name(text, item.value, pieces), pieces, item.value.start)]


def _own_name(text: str, scalar: Scalar, pieces: Pieces) -> str:
    written = [token for token in tokens(text) if scalar.start <= token.start < scalar.end]
    dotted = all((token.text == ".") == bool(number % 2) for number, token in enumerate(written))
    if dotted and pieces[0].column is not None:
        return written[-1].name or ""
    shown = ""
    for number, token in enumerate(written):
        shown += (" " if number and token.start > written[number - 1].end else "") + token.text
    return shown


def _starred(text: str, star: Star, scope: Scope) -> list[_Output]:
    entries = list(enumerate(scope.entries, start=1))
    if star.qualifier is not None:
        entry = scope.entry(star.qualifier)
        if entry is None:
            known = [one.alias for one in scope.entries]
            raise unknown(
                text,
                star.start,
                f"No source is called {star.qualifier.text!r} here",
                nearest_names(star.qualifier.text, known, "sources"),
            )
        entries = [(1, entry)]
    found: list[_Output] = []
    taken: set[str] = set()
    for number, entry in entries:
        for name, internal in entry.columns:
            shown = name if name.lower() not in taken else f"{name}_{number}"
            found.append((shown, (Piece(quoted(internal), star.start, False, internal),), star.start))
        taken |= {name.lower() for name, _ in entry.columns}
    return found


def _check_names(text: str, outputs: list[_Output]) -> None:
    seen: dict[str, str] = {}
    for name, pieces, at in outputs:
        if name.lower() in seen:
            other = (pieces[0].column or name).replace(".", "_")
            raise wrong(
                text, at, f"Two columns of the result are called {name!r}", f"give one another name, as in AS {other}"
            )
        seen[name.lower()] = name


def _group_key(text: str, key: Scalar, scope: Scope, outputs: list[_Output], aliases: Mapping[str, Pieces]) -> Pieces:
    """A key of GROUP BY: an expression over the sources, an alias of the SELECT list, or a place in it."""
    written = text[key.start : key.end]
    if written.isdecimal():
        place = int(written)
        if not 1 <= place <= len(outputs):
            raise wrong(
                text, key.start, f"The SELECT list has no column {place}", f"it has the columns 1 to {len(outputs)}"
            )
        found = outputs[place - 1][1]
        if has_aggregate(found):
            raise wrong(text, key.start, f"Column {place} is an aggregate", "group by columns of the streams")
        return found
    found = bind_scalar(key, scope, aggregates="in GROUP BY", aliases=aliases)
    if len(found) > 2 and found[0].text == "(" and found[0].start == key.start != found[1].start - 1:
        found = found[1:-1]  # an alias stands in parentheses of its own
    if has_aggregate(found):
        raise wrong(text, key.start, "Groups are made before aggregates", "group by columns of the streams")
    return found
