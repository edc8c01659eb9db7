"""Every example is executed."""

import runpy
import sys

import pytest

from tests.documentation import ROOT, coarse_pictures, hurry

EXAMPLES = ROOT / "examples"
#: the others use the run that train.py leaves behind
ORDER = ("labels.py", "train.py", "evaluate.py", "predict.py", "report.py", "stats.py", "convert.py", "check.py")


def test_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    for name in ORDER:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert capsys.readouterr().out.strip(), f"{name} printed nothing"
    assert (tmp_path / "runs/example/report.html").stat().st_size > 10_000
    assert "completed_plrb" in (tmp_path / "runs/example/log.csv").read_text(encoding="utf-8")


def test_demo(tmp_path, monkeypatch, capsys):
    hurry(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path / "demo"), "--known", "0.3"])
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(word in said for word in ("pooled partial-BCE", "SSGRL", "SARB", "mAP", "OF1", "CF1"))
    assert (tmp_path / "demo" / "report.html").is_file()


def test_none_is_forgotten():
    assert {file.name for file in EXAMPLES.glob("*.py")} == {*ORDER, "demo.py"}


@pytest.mark.parametrize("name", ORDER)
def test_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 30
