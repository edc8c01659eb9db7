"""Batches: which images, in which order, from files or from the feature cache.

sources          which images train and which validate, from files or from the cache
loader           batches in a seeded order, decoded in threads or processes
prefetch         decode the next batch while this one is used
features         the feature cache: activations of the frozen backbone, computed once per image
engines          PyTorch, ONNX Runtime or OpenVINO, whichever computes activations fastest on this CPU
openvino_engine  OpenVINO without its side effects on the process
cache_files      the files of that cache: checksums, locks, moving finished files into place
"""
