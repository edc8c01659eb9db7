"""Every example is executed, and every verb has one."""

import ast
import inspect
import re
import runpy
import subprocess
import sys

import pytest

import sarb
from tests.documentation.tools import ROOT, coarse_pictures, hurry

EXAMPLES = ROOT / "examples"
#: the others use the run that train.py leaves behind; complete.py and suggest.py use the thresholds of
#: calibrate.py
ORDER = (
    "labels.py",
    "train.py",
    "evaluate.py",
    "compare.py",
    "audit.py",
    "predict.py",
    "report.py",
    "stats.py",
    "convert.py",
    "check.py",
    "calibrate.py",
    "complete.py",
    "suggest.py",
    "explain.py",
    "model_folder.py",
    "export.py",
    "serve.py",
    "estimator.py",
    "add_a_method.py",
    "add_a_network.py",
    "tune.py",
    "reproduce.py",
)
#: most lines of an example; a network and a method of one's own may take more
LINES = 40
MORE_LINES = {"add_a_method.py": 60, "add_a_network.py": 60}
#: predict_onnx.py has a process of its own, since it shows that torch is not loaded
ALL = (*ORDER, "predict_onnx.py")
#: a word of what each of these says when it has done its work
SAYS = {
    "audit.py": "images",
    "compare.py": "mAP minus example",
    "calibrate.py": "brier_score before",
    "complete.py": "given labels changed: 0",
    "suggest.py": "known positive",
    "explain.py": "evidence (2, 4, 4)",
    "model_folder.py": "same logits: True",
    "export.py": "largest difference from torch",
    "serve.py": "photo.jpg [('",
    "estimator.py": "mean average precision 0.",
    "add_a_method.py": "loss_assumed",
    "add_a_network.py": "largest difference from torch",
    "tune.py": "best of 2 trials",
    "reproduce.py": "| Ours |",
}


def test_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    # the examples register these; gone after the test
    monkeypatch.setitem(sarb.METHODS, "assume_negative", "")
    monkeypatch.setitem(sarb.NETWORKS, "queries", "")
    for name in ORDER:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        said = capsys.readouterr().out
        assert said.strip() and SAYS.get(name, "") in said, f"{name} said {said}"
    assert (tmp_path / "runs/example/report.html").stat().st_size > 10_000
    assert "completed_plrb" in (tmp_path / "runs/example/log.csv").read_text(encoding="utf-8")
    assert [place.name for place in tmp_path.iterdir()] == ["runs"], "an example wrote beside runs/"
    command = [sys.executable, EXAMPLES / "predict_onnx.py"]
    assert "torch loaded: False" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_demo(tmp_path, monkeypatch, capsys):
    hurry(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path / "demo"), "--known", "0.3"])
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(word in said for word in ("auto, the default", "SSGRL", "SARB", "mAP", "OF1", "CF1"))
    assert "Blending (SARB) adds" in said and "the ladder of the default" in said
    assert (tmp_path / "demo" / "report.html").is_file()


def test_none_is_forgotten():
    assert {file.name for file in EXAMPLES.glob("*.py")} == {*ALL, "demo.py"}


def test_the_page_lists_them_all():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(.+?)\]\(\1\) \|", page, re.M)
    assert sorted(listed) == sorted(file.name for kind in ("*.py", "*.ipynb") for file in EXAMPLES.glob(kind))


@pytest.mark.parametrize("name", ALL)
def test_short_and_says_what_it_is(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MORE_LINES.get(name, LINES)
    assert len(ast.get_docstring(ast.parse(text)) or "") > 50


def test_every_verb_has_an_example():
    used = set()
    for name in ALL:
        for node in ast.walk(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("sarb."):
                used.add(ast.unparse(node.func).removeprefix("sarb."))
    verbs = {name for name in sarb.__all__ if inspect.isfunction(getattr(sarb, name))}
    assert {"load", "fit", "export"} <= verbs
    assert verbs - used == set()


def test_every_command_has_an_example():
    from sarb.cli.app import app

    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    commands = {each.name or each.callback.__name__ for group in groups for each in group.registered_commands}
    assert "check" in commands and "train" in commands
    assert {f"{name}.py" for name in commands - {"list", "bench"}} - set(ALL) == set()
