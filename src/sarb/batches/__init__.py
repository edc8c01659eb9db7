"""Images into batches: which ones, in which order, from files or from the cache.

sources       which images a run trains, validates and tests on, and where their inputs come from
loader        batches in a seeded order, decoded in threads or processes
prefetch      decode the next batch while this one is used
features      what the frozen backbone makes of each image, computed once
cache_files   the files of that cache: named by what they depend on, checked, cleaned up
"""
