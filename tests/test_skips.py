"""The end of a run says what was not run, and SARB_REQUIRE_ALL fails a run that skipped what it must not."""

import os
import subprocess
import sys

import pytest

from tests.documentation.tools import ROOT
from tests.skips import VARIABLE, Allowed, read_allowed

CONFTEST = """
from pathlib import Path
from tests import skips

def pytest_configure(config):
    skips.register(config, Path(__file__).with_name("allowed_skips.txt"))
"""
TESTS = """
import pytest
import code_under_test

@pytest.mark.skipif(True, reason="no moon tonight. To run them, wait a week")
@pytest.mark.parametrize("place", ["sea", "land"])
def test_tide(place):
    pass

@pytest.mark.xfail(reason="known")
def test_known_fault():
    assert False

def test_runs():
    assert code_under_test.ONE == 1
"""
WHOLE_FILE = 'import pytest\npytest.importorskip("no_such_package", reason="needs no_such_package")\n'
MOON = "2 tests not run: no moon tonight. To run them, wait a week"
PACKAGE = "1 test file not run: needs no_such_package"


@pytest.fixture
def run(tmp_path):
    """Run pytest on a folder of two test files; return its exit code and the lines it ends with."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_moon.py").write_text(TESTS)
    (tmp_path / "test_package.py").write_text(WHOLE_FILE)
    (tmp_path / "code_under_test.py").write_text("ONE = 1\n")

    def running(*words, allowed="", required="1"):
        (tmp_path / "allowed_skips.txt").write_text(allowed)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        environment = {**kept, "PYTHONPATH": str(ROOT), VARIABLE: required}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).splitlines()

    return running


def test_without_the_variable_the_run_passes_and_its_last_lines_say_what_was_not_run(run):
    code, said = run("--cov", "--cov-report=term", required="")
    assert code == 0 and any("TOTAL" in line for line in said)
    assert sorted(said[-3:-1]) == [PACKAGE, MOON] and "1 passed" in said[-1]


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_with_the_variable_a_skip_fails_the_run_and_is_named(run, words):
    code, said = run(*words, allowed="test_package.py  there is no such package\n")
    assert code == 1
    assert sorted(said[-6:-4]) == [PACKAGE, MOON] and "the run fails" in said[-4]
    assert sorted(said[-3:-1]) == ["  test_moon.py::test_tide[land]", "  test_moon.py::test_tide[sea]"]


def test_a_run_whose_only_file_is_skipped_fails_too(run):
    code, said = run("test_package.py")
    assert code == 1 and said[-2] == "  test_package.py"


def test_what_is_listed_may_be_skipped_and_what_is_listed_in_vain_is_reported(run):
    allowed = (
        "# comment\n\ntest_moon.py::test_tide[*]  no moon\ntest_package.py  none\ntest_old.py::*  gone\n"
    )
    code, said = run(allowed=allowed)
    assert code == 0
    assert said[-2] == "allowed_skips.txt lists test_old.py::*, but no such test was skipped"
    assert sorted(said[-4:-2]) == [PACKAGE, MOON]


def test_quiet_where_nothing_is_skipped(run):
    code, said = run("test_moon.py::test_runs")
    assert code == 0 and not any("not run" in line or "skipped" in line for line in said)


def test_a_failure_stays_a_failure_and_an_entry_needs_a_reason(run, tmp_path):
    (tmp_path / "test_fails.py").write_text("def test_fails():\n    assert False\n")
    code, said = run(required="")
    assert code == 1 and sorted(said[-3:-1]) == [PACKAGE, MOON]
    code, said = run(allowed="test_moon.py::*\n")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "allowed_skips.txt, line 1: no reason why test_moon.py::* may be skipped" in "\n".join(said)


def test_only_the_star_is_special():
    entry = Allowed("tests/a.py::test[x-*]", "why")
    assert entry.matches("tests/a.py::test[x-1]") and not entry.matches("tests/a.py::testx")
    assert not entry.matches("tests/a.py::test[x-1] and more")


def test_the_list_can_be_read():
    assert all(entry.reason for entry in read_allowed(ROOT / "tests/allowed_skips.txt"))
