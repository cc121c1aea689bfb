"""Every experiment of the five documents, one module each: what is claimed, what is measured, why they differ.

    experiment.py      the shape of an experiment, its findings and checks
    documents.py       the five documents
    sweep_*.py         joins in sorted runs: page accesses, alternating rates, the order of merges
    life_*.py          lifetimes: throughput of four queries, the share of the time that lifetimes take
    qjoin_*.py         streams out of order: the data sets, the parameters, MP-K-slack
    prio_*.py          priorities: schedulers and buffers (prio_reasons.py says why), the formula of a join's gain
    best_*.py          best matches: the Window Algorithm as printed, its cost; best_inputs.py has the inputs
    running.py         one after another, and the page

Most of them ask what `streamjoin bench` asks too, and say what the document says beside it. `./sj reproduce` runs them.
"""
