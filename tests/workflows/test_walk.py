"""The walk of docs/start.md on a table as a German Excel writes it, with one set of options throughout."""

import codecs
import csv
import shutil

import pytest

import sarb
from sarb.cli.common import pairs
from sarb.data.writers.rewrite import rewrite
from sarb.serve.recogniser import Recogniser
from sarb.serve.start import open_desk
from tests.documentation.tools import run as command

OPTIONS = ["-o", "file_column=Filenames", "-o", "delimiter=;", "-o", "encoding=Ja/Nein"]
FAST = ["--method", "partial_bce", "--network", "pooled", "--backbone", "tiny", "--epochs", "2"]
FAST += ["--image-size", "64", "--batch-size", "8", "--quiet"]


@pytest.fixture
def photos(squares, tmp_path):
    """Folder with ``labels.csv``: semicolons, a byte order mark, CR LF, Ja, Nein and blanks, and a remark."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with (squares / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    lines = [";".join(["Nr", "Filenames", *head[2:], "Bemerkung"])]
    for number, (name, _, *cells) in enumerate(rows):
        shutil.copy(squares / name, folder / name)
        words = [("Nein", "Ja")[int(cell)] for cell in cells]
        words = [word if (number + place) % 3 else "" for place, word in enumerate(words)]
        words = [word.lower() if number == 7 else word for word in words]
        lines.append(";".join([str(number), name, *words, '"grün; schön"' if number % 5 else ""]))
    (folder / "labels.csv").write_bytes(codecs.BOM_UTF8 + "\r\n".join([*lines, ""]).encode())
    return folder


@pytest.mark.slow
def test_the_walk(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = [*OPTIONS, "-o", "ignore=Nr,Bemerkung"]
    before = (photos / "labels.csv").read_bytes()

    def sarb_(*words):
        code = command(["sarb", *words], monkeypatch)
        said = capsys.readouterr()
        assert code == 0, said.err + said.out
        return said.out + said.err

    assert "ready to train" in sarb_("data", "check", "photos/labels.csv", *options)
    sarb_("train", "--data", "photos/labels.csv", *options, *FAST, "--out", "runs/first")
    sarb_("calibrate", "runs/first", "--folds", "2", "--quiet")
    sarb_("complete", "runs/first", "--out", "filled.csv", "--min-confidence", "0.6")
    wide = ["complete", "runs/first", "--out", "away/wide.csv", "--to", "wide", "--min-confidence", "0.6"]
    said = sarb_(*wide)
    assert "to read it: sarb data check away/wide.csv -o file_column=Filenames -o 'delimiter=;'" in said
    assert "ready to train" in sarb_("data", "check", "away/wide.csv", *options)

    answered = review(photos, options)
    assert (photos / "labels.csv").read_bytes() == before
    text = (photos / "reviewed.csv").read_bytes()
    assert changed_cells(before, text) == answered
    assert "ready to train" in sarb_("data", "check", "photos/reviewed.csv", *options)
    sarb_("train", "--data", "photos/reviewed.csv", *options, *FAST, "--out", "runs/second")
    sarb_("evaluate", "runs/first", "--data", "photos/reviewed.csv", *options)
    sarb_("predict", "runs/second", "photos", "--out", "predictions.csv")
    assert sum(1 for _ in (tmp_path / "predictions.csv").open(encoding="utf-8")) == 49


def test_only_filled_cells_differ_and_the_images_are_found_from_elsewhere(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = pairs([*OPTIONS[1::2], "ignore=Nr,Bemerkung"])
    data = sarb.load("photos/labels.csv", **options)
    rewrite(data, "photos/same.csv")
    assert (photos / "same.csv").read_bytes() == (photos / "labels.csv").read_bytes()
    rewrite(data, "away/same.csv")
    again = sarb.load("away/same.csv", **options)
    assert [path.resolve() for path in again.train.paths] == [path.resolve() for path in data.train.paths]
    assert "\r\n0;../photos/00.jpg;" in (tmp_path / "away/same.csv").read_bytes().decode("utf-8-sig")


def review(photos, options):
    """Answer ten questions in the process; return the cells that must have changed."""
    words = pairs(options[1::2])
    desk = open_desk(Recogniser(sarb.load_model("runs/first")), "photos/labels.csv", words, None)
    answered = {}
    for turn in range(10):
        (question,) = desk.next("ann", count=1)
        desk.answer("ann", question.id, ("yes", "no")[turn % 2])
        answered[question.file_name, question.label] = ("Ja", "Nein")[turn % 2]
    desk.close()
    assert desk.out == photos.relative_to(photos.parent) / "reviewed.csv"
    return answered


def changed_cells(before, after):
    """Compare two tables byte by byte outside of blanks; return (file, category) -> new text."""
    assert after.startswith(codecs.BOM_UTF8) and after.count(b"\r\n") == before.count(b"\r\n") == after.count(
        b"\n"
    )
    old, new = (text.decode("utf-8-sig").split("\r\n") for text in (before, after))
    assert old[0] == new[0] and len(old) == len(new)
    head = old[0].split(";")
    found = {}
    for first, second in zip(old[1:], new[1:], strict=True):
        for column, (one, other) in enumerate(zip(first.split(";"), second.split(";"), strict=True)):
            if one != other:
                assert one == ""
                found[first.split(";")[1], head[column]] = other
    return found
