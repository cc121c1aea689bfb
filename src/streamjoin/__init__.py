"""streamjoin: the joins that Spark does not have. DataFrame in, DataFrame out.

>>> import streamjoin as sj
>>> sj.Range("2 seconds")
Range(size='2 seconds', slide=None)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamjoin.algebra import (
        Adaptive,
        Fixed,
        Grace,
        Greedy,
        MaxDelay,
        MaxFanIn,
        Now,
        Range,
        Recall,
        Rows,
        Unbounded,
        Validity,
        arrival,
        band,
        equals,
        overlaps,
        similar,
        theta,
        within,
    )
    from streamjoin.api.choosing import join_asof, join_best_match, join_nearest
    from streamjoin.api.comparing import true_recall
    from streamjoin.api.joins import join, join_band, join_interval, join_overlap, join_within
    from streamjoin.api.prioritising import deprioritise, lane_limit, lanes, prioritise
    from streamjoin.api.relations import aggregate, cql, distinct, except_, intersect, reorder, union
    from streamjoin.api.reporting import report
    from streamjoin.api.watching import checkpoint, explain, finish, output_delay, progress
    from streamjoin.errors import (
        CallError,
        EvaluationError,
        InvalidRowError,
        LateRowError,
        SnapshotError,
        StreamjoinError,
        UnknownColumnError,
        UnsupportedError,
    )
    from streamjoin.spark.figures import from_progress
    from streamjoin.spark.session import configure, session

__version__ = "0.1.0rc1"

__all__ = [
    "Adaptive",
    "CallError",
    "EvaluationError",
    "Fixed",
    "Grace",
    "Greedy",
    "InvalidRowError",
    "LateRowError",
    "MaxDelay",
    "MaxFanIn",
    "Now",
    "Range",
    "Recall",
    "Rows",
    "SnapshotError",
    "StreamjoinError",
    "Unbounded",
    "UnknownColumnError",
    "UnsupportedError",
    "Validity",
    "aggregate",
    "arrival",
    "band",
    "checkpoint",
    "configure",
    "cql",
    "deprioritise",
    "distinct",
    "equals",
    "except_",
    "explain",
    "finish",
    "from_progress",
    "intersect",
    "join",
    "join_asof",
    "join_band",
    "join_best_match",
    "join_interval",
    "join_nearest",
    "join_overlap",
    "join_within",
    "lane_limit",
    "lanes",
    "output_delay",
    "overlaps",
    "prioritise",
    "progress",
    "reorder",
    "report",
    "session",
    "similar",
    "theta",
    "true_recall",
    "union",
    "within",
]


# Where the public names are. None of these modules uses such a name for another thing.
_MODULES = (
    "api.joins",
    "api.choosing",
    "api.relations",
    "api.watching",
    "api.prioritising",
    "api.comparing",
    "api.reporting",
    "spark.figures",
    "spark.session",
    "algebra",
    "errors",
)


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: Spark starts processes that need one small module of all this, and waits for them.
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"{__name__}.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
