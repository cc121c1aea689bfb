"""A process that has loaded the kernels compiles nothing more: neither a second process, nor one that then joins."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest

from streamjoin import kernels
from streamjoin.kernels import warm

ROOT = Path(__file__).parents[2]

LOAD = """
import importlib, json, pkgutil
import streamjoin.kernels
from streamjoin.kernels.warm import load_kernels

def uses():
    found = {}
    for module in pkgutil.iter_modules(streamjoin.kernels.__path__, "streamjoin.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if hasattr(value, "stats"):
                name = f"{value.py_func.__module__}.{value.py_func.__name__}"
                found[name] = [sum(each.values()) for each in (value.stats.cache_hits, value.stats.cache_misses)]
    return found

compiled = load_kernels()
assert compiled == any(misses for _, misses in uses().values()), "it says whether something was compiled"
print(json.dumps(uses()))
"""
JOIN = """
from tests.simulator import simulate
for seed in range(60):
    simulate(seed)
import numpy as np
from tests.state.lifetimes import ALL, COLUMNS, SCHEMA, Caller, drawn
caller = Caller(ALL, SCHEMA)
caller.sweep([(element, 1) for element in drawn(np.random.default_rng(0), list(COLUMNS), 40)])
caller.store()
caller.state.finish()
print(json.dumps(uses()))
"""


def test_every_kernel_is_called_with_every_kind_of_number(monkeypatch: pytest.MonkeyPatch) -> None:
    called: dict[str, set[str]] = {}

    def recorded(name: str, kernel: Callable) -> Callable:
        def record(*arguments: object, **options: object) -> object:
            columns = [part for one in arguments for part in (one if isinstance(one, list | tuple) else [one])]
            called.setdefault(name, set()).update(str(part.dtype) for part in columns if isinstance(part, np.ndarray))
            return kernel(*arguments, **options)

        return record

    functions = {name for name in kernels.__all__ if inspect.isfunction(getattr(kernels, name))}
    public = functions - {"cells_of", "order_keys", "packed_cells", "renumbered", "with_room"}  # plain numpy
    for name in public:
        monkeypatch.setattr(warm, name, recorded(name, getattr(kernels, name)))
    warm.load_kernels()
    assert set(called) == public
    for name in ("overlap_pairs", "band_pairs", "merge_order", "sort_order"):
        assert {"int64", "float64"} <= called[name], name


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_whoever_has_compiled_a_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    warm.load_kernels()
    assert not warm.load_kernels(), "all of them are there"
    monkeypatch.setattr(warm, "_call_every_kernel", lambda: numba.njit(lambda number: number + 1)(1))
    assert warm.load_kernels()


def report(script: str) -> list[dict[str, list[int]]]:
    """How often each kernel was found in the cache, and how often compiled, in a fresh process with this script."""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_contract_a_warm_worker_compiles_nothing() -> None:
    """The usual cache, not one of its own: compiling every kernel once more takes a minute and shows nothing new."""
    (first,) = report(LOAD)
    assert len(first) >= 15
    # What other kernels call is part of them in the cache, and is not loaded by itself.
    assert sum(sum(counts) > 0 for counts in first.values()) >= 15, f"kernels are not loaded: {first}"
    loaded, joined = report(LOAD + JOIN)
    assert not {name: misses for name, (_, misses) in loaded.items() if misses}
    assert joined == loaded, "a join called a kernel with other kinds of arrays than those that were loaded"
