"""``sarb tune``: a search over settings with Optuna, judged on known labels of validation images.

space      what is searched, and the checks of it
study      Optuna's study in a folder: which values come next, and what is kept of a killed search
trial      one trial: a training and its value
pruning    when a trial is ended early
recipe     settings as a recipe
results    the result: trials, trials.csv, best.toml, the page and its figure
"""
