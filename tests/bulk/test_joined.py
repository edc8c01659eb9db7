import os
import shutil

import pandas
import pytest

from sarb import bulk
from sarb.errors import DataError
from sarb.workflows.completion import complete_session
from sarb.workflows.prediction import predict_session
from tests.documentation.tools import run as command


def predict(run, images, out, **options):
    return bulk.predict(run, images, out, workers=1, part_size=20, **options)


@pytest.mark.parametrize("options", [{}, {"top_k": 2}])
def test_one_file_has_what_a_file_has(run, squares, tmp_path, options):
    photos = tmp_path / "photos"
    shutil.copytree(squares, photos)
    (photos / "21.jpg").write_bytes(b"damaged")
    predict_session(run, [photos], tmp_path / "alone.csv", options.get("top_k"), None, False)

    def stop(part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(run, photos, tmp_path / "x.csv", watch=stop, **options)
    assert (tmp_path / "x.csv.parts").is_dir() and not (tmp_path / "x.csv").exists()
    done = predict(run, photos, tmp_path / "x.csv", **options)
    assert (done.parts, done.computed, done.out) == (3, 2, str(tmp_path / "x.csv"))
    assert not (tmp_path / "x.csv.parts").exists()
    one, other = pandas.read_csv(tmp_path / "x.csv"), pandas.read_csv(tmp_path / "alone.csv")
    pandas.testing.assert_frame_equal(one, other, check_exact=False, rtol=0, atol=1e-5)
    errors = pandas.read_csv(tmp_path / "x.csv.errors.csv")
    assert errors["file_name"].tolist() == [str(photos / "21.jpg")] and list(errors)[1] == "reason"
    predict(run, photos, tmp_path / "x.csv", **options)  # its own earlier output
    predict(run, photos, tmp_path / "x.parquet", **options)
    table = pandas.read_parquet(tmp_path / "x.parquet")
    pandas.testing.assert_frame_equal(table, one, check_exact=False, rtol=0, atol=1e-5, check_dtype=False)
    with pytest.raises(DataError, match="exists already; remove it"):
        predict(run, photos, tmp_path / "x.parquet", **options)


def test_one_file_of_completed_labels(run, squares, tmp_path):
    how = {"split": "train", "workers": 1, "part_size": 10}
    bulk.complete(run, squares / "labels.csv", tmp_path / "x.csv", data_options={"encoding": "binary"}, **how)
    with pytest.raises(DataError, match="exists already; add overwrite to replace it"):
        bulk.complete(run, None, tmp_path / "x.csv", **how)
    bulk.complete(run, None, tmp_path / "x.csv", overwrite=True, **how)
    complete_session(run, tmp_path / "alone.csv", split="train")
    one, other = pandas.read_csv(tmp_path / "x.csv"), pandas.read_csv(tmp_path / "alone.csv")
    pandas.testing.assert_frame_equal(one, other, check_exact=False, rtol=0, atol=2e-3)


def test_the_command_line_takes_a_file(monkeypatch, capsys, run, squares, tmp_path):
    photos, out = tmp_path / "photos", tmp_path / "x.csv"
    photos.mkdir()
    shutil.copy(squares / "00.jpg", photos)
    (photos / "bad.jpg").write_text("no image")
    words = ["sarb", "predict", str(run), str(photos), "--engine", "local", "--out"]
    assert command([*words, str(out)], monkeypatch) == 3
    assert f"{out}.errors.csv lists them" in capsys.readouterr().err
    assert len(pandas.read_csv(out)) == len(pandas.read_csv(f"{out}.errors.csv")) == 1
    (tmp_path / "notes").write_text("mine")
    assert command([*words, str(tmp_path / "notes")], monkeypatch) == 2
    assert "a folder or an address, or a file .csv or .parquet" in capsys.readouterr().err


def test_a_file_alone_refuses_names_that_no_table_can_hold(monkeypatch, capsys, run, squares, tmp_path):
    shutil.copy(os.fsencode(squares / "00.jpg"), os.fsencode(tmp_path) + b"/\xff.jpg")
    words = ["sarb", "predict", str(run), str(tmp_path)]
    assert command([*words, "--out", str(tmp_path / "x.csv")], monkeypatch) == 2
    assert "xff.jpg: this name is not UTF-8" in capsys.readouterr().err
    assert command(words, monkeypatch) == 0
    assert command([*words, "--batch-size", "0"], monkeypatch) == 2
