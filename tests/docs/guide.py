"""Runs the examples of a document that need something around them, in a driver of its own.

    python -m tests.docs.guide DOCUMENT JSON

Those are its ```python no-run blocks; JSON has the names that they take for granted. What they show is checked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.docs.test_documents import blocks_of, run_block


def run_guide(path: Path, namespace: dict[str, Any]) -> int:
    """Run the blocks that the usual check leaves alone; how many there were."""
    blocks = [block for block in blocks_of(path.read_text()) if block.info == "python no-run"]
    for block in blocks:
        run_block(path, block, namespace)
    return len(blocks)


if __name__ == "__main__":
    print(run_guide(Path(sys.argv[1]).resolve(), {"__name__": "__main__", **json.loads(sys.argv[2])}))
