"""Memory that is free goes back to the system: where it is limited, whoever looks at a process counts it.

Arrow's pool and the heap of the C library keep what they have had, for whoever asks next. A worker that has taken a
micro-batch would stand at its largest moment for good, with more beside it in the next one that does not fit the holes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa


def give_back() -> None:
    """Let go of what is free. It takes as long as there is something to let go."""
    pa.default_memory_pool().release_unused()
    if (trim := _heap_trim()) is not None:
        trim(0)


@lru_cache(maxsize=1)
def _heap_trim() -> Callable[[int], int] | None:
    """How the heap is asked for it; None where the C library has no way to say so."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim
