"""Batches: which images, in which order, from files or from the feature cache.

sources       which images a run trains, validates and tests on, and where their inputs come from
loader        batches in a seeded order, decoded in threads or processes
prefetch      decode the next batch while this one is used
features      the feature cache: activations of the frozen backbone, computed once per image
cache_files   the files of that cache: checksums, locks, moving finished files into place
"""
