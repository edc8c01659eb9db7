"""The benchmark of cached features, at toy size."""

import csv

import pytest
from benchmarks.features import Times, main, rows

from benchmarks import features, sizes


def test_ratios_are_to_pytorch_within_a_round():
    table = rows({"torch": [Times(0, 4), Times(0, 8)], "openvino": [Times(1, 3), Times(1, 3)]}, images=24)
    plain, fast = table
    assert (plain["whole_ratio"], plain["whole_images_per_second"]) == (1.0, 4.5)
    assert (fast["start_seconds"], fast["whole_images_per_second"], fast["steady_images_per_second"]) == (
        1,
        8,
        12,
    )
    assert (fast["whole_ratio"], fast["steady_ratio"]) == (2.0, 3.0)


def test_it_runs_every_engine(monkeypatch, tmp_path, squares, capsys):
    out = tmp_path / "features.csv"
    monkeypatch.setattr(features, "KINDS", ("torch", "onnxruntime", "openvino", "auto"))
    words = ["--backbone", "tiny", "--image-size", "32", "--images", "6", "--rounds", "1", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["features", "--data", str(squares / "labels.csv"), *words])
    main()
    with out.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["engine"] for row in found] == list(features.KINDS)
    assert float(found[0]["whole_ratio"]) == 1 and "steady_ratio" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "scales"), [("efficientnet_lite1/320", None), ("tiny/64/1.0+0.5", [1.0, 0.5])]
)
def test_kinds_of_features(text, scales):
    how = sizes.how(text)
    assert how.develop and how.scales == scales and f"{how.backbone}/{how.image_size}" in text
    assert ("backbone_options" in how.settings) == (scales is not None)
