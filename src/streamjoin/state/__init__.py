"""What is remembered: batches, value-sorted runs, the sweep areas that keep and forget them, and groups' aggregates."""

from streamjoin.state.aggregates import Changes, GroupAggregates, Pieces
from streamjoin.state.batch import Batch
from streamjoin.state.catalogue import Catalogue
from streamjoin.state.contents import SimilarTest, content_of
from streamjoin.state.history import History
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.kept import Kept
from streamjoin.state.matching import GridAxis, KeyTest, Matching, PairTest, ValueTest
from streamjoin.state.meetings import Decided
from streamjoin.state.open_pieces import OpenPieces
from streamjoin.state.pending_ends import PendingEnds
from streamjoin.state.row_order import RowOrder
from streamjoin.state.row_rings import RowRings
from streamjoin.state.run import Run
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.spilling import Spilling
from streamjoin.state.sweep_area import SweepArea
from streamjoin.state.time_queue import TimeQueue
from streamjoin.state.unknown_ends import UnknownEnds
from streamjoin.state.view import Meeting, View

__all__ = [
    "Batch",
    "Blobs",
    "Catalogue",
    "Changes",
    "Decided",
    "Ends",
    "GridAxis",
    "GroupAggregates",
    "History",
    "HolderIndex",
    "Kept",
    "KeyTest",
    "Matching",
    "Meeting",
    "OpenPieces",
    "PairTest",
    "PendingEnds",
    "Pieces",
    "RowOrder",
    "RowRings",
    "Run",
    "SimilarTest",
    "Snapshot",
    "Spilling",
    "SweepArea",
    "TimeQueue",
    "UnknownEnds",
    "ValueTest",
    "View",
    "content_of",
    "table_from_bytes",
    "table_to_bytes",
]
