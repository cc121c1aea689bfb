"""What is remembered: batches, value-sorted runs, the sweep areas that keep and forget them, and groups' aggregates."""

from streamjoin.state.aggregates import Changes, GroupAggregates, Pieces
from streamjoin.state.batch import Batch
from streamjoin.state.history import History
from streamjoin.state.matching import GridAxis, KeyTest, Matching, PairTest, ValueTest
from streamjoin.state.run import Run
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.sweep_area import Decided, Kept, SweepArea

__all__ = [
    "Batch",
    "Blobs",
    "Changes",
    "Decided",
    "GridAxis",
    "GroupAggregates",
    "History",
    "Kept",
    "KeyTest",
    "Matching",
    "PairTest",
    "Pieces",
    "Run",
    "Snapshot",
    "SweepArea",
    "ValueTest",
    "table_from_bytes",
    "table_to_bytes",
]
