"""The pages on calibration, completion and suggestion: every block runs, every table matches the code."""

import inspect

import pytest

import sarb
from sarb.labelling.calibration import METHODS
from sarb.workflows.completion import FORMATS
from tests.documentation.test_docs import table
from tests.documentation.tools import ROOT, blocks, commands, hurry, run

PAGES = ("calibration", "complete", "suggest")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    names = {}
    for block in blocks(ROOT / "docs" / f"{page}.md"):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, page, "exec"), names)
        else:
            for words, _ in commands(block):
                assert run(words, monkeypatch) == 0, (words, capsys.readouterr().err)
    written = {"calibration": "runs/demo/oof.npz", "complete": "conflicts.csv", "suggest": "five.csv"}
    assert (tmp_path / written[page]).is_file()


def test_tables_have_what_the_code_has():
    methods = [row[0].strip("`") for row in table(ROOT / "docs/calibration.md", "`--method`")]
    assert sorted(methods) == sorted(METHODS)
    formats = [row[0].split("`")[1] for row in table(ROOT / "docs/complete.md", "`--to`")]
    assert sorted(formats) == sorted(FORMATS)
    weights = {row[0].strip("`"): float(row[1]) for row in table(ROOT / "docs/suggest.md", "weight")}
    parameters = inspect.signature(sarb.suggest).parameters
    assert weights == {name: parameters[name].default for name in weights}
    others = {"calibration", "out_of_fold", "parts"}
    assert {*weights, *others} == {p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
