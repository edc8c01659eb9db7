"""The command line: one file per group of sub-commands, each only options and a call.

app           ``sarb`` itself: the sub-commands by name, signals, errors and exit codes
training      train
model         evaluate, predict, explain, export, report
labels        calibrate, complete, suggest
data          ``sarb data``: check, stats, convert
listing       list
reproduce     the paper's tables
serve         the pages
bench         speed and memory
common        options that several sub-commands share, and the exit code for skipped inputs
hints         which option was meant
"""

from sarb.cli.app import main

__all__ = ["main"]
