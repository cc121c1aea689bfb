"""Joins of finite inputs in generations: the same as in memory, some of it early, whatever the budget is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamjoin.algebra import Band, Overlaps
from streamjoin.operators import NwayJoin, Operator, Results
from streamjoin.operators.pmj import Pmj
from streamjoin.operators.tpmj import Shares, value_order
from streamjoin.state import Batch
from streamjoin.state.links import Link
from tests.state.making import PAYLOAD, batch

OVERLAP, BAND = Overlaps(("lo", "hi"), ("lo", "hi")), Band("v", "v", 0.5, 1.0)
JOINS = {
    "overlap": (3, tuple(Link(one, two, OVERLAP) for one, two in ((0, 1), (0, 2), (1, 2))), (0, 0, 0)),
    "bands": (3, (Link(0, 1, BAND), Link(2, 1, BAND)), None),
    "one band": (2, (Link(1, 0, BAND),), None),
    "keys": (2, (), None),
}


def drawn(rng: np.random.Generator, rows: int) -> Batch:
    ts = rng.integers(0, 60, rows)
    low = rng.integers(0, 12, rows) / 2
    return batch(
        list(zip(ts.tolist(), (ts + rng.integers(1, 20, rows)).tolist(), strict=True)),
        group=rng.integers(0, 2, rows).tolist(),
        values=[low.tolist(), (low + 1.5).tolist()],
    )


def all_of(operator: Operator, sides: list[Batch], pieces: int) -> tuple[Counter, int]:
    """All results of inputs that come in so many pieces; and how many left before the end."""
    found: Counter = Counter()

    def take(outputs: object) -> None:
        for results in outputs:  # type: ignore[attr-defined]
            assert isinstance(results, Results)
            columns = [column.to_pylist() for column in results.payload.columns]
            found.update(zip(results.ts.tolist(), results.te.tolist(), *columns, strict=True))

    for piece in range(pieces):
        for number, rows in enumerate(sides):
            take(operator.on_batch(number, rows.take(np.array_split(np.arange(len(rows)), pieces)[piece])))
    early = found.total()
    take(operator.on_end())
    return found, early


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", list(JOINS))
def test_differential_generations_and_memory(name: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    inputs, links, common = JOINS[name]
    sides = [drawn(rng, int(rng.integers(1, 40))) for _ in range(inputs)]
    in_memory = NwayJoin((PAYLOAD,) * inputs, links, common)
    order, tests = value_order(in_memory.graph)
    budget = Shares(int(rng.integers(2, 30)), 3 * inputs * int(rng.integers(1, 3)), 1)
    config = Pmj(
        (PAYLOAD,) * inputs, order, tests, budget, 1, (1,) * inputs, str(tmp_path) if seed % 2 else None
    )  # fmt: skip
    operator = config.build()
    found, early = all_of(operator, sides, 4)
    expected, _ = all_of(in_memory.build(), sides, 1)
    assert found == expected
    figures = operator.figures
    assert figures["early_results"] >= early
    assert figures["results"] == expected.total()
    assert figures["generations"] >= sum(map(len, sides)) // budget.lists
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "files are left behind"
