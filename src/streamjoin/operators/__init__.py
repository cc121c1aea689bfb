"""When things happen: operators own progress, purging and emission; sweep areas own matching."""

from streamjoin.operators.asof import AsofJoin
from streamjoin.operators.best_match import BestMatchJoin
from streamjoin.operators.contract import Footprint, Operator, Output, Results, Rows
from streamjoin.operators.court import Court
from streamjoin.operators.nearest import NearestJoin
from streamjoin.operators.temporal_join import TemporalJoin
from streamjoin.operators.verdict import Verdict

__all__ = [
    "AsofJoin",
    "BestMatchJoin",
    "Court",
    "Footprint",
    "NearestJoin",
    "Operator",
    "Output",
    "Results",
    "Rows",
    "TemporalJoin",
    "Verdict",
]
