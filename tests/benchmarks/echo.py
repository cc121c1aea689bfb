"""A contender for the tests of `one_shot`: says what it was asked, or fails when asked to."""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.one_shot import answer


def do(request: dict[str, Any]) -> dict[str, Any]:
    print("noise that must not spoil the answer")
    if request.get("fail"):
        raise ValueError("asked to fail")
    return {"request": request, "temporary": tempfile.gettempdir()}


if __name__ == "__main__":
    answer(do)
