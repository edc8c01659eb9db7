"""``sarb bench``: hands over to the benchmarks of the checkout, and says so where there are none."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import sarb
from sarb.cli.app import app
from sarb.errors import SarbError


def bench(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.fixture
def handed(monkeypatch):
    """What the benchmarks were called with."""
    calls = []
    fake = SimpleNamespace(main=lambda arguments: calls.append(arguments) or 0)
    monkeypatch.setitem(sys.modules, "benchmarks.bench", fake)
    return calls


def test_all_options_are_handed_over(handed):
    given = [
        "--all",
        "--quick",
        "--json",
        "--rounds",
        "2",
        "--coco256",
        "a b",
        "--out",
        "o.json",
        "--markdown",
        "r.md",
    ]
    assert bench(*given, "--only", "decouple", "gated graph").exit_code == 0
    assert set(handed[0]) == {*given, "--only", "decouple", "gated graph"}
    assert handed[0][-3:] == ["--only", "decouple", "gated graph"]
    place = handed[0].index("--coco256")
    assert handed[0][place + 1] == "a b"
    bench()
    assert handed[1] == []


def test_names_need_no_option(handed):
    bench("head", "--list", "mAP")
    assert handed == [["--list", "--only", "head", "mAP"]]


def test_it_has_the_options_of_the_benchmarks_themselves():
    from benchmarks.bench import _parser

    theirs = {
        word for action in _parser()._actions for word in action.option_strings if word.startswith("--")
    }
    help_text = bench("--help").output
    assert [word for word in sorted(theirs) if word not in help_text] == []


def test_the_list_of_cases_and_a_name_that_no_case_has():
    listed = bench("--list")
    assert listed.exit_code == 0 and "decouple: SD" in listed.output and "(slow)" in listed.output
    wrong = bench("nothing like it")
    assert isinstance(wrong.exception, SarbError) and "'nothing like it'" in str(wrong.exception)


def test_failed_cases_give_code_one(handed, monkeypatch):
    monkeypatch.setitem(sys.modules, "benchmarks.bench", SimpleNamespace(main=lambda _: 1))
    assert bench().exit_code == 1


def test_without_a_checkout_one_line_says_where_to_get_it(monkeypatch, tmp_path, capsys):
    from sarb.cli.app import main

    installed = tmp_path / "site-packages" / "sarb"
    monkeypatch.setattr(sarb, "__file__", str(installed / "__init__.py"))
    monkeypatch.setattr(sys, "argv", ["sarb", "bench", "--quick"])
    with pytest.raises(SystemExit) as stop:
        main()
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert error.count("\n") == 1 and "source checkout of sarb" in error and "pip install -e ." in error


def test_help_imports_no_torch():
    code = "import sys\nfrom sarb.cli.app import app\ntry: app(['bench', '-h'])\n"
    code += "finally: assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
