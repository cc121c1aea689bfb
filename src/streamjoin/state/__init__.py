"""What is remembered: batches, value-sorted runs, and the sweep areas that keep and forget them."""

from streamjoin.state.batch import Batch
from streamjoin.state.history import History
from streamjoin.state.matching import GridAxis, KeyTest, Matching, PairTest, ValueTest
from streamjoin.state.run import Run
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.sweep_area import Decided, Kept, SweepArea

__all__ = [
    "Batch",
    "Blobs",
    "Decided",
    "GridAxis",
    "History",
    "Kept",
    "KeyTest",
    "Matching",
    "PairTest",
    "Run",
    "Snapshot",
    "SweepArea",
    "ValueTest",
    "table_from_bytes",
    "table_to_bytes",
]
