"""What Spark's JVM writes to the error stream that it inherits, and what of it nobody wants to read.

For every stateful operator of a query that starts, Spark runs a Python process which prints what it does, five times,
with schemas and function names. The JVM passes that on to its own error stream: no logger is asked, so no level helps.
A session that we start gets a pipe for an error stream. A thread passes on what comes out of it, without those lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import BinaryIO, Final

_WHO: Final = b"Streaming TransformWithStateInPandas Python worker"
_CHATTER: Final = (_WHO, b"Starting " + _WHO)


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


@contextmanager
def without_chatter() -> Iterator[None]:
    """Processes that are started while this lasts write their errors where we do, without the chatter."""
    reading, writing = os.pipe()
    thread = Thread(target=_pass_on, args=(reading, os.dup(2)), name="errors of Spark", daemon=True)
    thread.start()
    try:
        with os.fdopen(writing, "wb") as pipe, errors_go_to(pipe):
            yield
    except BaseException:
        thread.join(1)  # who hears of the failure wants to read the last words too
        raise


def _pass_on(reading: int, shown: int) -> None:
    chatter = Chatter()
    while piece := os.read(reading, 1 << 16):
        os.write(shown, chatter.removed(piece))
    os.close(reading)
    os.close(shown)


class Chatter:
    """Takes the chatter out of what is written, piece by piece. Anything else passes at once, be its line not over.

    >>> Chatter().removed(b"Starting Streaming TransformWithStateInPandas Python worker.\\n\\nan error\\n50%")
    b'an error\\n50%'
    """

    def __init__(self) -> None:
        self.held, self.within, self.after = b"", False, False

    def removed(self, piece: bytes) -> bytes:
        """What is to be shown of it."""
        *lines, rest = (self.held + piece).split(b"\n")
        shown = [line + b"\n" for line in lines if self._is_shown(line)]
        # A line that may yet turn out to be chatter waits for its end.
        waits = not self.within and rest[:1] in (b"", b"S")
        self.held = rest if waits else b""
        if not waits:
            shown.append(rest)
            self.within = True
        return b"".join(shown)

    def _is_shown(self, line: bytes) -> bool:
        if self.within:  # its beginning has been shown
            self.within = self.after = False
            return True
        said = line.startswith(_CHATTER)
        blank = self.after and not line  # each line of chatter has an empty one after it
        self.after = said
        return not said and not blank
