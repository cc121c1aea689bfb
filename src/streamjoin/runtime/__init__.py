"""How operators run inside one task: micro-batches, and what is known of each input's progress."""

from streamjoin.runtime.arrivals import Arrivals, RunningArrivals
from streamjoin.runtime.micro_batch import finish, run_micro_batch

__all__ = ["Arrivals", "RunningArrivals", "finish", "run_micro_batch"]
