"""Policies: what happens to rows that break a rule, and how results leave. Modes are documented literals."""

from __future__ import annotations

from typing import Final, Literal, TypeVar, get_args

from streamjoin.errors import CallError

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Outer = Literal["row", "snapshot"]
Emit = Literal["eager", "ordered"]
OutputMode = Literal["append", "changelog"]
# How lifetimes are managed: elements with both ends, or plus and minus tuples.
Method = Literal["direct", "negative"]
ToStream = Literal["istream", "dstream", "rstream"]
Hold = Literal["outputs", "inputs"]
# How more than two inputs are joined: by one operator, or by one for every two.
Nway = Literal["auto", "at once", "cascade"]
# How a join of streams keeps its state: in sweep areas, or in sorted runs that are merged (TPMJ).
Algorithm = Literal["auto", "tpmj"]
LatePolicy = Literal["drop", "fail", "output", "join"]
InvalidPolicy = Literal["fail", "drop", "output"]

# Of a field that values of a plan did not have from the start. Where it has its default it is not stored, so a plan
# that does without it is the one that it was, and its queries go on.
ADDED: Final = {"added": True}

# Spark's spellings, with case and underscores taken out.
_SPELLINGS: Final[dict[str, How]] = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "full": "full",
    "outer": "full",
    "fullouter": "full",
    "semi": "semi",
    "leftsemi": "semi",
    "anti": "anti",
    "leftanti": "anti",
}

Choice = TypeVar("Choice", bound=str)


def join_type(how: str) -> How:
    """The join type that one of Spark's spellings means.

    >>> join_type("leftOuter"), join_type("left_anti")
    ('left', 'anti')
    """
    found = _SPELLINGS.get(str(how).lower().replace("_", ""))
    if found is None:
        raise CallError(f"unknown join type how={how!r}", hint="use one of " + ", ".join(get_args(How)))
    return found


def one_of(value: object, choices: object, what: str) -> str:
    """`value`, if it is one of a literal type's choices.

    >>> one_of("eager", Emit, "emit")
    'eager'
    """
    allowed = get_args(choices)
    if value not in allowed:
        raise CallError(f"{what} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)
