"""``sarb data`` as a user meets it, and that no command changes the data."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.test_app import run
from tests.data.fixtures import write_wide_csv


def content(folder):
    """Return a hash of every name, size, byte and time under a folder."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        stat = path.stat()
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_mode}".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


@pytest.fixture
def photos(tmp_path, monkeypatch):
    write_wide_csv(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "photos"


def test_check_prints_findings_and_the_exit_code_says_whether_to_train(photos, monkeypatch, capsys):
    assert run(monkeypatch, "data", "check", "photos/labels.csv", "-o", "encoding=binary") == 0
    out = capsys.readouterr().out
    assert out.startswith("photos/labels.csv: 9 images (train 6, test 3), 5 categories")
    assert "ready to train" in out
    assert run(monkeypatch, "data", "check", "photos/labels.csv") == 2
    assert "-o encoding=binary" in capsys.readouterr().out
    assert run(monkeypatch, "data", "check", "photos/none.csv") == 2
    assert "no such file" in capsys.readouterr().out


def test_check_as_json(photos, monkeypatch, capsys):
    with (photos / "labels.csv").open("a") as file:
        file.write("none.jpg,train,1,0,maybe,0,1\n")
    source = [photos / "labels.csv", "-o", "encoding=binary"]
    assert run(monkeypatch, "data", "check", *source, "--no-images", "--json") == 2
    content = json.loads(capsys.readouterr().out)
    assert content["counts"]["error"] == 2 and content["images_opened"] == 0
    first = content["findings"][0]
    assert (first["kind"], first["line"], first["column"], first["value"]) == (
        "bad-value",
        11,
        "hot dog",
        "maybe",
    )
    assert "'1', '0' or blank" in first["expected"]


def test_wrong_options_and_places(photos, monkeypatch, capsys):
    assert run(monkeypatch, "data", "check", photos / "labels.csv", "-o", "encodign=binary") == 2
    assert "Did you mean 'encoding'" in capsys.readouterr().err
    assert run(monkeypatch, "data", "check", photos / "labels.csv", "-o", "encoding") == 2
    assert run(monkeypatch, "data", "chekc", photos / "labels.csv") == 2


def test_stats_as_table_json_and_page(photos, monkeypatch, capsys, tmp_path):
    source = ["data", "stats", photos / "labels.csv", "-o", "encoding=binary"]
    assert run(monkeypatch, *source) == 0
    assert "hot dog" in capsys.readouterr().out
    assert run(monkeypatch, *source, "--json", "--html", tmp_path / "stats.html", "--samples", 2) == 0
    captured = capsys.readouterr()
    assert isinstance(json.loads(captured.out), dict)
    page = (tmp_path / "stats.html").read_text()
    assert "hot dog" in page and "http://" not in page.replace("http://www.w3.org", "")


def test_convert_says_how_to_read_the_result(photos, monkeypatch, capsys, tmp_path):
    source = ["data", "convert", photos / "labels.csv", "-o", "encoding=binary"]
    assert run(monkeypatch, *source, "--out", tmp_path / "labels.parquet") == 0
    command = capsys.readouterr().out.strip().split("read it with: ")[1].split()
    assert command[:3] == ["sarb", "data", "check"]
    assert run(monkeypatch, *command[1:]) == 0
    assert run(monkeypatch, *source, "--out", tmp_path / "labels.parquet") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(monkeypatch, *source, "--out", tmp_path / "labels.parquet", "--overwrite") == 0
    assert run(monkeypatch, *source, "--out", photos / "labels.csv", "--overwrite") == 2
    assert run(monkeypatch, *source, "--out", tmp_path / "labels.xyz") == 2


def test_no_command_changes_the_data(photos, monkeypatch, tmp_path):
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    before = content(photos)
    source = [photos / "labels.csv", "-o", "encoding=binary"]
    settings = {
        "backbone": "tiny",
        "image-size": 64,
        "epochs": 1,
        "method": "partial_bce",
        "network": "pooled",
    }
    train = [word for name, value in settings.items() for word in (f"--{name}", value)]
    for arguments in (
        ["data", "check", *source],
        ["data", "stats", *source, "--html", tmp_path / "stats.html"],
        ["data", "convert", *source, "--out", tmp_path / "labels.jsonl"],
        ["train", "--data", *source, *train, "--out", tmp_path / "run", "--quiet"],
        ["evaluate", tmp_path / "run"],
        ["predict", tmp_path / "run", photos / "images", "--out", tmp_path / "predictions.csv"],
        ["report", tmp_path / "run"],
    ):
        assert run(monkeypatch, *arguments) == 0, arguments
        assert content(photos) == before, arguments
    assert (tmp_path / "run" / "report.html").is_file()
