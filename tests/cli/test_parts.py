import pytest
import typer

from sarb.bulk import Done
from sarb.cli.parts import file_or_parts, tell, wants_parts
from sarb.errors import ConfigError, SarbError
from tests.documentation.tools import run as run_command


@pytest.mark.parametrize(
    ("out", "engine", "parts"),
    [
        (None, None, False),
        ("-", None, False),
        ("x.csv", None, False),
        ("x/", None, True),
        ("here", None, True),
        ("s3://bucket/x", None, True),
        ("x", "local", True),
    ],
)
def test_when_the_result_is_a_folder_of_parts(tmp_path, monkeypatch, out, engine, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert wants_parts(file_or_parts(out), engine) is parts


def test_engine_needs_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").touch()
    (tmp_path / "notes").touch()
    for out in (None, "-", "notes"):
        with pytest.raises(ConfigError, match="--engine local writes parts; expected --out DIR"):
            wants_parts(out, "local")
    assert wants_parts("x.csv", "local")  # whether it may be replaced is asked before the work
    with pytest.raises(SarbError, match="is not a folder"):
        file_or_parts("x.csv/")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "runs/x", "a.jpg", "--address", "auto"], "--address: is for parts"),
        (
            ["predict", "runs/x", "a.jpg", "--out", "p/", "--excel-safe"],
            "--excel-safe: cannot be used with parts",
        ),
        (["complete", "runs/x", "--out", "p/", "--to", "wide"], "--to: cannot be used with parts"),
        (["complete", "runs/x", "--out", "p.csv", "--workers", "2"], "--workers: is for parts"),
        (
            ["complete", "runs/x", "--out", "p.parquet"],
            "a long table is a CSV; add --engine local for Parquet",
        ),
        (
            ["predict", "runs/x", "a.jpg", "--out", "p.parquet", "--onnx", "x"],
            "--onnx: cannot be used with parts",
        ),
        (["predict", "runs/x", "a.jpg", "--out", "p/"], "no such run or model folder"),
        (["train", "--data", "demo", "--address", "auto"], "--address: is for --engine ray"),
        (["train", "--data", "demo", "--engine", "rai"], "unknown engine 'rai'. Did you mean 'ray'?"),
        (
            ["calibrate", "runs/x", "--engine", "local", "--address", "auto"],
            "--address is for the engine ray",
        ),
        (
            ["train", "--data", "demo", "--method", "sarb", "--augment", "--engine", "local"],
            "--engine computes the feature cache, which is not used here: per-epoch augmentation bypasses it",
        ),
        (
            ["train", "--data", "demo", "--no-cache", "--engine", "local"],
            "--engine computes the feature cache, which is not used here: it is turned off",
        ),
    ],
)
def test_mistakes_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert run_command(["sarb", *words], monkeypatch) == 2
    assert message in capsys.readouterr().err


def test_what_is_said(capsys):
    tell(Done("out", 10, 10, 0, 2, 1), as_json=False)
    assert capsys.readouterr().err == "out: 10 images, 10 rows in 2 parts (1 were there)\n"
    with pytest.raises(typer.Exit) as ended:
        tell(Done("out", 10, 9, 1, 2, 2, ("a.jpg: empty",)), as_json=False)
    assert ended.value.exit_code == 3
    assert "sarb: skipped: a.jpg: empty\nsarb: 1 images could not be read" in capsys.readouterr().err
