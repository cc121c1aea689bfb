"""All that chaos is tried on, by name: joins and queries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from chaos.errors import ChaosError
from chaos.joins import JOINS
from chaos.kinds import Kind
from chaos.queries import QUERIES

KINDS: Final = {kind.name: kind for kind in (*JOINS, *QUERIES)}


def kinds_of(names: Iterable[str]) -> list[Kind]:
    """The kinds of these names, or all of them.

    >>> [kind.name for kind in kinds_of(["window-anti"])]
    ['window-anti']
    """
    chosen = list(names)
    for name in chosen:
        if name not in KINDS:
            near = difflib.get_close_matches(name, KINDS, n=1)
            hint = f"did you mean {near[0]}" if near else "there are " + ", ".join(KINDS)
            raise ChaosError(f"there is no join or query {name!r}", hint=hint)
    return [KINDS[name] for name in chosen] or list(KINDS.values())
