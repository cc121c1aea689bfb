"""How operators run inside one task: micro-batches, and the buckets of a plan side by side."""

from streamjoin.runtime.micro_batch import finish, run_micro_batch

__all__ = ["finish", "run_micro_batch"]
