"""What `similar` means, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import streamjoin as sj
from streamjoin.algebra import Similar
from streamjoin.algebra.similarity import edit_distance


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "similar takes one of jaccard, cosine, overlap and edit, got none"),
        ({"jaccard": 0.8, "edit": 2}, "got jaccard=0.8 and edit=2: each is a question of its own"),
        ({"jaccard": 0}, "jaccard must be a number above 0 and at most 1, got 0"),
        ({"jaccard": 1.1}, "jaccard must be a number above 0 and at most 1, got 1.1"),
        ({"cosine": float("nan")}, "cosine must be a number above 0 and at most 1, got nan"),
        ({"cosine": True}, "cosine must be a number above 0 and at most 1, got True"),
        ({"jaccard": "0.8"}, "jaccard must be a number above 0 and at most 1, got '0.8'"),
        ({"overlap": 0}, "overlap must be a whole number of at least 1, got 0"),
        ({"overlap": 1.5}, "overlap must be a whole number of at least 1, got 1.5"),
        ({"edit": -1}, "edit must be a whole number of at least 0, got -1"),
        ({"edit": float("inf")}, "edit must be a whole number of at least 0, got inf"),
        ({"edit": "two"}, "edit must be a whole number of at least 0, got 'two'"),
    ],
)
def test_what_is_refused_at_the_call(given: dict[str, Any], message: str) -> None:
    with pytest.raises(sj.CallError) as refused:
        sj.similar("t", **given)
    assert message in str(refused.value)
    assert refused.value.hint


def test_the_other_side_has_the_same_name_unless_given() -> None:
    assert sj.similar("t", cosine=1) == Similar("t", "t", "cosine", 1)
    assert sj.similar("t", "u", overlap=2.0) == Similar("t", "u", "overlap", 2)
    with pytest.raises(sj.CallError, match="measure must be one of jaccard, cosine, overlap, edit"):
        Similar("t", "t", "dice", 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("ä", "a\u0308", 2), ("x👩y", "xy", 1), ("ab", "ba", 2)],
)
def test_edit_distance_counts_code_points(one: str, two: str, apart: int) -> None:
    assert edit_distance(one, two) == edit_distance(two, one) == apart
