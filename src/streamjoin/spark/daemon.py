"""The process that Python workers are forked from, with streamjoin's kernels loaded (`spark.python.daemon.module`)."""

from __future__ import annotations

from pyspark.daemon import manager

from streamjoin.kernels.warm import load_kernels

if __name__ == "__main__":
    load_kernels()
    manager()
