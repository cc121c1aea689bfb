"""Calls that do not fit a signature: what they are told, of every public function and class."""

from __future__ import annotations

import ast
import inspect
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import streamjoin as sj
from streamjoin.errors import ArgumentError, says_what_fits

PUBLIC = [name for name in sj.__all__ if not name.endswith("Error") and name not in ("arrival", "session", "Now")]
OPTIONS = {name: [*inspect.signature(getattr(sj, name)).parameters] for name in PUBLIC}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ("cql", "lanes", "Unbounded")])
def test_every_misspelt_option_is_answered_with_the_near_one_of_that_function(name: str) -> None:
    for option in OPTIONS[name]:
        if len(option) > 3 and option != "frames":
            misspelt = option[:-1]
            with pytest.raises(ArgumentError) as refused:
                getattr(sj, name)(**{misspelt: 1})
            assert refused.value.message == f"{name} has no option {misspelt!r}"
            assert repr(option) in (refused.value.hint or "")


def test_it_is_an_error_of_ours_and_of_pythons() -> None:
    for kind in (sj.CallError, TypeError, ValueError):
        with pytest.raises(kind):
            sj.join(windw=sj.Now())  # type: ignore[call-arg]


def test_options_of_other_functions_are_not_offered() -> None:
    with pytest.raises(ArgumentError) as refused:
        sj.join_asof(windw=sj.Now())  # type: ignore[call-arg]
    assert "'window'" not in str(refused.value)


def test_signatures_are_as_they_are_written() -> None:
    signature = inspect.signature(sj.join_band)
    assert [*signature.parameters][:4] == ["left", "right", "below", "above"]
    assert signature.parameters["closed"].default == "both"
    assert str(inspect.signature(sj.Range)) == "(size: 'Duration', slide: 'Duration | None' = None) -> None"
    assert sj.join_band.__doc__ is not None
    assert sj.join_band.__module__ == "streamjoin.api.joins"


def test_what_is_missing_is_named() -> None:
    frame: Any = object()
    with pytest.raises(ArgumentError, match=r"^join_band needs below and above\.$"):
        sj.join_band(frame, frame, on="v")  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"^Range needs size\.$"):
        sj.Range()  # type: ignore[call-arg]


def test_an_option_without_its_name_is_told_where_names_begin() -> None:
    frame: Any = object()
    with pytest.raises(ArgumentError) as refused:
        sj.join(frame, frame, "ts")  # type: ignore[misc]
    assert refused.value.message == "join takes its options by name, got 'ts' without its name"
    assert refused.value.hint == "write join(left, right, option=...)"


def test_an_error_inside_of_a_function_is_left_alone() -> None:
    @says_what_fits
    def wrong_inside(*, size: int) -> int:
        return len(size)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as raised:
        wrong_inside(size=1)
    assert not isinstance(raised.value, sj.StreamjoinError)


def test_windows_are_values_as_before() -> None:
    window = sj.Range("5 seconds", slide="1 second")
    assert pickle.loads(pickle.dumps(window)) == window
    assert repr(window) == "Range(size='5 seconds', slide='1 second')"


def test_every_public_name_is_the_one_that_editors_and_types_know() -> None:
    """For them names are imported one by one; at work they are looked for in modules."""
    text = Path(sj.__file__).read_text()
    (known,) = (part for part in ast.parse(text).body if isinstance(part, ast.If))
    found = {}
    for each in known.body:
        assert isinstance(each, ast.ImportFrom)
        found |= {name.name: getattr(import_module(str(each.module)), name.name) for name in each.names}
    assert sorted(found) == sorted(sj.__all__)
    for name, there in found.items():
        assert getattr(sj, name) is there, name
