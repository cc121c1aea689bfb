"""When things happen: operators own progress, purging and emission; sweep areas own matching."""

from streamjoin.operators.contract import Operator, Output, Results, Rows
from streamjoin.operators.temporal_join import TemporalJoin
from streamjoin.operators.verdict import Verdict

__all__ = ["Operator", "Output", "Results", "Rows", "TemporalJoin", "Verdict"]
