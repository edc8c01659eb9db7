"""What a training run leaves on disk.

folder        the run folder and its only owner
checkpoint    the state a run resumes from
"""
