"""A tree of relations as a query of DuckDB: at one instant it is an ordinary relational query, and another system
answers it. Streams are tables here."""

from __future__ import annotations

from streamjoin.algebra import Band, Equals, Overlaps, Predicate, Within
from streamjoin.plan.condition import column_places
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def expression(text: str) -> str:
    """Spark SQL with DuckDB's quotes around columns."""
    pieces = tokens(text)
    written, at = "", 0
    for number in column_places(pieces):
        written += text[at : pieces[number].start] + name(pieces[number].name or "")
        at = pieces[number].end
    return written + text[at:]


def matches(predicate: Predicate) -> str:
    left, right = ([name(column) for column in predicate.columns(side)] for side in (0, 1))
    if isinstance(predicate, Equals):
        return f"{left[0]} = {right[0]}"
    if isinstance(predicate, Band):
        low, high = ">=" if predicate.low_closed else ">", "<=" if predicate.high_closed else "<"
        below, above = (
            f"INTERVAL '{b}'" if isinstance(b, str) else f"({b})" for b in (predicate.below, predicate.above)
        )
        difference = f"({right[0]} - {left[0]})"
        return f"({difference} {low} -{below} AND {difference} {high} {above})"
    if isinstance(predicate, Overlaps):
        return (
            f"({left[0]} < {left[1]} AND {right[0]} < {right[1]} AND {left[0]} < {right[1]} AND {right[0]} < {left[1]})"
        )
    assert isinstance(predicate, Within)
    squares = " + ".join(f"({two} - {one}) ** 2" for one, two in zip(left, right, strict=True))
    return f"({squares} <= {predicate.radius} ** 2)"


def sql(relation: Relation) -> str:
    """The relation as a query of DuckDB."""
    if isinstance(relation, Stream):
        reads = ", ".join(f"{name(column)} AS {name(here)}" for here, column in relation.reads) or '1 AS "nothing"'
        return f"SELECT {reads} FROM {name(relation.source)}"
    children = [f"({sql(child)})" for child in relation.children]
    columns = ", ".join(name(column) for column in relation.columns) or '1 AS "nothing"'
    if isinstance(relation, Selection):
        return f"SELECT * FROM {children[0]} WHERE {expression(relation.condition)}"
    if isinstance(relation, Projection):
        computed = ", ".join(f"{expression(text)} AS {name(own)}" for own, text in relation.computed)
        return f"SELECT {computed or '1 AS nothing'} FROM {children[0]}"
    if isinstance(relation, Union):
        return " UNION ALL ".join(children)
    if isinstance(relation, Distinct):
        return f"SELECT DISTINCT * FROM {children[0]}"
    if isinstance(relation, Difference | Intersection):
        operator = "EXCEPT" if isinstance(relation, Difference) else "INTERSECT"
        return f"{children[0]} {operator} {'ALL ' if relation.every else ''}{children[1]}"
    if isinstance(relation, Join):
        conditions = [matches(predicate) for predicate in relation.predicates]
        conditions += [] if relation.theta is None else [f"({expression(relation.theta)})"]
        on = " AND ".join(conditions) or "TRUE"
        return f"SELECT {columns} FROM {children[0]} AS l {relation.how.upper()} JOIN {children[1]} AS r ON {on}"
    assert isinstance(relation, Aggregation)
    keys = [name(key) for key in relation.keys]
    aggregates = [
        f"{one.function}({'*' if one.column is None else name(one.column)}) AS {name(one.name)}"
        for one in relation.aggregates
    ]
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *aggregates]) or '1'} FROM {children[0]} {group} HAVING count(*) > 0"
