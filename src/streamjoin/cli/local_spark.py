"""A local Spark that starts without a word.

Spark's JVM writes to the error stream that it inherits: a dozen lines at every start, in the middle of a progress bar.
It inherits a file instead. When the start fails, the file is shown.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import streamjoin as sj


def local_spark() -> Any:
    """A SparkSession on this machine; the active one if there is one."""
    # The file has no name and goes when the JVM goes.
    with tempfile.TemporaryFile() as log:
        try:
            with errors_go_to(log):
                # The loopback address: a machine's own name may not resolve, and nobody else has to find us.
                return sj.session(spark__driver__host="127.0.0.1", spark__driver__bindAddress="127.0.0.1")
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise


@contextmanager
def errors_go_to(file: BinaryIO) -> Iterator[None]:
    """While this lasts, processes that are started write their errors to `file`, and go on doing so afterwards."""
    sys.stderr.flush()
    before = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
