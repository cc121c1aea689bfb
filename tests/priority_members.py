"""What the members of a result say of it, where rows have ids: how urgent it is, and when it may leave.

A result has the largest priority of its members, or what `new_priority` says; 0 where it follows snapshots. An urgent
pair or tuple leaves in the micro-batch of its last member, a row of a semi join in that of its first partner, if its
fate is not decided across buckets. One with priority 0 is never ahead of all rows with priority 0, as whoever reads it
goes by those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Rows
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    NearestJoin,
    Relation,
    streams_of,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Members:
    """The rows of a tree's streams, by micro-batch; `when` says when a result is. `partners`: of a semi join by row in
    one stage, those of each row that has any, by id. `never`: what leaves follows snapshots, or is a plain stream.
    """

    relation: Relation
    names: tuple[str, ...]
    batches: Sequence[dict[str, list[Row]]]
    new_priority: str | None
    when: Callable[[Row], int]
    partners: Mapping[int, Sequence[int]] = field(default_factory=dict)
    never: bool = False

    @cached_property
    def priority(self) -> dict[int, int]:
        """How urgent rows are, by id."""
        ranked = {leaf.source for leaf in streams_of(self.relation) if leaf.priority is not None}
        return {
            row["id"]: max(0, row["p"] or 0) if name in ranked else 0
            for batch in self.batches
            for name, rows in batch.items()
            for row in rows
        }

    @cached_property
    def came(self) -> dict[int, int]:
        """In which micro-batch rows came, by id."""
        numbered = enumerate(self.batches)
        return {row["id"]: number for number, batch in numbered for rows in batch.values() for row in rows}

    @cached_property
    def by_snapshot(self) -> list[list[str]]:
        """The streams below each join that may give parts of a validity."""
        joins = [each for each in _all_of(self.relation) if isinstance(each, Join)]
        return [
            [leaf.source for leaf in streams_of(join)]
            for join in joins
            if join.how != "inner" and join.outer == "snapshot"
        ]

    @cached_property
    def at_once(self) -> bool:
        """Whether urgent pairs and tuples leave when their last member has come: all ends are known, and nobody chooses
        or is left over.
        """
        over = any(getattr(each, "how", "inner") in ("semi", "anti") for each in _all_of(self.relation))
        chooses = isinstance(self.relation, AsOfJoin | BestMatchJoin | NearestJoin)
        return not over and not self.ends_late and not chooses

    @cached_property
    def ends_late(self) -> bool:
        """Whether ends of rows become known later than the rows: until then nothing of them is appended."""
        return any(isinstance(leaf.window, Rows) for leaf in streams_of(self.relation))

    def due(self, row: Row) -> int | None:
        """The micro-batch in which a result leaves if it is urgent; None if it may wait, as padded rows do."""
        ids = [row[name] for name in row if name.endswith(".id")]
        if self.partners and not self.ends_late:
            return max(self.came[ids[0]], min(self.came[each] for each in self.partners[ids[0]]))
        return max(self.came[each] for each in ids) if self.at_once and None not in ids else None

    def expected(self, row: Row) -> int:
        """The priority of a result."""
        if self.never or isinstance(self.relation, Distinct | Aggregation | Difference | Intersection):
            return 0
        ids = {name: row.get(f"{name}.id") for name in self.names}
        own = {name: 0 if number is None else self.priority[number] for name, number in ids.items()}
        for names in self.by_snapshot:
            if any(ids[name] is None for name in names):
                own |= dict.fromkeys(names, 0)
        if self.new_priority is None:
            return max(own.values())
        if any(ids[name] is None for names in self.by_snapshot for name in names):
            return 0
        known: dict[str, Any] = {f"p{number}": own[name] for number, name in enumerate(self.names)}
        return max(0, eval(self.new_priority, {"least": min, "greatest": max}, known))

    def check(self, tables: Sequence[pa.Table], number: int) -> int:
        """What leaves in a micro-batch, or, after the last one, at the end; how many urgent ones had to leave at once.

        An AssertionError says what is wrong.
        """
        shown = [row for batch in self.batches[: number + 1] for rows in batch.values() for row in rows]
        newest = max((row["ts"] for row in shown if not self.priority[row["id"]]), default=None)
        ended, prompt = number == len(self.batches), 0
        for row in (row for each in tables for row in each.to_pylist()):
            wanted = self.expected(row)
            assert row["priority"] == wanted, f"priority {row['priority']} of {row}, not {wanted}"
            due = self.due(row) if wanted > 0 else None
            if due is not None:
                assert number == due, f"urgent since {due}, and it left in {number}: {row}"
                prompt += 1
            if wanted == 0 and not ended and not self.by_snapshot:  # parts begin anywhere in a validity
                ahead = newest is None or self.when(row) > newest
                assert not ahead, f"priority 0, and ahead of all such rows: {row}"
        return prompt


def _all_of(relation: Relation) -> Iterator[Relation]:
    yield relation
    for child in relation.children:
        yield from _all_of(child)
