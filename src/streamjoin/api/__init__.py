"""The public functions, in modules of their own. Frames in, a frame out; everything after the frames is by keyword.

Here is what the command line needs of Spark beyond them.
"""

from streamjoin.spark.jobs import (
    EndedBatches,
    buckets_by_default,
    buckets_of,
    check_memory_is_used,
    log_no_errors,
    memory_by_default,
    memory_differs,
    rows_read,
    schema_from_json,
    ship_by_value,
)
from streamjoin.spark.lane_limit import NeverSoShortError, limit_of, ran_of
from streamjoin.spark.marks import made_by, uses_timers
from streamjoin.spark.quiet import errors_go_to
from streamjoin.spark.stored.begun import check_goes_on
from streamjoin.spark.stored.finish import was_finished
from streamjoin.spark.stored.kept import StoredInput, stored_state
from streamjoin.spark.stored.rescale import rescale_query
from streamjoin.spark.stored.trees import StoredGroup, StoredTree, stored_trees

__all__ = ["EndedBatches", "StoredInput", "buckets_by_default", "buckets_of", "check_goes_on", "errors_go_to"]
__all__ += ["NeverSoShortError", "StoredGroup", "StoredTree", "check_memory_is_used", "stored_trees"]
__all__ += [
    "limit_of",
    "log_no_errors",
    "made_by",
    "memory_by_default",
    "memory_differs",
    "ran_of",
    "rescale_query",
    "rows_read",
    "schema_from_json",
    "ship_by_value",
    "stored_state",
]
__all__ += ["uses_timers", "was_finished"]
