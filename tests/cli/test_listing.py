"""``sarb list``: names to choose from, and what the categories of a data source are tied to."""

import csv
import json

import pytest
from PIL import Image

from tests.cli.test_app import run


@pytest.fixture
def source(tmp_path):
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "split", "zebra", "dog", "kite", "hund"])
        for number, split in enumerate(["train", "test"]):
            Image.new("RGB", (8, 8)).save(tmp_path / f"{number}.jpg")
            writer.writerow([f"{number}.jpg", split, 1, 0, 1, 0])
    return ["--data", tmp_path / "labels.csv", "-o", "encoding=binary"]


def test_concepts(source, monkeypatch, capsys):
    assert run(monkeypatch, "list", "concepts", *source) == 0
    zebra, dog, kite, hund, empty, count = capsys.readouterr().out.splitlines()
    assert zebra.split() == ["zebra", "name:", "zebra", "zebra"]
    assert dog.count(",") == 8 and dog.endswith(", +110 more")
    assert kite.split() == ["kite", "name:", "kite", "kite"]
    assert (hund, empty) == ("hund   no concept", "")
    assert count == "3 of 4 categories are tied to concepts"


def test_concepts_by_hand(source, monkeypatch, capsys):
    ties = ["--tie", "kite=", "--tie", "hund=dog, n02391049"]
    assert run(monkeypatch, "list", "concepts", *source, *ties, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == ["zebra", "dog", "kite", "hund"]
    assert listed["zebra"]["concepts"] == {"n02391049": "zebra"}
    assert (listed["kite"]["how"], listed["kite"]["concepts"]) == ("untied by hand", {})
    assert (listed["hund"]["how"], len(listed["hund"]["concepts"])) == ("by hand", 119)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tie", "zebr="], "Did you mean 'zebra'?"),
        (["--tie", "hund=terier"], "Did you mean 'terrier'?"),
        (["--tie", "hund"], "expected NAME=CONCEPT"),
    ],
)
def test_wrong_ties(source, arguments, expected, monkeypatch, capsys):
    assert run(monkeypatch, "list", "concepts", *source, *arguments) == 2
    assert expected in capsys.readouterr().err


def test_data_are_needed_for_concepts_and_for_nothing_else(source, monkeypatch, capsys):
    assert run(monkeypatch, "list", "concepts") == 2
    assert "--data SRC" in capsys.readouterr().err
    assert run(monkeypatch, "list", "rows", *source) == 2
    assert "belong to 'sarb list concepts'" in capsys.readouterr().err


def test_other_lists(monkeypatch, capsys):
    assert run(monkeypatch, "list", "networks") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{'ssgrl':26} ") for line in lines)
    assert [line.split()[0] for line in lines if line.endswith(" (default)")] == ["probe"]
    assert run(monkeypatch, "list", "methods") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith(" (default)")] == ["auto"]
    assert run(monkeypatch, "list", "recipes", "--json") == 0
    assert "coco2014" in json.loads(capsys.readouterr().out)
