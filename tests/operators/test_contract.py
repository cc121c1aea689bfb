"""Every law of the contract for every operator's configuration. The name of a failed test ends with its seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from streamjoin.errors import SnapshotError
from streamjoin.state import Snapshot
from tests import seeds
from tests.contract import CHECKS, Subject, calls, life
from tests.operators.subjects import SUBJECTS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("seed", seeds.parts(2))
def test_contract(check: Callable[[Subject, random.Random], None], subject: Subject, seed: int) -> None:
    check(subject, random.Random(seed))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_contract_a_snapshot_belongs_to_one_configuration(subject: Subject) -> None:
    snapshot = subject.config.build().snapshot()
    for other in SUBJECTS:
        fresh = other.config.build()
        if other.config.fingerprint == subject.config.fingerprint:
            fresh.restore(snapshot)
            assert fresh.state_rows == 0
        else:
            with pytest.raises(SnapshotError, match="was made by another join"):
                fresh.restore(snapshot)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_contract_an_operator_goes_on_from_a_version_that_counted_less(subject: Subject) -> None:
    made = calls(random.Random(1), subject, subject.arrivals(random.Random(1)), 4)
    stored = subject.config.build().snapshot()
    restored, steady = subject.config.build(), subject.config.build()
    restored.restore(Snapshot({**stored.manifest, "figures": {"of before": 3}}, stored.blobs))
    assert list(life(restored, made)) == list(life(steady, made))
    assert restored.figures == {**steady.figures, "of before": 3}


def test_only_configurations_that_keep_alike_share_a_fingerprint() -> None:
    """The size of chunks is no part of what is kept; everything else is."""
    shared = [
        {one.name, two.name}
        for one, two in itertools.combinations(SUBJECTS, 2)
        if one.config.fingerprint == two.config.fingerprint
    ]
    assert shared == [
        {"inner by time", "inner by time, in small chunks"},
        {"three by time", "three by time, in small chunks"},
    ]
