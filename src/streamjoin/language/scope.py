"""Which column a name means: the sources of a FROM clause, by their aliases.

Names resolve like Spark's: without regard to case, but an exact match wins. Column `x` of alias `R` is called `R.x`
within the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamjoin.language.complaint import nearest, unknown, wrong
from streamjoin.language.syntax import Name
from streamjoin.plan.relation import Relation


@dataclass(frozen=True)
class Entry:
    """One source of a FROM clause: its alias, and for each column its own name and its name in the tree."""

    alias: str
    columns: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, alias: str, names: Sequence[str]) -> Entry:
        """The entry of a source with these columns.

        >>> Entry.of("R", ["x"]).columns
        (('x', 'R.x'),)
        """
        return cls(alias, tuple((name, f"{alias}.{name}") for name in names))


@dataclass(frozen=True)
class Scope:
    """The sources that a clause can name."""

    text: str
    entries: tuple[Entry, ...]

    def column(self, parts: Sequence[Name]) -> tuple[str, int] | None:
        """The column that a dotted name begins with, and how many parts it takes; None if there is no such column.

        >>> scope = Scope("R.x", (Entry.of("R", ["x"]), Entry.of("S", ["x", "y"])))
        >>> scope.column([Name("Y", 0)]), scope.column([Name("S", 0), Name("x", 2), Name("field", 4)])
        (('S.y', 1), ('S.x', 2))
        """
        first = parts[0]
        if len(parts) > 1:
            entry = self.entry(first)
            if entry is not None:
                return self._in(entry, parts[1]), 2
        holders = [entry for entry in self.entries if matching(first.text, [name for name, _ in entry.columns])]
        if not holders:
            return None
        if len(holders) > 1:
            choice = " or ".join(f"{entry.alias}.{first.text}" for entry in holders)
            raise wrong(
                self.text,
                first.start,
                f"Column {first.text!r} is ambiguous: several sources have it",
                f"write {choice}",
            )
        return self._in(holders[0], first), 1

    def entry(self, name: Name) -> Entry | None:
        """The source of this name."""
        found = matching(name.text, [entry.alias for entry in self.entries])
        return next((entry for entry in self.entries if entry.alias in found), None)

    def unknown(self, parts: Sequence[Name]) -> Exception:
        """The complaint about a name that is not there."""
        first = parts[0]
        aliases = [entry.alias for entry in self.entries]
        if len(parts) > 1:
            return unknown(
                self.text,
                first.start,
                f"No source is called {first.text!r} here",
                nearest(first.text, aliases, "sources"),
            )
        columns = [name for entry in self.entries for name, _ in entry.columns]
        if matching(first.text, aliases):
            return unknown(
                self.text,
                first.start,
                f"{first.text!r} is a source, not a column",
                f"name one of its columns: {first.text}.x",
            )
        return unknown(
            self.text, first.start, f"There is no column {first.text!r} here", nearest(first.text, columns, "columns")
        )

    def _in(self, entry: Entry, name: Name) -> str:
        known = [own for own, _ in entry.columns]
        found = matching(name.text, known)
        if not found:
            raise unknown(
                self.text,
                name.start,
                f"{entry.alias} has no column {name.text!r}",
                nearest(name.text, known, "columns"),
            )
        if len(found) > 1:
            raise wrong(
                self.text,
                name.start,
                f"Column {name.text!r} is ambiguous: {entry.alias} has {' and '.join(map(repr, found))}",
                "write it in exactly the same case",
            )
        return dict(entry.columns)[found[0]]


@dataclass(frozen=True)
class Sources:
    """What a FROM clause has become so far: a relation, and the sources whose columns can be named."""

    relation: Relation
    entries: tuple[Entry, ...]


def matching(name: str, known: Sequence[str]) -> list[str]:
    """The names that this one can mean: the exact ones, or else all that differ by case.

    >>> matching("x", ["X", "y"]), matching("x", ["X", "x"])
    (['X'], ['x'])
    """
    exact = [other for other in known if other == name]
    return exact or [other for other in known if other.lower() == name.lower()]
