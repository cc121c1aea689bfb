"""The process that Python workers are forked from, with all loaded that they need (`spark.python.daemon.module`).

Spark's own daemon loads nothing, and every worker pandas, pyarrow and us: half a second each, on the way to the first
micro-batch. It says that they start threads, of which a fork would know nothing. That is Arrow's allocator, jemalloc,
which puts itself in order in a forked process; Arrow makes its pools of threads when they are first used, and so does
whoever else is loaded here. Workers use another allocator anyway, which is chosen here (`state.giving_back`).

The first daemon after an installation compiles our kernels. It begins anew afterwards and finds them on disk: otherwise
every worker would keep the compiler's memory, 270 MB.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

from streamjoin.kernels.warm import load_kernels
from streamjoin.state.giving_back import take_from_heap

# What Spark's worker imports when the first rows of `mapInArrow` and of a stateful operator come; and what ours are.
_NEEDED: Final = (
    "pyspark.worker",
    "pandas",
    "pyarrow.compute",
    "streamjoin.spark.running.tasks",
    "streamjoin.spark.stored.bucket",
)
_BEGUN_ANEW: Final = "STREAMJOIN_DAEMON_BEGUN_ANEW"  # once is enough: where nothing can be kept on disk it helps nobody


def begin_anew() -> None:
    """The same program with the same files open, in the same process, as if nothing had been loaded."""
    os.environ[_BEGUN_ANEW] = "1"
    os.execv(sys.executable, [sys.executable, "-m", "streamjoin.spark.daemon", *sys.argv[1:]])


if __name__ == "__main__":
    for module in _NEEDED:
        import_module(module)
    if load_kernels() and _BEGUN_ANEW not in os.environ:
        begin_anew()
    os.environ.pop(_BEGUN_ANEW, None)
    take_from_heap()
    # A worker collects garbage after every task, and would look at all that was loaded here each time: 80 ms.
    gc.collect()
    gc.freeze()
    manager()
