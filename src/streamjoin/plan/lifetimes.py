"""From a relational tree to a graph of operators in one task: how a query over lifetimes runs without Spark.

| node | direct | negative |
|---|---|---|
| Stream | its window gives ends; a row window is an operator | a window that says every element twice |
| Selection, Projection, Union | functions of rows: holders pass through | the same |
| Join | a temporal join by snapshot | a join that looks for every pair twice |
| Distinct, Difference, Intersection | a set operator over multiplicities | the same over plus and minus tuples |
| Aggregation | pieces between the starts and ends of a group's elements | the same over plus and minus tuples |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import Equals, Method, Rows, TimeAxis, Unbounded, Validity
from streamjoin.errors import UnsupportedError
from streamjoin.operators import (
    Aggregating,
    Multiplicity,
    NegativeJoin,
    NegativeWindow,
    Results,
    RowWindow,
    TemporalJoin,
)
from streamjoin.operators.multiplicity import SetOperator
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.expression import Expression
from streamjoin.plan.planner import ExpressionTest, order_of, value_tests
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.runtime.graph import Graph, GraphNode, OperatorNode, PerRowNode, SourceNode, UnionNode, as_batch
from streamjoin.state import Batch, KeyTest, Matching
from streamjoin.state.columns import codes_are_exact, time_values


def build_graph(relation: Relation, schemas: Mapping[str, pa.Schema], method: Method = "direct") -> Graph:
    """A running graph for a tree over streams with these schemas, whose time columns are integers."""
    lowering = Lowering(schemas, method)
    lowering.lower(relation)
    return Graph(lowering.nodes)


@dataclass
class Lowering:
    """Makes nodes, children first. `lower` gives a node's number; `schema[number]` what its results look like."""

    schemas: Mapping[str, pa.Schema]
    method: Method = "direct"
    nodes: list[GraphNode] = field(default_factory=list)
    schema: list[pa.Schema] = field(default_factory=list)

    def lower(self, relation: Relation) -> int:
        """The number of the node that gives this relation."""
        match relation:
            case Stream():
                return self._stream(relation)
            case Selection():
                child = self.lower(relation.child)
                condition = Expression.parse(relation.condition, [self.schema[child]])
                return self._add(PerRowNode(child, Selected(condition)), self.schema[child])
            case Projection():
                return self._projection(relation)
            case Union():
                return self._union(relation)
            case Join():
                return self._join(relation)
            case Aggregation():
                return self._aggregation(relation)
            case Distinct():
                return self._set("distinct", relation)
            case Difference():
                return self._set("except all" if relation.every else "except", relation)
            case Intersection():
                return self._set("intersect all" if relation.every else "intersect", relation)
        raise UnsupportedError(f"{type(relation).__name__} is no relation over lifetimes", hint="use it on Spark")

    def _add(self, node: GraphNode, schema: pa.Schema) -> int:
        self.nodes.append(node)
        self.schema.append(schema)
        return len(self.nodes) - 1

    def _stream(self, stream: Stream) -> int:
        source = self.schemas[stream.source]
        schema = pa.schema([source.field(column).with_name(name) for name, column in stream.reads])
        assert stream.window is not None
        window = stream.window.resolve(TimeAxis.INTEGER)
        if not isinstance(window, Rows):
            at = self._add(SourceNode(stream.source, ReadStream(replace(stream, window=window))), schema)
            if self.method == "direct":
                return at
            negative = NegativeWindow(schema, producer=at)
            return self._add(OperatorNode((at,), negative.build, (as_batch,), Named(tuple(schema.names))), schema)
        by: tuple[str, ...] = tuple(window.by or ())  # type: ignore[arg-type]
        read = ReadStream(stream, by)
        groups = pa.schema([source.field(column) for column in by])
        at = self._add(SourceNode(stream.source, read), schema)
        config: RowWindow | NegativeWindow
        if self.method == "direct":
            config = RowWindow(window.size, groups, window.drain, producer=at)
        else:
            config = NegativeWindow(schema, window.size, groups, window.drain, producer=at)
        # The columns that make a group travel at the end of the payload, and no further than the window.
        return self._add(OperatorNode((at,), config.build, (Grouped(len(schema)),), Named(tuple(schema.names))), schema)

    def _projection(self, projection: Projection) -> int:
        child = self.lower(projection.child)
        schema = self.schema[child]
        columns = []
        for _, text in projection.computed:
            expression = Expression.parse(f"{text} IS NULL", [schema])
            reference = expression.references[0]
            if f"`{reference.column}`" != text.strip():
                raise UnsupportedError(f"a computed column {text!r} is left to Spark", hint="run the query on Spark")
            columns.append(reference.column)
        names = tuple(name for name, _ in projection.computed)
        fields = [schema.field(column).with_name(name) for name, column in zip(names, columns, strict=True)]
        return self._add(PerRowNode(child, Projected(tuple(columns), names)), pa.schema(fields))

    def _union(self, union: Union) -> int:
        parts = tuple(self.lower(part) for part in union.parts)
        names = tuple(union.columns)
        return self._add(UnionNode(parts, (Named(names),) * len(parts)), self.schema[parts[0]])

    def _set(self, operator: SetOperator, relation: Relation) -> int:
        parts = tuple(self.lower(child) for child in relation.children)
        schema = self.schema[parts[0]]
        config = Multiplicity(operator, schema, producer=len(self.nodes), method=self.method)
        return self._add(OperatorNode(parts, config.build, (as_batch,) * len(parts), Named(relation.columns)), schema)

    def _aggregation(self, aggregation: Aggregation) -> int:
        child = self.lower(aggregation.child)
        schema, producer = self.schema[child], len(self.nodes)
        config = Aggregating(aggregation.keys, aggregation.aggregates, schema, producer, method=self.method)
        node = OperatorNode((child,), config.build, (as_batch,), Named(aggregation.columns))
        return self._add(node, config.result_schema)

    def _join(self, join: Join) -> int:
        parts = (self.lower(join.left), self.lower(join.right))
        schemas = (self.schema[parts[0]], self.schema[parts[1]])
        keys = [predicate for predicate in join.predicates if isinstance(predicate, Equals)]
        others = sorted((each for each in join.predicates if not isinstance(each, Equals)), key=order_of)
        tests = value_tests(others)
        if keys and not codes_are_exact([schemas[0].field(key.left).type for key in keys]):
            tests.append(KeyTest())
        if join.theta is not None:
            tests.append(ExpressionTest(Expression.parse(join.theta, schemas)))
        matching = Matching(others[0] if others else None, tuple(tests))  # type: ignore[arg-type]
        config: TemporalJoin | NegativeJoin
        if self.method == "direct":
            config = TemporalJoin(matching, schemas, join.how, "snapshot", producer=len(self.nodes))
        else:
            config = NegativeJoin(matching, schemas, join.how, producer=len(self.nodes))
        read = tuple(
            ReadSide(
                InputBinding(
                    number, tuple(schemas[number].names), tuple(k.columns(number)[0] for k in keys), tuple(others)
                )
            )
            for number in (0, 1)
        )
        left_only = join.how in ("semi", "anti")
        schema = schemas[0] if left_only else pa.schema([*schemas[0], *schemas[1]])
        return self._add(OperatorNode(parts, config.build, read, Named(join.columns)), schema)


