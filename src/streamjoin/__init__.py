"""streamjoin: the joins that Spark does not have. DataFrame in, DataFrame out.

>>> import streamjoin as sj
>>> sj.Range("2 seconds")
Range(size='2 seconds', slide=None)
"""

from streamjoin.algebra import (
    Fixed,
    Grace,
    Now,
    Range,
    Unbounded,
    Validity,
    arrival,
    band,
    equals,
    overlaps,
    theta,
    within,
)
from streamjoin.api import (
    explain,
    finish,
    from_progress,
    join,
    join_asof,
    join_band,
    join_best_match,
    join_interval,
    join_overlap,
    join_within,
    output_delay,
    progress,
    session,
)
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

__version__ = "0.1.0"

__all__ = [
    "CallError",
    "EvaluationError",
    "Fixed",
    "Grace",
    "InvalidRowError",
    "LateRowError",
    "Now",
    "Range",
    "SnapshotError",
    "StreamjoinError",
    "Unbounded",
    "UnknownColumnError",
    "UnsupportedError",
    "Validity",
    "arrival",
    "band",
    "equals",
    "explain",
    "finish",
    "from_progress",
    "join",
    "join_asof",
    "join_band",
    "join_best_match",
    "join_interval",
    "join_overlap",
    "join_within",
    "output_delay",
    "overlaps",
    "progress",
    "session",
    "theta",
    "within",
]
