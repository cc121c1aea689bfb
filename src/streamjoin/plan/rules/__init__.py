"""The optimiser: a tuple of rules, each a function from tree to tree, applied until nothing changes any more.

Every rule keeps the meaning: at every instant the same rows, as often. They need the streams' schemas, because what a
condition is depends on types.
"""

from __future__ import annotations

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.relation import Relation
from streamjoin.plan.rules.expand_functions import expand_functions
from streamjoin.plan.rules.join_predicates import join_predicates
from streamjoin.plan.rules.merging import merge_projections, merge_selections
from streamjoin.plan.rules.order_joins import order_joins
from streamjoin.plan.rules.prune_columns import prune_columns
from streamjoin.plan.rules.pushing import below_window, push_join_conditions, push_selections
from streamjoin.plan.rules.rebuild import Rule

__all__ = ["RULES", "Rule", "below_window", "optimise"]

RULES: tuple[Rule, ...] = (
    merge_selections,
    order_joins,
    push_selections,
    push_join_conditions,
    join_predicates,
    merge_projections,
    prune_columns,
)
_MOST_ROUNDS = 1000  # each makes a step towards the streams; more would be a rule that undoes another


def optimise(relation: Relation, schemas: Schemas) -> Relation:
    """The same relation, cheaper. The schemas are those that the query was read with.

    >>> import pyarrow as pa
    >>> from streamjoin.plan.relation import Join, Projection, Selection, Stream
    >>> r, s = (Stream(name, ((f"{name}.k", "k"), (f"{name}.x", "x")), "ts", None) for name in "RS")
    >>> schema = pa.schema({"k": pa.string(), "x": pa.int32()})
    >>> query = Projection(Selection(Join(r, s), "`R.k` = `S.k` AND `R.x` > 3"), (("k", "`R.k`"),))
    >>> join = optimise(query, {"R": schema, "S": schema}).child
    >>> join.predicates, join.right.columns
    ((Equals(left='R.k', right='S.k'),), ('S.k',))
    """
    for _ in range(_MOST_ROUNDS):
        before = relation
        for rule in RULES:
            relation = rule(relation, schemas)
        if relation == before:
            # Last, because these functions are what some rules look for; what comes of them may go further down.
            relation = expand_functions(relation, schemas)
            if relation == before:
                return relation
    raise AssertionError("the rules do not come to an end")
