"""What `streamjoin bench` runs: each command's questions, and how they are asked.

command.py       what a command and a question are, and what somebody asked for
kernels.py, ...  a module for each command, with its name: so that one can be asked without loading the others
shared.py        what several of them say
registry.py      all of them, in one place
"""
