"""Skipped tests are never silent: the end of a run says what was not run, and SARB_REQUIRE_ALL forbids it.

With ``SARB_REQUIRE_ALL=1``, as in .ci/run, a skipped test fails the run unless ``tests/allowed_skips.txt``
lists it with a reason. All of this happens in the process that prints, so it works with pytest-xdist too.
"""

import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

VARIABLE = "SARB_REQUIRE_ALL"


class Allowed(NamedTuple):
    """A line of the list: which tests (``*`` matches any text) may be skipped, and why."""

    pattern: str
    reason: str

    def matches(self, test):
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), test) is not None


class Skip(NamedTuple):
    """A test that was skipped, or a whole file or folder; ``what`` says which."""

    test: str
    reason: str
    what: str


def read_allowed(file):
    """Read the list: a pattern and its reason per line, separated by spaces; ``#`` starts a comment."""
    allowed = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.strip().partition(" ")
        if not reason.strip():
            raise pytest.UsageError(f"{file}, line {number}: no reason why {pattern} may be skipped")
        allowed.append(Allowed(pattern, reason.strip()))
    return allowed


class SkipReport:
    """The pytest plugin that collects the skips of a run.

    Args:
        file: the list of the tests that may be skipped.
        required: whether any other skip fails the run.
    """

    def __init__(self, file: Path, required: bool) -> None:
        self.file = file
        self.required = required
        self.allowed = read_allowed(file)
        self.skips: list[Skip] = []

    def pytest_runtest_logreport(self, report):
        self._add(report, "test")

    def pytest_collectreport(self, report):
        self._add(report, "test file" if report.nodeid.endswith(".py") else "test folder")

    def _add(self, report, what):
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skips.append(Skip(report.nodeid, reason.removeprefix("Skipped: "), what))

    def forbidden(self):
        """Return the skipped tests that are not on the list."""
        return [skip for skip in self.skips if not any(entry.matches(skip.test) for entry in self.allowed)]

    def unused(self):
        """Return the entries of the list that match no skipped test."""
        return [entry for entry in self.allowed if not any(entry.matches(skip.test) for skip in self.skips)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session, exitstatus):
        passed = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self.required and passed and self.forbidden():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    # The outermost wrapper: what follows the yield is printed after the failures, the coverage and all else.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter):
        result = yield
        for line in self.lines():
            terminalreporter.write_line(line, yellow=not self.required, red=self.required)
        return result

    def lines(self):
        """Return what the end of the run says; nothing where nothing was skipped."""
        for (reason, what), count in Counter((skip.reason, skip.what) for skip in self.skips).items():
            yield f"{count} {what}{'s' if count > 1 else ''} not run: {reason}"
        if not self.required:
            return
        if forbidden := self.forbidden():
            yield f"{VARIABLE} is set, so the run fails. Skipped, but not listed in {self.file.name}:"
            yield from (f"  {skip.test}" for skip in forbidden)
        for entry in self.unused():
            yield f"{self.file.name} lists {entry.pattern}, but no such test was skipped"


def register(config: pytest.Config, file: Path) -> None:
    """Add the plugin to a run; the workers of pytest-xdist print nothing and need none."""
    if not hasattr(config, "workerinput"):
        required = os.environ.get(VARIABLE, "") not in ("", "0")
        config.pluginmanager.register(SkipReport(file, required), "skip-report")
