"""Ctrl-C as a request. The first one asks for an orderly end, the second one for the quickest.

Left alone, PySpark answers Ctrl-C by cancelling all jobs, and the running micro-batch would fail.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While this lasts, interrupts are counted and have no other effect.

    >>> with Interrupts() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupts.count
    1
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Interrupts:
        self.before: dict[int, Any] = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
