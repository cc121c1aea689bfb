"""The condition of an inner join that is left to Spark, on the finished rows."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.errors import CallError
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.frames import reason


def filtered(frame: DataFrame, plan: JoinPlan) -> DataFrame:
    """What Spark keeps of the rows by the theta expression; rows that leave unjoined, marked, are not asked."""
    if plan.residual is None:
        return frame
    names = {source: column.name for column in plan.naming.columns for source in column.sources}
    keep = F.expr(plan.residual.spark_sql(lambda number, column: names[f"{number}.{column}"]))
    for flag in plan.naming.flags:
        keep = keep | F.col(flag)
    try:
        return frame.filter(keep)
    except AnalysisException as error:
        raise CallError(f"Spark cannot evaluate theta {plan.residual.text!r}: {reason(error)}") from error
