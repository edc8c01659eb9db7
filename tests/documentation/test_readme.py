"""The README is executed: every Python block, every command, every error message it shows."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

import sarb
from sarb.settings import resolve
from sarb.workflows.training import merge_options
from tests.documentation.tools import ROOT, blocks, commands, hurry, parse, run

README = ROOT / "README.md"


def test_all_of_it(tmp_path, monkeypatch, capsys):
    # one test and not many: later blocks use what earlier ones made, and parallel runners share tests out
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    names = {}
    for block in blocks(README):
        if block.language == "csv":
            write_photos(block.text)
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, README, "exec"), names)
        elif block.language == "console" and block.mark is None:
            for words, expected in commands(block):
                execute(words, expected, monkeypatch, capsys)
    heads = [
        Path(name).read_text(encoding="utf-8").splitlines()[0] for name in ("predictions.csv", "likely.csv")
    ]
    assert heads == ["file_name,cat,dog,car", "file_name,label,probability"]


def execute(words, expected, monkeypatch, capsys):
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
        return
    if words[0] in ("python3", ".venv/bin/python"):
        return
    assert words[0] == "sarb", words
    capsys.readouterr()
    code = run(words, monkeypatch)
    said = capsys.readouterr()
    # output is shown where it is an error that the reader should know
    assert code == (2 if expected else 0), f"{words}: {said.err}"
    for line in expected:
        assert line in said.err, f"{words} said {said.err}"


def write_photos(table):
    folder = Path("photos")
    folder.mkdir()
    (folder / "labels.csv").write_text(table, encoding="utf-8")
    random = np.random.default_rng(0)
    for row in csv.DictReader(table.splitlines()):
        Image.fromarray(random.integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(folder / row["file_name"])


def test_commands_that_need_files_have_valid_options():
    marked = [
        words for block in blocks(README) if block.mark == "needs-files" for words, _ in commands(block)
    ]
    assert len(marked) == 3
    for words in marked:
        given = parse(words)
        options, _, problems = merge_options(given["row"], given["set_"], {})
        assert problems == []
        settings = resolve(given["recipe"], **options)
        assert (settings.backbone, settings.backbone_options["weights"]) == ("resnet101", "resnet101.pth")


def test_every_block_is_of_a_kind_that_is_checked():
    assert {block.language for block in blocks(README)} <= {"console", "python", "csv", "bibtex", "text"}
    assert {block.mark for block in blocks(README)} <= {None, "needs-files"}


def test_it_names_all_there_is_to_choose_from():
    page = README.read_text(encoding="utf-8")
    for registry in (sarb.NETWORKS, sarb.BACKBONES, sarb.DATASETS):
        assert [name for name in registry if f"`{name}`" not in page] == []
    # a method has a page of its own, to which the README leads, so that adding one does not touch the README
    assert "(docs/methods)" in page
    assert [name for name in sarb.METHODS if not (ROOT / "docs" / "methods" / f"{name}.md").is_file()] == []
    from sarb.cli.app import app

    known = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert [name for name in known if f"`sarb {name}`" not in page] == []


def test_it_opens_with_the_two_commands():
    first = blocks(README)[0]
    assert [words for words, _ in commands(first)] == [["make", "demo"], ["make", "test"]]
