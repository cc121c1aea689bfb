"""A query as a physical plan in one bucket, and as much of it as tells the methods apart.

What is measured are the operators: rows are read, selections and projections computed, columns bound, and operators
run. Nothing is packed, since it goes to no other task; what is said counts as it is said, with ends that follow or
minus tuples. Whether it is right is asked of the whole plan (`lifetimes_equality`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from benchmarks.lifetimes_queries import SCHEMAS, Tables
from streamjoin.algebra import Method
from streamjoin.operators import Operator, Results
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Relation
from streamjoin.plan.tasks import SourceTask
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.fragment import Fragment
from streamjoin.runtime.lateness import Slack
from streamjoin.state import Batch
from tests.interpreter import PlainTyping, prepared


def plan_of(tree: Relation, method: Method) -> PhysicalPlan:
    """How a query over the streams of the experiment runs by one of the methods. They come in order."""
    return lower(tree, {name: _source(name, schema) for name, schema in SCHEMAS.items()}, PlainTyping(), _by(method))


def _source(name: str, schema: pa.Schema) -> SourceInfo:
    fields = tuple(Field(each.name, plain_type(each.type)) for each in schema)
    return SourceInfo(name, fields, name, Slack(0), streaming=True)


def _by(method: Method) -> Leaving:
    return Leaving(method=method, buckets=1)


class Operators:
    """The operators of a plan at work. Each of its stages reads nothing but sources."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.fragments = [Fragment(stage.nodes, 0) for stage in plan.stages]

    @property
    def running(self) -> list[Operator]:
        """All of them."""
        return [operator for fragment in self.fragments for operator in fragment.operators]

    @property
    def state_rows(self) -> int:
        """Rows kept."""
        return sum(operator.state_rows for operator in self.running)

    def changes(self, rows: Tables, progress: Mapping[str, int]) -> Iterator[Results]:
        """Rows arrive, then progress: the elements, or plus and minus tuples, that are said."""
        bound: dict[int, Batch] = {}
        reached: dict[int, int] = {}
        for source in self.plan.sources:
            for elements in SourceTask(source).rows([prepared(source, rows[source.name])]):
                if source.target is None:
                    yield elements
                else:
                    bound[source.channel] = source.target.binding.bind(elements)
            reached[source.channel] = progress[source.name]
        for stage, fragment in zip(self.plan.stages, self.fragments, strict=True):
            batches, times = {}, []
            for number, given in enumerate(stage.inputs):
                channels = [channel.number for channel in given.channels]
                batches[number] = Batch.concat([bound[channel] for channel in channels])
                times.append(min(reached[channel] for channel in channels))
            for output in fragment.run(batches, {}, times):
                if isinstance(output, Results):
                    yield output
