"""The machine room of the document on priorities: its experiment, element by element, on a virtual clock.

    plan.py         operators with declared costs, the plan of the document, and where buffers stand
    elements.py     what arrives when, with which priority, and where each element ends
    buffers.py      six kinds of buffer: where an element is put, and which is taken next
    schedulers.py   six functions that pick the buffer whose turn it is
    clock.py        one thread: a turn after the other, until all is done
    experiment.py   one variant: scheduler, kind of buffer, load; equal results first, then latencies
    claims.py       what section 5 says, line by line: held or not
    sweeps.py       number of priorities, cost of operators, prioritised share, length of trains
    join_formula.py the gain of section 3.1.3 beside a join that is run
    control_room.py alarms among status messages, for the plot of the guide
    questions.py    what `streamjoin bench priority` asks; report.py has its tables and plots

Nothing here is in the package: on Spark, priorities work through lanes and waves. No second of this machine is measured
either, so a run gives the same figures everywhere.
"""
