"""When things happen: operators own progress, purging and emission; sweep areas own matching."""

from streamjoin.operators.aggregating import Aggregating
from streamjoin.operators.asof import AsofJoin
from streamjoin.operators.best_match import BestMatchJoin
from streamjoin.operators.contract import Configuration, Context, Footprint, Operator, Output, Results, Rows
from streamjoin.operators.judging import Judging
from streamjoin.operators.multiplicity import Multiplicity
from streamjoin.operators.nearest import NearestJoin
from streamjoin.operators.negative_join import NegativeJoin
from streamjoin.operators.negative_window import NegativeWindow
from streamjoin.operators.nway_join import NwayJoin
from streamjoin.operators.passing import Passing
from streamjoin.operators.pmj import Pmj
from streamjoin.operators.row_window import RowWindow
from streamjoin.operators.temporal_join import TemporalJoin
from streamjoin.operators.to_stream import StreamOf
from streamjoin.operators.tpmj import Tpmj
from streamjoin.operators.verdict import Verdict
from streamjoin.operators.wait import Waiting

__all__ = [
    "Aggregating",
    "AsofJoin",
    "BestMatchJoin",
    "Configuration",
    "Context",
    "Footprint",
    "Judging",
    "Multiplicity",
    "NearestJoin",
    "NegativeJoin",
    "NegativeWindow",
    "NwayJoin",
    "Operator",
    "Output",
    "Passing",
    "Pmj",
    "Results",
    "RowWindow",
    "Rows",
    "StreamOf",
    "TemporalJoin",
    "Tpmj",
    "Verdict",
    "Waiting",
]
