"""How fast is it, beside what users would pick instead? `./sj bench` runs everything here.

    workloads.py       the data: seeded, declared, written to files that every contender reads
    kernels.py         pairs from arrays, one thread: against DuckDB, Polars, ncls, scipy
    spark_nested_loop.py   joins of frames on local[2]: against the nested loop that Spark itself would run
    growth.py          cost against n log n + results, n doubled five times
    race.py            the rules: interleaved repetitions, equal results first, then a ratio
    contenders/        one process per system, started once, asked repetition by repetition (worker.py)
    environments.py    the peers' own environment, made on first use under build/
    tables.py          what is printed

Losses are printed like wins. Nothing here is part of the package; contenders other than ours never import streamjoin.
"""
