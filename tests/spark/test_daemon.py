"""The process that workers are forked from begins anew where it had to compile kernels."""

from __future__ import annotations

import os
import sys

import pytest

from streamjoin.spark import daemon


def test_a_daemon_that_has_compiled_becomes_the_same_program_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: begun.append((program, arguments)))
    monkeypatch.setattr(sys, "argv", ["daemon", "pyspark.worker"])
    monkeypatch.setattr(os, "environ", dict(os.environ))
    daemon.begin_anew()
    assert begun == [(sys.executable, [sys.executable, "-m", "streamjoin.spark.daemon", "pyspark.worker"])]
    assert daemon._BEGUN_ANEW in os.environ, "and does not do so a second time"
