"""Files of runs that do not fit into memory, in Spark's local folders: what a killed driver leaves there."""

from __future__ import annotations

import os
from pathlib import Path

from streamjoin.state.stores.scratch import FOLDER


def run_files(local: Path) -> list[Path]:
    """All that lie in a local folder of Spark, whosoever they are. Some may go while we look."""
    return [Path(folder, name) for folder, _, names in os.walk(local) if FOLDER in Path(folder).parts for name in names]
