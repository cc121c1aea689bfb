"""Folders for rows of users on a disk that others use, too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PRIVATE: Final = 0o700


def make_private(folder: Path) -> None:
    """A folder that nobody else can look into, whatever the process lets others do with what it makes; nor into those
    above it that had to be made.
    """
    try:
        folder.mkdir(mode=PRIVATE, exist_ok=True)
    except FileNotFoundError:
        make_private(folder.parent)
        folder.mkdir(mode=PRIVATE, exist_ok=True)
