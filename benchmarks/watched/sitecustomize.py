"""Notes which of the project's own files a process loads, for `streamjoin bench all` (`benchmarks.loaded_files`).

Every Python whose PYTHONPATH has this folder imports this before anything else: contenders, peers, Spark's daemon and
its workers. A file is noted when its code is fetched, not when the process ends: workers end without a word. Nothing is
noted where nobody asked for it.

Only the loading of modules is listened to, so what runs afterwards is as fast as without. An audit hook would be called
on every event: `id` and `__code__` would take six times as long, `deepcopy` twice.

It needs the standard library alone, since it runs in the peers' environments too.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from types import CodeType

NOTES = "STREAMJOIN_BENCH_NOTES"  # the file that is written to
ROOT = "STREAMJOIN_BENCH_ROOT"  # the folder whose files are noted


def _watch(notes: str, root: str) -> None:
    roots = tuple({os.path.join(each, "") for each in (root, os.path.realpath(root))})
    fetch = SourceFileLoader.get_code

    def note(file: str) -> None:
        path = os.path.abspath(file)
        for each in roots:
            if path.startswith(each):
                # Many processes write to it: one write at its end, so that lines stay whole.
                handle = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                try:
                    os.write(handle, f"{path[len(each) :]}\n".encode())
                finally:
                    os.close(handle)
                return

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        note(loader.path)
        return fetch(loader, fullname)

    # Modules are executed and `python -m` finds its code by this; `python file.py` does not.
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    for argument in sys.orig_argv[1:]:
        if argument.endswith(".py") and os.path.isfile(argument):
            note(argument)


def _go_on() -> None:
    """What would have been imported if this folder were not there: that of a system, say."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [each for each in sys.path if os.path.abspath(each) != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if NOTES in os.environ and ROOT in os.environ:
    _watch(os.environ[NOTES], os.environ[ROOT])
_go_on()
