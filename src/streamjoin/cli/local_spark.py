"""A local Spark that starts without a word.

Spark's JVM writes to the error stream that it inherits: a dozen lines at every start, in the middle of a progress bar.
It inherits a file instead. When the start fails, the file is shown.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any, Final

import streamjoin as sj
from streamjoin.api import errors_go_to

LOOPBACK: Final = "127.0.0.1"


def local_spark(master: str | None = None, partitions: int | None = None) -> Any:
    """A SparkSession on this machine, or on `master`; the active one if there is one."""
    settings: dict[str, Any] = {} if partitions is None else {"spark__sql__shuffle__partitions": partitions}
    # The file has no name and goes when the JVM goes.
    with tempfile.TemporaryFile() as log:
        try:
            with errors_go_to(log):
                # A local one: a machine's own name may not resolve, and nobody else has to find us.
                local = master is None or master.startswith("local")
                if local:
                    settings |= {"spark__driver__host": LOOPBACK, "spark__driver__bindAddress": LOOPBACK}
                return sj.session(master=master, **settings)
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
