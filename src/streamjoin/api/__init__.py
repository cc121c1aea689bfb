"""The public functions. Frames in, a frame out; everything after the frames is by keyword."""

from streamjoin.api.choosing import join_asof, join_best_match, join_nearest
from streamjoin.api.comparing import true_recall
from streamjoin.api.joins import join, join_band, join_interval, join_overlap, join_within
from streamjoin.api.prioritising import deprioritise, lane_limit, lanes, prioritise
from streamjoin.api.relations import aggregate, cql, distinct, except_, intersect, reorder, union
from streamjoin.api.reporting import report
from streamjoin.api.watching import checkpoint, explain, finish, output_delay, progress
from streamjoin.spark.figures import from_progress
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
from streamjoin.spark.session import configure, session
from streamjoin.spark.stored.begun import check_goes_on
from streamjoin.spark.stored.finish import was_finished
from streamjoin.spark.stored.kept import StoredInput, stored_state
from streamjoin.spark.stored.rescale import rescale_query
from streamjoin.spark.stored.trees import StoredGroup, StoredTree, stored_trees

__all__ = [
    "aggregate",
    "checkpoint",
    "configure",
    "cql",
    "deprioritise",
    "distinct",
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
    "prioritise",
    "progress",
    "reorder",
    "report",
    "session",
    "true_recall",
    "union",
]
# What the command line needs of Spark beyond the public functions.
__all__ += ["EndedBatches", "StoredInput", "buckets_by_default", "buckets_of", "check_goes_on", "errors_go_to"]
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
