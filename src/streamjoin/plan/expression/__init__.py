"""Conditions in Spark SQL over several inputs: handed to Spark as they are, or evaluated here where they can be."""

from streamjoin.plan.expression.expression import Expression

__all__ = ["Expression"]
