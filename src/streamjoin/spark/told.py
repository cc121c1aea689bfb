"""What a call is told of its frames, so that it need not ask Spark.

Asking for a frame's schema, or whether it streams, has Spark analyse it. Inside a query function of a declarative
pipeline Spark refuses that: the tables of the pipeline are not there yet. So a call takes `schemas=` and `streaming=`,
and asks nothing of a frame of which both are given. What it builds it knows the columns of; Spark Connect's client
would ask for them before every `mapInArrow`, and is told (`knowing`).

What types expressions have only Spark can say. It is asked about frames without rows that have nothing of the pipeline
in them, in a thread of their own (`asked`): Spark tells by the thread who is inside of a query function.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamjoin.errors import CallError

T = TypeVar("T")


def is_connect(session: Any) -> bool:
    """Whether a session is a client of Spark Connect, without a JVM beside it."""
    return not hasattr(session, "_jvm")


def context_of(session: Any) -> SparkContext | None:
    """The context of a session; Spark Connect has none."""
    return None if is_connect(session) else session.sparkContext


def asked(session: Any, question: Callable[[], T]) -> T:
    """What Spark answers to a question that has nothing to do with the frames of a call."""
    if not is_connect(session):
        return question()
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(question).result()


def knowing(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame, whose columns are these: nobody has to ask for them any more."""
    known: Any = frame
    if is_connect(frame.sparkSession):
        known._cached_schema = schema
    return frame


def schema_of(frame: DataFrame, given: Any, label: str) -> StructType:
    """The columns of a frame: as they are given, a StructType or text as Spark writes it, or as Spark says.

    Where they are given only they are read; the frame may have more.
    """
    if given is None:
        return frame.schema
    if isinstance(given, str):
        given = asked(frame.sparkSession, lambda: StructType.fromDDL(given))
    if not isinstance(given, StructType) or not given.fields:
        raise CallError(
            f"the schema of {label} must be a StructType or text, got {given!r}",
            hint='schemas=["k int, ts timestamp", "k int, ts timestamp"], one for each input',
        )
    if not is_connect(frame.sparkSession):  # the frame has been analysed already: to look costs nothing
        there = {each.name: each.dataType for each in frame.schema.fields}
        for each in given.fields:
            if there.get(each.name) != each.dataType:
                found = there[each.name].simpleString() if each.name in there else "not there"
                raise CallError(
                    f"the schema given for {label} has {each.name!r} as {each.dataType.simpleString()}, "
                    f"and in the frame it is {found}",
                    hint="leave schemas= out, or let it say what the frame has",
                )
    return given


def streams(frame: DataFrame, given: Any, label: str) -> bool:
    """Whether a frame is a stream: as is said, or as Spark says."""
    if given is None:
        return bool(frame.isStreaming)
    if not isinstance(given, bool):
        raise CallError(f"streaming must be True or False, got {given!r}", hint="streaming=True, or one per input")
    if not is_connect(frame.sparkSession) and given != frame.isStreaming:
        raise CallError(
            f"streaming={given} for {label}, which is {'a stream' if frame.isStreaming else 'no stream'}",
            hint="leave it out",
        )
    return given
