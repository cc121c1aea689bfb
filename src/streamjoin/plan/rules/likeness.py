"""Conditions on how alike two sides are, recognised as similarities:

    similar(R.tokens, S.tokens) >= 0.8       Similar by jaccard; also `> 0.8`, and `0.8 <= similar(...)`
    levenshtein(R.name, S.name) <= 2         Similar by edit; also `< 3`, and `2 >= levenshtein(...)`

`levenshtein` is Spark's own, over code points. Of three arguments it is another question, and stays as it is; so does a
threshold that is no constant, or beyond what a measure can be: Spark answers those.
"""

from __future__ import annotations

import math

from streamjoin.algebra import Similar
from streamjoin.plan.condition import call, comparison
from streamjoin.plan.expression.sqltypes import STRING
from streamjoin.plan.rules.bounds import number
from streamjoin.plan.rules.operands import LEFT, RIGHT, Operands

_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "="}


def likeness(text: str, operands: Operands) -> Similar | None:
    """The similarity that a comparison is; None where it is none."""
    compared = comparison(text)
    if compared is None:
        return None
    one, operator, other = compared
    if call(one) is None:
        one, operator, other = other, _FLIPPED[operator], one
    measured, limit = call(one), number(other)
    if measured is None or limit is None or not math.isfinite(limit) or len(measured[1]) != 2:
        return None
    function, arguments = measured
    sides = [operands.side(argument) for argument in arguments]
    if sides == [RIGHT, LEFT]:
        arguments = arguments[::-1]
    elif sides != [LEFT, RIGHT]:
        return None
    if function == "similar" and operator in (">=", ">"):
        # Quotients are doubles: above a bound is at least the next one.
        least = float(limit) if operator == ">=" else math.nextafter(float(limit), math.inf)
        if 0 < least <= 1:
            return Similar(operands.column(arguments[0]), operands.column(arguments[1]), "jaccard", least)
    if function == "levenshtein" and operator in ("<=", "<"):
        most = math.floor(limit) if operator == "<=" else math.ceil(limit) - 1
        if most >= 0 and all(operands.type(argument) == STRING for argument in arguments):
            return Similar(operands.column(arguments[0]), operands.column(arguments[1]), "edit", most)
    return None
