"""The operator of a best match, planned as any call is, in this process: all rows of both sides, then the end.

What is timed is what a task does: binding the columns, both inputs, and choosing. The payload is one column of each
side, as in the kernels' questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads import Columns, Workload
from streamjoin.algebra import FOREVER
from streamjoin.operators import Output, Results
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import BestMatchJoin, Projection, Stream
from streamjoin.plan.tasks import SourceTask
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.fragment import Fragment
from tests.interpreter import PlainTyping, prepared

DIMENSIONS = ("x", "y", "z")
SIDES = ("left", "right")


def best_match(workload: Workload) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    epsilons = dict.fromkeys(DIMENSIONS, float(workload.bounds["epsilon"]))
    chunks = []
    for payload in matched(workload.left, workload.right, epsilons, how="inner"):
        chunks.append(tuple(payload[f"{side}.id"].to_numpy() for side in SIDES))
    return chunks


def matched(
    left: Columns, right: Columns, epsilons: Mapping[str, float], *, how: Literal["inner", "left"]
) -> Iterator[pa.Table]:
    """The ids of both sides, as they leave; dimensions by their epsilons, the first one is the ordered one."""
    sides = dict(zip(SIDES, (left, right), strict=True))
    for output in _outputs(_plan(epsilons, how), sides, (*epsilons, "id")):
        assert isinstance(output, Results)
        yield output.payload


def _outputs(plan: PhysicalPlan, sides: dict[str, Columns], names: Sequence[str]) -> Iterator[Output]:
    (stage,), batches = plan.stages, {}
    for number, source in enumerate(plan.sources):
        assert source.target is not None
        table = pa.table({name: sides[source.name][name] for name in names})
        (elements,) = SourceTask(source).rows([prepared(source, table)])
        batches[number] = source.target.binding.bind(elements)
    fragment = Fragment(stage.nodes, 0)
    yield from chain(fragment.run(batches, {}, [FOREVER, FOREVER]), fragment.end())


def _plan(epsilons: Mapping[str, float], how: Literal["inner", "left"]) -> PhysicalPlan:
    names = (*epsilons, "id")
    fields = (*(Field(name, plain_type(pa.float64())) for name in epsilons), Field("id", plain_type(pa.int64())))
    left, right = (Stream(side, tuple((f"{side}.{name}", name) for name in names), None, None) for side in SIDES)
    dimensions = tuple((f"left.{name}", f"right.{name}", epsilon) for name, epsilon in epsilons.items())
    joined = BestMatchJoin(left, right, dimensions, how=how)
    ids = Projection(joined, tuple((f"{side}.id", f"`{side}.id`") for side in SIDES))
    return lower(ids, {side: SourceInfo(side, fields, side) for side in SIDES}, PlainTyping(), Leaving(validity=None))
