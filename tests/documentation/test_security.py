"""SECURITY.md: every test and every kind of fault that it names exists."""

import re

from tests.documentation.tools import ROOT
from tests.faults.bench import kinds

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_named_test_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)
    assert len(named) > 10
    for file, function in named:
        assert (ROOT / file).is_file(), file
        assert not function or f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), (
            f"{file}::{function}"
        )


def test_every_named_kind_of_fault_exists():
    named = re.findall(r"fault “([^”]+)”", TEXT)
    names = [kind.name for kind in kinds()]
    assert named and not [name for name in named if not any(kind.startswith(name) for kind in names)]


def test_every_promise_names_what_holds_it():
    rows = [
        line
        for line in TEXT.splitlines()
        if line.startswith("| ") and not line.startswith(("| promise", "|---"))
    ]
    promises = [row for row in rows if row.count("|") == 3]
    assert promises and all("`tests/" in row or "fault “" in row for row in promises), (
        "a promise without a test"
    )
