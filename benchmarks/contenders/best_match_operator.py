"""The operator of a best match, planned as any call is, in this process: all rows of both sides, then the end.

What is timed is what a task does: binding the columns, both inputs, and choosing. The payload is one column of each
side, as in the kernels' questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

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
_FIELDS = (*(Field(name, plain_type(pa.float64())) for name in DIMENSIONS), Field("id", plain_type(pa.int64())))


def best_match(workload: Workload) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    plan = _plan(float(workload.bounds["epsilon"]))
    sides = dict(zip(SIDES, (workload.left, workload.right), strict=True))
    chunks = []
    for output in _outputs(plan, sides):
        assert isinstance(output, Results)
        chunks.append(tuple(output.payload[f"{side}.id"].to_numpy() for side in SIDES))
    return chunks


def _outputs(plan: PhysicalPlan, sides: dict[str, Columns]) -> Iterator[Output]:
    (stage,), batches = plan.stages, {}
    for number, source in enumerate(plan.sources):
        assert source.target is not None
        (elements,) = SourceTask(source).rows([prepared(source, _table(sides[source.name]))])
        batches[number] = source.target.binding.bind(elements)
    fragment = Fragment(stage.nodes, 0)
    yield from chain(fragment.run(batches, {}, [FOREVER, FOREVER]), fragment.end())


def _plan(epsilon: float) -> PhysicalPlan:
    names = (*DIMENSIONS, "id")
    left, right = (Stream(side, tuple((f"{side}.{name}", name) for name in names), None, None) for side in SIDES)
    dimensions = tuple((f"left.{name}", f"right.{name}", epsilon) for name in DIMENSIONS)
    joined = BestMatchJoin(left, right, dimensions, how="inner")
    ids = Projection(joined, tuple((f"{side}.id", f"`{side}.id`") for side in SIDES))
    return lower(ids, {side: SourceInfo(side, _FIELDS, side) for side in SIDES}, PlainTyping(), Leaving(validity=None))


def _table(side: Columns) -> pa.Table:
    return pa.table({name: side[name] for name in (*DIMENSIONS, "id")})
