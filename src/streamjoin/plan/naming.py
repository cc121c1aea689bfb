"""Names: which columns the result of a join has, and where they come from.

Keys given as `by` come first and once, coalesced, like Spark's USING. Then the other columns of input 0, then those of
input 1, names that occur twice with a suffix. Joins over validity add its two ends. Semi and anti joins have the
columns of input 0 only. Two columns of one name are an error, never a silent choice. Like Spark, names do not tell
upper from lower case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from streamjoin.algebra import How
from streamjoin.errors import CallError
from streamjoin.runtime.naming import CHANGE, OutputColumn


def name_columns(
    columns: Sequence[Sequence[str]],
    types: Sequence[dict[str, pa.DataType]],
    *,
    by: Sequence[str],
    how: How,
    suffix: str | Sequence[str],
    validity: tuple[str, str] | None,
    flags: tuple[str, ...] = (),
    changelog: bool = False,
) -> tuple[OutputColumn, ...]:
    """The columns of the result of joining inputs with these columns; `suffix` may be one of each input but the first.

    >>> kinds = {"k": pa.int64(), "v": pa.int64()}
    >>> named = name_columns([["k", "v"]] * 2, [kinds] * 2, by=["k"], how="inner", suffix="_right", validity=None)
    >>> [column.name for column in named]
    ['k', 'v', 'v_right']
    """
    suffixes = ["", *([suffix] * (len(columns) - 1) if isinstance(suffix, str) else suffix)]
    left_only = how in ("semi", "anti")
    members = range(1 if left_only else len(columns))
    out = []
    for key in by:
        order = sorted(members, reverse=how == "right")
        out.append(OutputColumn(key, tuple(f"{number}.{key}" for number in order), types[0][key]))
    taken = {name.lower() for name in [*by, *columns[0]]}
    for number in members:
        before, beside = set(taken), {name.lower() for name in columns[number]}
        for name in columns[number]:
            if name in by:
                continue
            public = name
            if number > 0 and name.lower() in before:
                public = name + suffixes[number]
                if public.lower() in taken or public.lower() in beside:
                    raise CallError(
                        f"the result would have two columns {public!r}: {name!r} of input {number} with the suffix "
                        f"{suffixes[number]!r}, and another one",
                        hint="choose another suffix=, or rename a column",
                    )
            taken.add(public.lower())
            out.append(OutputColumn(public, (f"{number}.{name}",), types[number][name]))
    names = {column.name.lower() for column in out}
    for name in [*(validity or ()), *flags, *[CHANGE] * changelog]:
        if name.lower() in names:
            raise CallError(
                f"the result would have two columns {name!r}: an input's, and the one that this join adds",
                hint='name the result\'s validity with validity=("from", "to"), or rename the column',
            )
        names.add(name.lower())
    return tuple(out)


def free_name(name: str, text: str, taken: Mapping[str, str]) -> str:
    """A name for a computed column: this one, unless it stands for another text. Like Spark, names do not tell upper
    from lower case.

    >>> free_name("a + 1", "`a` + 1", {"a + 1": "`a` + 1"}), free_name("UPPER(a)", "UPPER(`a`)", {"upper(a)": "`b`"})
    ('a + 1', "UPPER(a)'")
    """
    others = {other.lower() for other, known in taken.items() if known != text}
    while name.lower() in others:
        name += "'"
    return name
