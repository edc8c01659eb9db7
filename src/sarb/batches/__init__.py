"""Images into batches: which ones, in what order, from files or from the cache.

sources       which images train and which validate, from files or from the cache
loader        batches in a seeded order, decoded in threads or processes
prefetch      decode the next images while the current ones are in use
features      what the frozen backbone makes of each image, computed once
cache_files   the files of that cache: named by what they depend on, checked, cleaned up
"""
