"""The operator of a best match, planned as any call is, in this process: all rows of both sides, then the end.

What is timed is what a task does: binding the columns, both inputs, and choosing. The payload is one column of each
side, as in the kernels' questions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads import Columns, Workload
from streamjoin.algebra import Band, BestOf
from streamjoin.operators import Results
from streamjoin.plan.nodes import InputNode, JoinNode
from streamjoin.plan.planner import JoinPlan, plan_join
from streamjoin.runtime import finish, run_micro_batch

DIMENSIONS = ("x", "y", "z")


def best_match(workload: Workload) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    plan = _plan(float(workload.bounds["epsilon"]))
    sides = (workload.left, workload.right)
    batches = {number: plan.bindings[number].bind(_table(side)).batch for number, side in enumerate(sides)}
    operator = plan.join.build()
    chunks = []
    for outputs in (run_micro_batch(operator, batches, {}), finish(operator)):
        for output in outputs:
            assert isinstance(output, Results)
            chunks.append((_ids(output, 0), _ids(output, 1)))
    return chunks


def _plan(epsilon: float) -> JoinPlan:
    schema = pa.schema([*((name, pa.float64()) for name in DIMENSIONS), ("id", pa.int64())])
    return plan_join(
        JoinNode(
            inputs=(InputNode(schema, ("id",)), InputNode(schema, ("id",))),
            predicates=tuple(Band(name, name, epsilon, epsilon) for name in DIMENSIONS),
            choice=BestOf(),
        )
    )


def _table(side: Columns) -> pa.Table:
    return pa.table({name: side[name] for name in (*DIMENSIONS, "id")})


def _ids(results: Results, number: int) -> Any:
    return results.payload[f"{number}.id"].to_numpy()
