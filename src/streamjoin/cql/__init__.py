"""The query language: a sqlglot dialect, and the binder to plan nodes."""

from streamjoin.cql.parse import parse_cql

__all__ = ["parse_cql"]
