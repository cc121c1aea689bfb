"""SELECT: WHERE, groups, HAVING, and the names of the result's columns.

A column is called by its alias; without one, by its own name if it is a column (`R.x` is `x`), and by its text as it is
written if it is computed. `*` is all columns of all sources in order; a name that a star has given to another source's
column already gets the number of its source in FROM: `x`, `x_2`, `x_3`. Two columns that are named the same otherwise
are a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamjoin.language.complaint import nearest, unknown, wrong
from streamjoin.language.grouping import Grouping, closing, has_aggregate
from streamjoin.language.maps import column_with_map, no_maps
from streamjoin.language.scalar import Piece, Pieces, bind_scalar, rendered
from streamjoin.language.scope import Scope, Sources
from streamjoin.language.syntax import Item, Scalar, SelectClause, Star
from streamjoin.plan.column_types import Schemas, Types, column_types, type_of
from streamjoin.plan.condition import as_column, conjunction, conjuncts, quoted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.sqltypes import BOOLEAN, STRING, VOID
from streamjoin.plan.relation import Distinct, Projection, Relation, Selection

_Output = tuple[str, Pieces, int]  # a column of the result: its name, its expression, and where it is written


def bind_select(text: str, select: SelectClause, sources: Sources, schemas: Schemas) -> Relation:
    """The relation of one SELECT over the sources of its FROM clause."""
    scope = Scope(text, sources.entries)
    relation = sources.relation
    types = column_types(relation, schemas)
    if select.where is not None:
        condition = rendered(bind_scalar(select.where, scope, aggregates="in WHERE, which filters rows"))
        relation = Selection(relation, checked_condition(text, select.where, condition, types))
    starred: dict[str, str] = {}
    outputs = [output for item in select.items for output in _item(text, item, scope, starred)]
    _check_names(text, outputs)
    aliases = {name.lower(): pieces for name, pieces, _ in outputs}
    keys = [_group_key(text, key, scope, outputs, aliases) for key in select.group]
    having = None
    if select.having is not None:
        # It is asked of what the SELECT list has made of the groups: a name in that hides a column that is no key.
        grouped = [key[0].column for key in keys if len(key) == 1 and key[0].column is not None]
        made = {name: _as_made(pieces) for name, pieces in aliases.items()}
        having = bind_scalar(select.having, scope, aliases=made, keys=grouped)
    if keys or any(has_aggregate(pieces) for _, pieces, _ in outputs) or (having and has_aggregate(having)):
        grouping = Grouping(text, keys)
        outputs = [(name, grouping.over_groups(pieces), at) for name, pieces, at in outputs]
        over = None if having is None else rendered(grouping.over_groups(having))
        relation = grouping.relation(relation)
        grouping.check_types(column_types(relation.child, schemas))
        if over is not None:
            assert select.having is not None
            condition = checked_condition(text, select.having, over, column_types(relation, schemas), void=True)
            relation = Selection(relation, condition)
    elif select.having is not None:
        raise wrong(text, select.having.start, "HAVING is about groups, and there are none", "write WHERE")
    found = Projection(relation, tuple((name, rendered(pieces)) for name, pieces, _ in outputs))
    if not select.distinct:
        return found
    with_map = column_with_map(found, schemas)
    if with_map is not None:
        raise no_maps(text, next(at for name, _, at in outputs if name == with_map), with_map, "DISTINCT")
    return Distinct(found)


def checked_condition(text: str, scalar: Scalar, condition: str, types: Types, *, void: bool = False) -> str:
    """The condition, if it is not surely none. `void`: whether a plain NULL is one, as in HAVING.

    AND casts strings and NULL to booleans. Its parts may be asked one by one, so that the cast is written out.
    """
    kind = type_of(condition, types)
    if kind not in (None, BOOLEAN) and not (void and kind == VOID):
        raise wrong(
            text, scalar.start, f"This must be a condition (boolean), but it is {kind}", "compare it with something"
        )
    parts = conjuncts(condition)
    cast = [f"CAST({part} AS BOOLEAN)" if type_of(part, types) in (VOID, STRING) else part for part in parts]
    return condition if tuple(cast) == parts else str(conjunction(cast))


def _as_made(pieces: Pieces) -> Pieces:
    """An expression of the SELECT list as HAVING sees it: a column, of that type."""
    text = rendered(pieces)
    typed = as_column(text)
    if typed == text:
        return pieces
    before, behind = typed.split(text)
    start = pieces[0].start
    return (Piece(before, start, False), replace(pieces[0], space=False), *pieces[1:], Piece(behind, start, False))


def _item(text: str, item: Item, scope: Scope, starred: dict[str, str]) -> list[_Output]:
    if isinstance(item.value, Star):
        return _starred(text, item.value, scope, starred)
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


def _starred(text: str, star: Star, scope: Scope, taken: dict[str, str]) -> list[_Output]:
    """The columns of a star. `taken` has the names that stars have given so far, with the sources they are of."""
    entries = list(enumerate(scope.entries, start=1))
    if star.qualifier is not None:
        entry = scope.entry(star.qualifier)
        if entry is None:
            known = [one.alias for one in scope.entries]
            raise unknown(
                text,
                star.start,
                f"No source is called {star.qualifier.text!r} here",
                nearest(star.qualifier.text, known, "sources"),
            )
        entries = [one for one in entries if one[1] is entry]
    found: list[_Output] = []
    for number, entry in entries:
        for name, internal in entry.columns:
            other = taken.setdefault(name.lower(), entry.alias)
            shown = name if other == entry.alias else f"{name}_{number}"
            found.append((shown, (Piece(quoted(internal), star.start, False, internal),), star.start))
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
    while len(found) > 2 and found[0].text == "(" and closing(found, 0) == len(found) - 1:
        found = (replace(found[1], space=False), *found[2:-1])
    if has_aggregate(found):
        raise wrong(text, key.start, "Groups are made before aggregates", "group by columns of the streams")
    return found
