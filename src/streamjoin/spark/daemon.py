"""The process that Python workers are forked from, with streamjoin's kernels loaded (`spark.python.daemon.module`)."""

from __future__ import annotations

import gc

from pyspark.daemon import manager

from streamjoin.kernels.warm import load_kernels

if __name__ == "__main__":
    load_kernels()
    # A worker collects garbage after every task, and would look at all that was loaded here each time: 80 ms.
    gc.collect()
    gc.freeze()
    manager()
