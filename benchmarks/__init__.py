"""Benchmarks of speed and memory: ``python -m benchmarks.bench`` (or ``make bench``)."""
