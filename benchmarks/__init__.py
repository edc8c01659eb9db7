"""Speed and memory, measured: ``python -m benchmarks.bench`` (or ``make bench``)."""
