"""``sarb data audit`` on a run of the coloured squares, with faults planted in them."""

import csv
import json
import shutil

import pytest
from PIL import Image, ImageOps

import sarb
from sarb.errors import DataError, SarbError
from sarb.workflows.audit import audit_session
from sarb.workflows.training import train_session
from tests.cli.test_app import run as run_command
from tests.health.pictures import picture

GIVEN = {"backbone": "tiny", "image_size": 64, "epochs": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def faulty(squares, tmp_path_factory):
    """The squares with a copy of a test image in the training images, a mirrored photo, a dark and a bad file."""
    folder = tmp_path_factory.mktemp("faulty")
    for file in squares.glob("*.jpg"):
        shutil.copy(file, folder)
    rows = list(csv.reader((squares / "labels.csv").open(encoding="utf-8")))
    labels = rows[1][2:]
    shutil.copy(folder / "40.jpg", folder / "copy.jpg")
    picture(0).save(folder / "photo.png")
    ImageOps.mirror(picture(0)).save(folder / "mirror.png")
    Image.eval(picture(1), lambda value: value // 12).save(folder / "dark.png")
    names = ["copy.jpg", "photo.png", "mirror.png", "dark.png"]
    rows += [[name, "train", *labels] for name in names]
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return folder


def train(folder, out, **given):
    source = str(folder / "labels.csv")
    options = {"encoding": "binary"}
    train_session(
        source=source, data_options=options, out=out, given={**GIVEN, **given}, quiet=True, page=False
    )
    return out


@pytest.fixture(scope="module")
def run(faulty, tmp_path_factory):
    """A fitted run, which has out-of-fold scores."""
    return train(faulty, tmp_path_factory.mktemp("runs") / "fitted")


@pytest.fixture(scope="module")
def trained(faulty, tmp_path_factory):
    """A run without out-of-fold scores."""
    out = tmp_path_factory.mktemp("runs") / "trained"
    return train(faulty, out, network="pooled", method="partial_bce")


def files(audit, kind):
    return [(found.file_name, found.other_file) for found in audit.of(kind)]


def test_it_finds_what_was_planted(run, tmp_path):
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    found = sarb.audit(run, out=tmp_path / "audit")
    assert files(found, "exact_duplicate") == [("copy.jpg", "40.jpg")]
    assert [item.file_name for item in found.leaks if item.kind == "exact_duplicate"] == ["copy.jpg"]
    assert ("mirror.png", "photo.png") in files(found, "near_duplicate") or (
        "photo.png",
        "mirror.png",
    ) in files(found, "near_duplicate")
    assert files(found, "dark")[0] == ("dark.png", "")  # some of the squares are dark, too
    assert found.notes == [] and found.skipped == []
    with (tmp_path / "audit" / "audit.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(found.findings)
    assert "copy.jpg" in (tmp_path / "audit" / "audit.html").read_text(encoding="utf-8")
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


def test_an_earlier_audit_is_kept(run, tmp_path):
    (tmp_path / "audit.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match="overwrite=True"):
        sarb.audit(run, out=tmp_path)
    assert (tmp_path / "audit.csv").read_text(encoding="utf-8") == "mine"
    audit_session(run, tmp_path, overwrite=True)
    assert (tmp_path / "audit.csv").read_text(encoding="utf-8").startswith("file_name,split,kind")


def test_labels_the_model_was_trained_on_are_not_judged(trained, faulty):
    found = sarb.audit(trained)
    training = len(sarb.load(faulty / "labels.csv", encoding="binary").train)
    assert f"the labels of {training} images" in found.notes[0] and "sarb calibrate" in found.notes[0]
    assert {item.split for item in found.of("label")} <= {"test"}


def test_another_source_with_many_unreadable_images(run, faulty, tmp_path):
    shutil.copytree(faulty, tmp_path / "other")
    for number in (3, 4, 41):
        (tmp_path / "other" / f"{number:02d}.jpg").write_bytes(b"no image")
    found = sarb.audit(run, sarb.load(tmp_path / "other" / "labels.csv", encoding="binary"))
    assert sorted(name for name, _ in found.skipped) == ["03.jpg", "04.jpg", "41.jpg"]
    assert len(found.images) == 48 + 4 - 3
    assert files(found, "exact_duplicate") == [("copy.jpg", "40.jpg")]


def test_no_readable_image_is_an_error(run, faulty, tmp_path):
    shutil.copy(faulty / "labels.csv", tmp_path)
    for file in faulty.glob("*.*g"):
        (tmp_path / file.name).write_bytes(b"no image")
    with pytest.raises(DataError, match="none of its 52 images can be read"):
        sarb.audit(run, sarb.load(tmp_path / "labels.csv", encoding="binary"))


def test_arguments_of_another_type(run):
    with pytest.raises(TypeError, match="run: expected a run folder, got Data"):
        sarb.audit(sarb.load("demo", train=2, test=1, size=64))
    with pytest.raises(TypeError, match=r"data: expected a Data, from sarb.load, got str"):
        sarb.audit(run, "labels.csv")


def test_a_missing_run_is_an_error(tmp_path):
    with pytest.raises(SarbError, match="no such run or model folder"):
        sarb.audit(tmp_path / "none")


def test_command(run, faulty, tmp_path, monkeypatch, capsys):
    assert run_command(monkeypatch, "data", "audit", run, "--out", tmp_path / "a", "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["findings"]["exact_duplicate"] == 1
    assert f"page: {tmp_path / 'a' / 'audit.html'}" in said.err and "next:" not in said.err
    assert run_command(monkeypatch, "data", "audit", run, "--out", tmp_path / "a") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run_command(monkeypatch, "data", "audit", run, "--out", tmp_path / "b") == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("next: sarb train --backbone tiny") and last.endswith(f"--out {run}-2")
    assert f"--data {faulty / 'labels.csv'} -o encoding=binary" in last


def test_unreadable_images_are_listed_and_the_exit_code_says_so(run, faulty, tmp_path, monkeypatch, capsys):
    shutil.copytree(faulty, tmp_path / "other")
    (tmp_path / "other" / "05.jpg").unlink()
    (tmp_path / "other" / "05.jpg").write_bytes(b"")
    source = ["--data", tmp_path / "other" / "labels.csv", "-o", "encoding=binary"]
    assert run_command(monkeypatch, "data", "audit", run, *source, "--out", tmp_path / "a") == 3
    said = capsys.readouterr().err
    assert "in two splits (leakage)" in said and "skipped" in said
    listed = (tmp_path / "a" / "audit.csv.errors.csv").read_text(encoding="utf-8")
    assert "05.jpg" in listed
