"""What a training run leaves on disk.

folder        the run folder and its only owner
lookup        where a name leads: to a run folder, a model folder or a model of the hub
checkpoint    the state a run resumes from
log           ``log.csv`` and ``steps.csv`` as columns
"""
