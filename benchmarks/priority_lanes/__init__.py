"""Lanes on Spark under overload: how long do urgent results wait, with lanes and without?

    arrivals.py    which rows arrive when, their files, and the clock by which these appear in a source's folder
    model.py       the same in virtual time, where a micro-batch takes a + b * rows seconds
    waits.py       latencies from what Spark says of micro-batches
    overload.py    calibration, three runs, and what must come out
    report.py      the table, and the plot of latencies over time

Status rows of plants, one in a hundred urgent, meet the limit of their plant: one result for each row. The limits are
in a lane that is not limited. `benchmarks/contenders/stream_lanes.py` is the query.

A result leaves when its micro-batch is committed: no sink of Spark shows it before. It waits from the arrival of its
status row, the only member that can be urgent; in a result that is not, the status row is the younger member, and the
limit has been there from the beginning.
"""
