"""From a tree of relations to a physical plan: the one lowering, for every call and every query."""

from streamjoin.plan.lowering.lower import lower
from streamjoin.plan.lowering.options import Leaving, SourceInfo

__all__ = ["Leaving", "SourceInfo", "lower"]
