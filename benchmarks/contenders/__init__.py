"""One module per system, run as a process (`python -m benchmarks.contenders.ours`) in an environment that has it.

A job called "pairs" delivers the two `id` columns of all pairs; "aggregate" delivers less, where a system can.
"""
