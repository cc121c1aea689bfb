"""What things mean: time, validity, windows, predicates, progress and policies. Plain values, no Arrow, no Spark."""

from streamjoin.algebra.aggregate import Aggregate, AggregateFunction
from streamjoin.algebra.asof import AsOf, Direction
from streamjoin.algebra.best_match import BestOf, Dominance, Near, Steps
from streamjoin.algebra.interval import FOREVER, NEVER
from streamjoin.algebra.lateness import Grace, LatenessPolicy, MaxDelay, Recall
from streamjoin.algebra.merging import Adaptive, Greedy, MaxFanIn, MergeStrategy
from streamjoin.algebra.nearest import NearestOf
from streamjoin.algebra.policy import Emit, How, InvalidPolicy, LatePolicy, Method, Outer, OutputMode, join_type
from streamjoin.algebra.predicate import (
    Band,
    Conjunction,
    Equals,
    Overlaps,
    Predicate,
    Theta,
    Within,
    band,
    equals,
    overlaps,
    theta,
    within,
)
from streamjoin.algebra.progress import Progress
from streamjoin.algebra.similarity import Measure, Similar, similar
from streamjoin.algebra.time import Arrival, Duration, TimeAxis, arrival
from streamjoin.algebra.window import Fixed, Now, Range, Rows, Unbounded, Validity, Window

__all__ = [
    "FOREVER",
    "NEVER",
    "Adaptive",
    "Aggregate",
    "AggregateFunction",
    "Arrival",
    "AsOf",
    "Band",
    "BestOf",
    "Conjunction",
    "Direction",
    "Dominance",
    "Duration",
    "Emit",
    "Equals",
    "Fixed",
    "Grace",
    "Greedy",
    "How",
    "InvalidPolicy",
    "LatePolicy",
    "LatenessPolicy",
    "MaxDelay",
    "MaxFanIn",
    "Measure",
    "MergeStrategy",
    "Method",
    "Near",
    "NearestOf",
    "Now",
    "Outer",
    "OutputMode",
    "Overlaps",
    "Predicate",
    "Progress",
    "Range",
    "Recall",
    "Rows",
    "Similar",
    "Steps",
    "Theta",
    "TimeAxis",
    "Unbounded",
    "Validity",
    "Window",
    "Within",
    "arrival",
    "band",
    "equals",
    "join_type",
    "overlaps",
    "similar",
    "theta",
    "within",
]
