"""Joins in sorted runs: over streams (TPMJ), and of finite inputs (PMJ). What they can be, and their operators."""

from __future__ import annotations

from typing import Any

from streamjoin.algebra import MergeStrategy, Similar
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import NwayJoin, Pmj, TemporalJoin, Tpmj
from streamjoin.operators.tpmj import value_order
from streamjoin.plan.lowering.joining import Setting
from streamjoin.plan.relation import Join


def check_merging(join: Join) -> None:
    """Refuse a join of two that a merge cannot decide."""
    if join.how != "inner":
        raise UnsupportedError(
            f'how={join.how!r} with algorithm="tpmj": a merge finds pairs, and nobody notes which rows were in none',
            hint='use how="inner", or leave algorithm out',
        )


def merging(config: NwayJoin, strategy: MergeStrategy, setting: Setting, *, keyed: bool) -> Tpmj:
    """The operator that joins the same in sorted runs."""
    if not config.validity:
        raise CallError(
            'algorithm="tpmj" joins over time: it forgets rows that have ended, and gives results in order of time',
            hint="give time= and window=, or leave algorithm out",
        )
    if setting.unknown_ends:
        raise UnsupportedError(
            'algorithm="tpmj" with row windows, or above another operator: rows are sorted and written before their '
            "ends are known",
            hint="use time windows, directly over streams; or leave algorithm out",
        )
    if setting.prioritised:
        raise UnsupportedError(
            'priorities with algorithm="tpmj": results leave when runs are merged, so none could leave at once',
            hint="leave priority out, or algorithm",
        )
    if setting.emit != "ordered":
        raise CallError(
            'algorithm="tpmj" gives results in order, when runs are merged: it has no eager way',
            hint='give emit="ordered", or leave algorithm out',
        )
    if not config.links and config.common is None and not keyed:
        raise UnsupportedError(
            'algorithm="tpmj" sorts rows by a value, and here nothing but time decides who matches',
            hint="give by= or where=, or leave algorithm out",
        )
    if any(isinstance(link.predicate, Similar) for link in config.links):
        raise UnsupportedError(
            'a similarity with algorithm="tpmj": it is found by an index of tokens, and sorted runs have none',
            hint="leave algorithm out",
        )
    order, tests = value_order(config.graph, keyed=keyed)
    return Tpmj(config.schemas, order, tests, strategy, config.late)


def in_generations(config: Any, *, prioritised: bool) -> Any:
    """The operator of a join of two finite inputs under a budget: PMJ, where it finds the same; otherwise as it is."""
    if why_not_in_generations(config, prioritised=prioritised) is not None:
        return config
    return Pmj(config.matching, config.schemas, config.validity)


def why_not_in_generations(config: Any, *, prioritised: bool) -> str | None:
    """What sweep areas do for a join of finite inputs that PMJ cannot; None where it can all."""
    if not isinstance(config, TemporalJoin):
        return "it is no join of two inputs that gives all pairs"
    if prioritised or config.new_priority is not None:
        return "urgent rows go first"
    if config.how != "inner":
        return f"a {config.how} join must know which rows met nobody"
    if config.emit != "eager":
        return "results leave in order"
    if config.unknown_ends:
        return "ends of its rows may follow later"
    return "rows are found by a grid" if config.matching.grid else None
