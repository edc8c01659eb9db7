"""Options for a run of a benchmark that takes a second."""

#: a few demo images and an untrained backbone
DEMO = ["-o", "train=40", "-o", "test=16", "-o", "size=64", "--backbone", "tiny"]
