"""The joins that Spark does not have: over streams and tables, with exact time semantics."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("streamjoin")
