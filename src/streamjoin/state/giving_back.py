"""Where memory comes from, and when what is free of it goes back to the system.

**It comes from one heap.** Arrow's own pool hands pages back as soon as they are free and asks for others a moment
later, and the system clears each of them: a micro-batch of a million rows through three joins met 20,000 new pages,
80 MB, and took 0.35 to 0.40 s of CPU time; from the heap of the C library, with no page that was new, 0.32 to 0.35 s.
The more lies in memory at the same time, as with priorities, the more there are.

**It goes back where it is limited**, because whoever looks at a process counts it. The heap keeps what it has had, for
whoever asks next. A worker that has taken a micro-batch would stand at its largest moment for good, with more beside it
in the next one that does not fit the holes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa


def take_from_heap() -> None:
    """From now on Arrow takes memory from the heap of the C library, in this process; one that cannot be asked to give
    back (`give_back`) is left alone.
    """
    if _heap_trim() is not None:
        pa.set_memory_pool(pa.system_memory_pool())


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
