"""The query language: a sqlglot dialect, and the binder to plan nodes."""

from streamjoin.language.parse import parse_cql

__all__ = ["parse_cql"]
