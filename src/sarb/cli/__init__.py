"""The command line: one file per group of sub-commands, each only options and a call.

app           ``sarb`` itself: the sub-commands by name, signals, errors and exit codes
training      train
model         evaluate, compare, predict, explain, export, report
labels        calibrate, complete, suggest
data          ``sarb data``: check, stats, convert
label_studio  ``sarb data push|pull label-studio``
listing       list
tuning        tune: search settings
reproduce     the paper's tables
serve         the pages
bench         speed and memory
common        options that several sub-commands share, and the exit code for skipped inputs
failures      what the operating system refused, in one line
hints         which option was meant
parts         options of a folder of parts, and what is said about it
following     the next useful command, at the end of each
"""

from sarb.cli.app import main

__all__ = ["main"]
