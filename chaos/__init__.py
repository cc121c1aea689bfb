"""Chaos: streaming joins and queries whose processes are killed, and what must not change because of it.

A query is killed again and again, in the middle of its work, and goes on from its checkpoint each time. In the end its
output is compared, row by row, with the same call over the whole of the data at once: nothing lost, nothing twice.

    data         two folders of files, drawn from a seed: one file of each is a micro-batch
    kinds        a join or a query: a call that takes streaming and batch frames alike
    joins        the joins
    queries      the queries in CQL
    catalog      all of them by name
    driver       the process that is killed: one of them from files to files
    lives        one life of that process, from outside
    processes    whatever runs in a session, by its id
    checkpoint   how far a query is, and what a kill left half done
    local_files  what of a state lies beside its checkpoint
    aims         when to kill
    cases        kill, restart, finish, compare
    comparison   the rows of two results
    commands     `./sj chaos`
"""
