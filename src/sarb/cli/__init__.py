"""The command line: one file per group of sub-commands, each only options and a call.

app           ``sarb`` itself: the sub-commands by name, exit codes, train, evaluate, predict, report, list
model         explain, export
labels        calibrate, complete, suggest
data          ``sarb data``: check, stats, convert
reproduce     the paper's tables
serve         the pages
bench         speed and memory
common        options that several sub-commands share
hints         which option was meant
"""
