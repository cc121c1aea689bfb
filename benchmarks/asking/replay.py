"""`streamjoin bench replay`: recall targets through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import recall, recall_spark
from benchmarks.asking.command import Asked, Command, Question, said
from benchmarks.reporting import Outcomes, progress


def _replay(asked: Asked, folder: Path) -> Outcomes:
    import streamjoin as sj

    spark = sj.session()
    with progress(asked.console) as say:
        for name in asked.names:
            if not recall.DATA[name].there:
                say(f"{name}: its file is not there")
                continue
            for buckets in (2, 1, 5) if name == recall_spark.QUESTIONS[0] else (2,):
                outcome = recall_spark.measure(spark, name, buckets, asked.quick, folder / name, say)
                yield f"{name}, {buckets} buckets", outcome.verdicts, outcome, recall_spark.table_of(outcome)


COMMAND: Final = Command(
    "replay",
    tuple(
        Question(name, f"{name}: a recall target of {recall_spark.TARGET:g} through Spark, cut by arrival",
                 "the same plan in one process", "no row differs", 2, timed=False)
        for name in recall_spark.QUESTIONS
    ),
    _replay, said("replays through Spark, nothing is timed"),
)  # fmt: skip
