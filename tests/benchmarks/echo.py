"""A contender for the tests of `one_shot`: says what it was asked, or fails when asked to.

Its end is as it should be, unless it is asked for something `wrong`.
"""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.one_shot import answer

asked: dict[str, Any] = {}


def do(request: dict[str, Any]) -> dict[str, Any]:
    asked.update(request)
    print("noise that must not spoil the answer")
    if request.get("fail"):
        raise ValueError("asked to fail")
    return {"request": request, "temporary": tempfile.gettempdir()}


def end() -> str | None:
    wrong: str | None = asked.get("wrong")
    return wrong


if __name__ == "__main__":
    answer(do, end)