@dataclass(frozen=True)
class ReadStream:
    """The rows of a stream as elements: its columns under their names here, behind them those that make a group."""

    stream: Stream
    by: tuple[str, ...] = ()

    def __call__(self, table: pa.Table) -> Batch:
        stream = self.stream
        # The end of an element in a row window is not known yet: it is for ever, until its window says otherwise.
        window = Unbounded() if isinstance(stream.window, Rows) else stream.window
        assert window is not None
        if isinstance(window, Validity) or stream.time is None or table[stream.time].null_count:
            time = None if isinstance(window, Validity) else stream.time
            batch = InputBinding(0, tuple(table.column_names), time=time, window=window).bind(table).batch
            rows, ts, te = batch.payload, batch.ts, batch.te
        else:  # nothing can be invalid: the time stamps are all that is read
            rows = table.combine_chunks()
            ts, _ = time_values(rows[stream.time])
            te = window.ends(ts)
        columns = [rows[column] for _, column in stream.reads] + [rows[name] for name in self.by]
        names = [name for name, _ in stream.reads] + [f"by {name}" for name in self.by]
        payload = pa.table(columns, names=names) if names else pa.table({})
        return Batch(payload, ts, te, np.zeros(len(ts), np.int64))


@dataclass(frozen=True)
class Grouped:
    """Elements of a row window: the columns from number `width` on make the group."""

    width: int

    def __call__(self, results: Results) -> Batch:
        batch = as_batch(results)
        names = results.payload.column_names
        proof = results.payload.select(names[self.width :])
        return replace(batch, payload=results.payload.select(names[: self.width]), proof=proof)


@dataclass(frozen=True)
class ReadSide:
    """Elements as one side of a join reads them."""

    binding: InputBinding

    def __call__(self, results: Results) -> Batch:
        batch = self.binding.bind(results.payload).batch
        return replace(batch, ts=results.ts, te=results.te, holder=results.holder, sign=results.sign)


@dataclass(frozen=True)
class Selected:
    """The elements for which a condition is true."""

    condition: Expression

    def __call__(self, results: Results) -> Results:
        keep = self.condition.evaluate([results.payload])
        return results if keep.all() else results.take(keep)


@dataclass(frozen=True)
class Projected:
    """Some columns, under other names."""

    columns: tuple[str, ...]
    names: tuple[str, ...]

    def __call__(self, results: Results) -> Results:
        payload = pa.table([results.payload[column] for column in self.columns], names=list(self.names))
        return replace(results, payload=payload)


@dataclass(frozen=True)
class Named:
    """The same columns under other names."""

    names: tuple[str, ...]

    def __call__(self, results: Results) -> Results:
        if not self.names:
            return replace(results, payload=pa.table({}))
        return replace(results, payload=results.payload.rename_columns(list(self.names)))
