"""A process that has loaded the kernels compiles nothing more: neither a second process, nor one that then joins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOAD = """
import importlib, json, pkgutil
import streamjoin.kernels
from streamjoin.kernels.warm import load_kernels

def compiled():
    misses = {}
    for module in pkgutil.iter_modules(streamjoin.kernels.__path__, "streamjoin.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if hasattr(value, "stats"):
                name = f"{value.py_func.__module__}.{value.py_func.__name__}"
                misses[name] = sum(value.stats.cache_misses.values())
    return misses

load_kernels()
print(json.dumps(compiled()))
"""
JOIN = """
from tests.simulator import simulate
for seed in range(60):
    simulate(seed)
print(json.dumps(compiled()))
"""


def compilations(script: str, cache: Path) -> list[dict[str, int]]:
    """How often each kernel was compiled in a fresh process that runs this script, at each report."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_contract_a_warm_worker_compiles_nothing(tmp_path: Path) -> None:
    (cold,) = compilations(LOAD, tmp_path)
    assert len(cold) >= 15
    assert all(cold.values()), f"the cache was not empty, or a kernel is not loaded: {cold}"
    loaded, joined = compilations(LOAD + JOIN, tmp_path)
    assert not any(loaded.values()), loaded
    assert not any(joined.values()), joined
