"""What a training run leaves on disk.

folder        the run folder and its only owner
manifest      checksums of its files, to find damage
schema        what its JSON files must look like
checks        the words of which schemas are made
finite        numbers that are not finite are never written
tensors       weights from a file, finite and of the expected shapes
lookup        where a name leads: to a run folder, a model folder or a model of the hub
again         the command that trains a run again on other labels
differences   in which settings runs differ
swap          replace a folder in one step
checkpoint    the state a run resumes from
finite        numbers that are not finite are never written
log           ``log.csv`` and ``steps.csv`` as columns
"""
