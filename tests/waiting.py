"""Wait for a condition, not for a time: a busy machine is slow, and a condition that holds is seen at once."""

import time

#: seconds after which something is taken to hang; no test may depend on being faster
PATIENCE = 300


def wait_until(condition, what):
    """Wait until a condition holds; fail with ``what`` was expected if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)
