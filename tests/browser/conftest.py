"""A real browser: Debian's Chromium, which `./sj test-browser` installs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found is not None, f"none of {', '.join(NAMES)} is on PATH: ./sj test-browser installs Debian's Chromium"
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=found)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures of pages go: beside the documents where that was asked for, else where nobody minds."""
    folder = ROOT / ("docs/pictures" if os.environ.get("STREAMJOIN_SCREENSHOTS") else "build/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
