"""What `streamjoin bench` runs: each command's questions, and how they are asked.

command.py       what a command and a question are, and what somebody asked for
arrays.py        joins of arrays and frames, beside other systems: kernels, asof, nway, similar
streams.py       micro-batches: streaming, spill, replay, lanes, house
documents.py     experiments of the documents: lifetimes, recall, sweep, priority, enough
registry.py      all of them, in one place
"""
