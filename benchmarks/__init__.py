"""How fast is it, beside what users would pick instead? `./sj bench` runs everything here.

    workloads.py       the data: seeded, declared, written to files that every contender reads
    kernels.py         pairs from arrays, one thread: against DuckDB, Polars, ncls, scipy
    spark_nested_loop.py   joins of frames on local[2]: against the nested loop that Spark itself would run
    growth.py          cost against n log n + results, n doubled five times
    streams.py         the data of the streaming questions: two streams in files
    streaming.py       warm micro-batches: against Spark's own join, against a floor, with 100 times the state
    streaming_peers.py whole streaming runs: against Flink SQL and Pathway
    micro_batches.py   the rules for streams: warm micro-batches count, equal results in every one first
    one_shot.py        a process for each streaming run
    lifetimes.py       the direct method against plus and minus tuples; lifetimes_queries.py has its queries and data,
                       lifetimes_plan.py what runs of them, lifetimes_run.py the rules, insertion_sort.py the rival of
                       lazy sorting
    house.py           this state of the code against an earlier one, side by side: house_start.py, house_restore.py,
                       checkouts.py has both states
    sweep.py           joins in sorted runs: the document's experiment by a simulated clock (sweep_experiment.py), page
                       accesses and plots
    priority_room/     prioritised elements: schedulers and buffers, element by element, on a virtual clock
    window_algorithm.py   the Window Algorithm as printed, with its corrections as switches
    reproduce/         every experiment of the five documents: claims beside what is measured (`./sj reproduce`)
    asking/            all questions of `streamjoin bench`, a module for each command; commands.py runs one of them
    all_questions.py   asks them all: measured_code.py says how long an answer stands, loaded_files.py and watched/
                       what it was measured of, side_by_side.py runs those without times; bench_table.py tells what
                       came out
    race.py            the rules: interleaved repetitions, equal results first, then a ratio
    contenders/        one process per system, started once, asked repetition by repetition (worker.py)
    environments.py    the peers' own environments, made on first use under build/
    tables.py, kernel_tables.py, streaming_tables.py, house_tables.py, lifetimes_report.py   what is printed, and
                       plotted (plots.py)

Losses are printed like wins. Nothing here is part of the package; contenders other than ours never import streamjoin.
"""
